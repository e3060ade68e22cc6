"""A leaf that wants a gradient, or a view of one, was written in place while gradients were on."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule
from tensormagic.analysis.way import chain
from tensormagic.recording.model import StateFlag

_TEXT = ("a leaf Variable that requires grad is being used in an in-place operation",
         "a view of a leaf Variable that requires grad is being used in an in-place operation")  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    error, call = facts.error, facts.raised_call
    if error is None or call < 0 or not any(text in error.message for text in _TEXT):
        return
    found = _written(facts, call)
    if found is None:
        return
    target, leaf = found
    view = facts.line_of_call(facts.index.maker(target)) if leaf != target else -1
    names = tuple(dict.fromkeys((*facts.all_names(leaf)[:1], *facts.all_names(target)[:2])))
    name = f"`{facts.name(leaf)}`" if facts.names(leaf) else "memory"
    through = f" through `{names[-1]}`, a view of it," if view > 0 and facts.names(target) else ""
    yield Finding(
        RULE.id, ERROR, error.line, names,
        f"Line {error.line} writes into {name}{through} while gradients are on: it is a leaf that wants a gradient, and a leaf "
        f"may not change as part of the graph.",
        "Put the write inside `with torch.no_grad():`" + (" and make the view there too." if view > 0 else "."),
        {"written": error.line, "raised": error.line} | ({"viewed": view} if view > 0 else {}), error.step,
    )  # fmt: skip


def _written(facts: Facts, call: int) -> tuple[int, int] | None:
    """The tensor that the call was to write into, and the leaf that it is or that it is a view of.

    The written tensor comes first; a call over a list takes several, of which the first that is a leaf's is told.
    """
    for item in facts.index.inputs(call):
        for object in (item.object, *(hop.source for hop in chain(facts.index, item.object))):
            state = facts.index.state_before_call(object, call)
            if state is not None and state.flags & StateFlag.LEAF and state.flags & StateFlag.REQUIRES_GRAD:
                return item.object, object
    return None


RULE = Rule(
    id="leaf-written-in-place",
    sees="The error about writing into a leaf, or a view of one, that requires a gradient.",
    matters="Initialising or updating a parameter must not become part of the graph.",
    example="w = torch.ones(3, requires_grad=True)\nw[0] = 2.0\n",
    instead="with torch.no_grad():\n    w[0] = 2.0\n",
    blind="Which of several leaves a call over a list of tensors meant: the first is told. An exception that was caught.",
    find=find,
)
