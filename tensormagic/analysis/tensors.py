"""A tensor as it was at a step, for `trace[name]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tensormagic.analysis.index import Index
from tensormagic.analysis.names import Named, NamesAt
from tensormagic.recording import values
from tensormagic.recording.model import Blob, State, StateFlag


@dataclass(frozen=True)
class StorageView:
    """A piece of memory: `name` is "S1", `nbytes` its size at that step."""

    name: str
    nbytes: int
    device: str
    number: int


@dataclass(frozen=True)
class TensorView:
    """What was recorded of the tensor of a name.

    Attributes:
        shape, stride, dtype, device, layout: its layout; strides in elements, () where the layout has none.
        nbytes: bytes of its elements (number of elements times element size, however much memory they share).
        requires_grad, is_leaf: autograd's view of it.
        grad_fn: the name of its graph node, None for none.
        values: nested lists of its numbers, None where they were not recorded one by one.
        blob: what is known of its values, for a large one smallest, largest, mean and counts; None if nothing.
        grad: the tensor in `.grad`, None where there is none.
    """

    name: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str
    device: str
    layout: str
    nbytes: int
    requires_grad: bool
    is_leaf: bool
    grad_fn: str | None
    version: int
    storage: StorageView | None
    values: Any
    blob: Blob | None
    grad: TensorView | None

    @property
    def all_zero(self) -> bool | None:
        """Is every element zero? None where the values are not known."""
        if self.values is not None:
            return not np.any(np.asarray(self.values, dtype=object) != 0)
        if self.blob is None or self.blob.low is None:
            return None
        return self.blob.low == self.blob.high == 0 and not self.blob.nans and not self.blob.infs


def tensor(index: Index, name: str, step: int | None = None) -> TensorView:
    """The tensor of that name after `step` (None: at the end).

    Raises:
        UnknownName: nothing has that name at that step.
        TypeError: the name stands for something that is no tensor.
    """
    at = NamesAt(index, step)
    return _view(index, at, at[name])


def _view(index: Index, at: NamesAt, named: Named) -> TensorView:
    state = named.state
    if state is None:
        kind = index.string(index.object(named.base).type)
        raise TypeError(f"{named.text!r} stands for a {kind}, which is no tensor: ask for one of the tensors in it")
    geometry = index.geometry(state)
    elements = int(np.prod(named.shape, dtype=np.int64))
    blob, listed = value_of(index, named, at.step)
    storage = None
    if state.storage >= 0:
        row = index.recording.storages[state.storage]
        storage = StorageView(
            f"S{state.storage + 1}",
            index.storage_nbytes(state.storage, at.step),
            index.string(row.device),
            state.storage,
        )
    grad_name = f"{named.text}.grad"
    grad = _view(index, at, at[grad_name]) if grad_name in set(at) else None
    return TensorView(
        named.text, named.shape, named.stride, geometry.dtype, geometry.device, geometry.layout,
        elements * named.itemsize, bool(state.flags & StateFlag.REQUIRES_GRAD), bool(state.flags & StateFlag.LEAF),
        index.string(state.node_name) if state.node >= 0 else None, state.version, storage, listed, blob, grad,
    )  # fmt: skip


def value_of(index: Index, named: Named, step: int) -> tuple[Blob | None, Any]:
    """What is known of the values behind a name after `step`: (summary or bytes, nested lists or None)."""
    state = named.state
    if state is None or state.storage < 0:
        return None, None
    snapshot = index.snapshot(state.storage, step)
    if snapshot is not None:
        array = stored(index, state, named, index.recording.blobs[snapshot.blob])
        if array is not None:
            return index.recording.blobs[snapshot.blob], values.to_lists(array)
    if named.object >= 0:
        own = index.snapshot(state.storage, step, named.object)
        if own is not None:
            blob = index.recording.blobs[own.blob]
            return blob, values.values(blob)
    return None, None


def stored(index: Index, state: State, named: Named, blob: Blob) -> Any:
    """A tensor's elements read out of the bytes of its storage; None where they do not hold them."""
    if blob.data is None:
        return None
    geometry = index.geometry(state)._replace(shape=named.shape, stride=named.stride)
    return values.decode_slice(blob.data, geometry, state.offset)


@dataclass(frozen=True)
class Added:
    """What one backward run brought to one leaf.

    Attributes:
        line, step: of the backward call.
        values: what was added, nested lists; None where it was not recorded one by one.
        parts: (line of the operation that sent it, values) of each contribution.
        before, after: .grad before and after, nested lists or None.
        in_place: it was added into the tensor that .grad already was.
    """

    line: int
    step: int
    values: Any
    parts: tuple[tuple[int, Any], ...]
    before: Any
    after: Any
    in_place: bool


def accumulations(index: Index, name: str) -> list[Added]:
    """What each backward run added to the .grad of a leaf, in order.

    Raises:
        UnknownName: nothing has that name at the end.
    """
    from tensormagic.analysis.flow import Flow

    recording, flow = index.recording, Flow(index)
    leaf = NamesAt(index, None)[name].base
    found = []
    for row in recording.accumulations:
        if row.object != leaf:
            continue
        run = recording.backwards[row.run]
        edges = [recording.gradients[i] for i in range(run.first_edge, run.first_edge + run.edges)]
        parts = tuple(
            (flow.line_of_node(edge.source), _listed(index, edge.blob))
            for edge in edges if edge.run == row.run and edge.target == -1 - leaf and edge.blob >= 0
        )  # fmt: skip
        found.append(Added(
            index.line_of(run.step), run.step, _listed(index, row.added), parts,
            _listed(index, row.before), _listed(index, row.after), bool(row.in_place),
        ))  # fmt: skip
    return found


def _listed(index: Index, blob: int) -> Any:
    return values.values(index.recording.blobs[blob]) if blob >= 0 else None
