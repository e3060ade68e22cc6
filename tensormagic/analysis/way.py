"""The way from one name to another in calls and lines: how two tensors came to share memory.

From each tensor the calls that gave it its memory are followed back as long as an input lay on the same storage; where
the two chains first meet is the tensor that both come from. A call that only computes from its inputs ends a chain.
"""

from __future__ import annotations

from typing import NamedTuple

from tensormagic.analysis.index import Index
from tensormagic.analysis.names import NamesAt
from tensormagic.recording.model import ObjectKind, Recording


class Hop(NamedTuple):
    """One call on the way, from one tensor to the next."""

    source: int  # object that the hop starts from, in the order of the way
    target: int  # object that it leads to
    call: int  # -1: no call was seen, a look at the names found the object
    function: str  # "Tensor.detach"; "numpy" for an array whose call was not seen, "" for a tensor
    args: str  # the plain arguments as source text ("[:2]"), or ""
    step: int  # when; of an unseen call, when the object was found; -1 before the cell
    line: int  # of the step, in its own file; -1 for step -1
    back: bool  # True: against the call, from what it made to what it was made from


def way(source: Recording | Index, a: str, b: str, step: int | None = None) -> tuple[Hop, ...] | None:
    """The way from the tensor of one name to that of another, through tensors of the same memory.

    Hops with `back` lead from `a` to the tensor that both come from; the others lead on to `b`.

    Args:
        source: the recording, or an Index of it.
        a, b: names of tensors or arrays; of a part (`x[0]`), the way is that of the tensor.
        step: when the names are taken; None is the end.

    Returns:
        the hops in order; () for one object; None where they do not share a storage or the way was not seen.

    Raises:
        UnknownName, ValueError, IndexError: as in `sharing.relation`.
    """
    at = NamesAt(Index.of(source), step)
    first, last = at[a].base, at[b].base
    if first == last:
        return ()
    up, down = chain(at.index, first, at.step), chain(at.index, last, at.step)
    places = {first: 0} | {hop.source: i + 1 for i, hop in enumerate(up)}
    for count, origin in enumerate([last] + [hop.source for hop in down]):
        if origin in places:
            turned = [hop._replace(source=hop.target, target=hop.source, back=True) for hop in up[: places[origin]]]
            return (*turned, *reversed(down[:count]))
    return None


def chain(index: Index, object: int, step: int | None = None) -> list[Hop]:
    """The hops that gave an object its memory, the newest first, back to the tensor that the memory was made for.

    Each hop leads from `source`, which was on the storage before, to `target`.
    """
    hops: list[Hop] = []
    met = {object}
    state = index.state(object, step)
    while state is not None and state.storage >= 0:
        hop = _hop(index, object, state.storage, step)
        if hop is None or hop.source in met:
            break
        hops.append(hop)
        object = hop.source
        met.add(object)
        step = None  # the states on this storage are looked for by the storage, whenever they were
    return hops


def _hop(index: Index, object: int, storage: int, step: int | None) -> Hop | None:
    """How an object came to a storage, if from another object that was on it."""
    call, found = _arrival(index, object, storage, step)
    if call >= 0:
        for item in index.inputs(call):
            if item.object != object and _storage_at(index, item.object, call) == storage:
                at = index.recording.calls[call].step
                return Hop(
                    item.object, object, call, index.function(call), index.args(call), at, index.line_of(at), False
                )
        return None
    first = index.objects_on(storage)[0]
    if first == object:
        return None
    function = "numpy" if index.object(object).kind == ObjectKind.ARRAY else ""
    return Hop(first, object, -1, function, "", found, index.line_of(found), False)


def _storage_at(index: Index, object: int, call: int) -> int:
    """The storage an object was on when a call took it; of one that a later look found first, that of its first state."""
    state = index.state_before_call(object, call)
    if state is None and index.state_rows(object):
        state = index.recording.states[index.state_rows(object)[0]]
    return -1 if state is None else state.storage


def _arrival(index: Index, object: int, storage: int, step: int | None) -> tuple[int, int]:
    """(call, step) that put an object onto a storage, the last time by `step` that it came there."""
    call, found = -1, -1
    there = False
    for row in index.state_rows(object):
        state = index.recording.states[row]
        if not index.happened(state.step, state.call, step):
            break
        if state.storage == storage and not there:
            first = row == index.state_rows(object)[0]
            # A look may have told of the first state before its call was known; the object's row has it then.
            call = index.maker(object) if first and state.call < 0 else state.call
            found = state.step
        there = state.storage == storage
    return call, found
