"""A view that cannot be used any more: its base, or another view of the base, was written in place."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed
from tensormagic.recording.model import Write, WriteKind

_TEXT = ("its base or another view of its base has been modified inplace", "is a view and is being modified inplace")


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or not any(text in error.message for text in _TEXT):
        return
    write, views = _culprit(facts, error.step)
    if write is None:
        return
    modified = facts.index.line_of(write.step)
    names = tuple(dict.fromkeys(name for view in views for name in facts.all_names(view)[:1]))
    made = [facts.line_of_call(facts.index.maker(view)) for view in views]
    through = facts.name(write.object)
    yield Finding(
        RULE.id, ERROR, modified, (*names, *facts.all_names(write.object)[:1]),
        f"Line {modified} changed `{through}` in place; {listed(names)} came out of it together on line {made[0]}, and torch "
        f"gives up on such views when their memory changes: line {error.line} raised.",
        f"Make a new tensor on line {modified} (`{through} = ...` without the in-place form), then take it apart again.",
        {"viewed": made[0], "modified": modified, "raised": error.line}, write.step,
    )  # fmt: skip


def _culprit(facts: Facts, step: int) -> tuple[Write | None, list[int]]:
    """The last told write before the error on memory of which one call gave several views, and those views."""
    index = facts.index
    for row in range(len(facts.recording.writes) - 1, -1, -1):
        write = facts.recording.writes[row]
        if write.kind != WriteKind.CALL or write.step > step or write.call < 0:
            continue
        for object in index.objects_on(write.storage):
            maker = index.maker(object)
            together = [item.object for item in index.outputs(maker)] if 0 <= maker < write.call else []
            if len(together) > 1 and all(facts.all_names(view) for view in together[:1]):
                return write, together
    return None, []


RULE = Rule(
    id="base-or-view-written",
    sees="The error about a view whose base was modified in place: the write, and the call that gave the views together.",
    matters="The error comes where the view is used; the line to change is the write, often far above.",
    example="x = torch.ones(4, requires_grad=True) * 1.0\na, b = x.chunk(2)\nx.mul_(2)\nloss = a.sum()\n",
    instead="x = x * 2\na, b = x.chunk(2)\n",
    blind="Views made and written in light steps.",
    find=find,
)
