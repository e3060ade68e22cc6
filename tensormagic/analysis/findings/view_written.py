"""A view that autograd cannot follow through a write was written in place."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule
from tensormagic.analysis.way import chain

_TEXT = "is being modified inplace"
_WHY = {  # part of torch's text -> why it refuses, what to write; both filled with names and lines
    "created in no_grad mode": (
        "line {viewed} made it under `no_grad`, so autograd does not know whether the write counts",
        "Make the view on line {viewed} and the write on line {written} both inside `no_grad` or both outside.",
    ),
    "created in inference mode": (
        "line {viewed} made it in inference mode, so autograd does not know whether the write counts",
        "Make the view on line {viewed} and the write on line {written} both inside or both outside.",
    ),
    "function that returns multiple views": (
        "line {viewed} (`{call}`) gave it together with others, and autograd cannot follow a write into one of several",
        "Make a new tensor on line {written} instead of writing in place.",
    ),
    "created inside a custom Function": (
        "a custom Function returned it, and autograd cannot follow a write through that",
        "Write on line {written} into a copy (`.clone()`), or make a new tensor.",
    ),
}


def find(facts: Facts) -> Iterator[Finding]:
    error, call = facts.error, facts.raised_call
    if error is None or call < 0 or _TEXT not in error.message:
        return
    reasons = [words for text, words in _WHY.items() if text in error.message]
    views = [item.object for item in facts.index.inputs(call) if chain(facts.index, item.object)]
    if not reasons or not views:
        return
    view, made = views[0], facts.index.maker(views[0])
    told = {"viewed": facts.line_of_call(made), "written": error.line, "call": facts.described(made)}
    why, fix = (words.format(**told) for words in reasons[0])
    names = facts.all_names(view)[:3]
    name = f"`{names[0]}`" if names else "a view"
    lines = {"written": error.line, "raised": error.line} | ({"viewed": told["viewed"]} if made >= 0 else {})
    if made < 0:
        why, fix = "of how it was made", "Make a new tensor instead of writing in place."
    yield Finding(
        RULE.id,
        ERROR,
        error.line,
        names,
        f"Line {error.line} may not write into {name} in place: {why}.",
        fix,
        lines,
        error.step,
    )


RULE = Rule(
    id="view-written-in-place",
    sees="The errors about a view that is being modified in place: one of several views of one call, a view made under "
    "no_grad or inside a custom Function.",
    matters="The error does not say which tensor it is, nor the line that made the view.",
    example="x = torch.ones(4, requires_grad=True) * 1.0\na, b = x.chunk(2)\na.add_(1)\n",
    instead="a, b = x.chunk(2)\na = a + 1\n",
    blind="Where the view was made, if that was before the cell. An exception that was caught.",
    find=find,
)
