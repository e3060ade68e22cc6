"""A write through a tensor whose places share memory."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tensormagic.analysis.findings.base import ERROR, WARNING, Facts, Finding, Rule
from tensormagic.analysis.regions import canonical
from tensormagic.analysis.way import chain
from tensormagic.recording.model import Geometry, State, Write

_TEXT = "more than one element of the written-to tensor refers to a single memory location"
_MOST_PLACES = 1 << 20  # places of a tensor that are looked at one by one


def find(facts: Facts) -> Iterator[Finding]:
    error, call = facts.error, facts.raised_call
    if error is not None and call >= 0 and _TEXT in error.message:
        for item in facts.index.inputs(call):
            state = facts.index.state_before_call(item.object, call)
            if state is not None and _folded(facts.index.geometry(state)):
                yield _finding(facts, item.object, item.object, error.line, error.step, ERROR)
                break
    told: set[tuple[int, int]] = set()
    for write in facts.recording.writes:
        folded = _through(facts, write)
        line = facts.line(write.step)
        if folded >= 0 and (line, folded) not in told:
            told.add((line, folded))
            yield _finding(facts, folded, write.object, line, write.step, WARNING)


def _through(facts: Facts, write: Write) -> int:
    """The tensor with shared places that was written, itself or through a view of it; -1 for none.

    Only a write counts that changed an element which that tensor shows in more than one place.
    """
    if write.state < 0 or write.object < 0 or write.call < 0 or write.elements < 0:
        return -1
    index, changed = facts.index, facts.recording.elements[write.elements]
    written = facts.recording.states[write.state]
    size = index.geometry(written).itemsize
    for object in (write.object, *(hop.source for hop in chain(index, write.object, write.step))):
        state = written if object == write.object else index.state_before_call(object, write.call)
        if state is None or state.storage != write.storage or index.geometry(state).itemsize != size:
            continue
        if _folded(index.geometry(state)) and _shown_twice(state, index.geometry(state), changed):
            return object
    return -1


def _folded(geometry: Geometry) -> bool:
    """Do two places of the tensor lie on the same bytes? False past the bound of what can be counted."""
    if len(geometry.stride) != len(geometry.shape):
        return False
    size = geometry.itemsize
    form = canonical(0, geometry.shape, tuple(step * size for step in geometry.stride), size)
    count = form.count() if form is not None else None
    return count is not None and count < math.prod(geometry.shape) * size


def _shown_twice(state: State, geometry: Geometry, changed: list[int]) -> bool:
    """Is one of the changed storage elements in more than one place of the tensor?"""
    if not changed:
        return False
    dims = [(n, step) for n, step in zip(geometry.shape, geometry.stride, strict=True) if step]
    if math.prod(n for n, _ in dims) > _MOST_PLACES:
        return False
    places = np.full(1, state.offset, np.int64)
    for n, step in dims:
        places = (places[:, None] + np.arange(n, dtype=np.int64) * step).ravel()
    elements, counts = np.unique(places, return_counts=True)
    repeated = any(n > 1 and not step for n, step in zip(geometry.shape, geometry.stride, strict=True))
    return bool(np.isin(elements if repeated else elements[counts > 1], changed).any())


def _finding(facts: Facts, folded: int, object: int, line: int, step: int, severity: str) -> Finding:
    made = facts.line_of_call(facts.index.maker(folded))
    name = f"`{facts.name(folded)}`" if facts.names(folded) else "A tensor without a name"
    lines = {"written": line} | ({"expanded": made} if made > 0 else {})
    end = "was refused" if severity == ERROR else "shows in every one of them"
    names = tuple(dict.fromkeys((*facts.all_names(folded)[:3], *facts.all_names(object)[:2])))
    through = f" through its part `{facts.name(object)}`" if object != folded and facts.names(object) else ""
    return Finding(
        RULE.id, severity, line, names,
        f"{name} has one piece of memory in several places" + (f" since line {made}" if made > 0 else "")
        + f": the write on line {line}{through} {end}.",
        "Give it memory of its own first: `.clone()` (or `.repeat(...)` instead of `.expand(...)`).", lines, step,
    )  # fmt: skip


RULE = Rule(
    id="expanded-memory-written",
    sees="A write in place through a tensor of which several places lie on the same memory (expand, broadcast_to, "
    "overlapping windows of unfold or as_strided), or through a view of one.",
    matters="What was meant for one row is written into all; some operations refuse it, some only warn, most say nothing.",
    example="r = torch.arange(1, 5).expand(3, 4)\nr.masked_fill_(torch.tensor([False, False, True, True]), 0)\n",
    instead="r = torch.arange(1, 5).expand(3, 4).clone()\n",
    blind="Writes past the bound of detail, and overlaps of very many places. A write through the tensor that was expanded "
    "is taken as meant.",
    find=find,
)
