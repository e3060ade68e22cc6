"""The light record of a call, past the bound of detail: what it costs little to keep and findings cannot do without.

Tensors are not given numbers. What is kept of a call is its line, its place in autograd's numbering, the versions of
what it may write, and, where it made a node, the addresses of the storages that went in and out. While autograd holds a
saved tensor its storage lives, so its address cannot belong to another: that is enough to name the write that overwrote
it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Any

import torch

from tensormagic.recording.model import NONE, Call, CallFlag, Recording
from tensormagic.watch import private
from tensormagic.watch.clock import Clock
from tensormagic.watch.late_nan import LateNaN
from tensormagic.watch.memory import Memory
from tensormagic.watch.writes import Writes

_TENSORS = {torch.Tensor, torch.nn.Parameter}
_GRAD, _INFERENCE, _ENGINE = int(CallFlag.GRAD_ENABLED), int(CallFlag.INFERENCE), int(CallFlag.IN_BACKWARD)
_WIDTH, _SEQ, _FLAGS = len(Call._fields), Call._fields.index("seq"), Call._fields.index("flags")
# Bound here: a global is found sooner than an attribute, and this is the hot path (see calls.py).
_grads, _inference = torch.is_grad_enabled, torch.is_inference_mode_enabled
_version, _address, _sequence = private.get_version, private.storage_address, private.sequence_number


def _tensors(args: Any, kwargs: Any) -> list[Any]:
    """The plain tensors among a call's arguments and in lists among them."""
    found = []
    for value in args:
        kind = type(value)
        if kind in _TENSORS:
            found.append(value)
        elif kind is list or kind is tuple:
            for item in value:
                if type(item) in _TENSORS:
                    found.append(item)
    if kwargs:
        for value in kwargs.values():
            kind = type(value)
            if kind in _TENSORS:
                found.append(value)
            elif kind is list or kind is tuple:
                found.extend(item for item in value if type(item) in _TENSORS)
    return found


class Light:
    """Keeps (call, address) pairs, in order of calls, and registers a tensor only when it is written.

    Args:
        recording, clock, memory, writes: what the watchers of one trace share.
    """

    def __init__(self, recording: Recording, clock: Clock, memory: Memory, writes: Writes) -> None:
        self.clock, self.memory, self.writes = clock, memory, writes
        self.table, self.pack = recording.calls.flat, recording.calls.pack
        self.calls = array("q")
        self.keys = array("q")  # address of the storage, one for each entry of `calls`
        self.sequence = NONE  # where autograd's numbering stood after the last call
        self.late: LateNaN | None = None  # looks at NaN losses that `.item()` gave
        self.arguments: list[tuple[int, tuple[Any, ...]]] = []  # (call, first argument) where findings ask for it

    def begin(self, known: Any, args: Any, kwargs: Any, touched: list[Any]) -> int:
        """Write a call's row and give its number.

        Args:
            known: what is known of the function, `calls._Function`.
            args, kwargs: of the call.
            touched: is filled with (None, tensor, version) of the tensors that it may write.
        """
        clock, table = self.clock, self.table
        call = len(table) // _WIDTH
        flags = (_GRAD if _grads() else 0) | (_INFERENCE if _inference() else 0) | (_ENGINE if clock.engine else 0)
        table.frombytes(self.pack(clock.step, known.name, NONE, 0, 0, 0, 0, NONE, flags))
        self.writes.keys_wanted = True
        if known.keeps_args:
            self.arguments.append((call, args[:1]))
        if known.writes or "out" in kwargs:
            for value in _tensors(args, kwargs):
                try:
                    touched.append((None, value, _version(value)))
                except RuntimeError:
                    pass  # an inference tensor has no version: nothing of it is kept here
            if known.undeclared:  # the kernel may write without telling: the entries become full ones
                touched[:] = [(self.memory.tensor(value), value, before) for _live, value, before in touched]
                self.writes.suspect(touched)
        return call

    def end(self, known: Any, call: int, touched: list[Any], args: Any, kwargs: Any, out: Any, flags: int) -> None:
        """Note writes, where autograd's numbering stands, and, of a call that made a node, the storages that went in
        and came out: what the node saved is one of them."""
        if touched:
            if known.undeclared:
                self.writes.after_call(call, touched, known.mutates, known.moves)
            elif not known.moves:
                for _live, value, before in touched:
                    after = _version(value)
                    if after != before:
                        self.writes.told_light(call, self.memory.tensor(value), value, before, after)
        at = call * _WIDTH
        self.table[at + _SEQ] = sequence = _sequence()
        if flags:
            self.table[at + _FLAGS] |= flags
        if sequence != self.sequence:
            self.sequence = sequence
            for value in _tensors((*args, out), kwargs):
                try:
                    key = _address(value)
                except (RuntimeError, NotImplementedError):
                    continue  # a wrapped tensor, without memory of its own
                self.calls.append(call)
                self.keys.append(key)
        elif type(out) is float and out != out and args and type(args[0]) in _TENSORS and self.late is not None:
            with private.no_torch_function():
                self.late.search(args[0])

    def overwritten(self, call: int) -> int:
        """The object that was written, after the light call `call`, on memory that it took or gave; or -1."""
        first, last = bisect_left(self.calls, call), bisect_right(self.calls, call)
        keys = set(self.keys[first:last])
        for at, key, object in self.writes.keys:
            if at > call and key in keys:
                return object
        return NONE
