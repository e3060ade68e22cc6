"""NumPy arrays that share memory with a tensor, found by where they lie."""

from __future__ import annotations

from typing import Any

from tensormagic.recording.model import NONE, Geometry, ObjectKind, Recording, StateFlag
from tensormagic.watch.clock import Clock
from tensormagic.watch.memory import Live, Memory
from tensormagic.watch.writes import Writes


class Arrays:
    """Knows which arrays lie in a storage that lives."""

    def __init__(self, recording: Recording, clock: Clock, memory: Memory, writes: Writes) -> None:
        self.recording, self.clock, self.memory, self.writes = recording, clock, memory, writes
        self.asked: dict[int, int] = {}  # id of an array without a match -> storages there were when it was asked

    def number(self, array: Any) -> int:
        """The object number of an array that shares memory with a storage, -1 where it shares none."""
        live = self.memory.find(array)
        if live is not None:
            return live.object
        if array.dtype.hasobject or not array.size:
            return NONE
        count = len(self.recording.storages)
        if self.asked.get(id(array)) == count:
            return NONE
        low, high = _bounds(array)
        for ref in list(self.memory.storages.values()):
            row = self.recording.storages[ref.number]
            if ref() is not None and row.address and low < row.address + ref.nbytes and row.address < high:
                return self._found(array, ref.number, row.address)
        self.asked[id(array)] = count
        return NONE

    def _found(self, array: Any, storage: int, address: int) -> int:
        itemsize = array.dtype.itemsize
        start = array.__array_interface__["data"][0] - address
        if start % itemsize or any(step % itemsize for step in array.strides):
            self.clock.notice("array-not-aligned", str(storage), storage=storage)
            return NONE
        live: Live = self.memory.register(array, ObjectKind.ARRAY)
        stride = tuple(step // itemsize for step in array.strides)
        geometry = self._geometry(array.shape, stride, array.dtype.name, itemsize)
        live.storage, live.state = storage, len(self.recording.states)
        self.recording.states.add(
            live.object, self.clock.step, NONE, storage, start // itemsize, geometry, StateFlag.LEAF, NONE, NONE, NONE
        )
        self.writes.exposed_storages.add(storage)
        return live.object

    def _geometry(self, shape: tuple[int, ...], stride: tuple[int, ...], dtype: str, itemsize: int) -> int:
        key = (shape, stride, dtype)
        number = self.memory.geometries.get(key)
        if number is None:
            number = self.memory.geometries[key] = len(self.recording.geometries)
            self.recording.geometries.append(Geometry(shape, stride, dtype, itemsize, "cpu", "strided"))
        return number


def _bounds(array: Any) -> tuple[int, int]:
    """First and one past the last byte address of an array (its strides may be negative)."""
    low = high = array.__array_interface__["data"][0]
    for size, step in zip(array.shape, array.strides, strict=True):
        if step < 0:
            low += step * (size - 1)
        else:
            high += step * (size - 1)
    return low, high + array.dtype.itemsize
