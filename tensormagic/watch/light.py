"""The light record of a call, past the bound of detail: what it costs little to keep and findings cannot do without.

Tensors are not given numbers. What is kept of a call is its line, its place in autograd's numbering, and the addresses
of the storages that went in and out. While autograd holds a saved tensor its storage lives, so its address cannot
belong to another: that is enough to name the write that overwrote it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import Any

import torch

from tensormagic.recording.model import NONE
from tensormagic.watch import private
from tensormagic.watch.memory import Memory
from tensormagic.watch.writes import Writes

_TENSORS = {torch.Tensor, torch.nn.Parameter}


class Light:
    """Keeps (call, address) pairs, in order of calls, and registers a tensor only when it is written.

    Args:
        memory, writes: what the watchers of one trace share.
    """

    def __init__(self, memory: Memory, writes: Writes) -> None:
        self.memory, self.writes = memory, writes
        self.calls = array("q")
        self.keys = array("q")  # id of the storage, one for each entry of `calls`

    def take(self, call: int, args: Any, kwargs: Any, touched: list[Any]) -> None:
        """Fill `touched` with (None, tensor, version) of the tensors that a call takes; the first entry is a mark."""
        touched.append((None, None, NONE))
        self.writes.keys_wanted = True
        version = private.get_version
        try:
            for value in args:
                kind = type(value)
                if kind in _TENSORS:
                    touched.append((None, value, version(value)))
                    self.calls.append(call)
                    self.keys.append(id(private.get_storage(value)))
                elif kind is list or kind is tuple:
                    for item in value:
                        if type(item) in _TENSORS:
                            touched.append((None, item, version(item)))
            for value in kwargs.values():
                if type(value) in _TENSORS:
                    touched.append((None, value, version(value)))
        except (RuntimeError, NotImplementedError):
            return  # an inference tensor has no version, a wrapped one no storage: nothing of it is kept here

    def know(self, touched: list[Any]) -> None:
        """Turn the entries into full ones: the kernel may write without telling."""
        touched[:] = [
            (self.memory.tensor(value), value, before) for _live, value, before in touched if value is not None
        ]

    def after(self, call: int, touched: list[Any], out: Any, moves: bool) -> None:
        """Note writes, and the storage that came out."""
        version = private.get_version
        for _live, value, before in touched:
            if value is None:
                continue
            after = version(value)
            if after != before and not moves:
                live = self.memory.tensor(value)
                self.writes.told_light(call, live, value, before, after)
        if type(out) in _TENSORS:
            try:
                key = id(private.get_storage(out))
            except (RuntimeError, NotImplementedError):
                return  # a wrapped tensor without memory of its own
            self.calls.append(call)
            self.keys.append(key)

    def overwritten(self, call: int) -> int:
        """The object that was written, after the light call `call`, on memory that it took or gave; or -1."""
        first, last = bisect_left(self.calls, call), bisect_right(self.calls, call)
        keys = set(self.keys[first:last])
        for at, key, object in self.writes.keys:
            if at > call and key in keys:
                return object
        return NONE
