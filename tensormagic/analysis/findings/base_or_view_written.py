"""A view that cannot be used any more: its base, or another view of the base, was written in place."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed
from tensormagic.analysis.way import chain
from tensormagic.recording.model import Write, WriteKind

_TEXT = "its base or another view of its base has been modified inplace"


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or _TEXT not in error.message:
        return
    write, views = _culprit(facts, error.step)
    if write is None:
        return
    modified = facts.line(write.step)
    names = tuple(dict.fromkeys(name for view in views for name in facts.all_names(view)[:1]))
    made = facts.line_of_call(facts.index.maker(views[0]))
    base = facts.names(write.object)
    owner = facts.names(chain(facts.index, views[0])[-1].source)[:1]
    through = f"`{base[0]}`" if base else "their memory"
    if len(views) > 1:
        why = f"{listed(names) or 'The views'} came out of it together on line {made}, and torch gives up on such views when their"
    else:
        why = f"{listed(names) or 'The view'} was made of it under `no_grad` on line {made}, and torch gives up on such a view when its"
    instead = f"`{base[0]} = ...` without the in-place form" if base else "without the in-place form"
    yield Finding(
        RULE.id, ERROR, modified, tuple(dict.fromkeys((*names, *facts.all_names(write.object)[:1], *owner))),
        f"Line {modified} changed {through} in place; {why} memory changes: line {error.line} raised.",
        f"Make a new tensor on line {modified} ({instead}), then take it apart again.",
        {"viewed": made, "written": modified, "raised": error.line}, write.step,
    )  # fmt: skip


def _culprit(facts: Facts, step: int) -> tuple[Write | None, list[int]]:
    """The write that made a view useless, and the views that one call gave together.

    The view is one that the call which raised took in. Where it is not known which call that was (torch also raises when
    `grad_fn` is asked for), it is the last such view that was written to.
    """
    index, call = facts.index, facts.raised_call
    if call >= 0:
        for item in index.inputs(call):
            together = _together(facts, item.object)
            write = _first_write(facts, item.object, call) if together else None
            if write is not None:
                return write, together
    for row in range(len(facts.recording.writes) - 1, -1, -1):
        write = facts.recording.writes[row]
        if write.kind != WriteKind.CALL or write.step > step or write.call < 0:
            continue
        for object in index.objects_on(write.storage):
            together = _together(facts, object)
            if len(together) > 1 and index.maker(object) < write.call and facts.all_names(object):
                return write, together
    return None, []


def _together(facts: Facts, object: int) -> list[int]:
    """The view and what the call that made it gave beside it; [] for what is no view."""
    maker = facts.index.maker(object)
    hops = chain(facts.index, object)
    if maker < 0 or not hops or hops[0].call != maker:
        return []
    return [item.object for item in facts.index.outputs(maker)]


def _first_write(facts: Facts, view: int, call: int) -> Write | None:
    """The first told write to the view's memory after it was made and before `call`."""
    state = facts.index.state_before_call(view, call)
    for row in facts.index.writes_to(state.storage) if state is not None and state.storage >= 0 else ():
        write = facts.recording.writes[row]
        if write.kind == WriteKind.CALL and facts.index.maker(view) < write.call < call:
            return write
    return None


RULE = Rule(
    id="base-or-view-written",
    sees="The error about a view whose base was modified in place: the write, and the call that gave the views together.",
    matters="The error comes where the view is used; the line to change is the write, often far above.",
    example="x = torch.ones(4, requires_grad=True) * 1.0\na, b = x.chunk(2)\nx.mul_(2)\nloss = a.sum()\n",
    instead="x = x * 2\na, b = x.chunk(2)\n",
    blind="Views made and written in light steps.",
    find=find,
)
