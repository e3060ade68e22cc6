"""In-place changes: told by the version counter where it was told, by the bytes where it was not."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from tensormagic.recording.model import NONE, Blob, Recording, WriteKind
from tensormagic.watch import private, raw
from tensormagic.watch.clock import Clock
from tensormagic.watch.memory import Live, Memory

_SUSPECT_BYTES = 1 << 20  # inputs of a kernel that may write unseen are compared up to this size
_EXPOSED_BYTES = 1 << 20  # so is, after each step, memory that a numpy array shares


class Writes:
    """Notices changes and keeps the last bytes of small storages.

    Args:
        recording, clock, memory: what the watchers of one trace share.
        values: storages of at most this many elements are kept value by value.
    """

    def __init__(self, recording: Recording, clock: Clock, memory: Memory, values: int) -> None:
        self.recording, self.clock, self.memory, self.values = recording, clock, memory, values
        self.last: dict[int, bytes] = {}  # storage -> bytes at its last snapshot
        self.sums: dict[int, int] = {}  # larger storage that an array shares -> checksum
        self.versions: dict[int, int] = {}  # counter -> last version accounted for
        self.written: set[int] = set()  # storages with a write in this step
        self.exposed_storages: set[int] = set()
        self.untold = 0  # writes so far that autograd was not told of
        self.keys_wanted = False  # light calls have been made: writes are to be found by the storage's address too
        self.keys: list[tuple[int, int, int]] = []  # (call, address of the storage, object) of told writes
        self.suspects: dict[int, bytes] = {}  # object -> its storage's bytes before the call that runs now
        self.looked: set[int] = set()  # storages compared in this look
        self.summarized: dict[int, tuple[int, int]] = {}  # object -> (version, state) of its last summary

    # ---- around a call -------------------------------------------------------------------------------------------

    def after_call(self, call: int, touched: list[Any], mutates: bool, moves: bool) -> None:
        """Compare the inputs of a call with what they were.

        Args:
            call: its number.
            touched: (record, tensor, version before) of each input.
            mutates, moves: see `functions.mutates` and `functions.moves`.
        """
        version = self.memory.version
        detail = self.clock.detail
        suspects = self.suspects
        done: list[int] | None = None
        for live, value, before in touched:
            after = version(value)
            if after != before:
                if done is None:
                    done = []
                self._told(call, live, value, before, after, done, moves)
            elif detail or suspects:
                if done is None:
                    done = []
                self._untold(call, live, value, before, done, moves)
        if mutates and touched:
            live, value, before = touched[0]
            if live.version == before:
                self.memory.note_state(value, live, call)
        if suspects:
            suspects.clear()

    def _untold(self, call: int, live: Live, value: Any, version: int, done: list[int], moves: bool) -> None:
        """The counter did not move: did the bytes? Asked where the bytes before are known."""
        storage = live.storage
        if moves:
            self.memory.note_state(value, live, call)
            if live.storage != storage:
                return  # `.data = u`: it looks at other memory, no byte changed
        old = self.suspects.get(live.object) or self.last.get(storage)
        if old is None or storage in done:
            return
        now = raw.storage_bytes(private.get_storage(value))
        if now is None or now == old or len(now) != len(old):
            return
        done.append(storage)
        kind = WriteKind.KERNEL if version >= 0 else WriteKind.CALL  # inference tensors have no counter to tell
        self._add(call, kind, live, version, version, self._difference(old, now, value))
        if storage in self.last:
            self._snapshot(storage, now, value)

    def _told(self, call: int, live: Live, value: Any, before: int, after: int, done: list[int], moves: bool) -> None:
        """The version counter moved: a write, unless only what the tensor looks at changed (transpose_, set_)."""
        old = live.state
        if moves or private.get_requires_grad(value):
            self.memory.note_state(value, live, call)
        live.version = after
        self.versions[live.counter] = after
        storage = live.storage
        if storage in done:
            return  # another input on the same memory: it was written once
        known = self.last.get(storage)
        now = None
        elements = NONE
        if known is not None:
            if self.clock.detail:
                now = raw.storage_bytes(private.get_storage(value))
            else:
                del self.last[storage]  # a light step: the next detailed look takes the bytes anew
        changed = now is not None and known is not None and now[: len(known)] != known[: len(now)]
        if moves and old != live.state and not changed:
            return  # the tensor looks elsewhere, no byte changed
        done.append(storage)
        if known is not None and now is not None:
            if len(known) == len(now):
                elements = self._difference(known, now, value)
            self._snapshot(storage, now, value)
        if self.keys_wanted:
            self.keys.append((call, private.storage_address(value), live.object))
        kind = WriteKind.CALL if self.memory.tells(value, live) else WriteKind.DATA
        self._add(call, kind, live, before, after, elements)

    def told_light(self, call: int, live: Live, value: Any, before: int, after: int) -> None:
        """A write of a light call: which memory, when, and whether autograd was told."""
        live.version = after
        self.versions[live.counter] = after
        self.last.pop(live.storage, None)  # the next detailed look takes the bytes anew
        if self.keys_wanted:
            self.keys.append((call, private.storage_address(value), live.object))
        kind = WriteKind.CALL if self.memory.tells(value, live) else WriteKind.DATA
        self._add(call, kind, live, before, after, NONE)

    def _add(self, call: int, kind: int, live: Live, before: int, after: int, elements: int) -> None:
        if kind is not WriteKind.CALL and kind is not WriteKind.ACCUMULATE:
            self.untold += 1
        self.written.add(live.storage)
        self.recording.writes.add(
            self.clock.step, call, kind, live.object, live.storage, before, after, live.state, elements
        )

    def _difference(self, old: bytes, new: bytes, value: Any) -> int:
        """The storage elements in which two byte strings differ, as an index into `elements`."""
        size = private.get_dtype(value).itemsize
        usable = len(old) - len(old) % size
        one = np.frombuffer(old, np.uint8, usable).reshape(-1, size)
        two = np.frombuffer(new, np.uint8, usable).reshape(-1, size)
        changed = np.flatnonzero((one != two).any(axis=1))
        if len(changed) > 4 * self.values:
            return NONE
        self.recording.elements.append([int(i) for i in changed])
        return len(self.recording.elements) - 1

    def suspect(self, touched: list[Any]) -> None:
        """Keep the inputs' bytes for the time of a call whose kernel may write without telling."""
        for live, value, _version in touched:
            if live.storage >= 0 and live.storage not in self.last:
                storage = private.get_storage(value)
                if storage.nbytes() <= _SUSPECT_BYTES:
                    data = raw.storage_bytes(storage)
                    if data is not None:
                        self.suspects[live.object] = data

    def seen_late(self, live: Live, value: Any, version: int) -> None:
        """The version is not the one last seen: through an alias that we know, or by something we did not see (set_ and
        operations of libraries that the mode does not meet)."""
        old = self.recording.states[live.state] if live.state >= 0 else None
        self.memory.note_state(value, live, NONE)
        known = self.versions.get(live.counter)
        self.versions[live.counter] = version
        new = self.recording.states[live.state]
        if old is not None and (old.storage, old.offset, old.geometry) != (new.storage, new.offset, new.geometry):
            return  # it looks elsewhere now: no byte need have changed
        if known is not None and version > known and live.storage not in self.written:
            self._add(self.clock.call, WriteKind.CALL, live, known, version, NONE)

    def accumulated(self, call: int, live: Live, value: Any, before: int, after: int) -> None:
        """Backward added into a .grad that was there already."""
        live.version = after
        self.versions[live.counter] = after
        elements = NONE
        known = self.last.get(live.storage)
        if known is not None:
            now = raw.storage_bytes(private.get_storage(value))
            if now is not None and len(now) == len(known):
                elements = self._difference(known, now, value)
                self._snapshot(live.storage, now, value)
        self._add(call, WriteKind.ACCUMULATE, live, before, after, elements)

    def exposed(self, touched: list[Any]) -> None:
        """These tensors were handed to numpy: their memory can change without a call."""
        for live, _value, _version in touched:
            self.exposed_storages.add(live.storage)

    # ---- after a step --------------------------------------------------------------------------------------------

    def begin_look(self) -> None:
        self.looked.clear()

    def end_look(self) -> None:
        self.written.clear()

    def look(self, value: Any, live: Live) -> None:
        """A name reached this tensor: compare its memory with what it was after the last look."""
        version = self.memory.version(value)
        if version != live.version:
            self.seen_late(live, value, version)
        elif self.memory.is_stale(value, live, version):
            self.memory.note_state(value, live, NONE)
        storage = live.storage
        if storage < 0 or storage in self.looked:
            return
        self.looked.add(storage)
        memory = private.get_storage(value)
        nbytes = memory.nbytes()
        if nbytes > self.values * 16 or nbytes > self.values * private.get_dtype(value).itemsize:
            self._look_large(value, live, memory, nbytes)
            return
        now = raw.storage_bytes(memory)
        if now is None:
            return
        old = self.last.get(storage)
        if old == now:
            return
        if old is not None and len(old) == len(now) and storage not in self.written:
            self._add(NONE, WriteKind.OUTSIDE, live, version, version, self._difference(old, now, value))
        self._snapshot(storage, now, value)

    def _look_large(self, value: Any, live: Live, memory: Any, nbytes: int) -> None:
        storage = live.storage
        if storage in self.exposed_storages:
            if nbytes > _EXPOSED_BYTES:
                self.clock.notice("numpy-memory-too-large", str(storage), storage=storage, bytes=nbytes)
            else:
                data = raw.storage_bytes(memory)
                total = zlib.crc32(data) if data is not None else 0
                old = self.sums.get(storage)
                self.sums[storage] = total
                if old is not None and old != total and storage not in self.written:
                    self._add(NONE, WriteKind.OUTSIDE, live, live.version, live.version, NONE)
        mark = (live.version, live.state)
        if self.summarized.get(live.object) == mark and storage not in self.written:
            return
        self.summarized[live.object] = mark
        kept = raw.blob(value, self.values, raw.SUMMARY)
        if kept is not None:
            self.recording.snapshots.add(self.clock.step, storage, live.object, self._blob(kept))

    def _snapshot(self, storage: int, data: bytes, value: Any) -> None:
        self.last[storage] = data
        dtype = private.get_dtype(value)
        size = dtype.itemsize
        kept = Blob((len(data) // size,), raw.dtype_name(dtype), data)
        self.recording.snapshots.add(self.clock.step, storage, NONE, self._blob(kept))

    def _blob(self, kept: Blob) -> int:
        self.recording.blobs.append(kept)
        return len(self.recording.blobs) - 1
