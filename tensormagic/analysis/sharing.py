"""Which names stand for the same memory: the relation of two names, and the matrix of all of them.

Sharing is decided byte by byte (`regions.py`), at the end of a step. Two storages are one piece of memory where their
addresses overlap while both are alive (`torch.from_numpy` twice on one array gives two storages); a storage whose size
was changed may have moved, so its address is not used. What lies where comes from the recording alone.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tensormagic.analysis.index import Index
from tensormagic.analysis.names import Named, NamesAt
from tensormagic.analysis.regions import Common, Form, Region, compare
from tensormagic.recording.model import ObjectKind, Recording


class Sharing(enum.Enum):
    """How the memory of one name lies to that of another."""

    SAME_OBJECT = "="  # one Python object under both names
    SAME_BYTES = "■"  # two objects, exactly the same bytes
    CONTAINS = "◧"  # a's bytes include b's
    INSIDE = "◨"  # a's bytes lie in b's
    OVERLAP = "◪"  # some bytes in common
    SAME_STORAGE = "□"  # one storage, no byte in common
    SEPARATE = "·"  # different memory

    @property
    def glyph(self) -> str:
        """One character for a cell of the matrix."""
        return self.value

    @property
    def turned(self) -> Sharing:
        """The relation seen from the other name."""
        return {Sharing.CONTAINS: Sharing.INSIDE, Sharing.INSIDE: Sharing.CONTAINS}.get(self, self)


class Bound(enum.Enum):
    """Why an answer is not exact."""

    CONTAINMENT = "containment"  # bytes in common are proven; whether one holds all of the other's was not decided
    OVERLAP = "overlap"  # the solver's bound was reached: a byte in common may exist (told as OVERLAP)
    MEMORY = "memory"  # where the memory lies was not recorded (a sparse or wrapped tensor; told as SEPARATE)


class Relation(NamedTuple):
    """A relation and how far it is proven."""

    sharing: Sharing
    exact: bool
    bytes_common: int | None  # None: not counted
    bytes_a: int | None
    bytes_b: int | None
    bound: Bound | None = None  # which bound was reached, where the answer is not exact

    @property
    def name(self) -> str:
        """The name of the Sharing, so that a Relation can stand where a Sharing is asked for its name."""
        return self.sharing.name


def sharing(source: Recording | Index, a: str, b: str, step: int | None = None) -> Sharing:
    """The relation of two names; see `relation`."""
    return relation(source, a, b, step).sharing


def relation(source: Recording | Index, a: str, b: str, step: int | None = None) -> Relation:
    """How the memory of `a` lies to that of `b` after a step.

    Names of modules, containers and other objects without memory of their own are SAME_OBJECT if they are one object,
    else SEPARATE: what two of them hold is asked of the tensors inside. A tensor without elements has no byte; it is
    SAME_STORAGE with whatever is on its storage. A part of a tensor (`x[0]`) is a new object each time it is asked
    for, so it is never SAME_OBJECT.

    Args:
        source: the recording, or an Index of it (quicker for many questions).
        a, b: names as a user writes them, parts of tensors included: `w`, `best["weight"]`, `x[1:3]`.
        step: None is the end.

    Raises:
        UnknownName: nothing has that name at that step.
        ValueError: the text is no name, does not fit the tensor's shape, or both are arrays that lie on no tensor's memory.
        IndexError: there is no such step.
    """
    at = NamesAt(Index.of(source), step)
    return relation_of(at.index, at[a], at[b], at.step)


def relation_of(index: Index, a: Named, b: Named, step: int) -> Relation:
    """The relation of what two names stand for after `step`; see `relation`."""
    if a.object == b.object and a.object >= 0:
        form = form_of(a)
        count = form.count() if form else 0 if known(a) else None
        return Relation(Sharing.SAME_OBJECT, True, count, count, count)
    if not all(item.object < 0 or index.has_memory(item.object) for item in (a, b)):
        return Relation(Sharing.SEPARATE, True, 0, None, None)
    if not known(a) or not known(b):
        if _alone(index, a) and _alone(index, b):
            raise ValueError(f"{a.text!r} and {b.text!r} are arrays on no tensor's memory: ask `numpy.shares_memory`")
        apart = (_alone(index, a) and known(b)) or (known(a) and _alone(index, b))
        return Relation(Sharing.SEPARATE, apart, 0 if apart else None, None, None, None if apart else Bound.MEMORY)
    return _relation(*_place(index, [a, b], step))


def known(named: Named) -> bool:
    """Is it known where the bytes of what a name stands for lie?"""
    state = named.state
    return state is not None and state.storage >= 0 and len(named.stride) == len(named.shape)


def _alone(index: Index, named: Named) -> bool:
    """Is it an array that shares no memory with a tensor?"""
    return named.state is None and named.object >= 0 and index.object(named.object).kind == ObjectKind.ARRAY


def region_of(named: Named) -> Region | None:
    """The bytes that a name stands for, counted from the start of its storage; None where that is not known."""
    if not known(named) or named.state is None:
        return None
    size = named.itemsize
    stride = tuple(step * size for step in named.stride)
    return Region(named.state.storage, named.state.offset * size, named.shape, stride, size)


def form_of(named: Named) -> Form | None:
    """The canonical form of those bytes, from the start of the storage; None where there is none or it is not known."""
    region = region_of(named)
    return None if region is None else region.form()


def storage_shift(index: Index, storage: int, other: int, step: int, named: Named | None = None) -> int | None:
    """How many bytes behind the start of `storage` the other one begins, None where they cannot be one piece of memory.

    Two storages can be: `torch.from_numpy` twice on one array, or on its rows, gives one storage each.

    Args:
        index: of the recording.
        storage, other: which.
        step: when.
        named: what is looked at on the other storage; an array there may outlive the storage.
    """
    if storage == other:
        return 0
    if storage < 0 or other < 0 or index.resized(storage) or index.resized(other):
        return None
    one, two = index.recording.storages[storage], index.recording.storages[other]
    if one.address <= 0 or two.address <= 0 or one.device != two.device or not index.alive(storage, step):
        return None
    array = named is not None and index.object(named.base).kind == ObjectKind.ARRAY
    return two.address - one.address if array or index.alive(other, step) else None


class _Spot(NamedTuple):
    """Where a tensor lies: a piece of memory, the tensor's storage in it, its bytes."""

    memory: int
    storage: int
    stretch: tuple[int, int]  # first byte of the storage, one past its last
    form: Form | None  # None: no byte

    def meets_storage(self, other: _Spot) -> bool:
        """Are both on one storage, or on two that share addresses?"""
        if self.storage == other.storage:
            return True
        return self.stretch[0] < other.stretch[1] and other.stretch[0] < self.stretch[1]


