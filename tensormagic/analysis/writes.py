"""In-place changes, and every name that saw them."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np

from tensormagic.analysis.index import Index
from tensormagic.analysis.names import Named, NamesAt, calling_frames
from tensormagic.analysis.regions import Form, canonical, compare
from tensormagic.analysis.sharing import form_of, storage_shift
from tensormagic.recording.model import ObjectKind, Write, WriteKind

_ROWS = 16  # rows of a tensor whose rows share memory that are named one by one
_ENUMERATED = 1 << 16  # elements of a name that are compared with a write element by element


@dataclass(frozen=True)
class WriteView:
    """One in-place change.

    Attributes:
        line: of the cell or of the function that wrote; `step` is the execution of it.
        through: a name of the tensor written through, "" where it had none.
        reaches: every name that saw the change (the one written through too): names of the function that wrote, of those
            that had called it, and of the cell.
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
        self._of_step: tuple[int, list[Named]] = (-2, [])

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
        seen = [named for named in names if reaches(index, write, named)]
        parts = [part for named in seen for part in self._rows(write, named)]
        through = next((named.text for named in names if named.object == write.object), "")
        elements = tuple(index.recording.elements[write.elements]) if write.elements >= 0 else None
        return WriteView(
            row, write.step, index.line_of(write.step), WriteKind(write.kind),
            index.function(write.call) if write.call >= 0 else "", through,
            tuple(dict.fromkeys([*(named.text for named in seen), *parts])),
            write.kind in (WriteKind.CALL, WriteKind.ACCUMULATE), write.before, write.after, elements,
            f"S{write.storage + 1}",
        )  # fmt: skip

    def _names(self, step: int) -> list[Named]:
        """Those of `_collect`; a step may write hundreds of times, and its names are the same for each."""
        if self._of_step[0] != step:
            self._of_step = step, self._collect(step)
        return self._of_step[1]

    def _collect(self, step: int) -> list[Named]:
        """What every name stood for while a step ran: in its own frame, in those that called it, in the cell.

        The names are those after the step, then those before it that the line took away or moved to another tensor. One
        text may stand there more than once: a function's `x` and its caller's are two names.
        """
        index = self.index
        found: dict[tuple[int, str, int], Named] = {}
        for frame in calling_frames(index, step):
            running = self._running(frame, step)
            times = [step, step - 1] if step >= 0 else [step]
            if running > step and not index.named_before(frame, running):
                times.append(running)  # the caller's first line still runs: what it was called with is noted at its end
            for one in times:
                at = NamesAt(index, one, [frame])
                stored = _stored(index.line_text(running)) if one > step else ()
                for text in at.tensors():
                    named = at[text]
                    if one <= step or index.segments(named.path)[0][1] not in stored:
                        found.setdefault((frame, text, named.object), named)
        return list(found.values())

    def _running(self, frame: int, step: int) -> int:
        """The step of a frame that runs while `step` does, -1 where there is none."""
        steps = self.index.recording.steps
        while step >= 0 and steps[step].frame != frame:
            step = steps[step].parent
        return step

    def _rows(self, write: Write, named: Named) -> list[str]:
        """Rows of an expanded tensor: several places of it are one memory, so a write to one is seen in the others."""
        if named.state is None or named.state.storage != write.storage or not named.shape:
            return []
        if named.shape[0] < 2 or not named.stride or named.stride[0] != 0:
            return []
        return [f"{named.text}[{row}]" for row in range(min(named.shape[0], _ROWS))]


def _stored(line: str) -> set[str]:
    """The variables that an assignment of one line stores; its targets stand before the first `=` that is alone."""
    targets = re.split(r"(?<![=!<>:])=(?!=)", line, maxsplit=1)
    return set(re.findall(r"\w+", targets[0])) if len(targets) > 1 and "(" not in targets[0] else set()


def reaches(index: Index, write: Write, named: Named) -> bool:
    """Did what a name stands for change with a write?"""
    state = named.state
    if state is None:
        return named.object == write.object and named.object >= 0
    shift = storage_shift(index, write.storage, state.storage, write.step, named)
    if shift is None or _is_apart(index, write, named, shift):
        return False
    form = form_of(named)
    if form is None:
        return False
    if write.elements >= 0:
        changed = index.recording.elements[write.elements]
        if changed:
            return touches(named, changed, _itemsize(index, write), shift)
    if write.state < 0:
        return state.storage == write.storage
    written = index.recording.states[write.state]
    geometry = index.geometry(written)
    size = geometry.itemsize
    target = canonical(written.offset * size, geometry.shape, tuple(s * size for s in geometry.stride), size)
    if target is None:
        return False
    common = compare(target, Form(form.start + shift, form.dims))
    return common.overlap is not False  # past the bound of the solver: it may


def _is_apart(index: Index, write: Write, named: Named, shift: int) -> bool:
    """Do the storages of two tensors have no byte in common? An array may reach past the storage it was first seen on."""
    assert named.state is not None
    storage, other = write.storage, named.state.storage
    if storage == other or write.object < 0:
        return False
    if any(index.kinds[object] != ObjectKind.TENSOR for object in (write.object, named.base)):
        return False
    return not -index.storage_nbytes(other) < shift < index.storage_nbytes(storage)


def _itemsize(index: Index, write: Write) -> int:
    return index.geometry(index.recording.states[write.state]).itemsize if write.state >= 0 else 1


def touches(named: Named, changed: list[int], itemsize: int, shift: int = 0) -> bool:
    """Does a name see one of the changed storage elements?

    Args:
        named: what the name stands for.
        changed: elements of the storage that was written, `itemsize` bytes each.
        itemsize: bytes of one of them.
        shift: where the name's storage begins, in bytes from the start of the one that was written.
    """
    assert named.state is not None
    if int(np.prod(named.shape, dtype=np.int64)) > _ENUMERATED:
        return True
    starts = np.asarray(named.state.offset, dtype=np.int64)
    for size, step in zip(named.shape, named.stride, strict=True):
        starts = starts[..., None] + np.arange(size) * step
    first = np.sort(starts.ravel() * named.itemsize + shift)
    wanted = np.asarray(changed, dtype=np.int64) * itemsize
    after = np.searchsorted(
        first, wanted - named.itemsize, side="right"
    )  # the first element that ends behind its start
    inside = after < len(first)
    return bool((first[after[inside]] < wanted[inside] + itemsize).any())
