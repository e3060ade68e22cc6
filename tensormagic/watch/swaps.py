"""`torch.utils.swap_tensors` beside a trace: it refuses tensors that have weak references, and the recorder has one to each.

For the time of the cell, torch's own check does not see the recorder's references; those of the user's it sees as
ever. After a swap the two objects are looked at anew: each looks at the other's memory then.
"""

from __future__ import annotations

import types
import weakref
from typing import Any

import torch

from tensormagic.recording.model import NONE
from tensormagic.watch import private
from tensormagic.watch.clock import Clock
from tensormagic.watch.memory import Live, Memory


class Swaps:
    """Stands in for two names that swap_tensors looks up when it runs.

    Args:
        clock: takes the notice of a fault of ours.
        memory: knows the tensors.
    """

    def __init__(self, clock: Clock, memory: Memory) -> None:
        self.clock, self.memory = clock, memory
        self._swap: Any = None
        self._covers: list[tuple[Any, str, Any, Any]] = []  # (holder, name, what was there, what stands there now)

    def start(self) -> None:
        if not private.has_swap_names():
            return
        self._swap = getattr(torch._C, private.SWAP_ENTRY)
        self._cover(torch._C, private.SWAP_ENTRY, self._swapped)
        references = types.ModuleType("weakref")
        references.__dict__.update(vars(weakref))
        references.__dict__["getweakrefs"] = _not_ours
        self._cover(torch.utils, private.SWAP_REFERENCES, references)

    def stop(self) -> None:
        """Put back what was there, unless somebody else has put something in its place."""
        for holder, name, original, standin in reversed(self._covers):
            if getattr(holder, name, None) is standin:
                setattr(holder, name, original)
        self._covers.clear()

    def _cover(self, holder: Any, name: str, standin: Any) -> None:
        self._covers.append((holder, name, getattr(holder, name), standin))
        setattr(holder, name, standin)

    def _swapped(self, one: Any, other: Any) -> Any:
        result = self._swap(one, other)
        try:
            with private.no_torch_function():
                for value in (one, other):
                    live = self.memory.find(value)
                    if live is not None:
                        self.memory.note_state(value, live, NONE)
        except Exception as fault:
            self.clock.fault("swaps", fault)
        return result


def _not_ours(value: Any) -> list[Any]:
    return [reference for reference in weakref.getweakrefs(value) if type(reference) is not Live]
