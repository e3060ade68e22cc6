"""In-place changes, and every name that saw them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from tensormagic.analysis.index import Index
from tensormagic.analysis.names import Named, NamesAt
from tensormagic.analysis.regions import canonical, compare
from tensormagic.analysis.sharing import form_of
from tensormagic.recording.model import Write, WriteKind

_ROWS = 16  # rows of a tensor whose rows share memory that are named one by one
_ENUMERATED = 1 << 16  # elements of a name that are compared with a write element by element


@dataclass(frozen=True)
class WriteView:
    """One in-place change.

    Attributes:
        line: of the cell or of the function that wrote; `step` is the execution of it.
        through: a name of the tensor written through, "" where it had none.
        reaches: every name that saw the change (the one written through too).
        told: whether autograd's version counter was told of it.
        before, after: the version counter, -1 where it cannot be read.
        elements: the storage elements that changed, None where they are not known one by one.
    """

    row: int
    step: int
    line: int
    kind: WriteKind
    function: str
    through: str
    reaches: tuple[str, ...]
    told: bool
    before: int
    after: int
    elements: tuple[int, ...] | None
    storage: str


class Writes:
    """The writes of a recording; names that saw them are worked out when first asked for."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def __len__(self) -> int:
        return len(self.index.recording.writes)

    @functools.cached_property
    def _views(self) -> dict[int, WriteView]:
        return {}

    def __getitem__(self, row: int) -> WriteView:
        view = self._views.get(row)
        if view is None:
            view = self._views[row] = self._make(row)
        return view

    def __iter__(self):  # type: ignore[no-untyped-def]
        return (self[row] for row in range(len(self)))

    def _make(self, row: int) -> WriteView:
        index = self.index
        write = index.recording.writes[row]
        names = self._names(write.step)
        seen = tuple(text for text, named in names.items() if reaches(index, write, named))
        parts = tuple(part for named in names.values() for part in self._rows(write, named) if named.text in seen)
        through = next((text for text, named in names.items() if named.object == write.object), "")
        elements = tuple(index.recording.elements[write.elements]) if write.elements >= 0 else None
        return WriteView(
            row, write.step, index.line_of(write.step), WriteKind(write.kind),
            index.function(write.call) if write.call >= 0 else "", through, seen + parts,
            write.kind in (WriteKind.CALL, WriteKind.ACCUMULATE), write.before, write.after, elements,
            f"S{write.storage + 1}",
        )  # fmt: skip

    def _names(self, step: int) -> dict[str, Named]:
        """Every tensor's name after the step and, for those that the line took away, before it; callers' too."""
        index = self.index
        found: dict[str, Named] = {}
        chain = [step]
        while chain[-1] >= 0 and (parent := index.recording.steps[chain[-1]].parent) >= 0:
            chain.append(parent)
        for one in (step, step - 1):
            if one >= -1:
                at = NamesAt(index, one)
                for text in at.tensors():
                    found.setdefault(text, at[text])
        return found

    def _rows(self, write: Write, named: Named) -> list[str]:
        """Rows of an expanded tensor: several places of it are one memory, so a write to one is seen in the others."""
        if named.state is None or named.state.storage != write.storage or not named.shape:
            return []
        if named.shape[0] < 2 or not named.stride or named.stride[0] != 0:
            return []
        return [f"{named.text}[{row}]" for row in range(min(named.shape[0], _ROWS))]


def reaches(index: Index, write: Write, named: Named) -> bool:
    """Did what a name stands for change with a write?"""
    state = named.state
    if state is None or state.storage != write.storage:
        return named.object == write.object and named.object >= 0
    form = form_of(named)
    if form is None:
        return False
    if write.elements >= 0:
        changed = index.recording.elements[write.elements]
        if changed:
            return touches(named, changed, _itemsize(index, write))
    if write.state < 0:
        return True
    written = index.recording.states[write.state]
    geometry = index.geometry(written)
    size = geometry.itemsize
    target = canonical(written.offset * size, geometry.shape, tuple(s * size for s in geometry.stride), size)
    if target is None:
        return False
    common = compare(target, form)
    return common.overlap is not False  # past the bound of the solver: it may


def _itemsize(index: Index, write: Write) -> int:
    return index.geometry(index.recording.states[write.state]).itemsize if write.state >= 0 else 1


def touches(named: Named, changed: list[int], itemsize: int) -> bool:
    """Does a name see one of the changed storage elements (each `itemsize` bytes)?"""
    assert named.state is not None
    if int(np.prod(named.shape, dtype=np.int64)) > _ENUMERATED:
        return True
    starts = np.asarray(named.state.offset, dtype=np.int64)
    for size, step in zip(named.shape, named.stride, strict=True):
        starts = starts[..., None] + np.arange(size) * step
    first = starts.ravel() * named.itemsize
    wanted = np.asarray(changed, dtype=np.int64) * itemsize
    if named.itemsize == itemsize:
        return bool(np.isin(wanted, first).any())
    return bool(((first[:, None] < wanted + itemsize) & (wanted < first[:, None] + named.itemsize)).any())
