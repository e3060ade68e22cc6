"""NumPy arrays: which of them share memory with a tensor is found by where they lie.

An array that shares none has a name too, and no state: it is then known that no tensor sees what is written into it.
"""

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

    def number(self, array: Any) -> int:
        """The object number of an array; -1 where it holds no numbers."""
        live = self.memory.find(array)
        count = len(self.recording.storages)
        if live is not None and (live.storage >= 0 or live.version == count):
            return live.object
        if array.dtype.hasobject or not array.size:
            return NONE
        if live is None:
            live = self.memory.register(array, ObjectKind.ARRAY)
        low, high = _bounds(array)
        for ref in list(self.memory.storages.values()):
            row = self.recording.storages[ref.number]
            if ref() is not None and row.address and low < row.address + ref.nbytes and row.address < high:
                return live.object if self._found(array, live, ref.number, row.address) else NONE
        live.version = (
            count  # of an array without a storage: how many storages there were when it was compared with all
        )
        return live.object

    def _found(self, array: Any, live: Live, storage: int, address: int) -> bool:
        itemsize = array.dtype.itemsize
        start = array.__array_interface__["data"][0] - address
        if start % itemsize or any(step % itemsize for step in array.strides):
            self.clock.notice("array-not-aligned", str(storage), storage=storage)
            return False
        stride = tuple(step // itemsize for step in array.strides)
        geometry = self._geometry(array.shape, stride, array.dtype.name, itemsize)
        live.storage, live.state, live.version = storage, len(self.recording.states), NONE
        self.recording.states.add(
            live.object, self.clock.step, NONE, storage, start // itemsize, geometry, StateFlag.LEAF, NONE, NONE, NONE
        )
        self.writes.exposed_storages.add(storage)
        return True

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