def _place(index: Index, named: Sequence[Named], step: int) -> list[_Spot]:
    """Put tensors whose memory is known onto pieces of memory; addresses count from the first storage of each piece."""
    forms = [form_of(item) for item in named]
    storages = [item.state.storage for item in named if item.state is not None]
    stretch: dict[int, tuple[int, int]] = {}
    for storage, form in zip(storages, forms, strict=True):
        low, high = stretch.get(storage) or (0, index.storage_nbytes(storage, step))
        if form is not None:  # an array may begin before the storage that was made from a part of it
            low, high = min(low, form.start), max(high, form.end)
        stretch[storage] = low, high
    base, memory = dict.fromkeys(stretch, 0), {storage: storage for storage in stretch}
    # The address of freed memory may be anyone's by now; only an array can outlive the storage that a tensor made of it.
    arrays = {item.state.storage for item in named if item.state and index.object(item.base).kind == ObjectKind.ARRAY}
    located = []
    for storage in stretch:
        row = index.recording.storages[storage]
        there = index.alive(storage, step) or storage in arrays
        if row.address > 0 and there and not index.resized(storage):
            located.append((row.device, row.address + stretch[storage][0], storage))
    root, reached = -1, (-1, 0)  # the storage that the piece is counted from; (device, end) of the piece so far
    for device, start, storage in sorted(located):
        address = index.recording.storages[storage].address
        end = address + stretch[storage][1]
        if device == reached[0] and start < reached[1]:
            memory[storage], base[storage] = root, address - index.recording.storages[root].address
            reached = device, max(reached[1], end)
        else:
            root, reached = storage, (device, end)
    spots = []
    for storage, form in zip(storages, forms, strict=True):
        by = base[storage]
        moved = None if form is None else Form(form.start + by, form.dims)
        spots.append(_Spot(memory[storage], storage, (stretch[storage][0] + by, stretch[storage][1] + by), moved))
    return spots


