"""A leaf that wants a gradient, or a view of one, was written in place while gradients were on."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule
from tensormagic.analysis.way import chain
from tensormagic.recording.model import CallFlag

_TEXT = ("a leaf Variable that requires grad is being used in an in-place operation",
         "a view of a leaf Variable that requires grad is being used in an in-place operation")  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or not any(text in error.message for text in _TEXT):
        return
    for number in range(len(facts.recording.calls) - 1, -1, -1):
        call = facts.recording.calls[number]
        if call.flags & CallFlag.RAISED and facts.index.inputs(number):
            target = facts.index.inputs(number)[0].object
            leaf = _leaf(facts, target)
            name = facts.name(leaf)
            lines = {"raised": error.line}
            view = facts.line_of_call(facts.index.maker(target))
            if leaf != target and view > 0:
                lines["viewed"] = view
            yield Finding(
                RULE.id, ERROR, error.line, tuple(dict.fromkeys((name, *facts.all_names(target)[:2]))),
                f"Line {error.line} writes into `{name}`, a leaf that wants a gradient, while gradients are on: the graph "
                f"could not tell its old values from the new ones.",
                f"with torch.no_grad(): do the view and the write of `{name}` inside.", lines, error.step,
            )  # fmt: skip
            return


def _leaf(facts: Facts, object: int) -> int:
    """What the tensor is a view of, through all views."""
    hops = chain(facts.index, object)
    return hops[-1].source if hops else object


RULE = Rule(
    id="leaf-written-in-place",
    sees="The error about writing into a leaf, or a view of one, that requires a gradient.",
    matters="Initialising or updating a parameter must not become part of the graph.",
    example="w = torch.ones(3, requires_grad=True)\nw[0] = 2.0\n",
    instead="with torch.no_grad():\n    w[0] = 2.0\n",
    blind="Which of several leaves an in-place call over a list meant.",
    find=find,
)