def _relation(a: _Spot, b: _Spot) -> Relation:
    count_a, count_b = (spot.form.count() if spot.form else 0 for spot in (a, b))
    apart = Sharing.SAME_STORAGE if a.memory == b.memory and a.meets_storage(b) else Sharing.SEPARATE
    if a.memory != b.memory or a.form is None or b.form is None:
        return Relation(apart, True, 0, count_a, count_b)
    found = compare(a.form, b.form)
    told, bound = _told(found)
    return Relation(told or apart, bound is None, found.common, found.a, found.b, bound)


def _told(found: Common) -> tuple[Sharing | None, Bound | None]:
    """The strongest relation that is proven (None: no byte in common), and the bound that kept it from being exact."""
    if found.overlap is False:
        return None, None
    if found.overlap is None:
        return Sharing.OVERLAP, Bound.OVERLAP
    open_question = found.a_holds_b is None or found.b_holds_a is None
    bound = Bound.CONTAINMENT if open_question else None
    if found.a_holds_b:
        return (Sharing.SAME_BYTES if found.b_holds_a else Sharing.CONTAINS), bound
    return (Sharing.INSIDE if found.b_holds_a else Sharing.OVERLAP), bound


def matrix(
    source: Recording | Index, names: Sequence[str] | None = None, step: int | None = None
) -> tuple[list[str], NDArray[Any]]:
    """The relation of every name to every other.

    Args:
        source: the recording, or an Index of it.
        names: None takes every name of a tensor or array at that step.
        step: None is the end.

    Returns:
        the names, and an array [n, n] of Sharing (dtype object): row a, column b is the relation of a to b.

    Raises:
        UnknownName, ValueError, IndexError: as in `relation`.
    """
    at = NamesAt(Index.of(source), step)
    names = at.tensors() if names is None else list(names)
    relations, _ = codes(at.index, [at[name] for name in names], at.step)
    return names, _SHARINGS[relations]


_SHARINGS: NDArray[Any] = np.array(list(Sharing), dtype=object)
_CODES = {sharing: code for code, sharing in enumerate(Sharing)}


def codes(index: Index, named: Sequence[Named], step: int) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """The matrix as small numbers.

    Names on different memory are SEPARATE without a look at the pair, names with the same bytes are compared once,
    unbroken runs all at once; only strided pairs that may meet take one comparison each.

    Args:
        index: of the recording.
        named: what each name stands for, as `NamesAt` gives it.
        step: when.

    Returns:
        [n, n] positions in `list(Sharing)`, and [n, n] whether each is exact.
    """
    result = np.full((len(named), len(named)), _CODES[Sharing.SEPARATE], np.int8)
    tensors = [i for i, item in enumerate(named) if item.object < 0 or index.has_memory(item.object)]
    lost = [i for i in tensors if not known(named[i])]
    exact = np.ones(result.shape, bool)
    for i in lost:
        open_to = [j for j in tensors if not known(named[j])] if _alone(index, named[i]) else tensors
        exact[i, open_to] = exact[open_to, i] = False
    found = [i for i in tensors if known(named[i])]
    groups: dict[int, dict[_Spot, list[int]]] = {}
    for i, spot in zip(found, _place(index, [named[i] for i in found], step), strict=True):
        groups.setdefault(spot.memory, {}).setdefault(spot, []).append(i)
    for members in groups.values():
        block, block_exact = _block(list(members))
        which = np.repeat(np.arange(len(members)), [len(rows) for rows in members.values()])
        rows = np.concatenate([np.array(rows) for rows in members.values()])
        result[np.ix_(rows, rows)] = block[np.ix_(which, which)]
        exact[np.ix_(rows, rows)] = block_exact[np.ix_(which, which)]
    by_object: dict[int, list[int]] = {}
    for i, item in enumerate(named):
        by_object.setdefault(item.object, []).append(i)
    for object, same in by_object.items():
        if object >= 0:
            result[np.ix_(same, same)] = _CODES[Sharing.SAME_OBJECT]
            exact[np.ix_(same, same)] = True
    return result, exact


def _block(spots: list[_Spot]) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """The relations of regions on one piece of memory, each to each."""
    forms = [spot.form or Form(0, ((1, 0),)) for spot in spots]  # without a byte: it meets nothing
    ends = [(form.start, form.end) for form in forms]
    # A loaded file may hold numbers past 64 bits; Python's compare as well, only slower.
    dtype = np.int64 if all(low > -(2**62) and high < 2**62 for low, high in ends) else object
    low, high = (np.array([pair[k] for pair in ends], dtype) for k in (0, 1))
    solid = np.array([form.solid for form in forms])
    meets = ((low[:, None] < high) & (low < high[:, None])).astype(bool)
    for i, spot in enumerate(spots):
        if spot.form is None:
            meets[i, :] = meets[:, i] = False
    holds = ((low[:, None] <= low) & (high <= high[:, None])).astype(bool)  # between the other's ends
    result = _apart(spots)
    both = meets & solid & solid[:, None]
    result[both] = _CODES[Sharing.OVERLAP]
    result[both & holds] = _CODES[Sharing.CONTAINS]
    result[both & holds.T] = _CODES[Sharing.INSIDE]
    result[both & holds & holds.T] = _CODES[Sharing.SAME_BYTES]
    exact = np.ones(result.shape, bool)
    first, second = np.nonzero(np.triu(meets & ~both))
    if len(first):
        # The answer depends on the two forms and on how far apart they start: columns of a matrix repeat it a lot.
        kinds = {dims: k for k, dims in enumerate({form.dims: None for form in forms})}
        kind = np.array([kinds[form.dims] for form in forms])
        shifts, shift = np.unique(low[second] - low[first], return_inverse=True)
        key = (kind[first] * len(kinds) + kind[second]) * len(shifts) + shift
        _, sample, which = np.unique(key, return_index=True, return_inverse=True)
        answers = [_told(compare(forms[first[k]], forms[second[k]])) for k in sample]
        for k, (a, b) in enumerate([(first, second), (second, first)]):
            codes = [-1 if told is None else _CODES[told.turned if k else told] for told, _ in answers]
            code = np.array(codes, np.int8)[which]
            result[a, b] = np.where(code < 0, result[a, b], code)
            exact[a, b] = np.array([bound is None for _, bound in answers])[which]
    for i, spot in enumerate(spots):
        if spot.form is None:  # names of several empty tensors stand behind one spot
            result[i, i] = _CODES[Sharing.SAME_STORAGE]
    return result, exact


def _apart(spots: list[_Spot]) -> NDArray[np.int8]:
    """What holds where no byte is common: SAME_STORAGE on storages that meet, else SEPARATE."""
    of_storage = {spot.storage: spot for spot in spots}
    place = {storage: k for k, storage in enumerate(of_storage)}
    touch = np.array([[a.meets_storage(b) for b in of_storage.values()] for a in of_storage.values()])
    which = [place[spot.storage] for spot in spots]
    return np.where(touch[np.ix_(which, which)], _CODES[Sharing.SAME_STORAGE], _CODES[Sharing.SEPARATE]).astype(np.int8)
