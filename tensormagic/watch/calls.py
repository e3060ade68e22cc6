"""Torch calls, seen by a TorchFunctionMode.

The hot path: `__torch_function__` runs for every torch call of the cell. It may look up, count and append whole
numbers; it may not format, sort, search, allocate per element, or keep anything of the user's.

Identity: Python hands the address of a temporary that just died to the next object of its size, and programs print
such addresses (`id(a.data) == id(b.data)`). A tensor takes 80 bytes with its collector's header, so nothing of that
size (a tuple of four or five) is made between the start of a call and its result.
"""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from tensormagic.recording.model import NONE, CallFlag, Recording
from tensormagic.watch import private, raw
from tensormagic.watch.callsite import Callsites
from tensormagic.watch.clock import Clock
from tensormagic.watch.functions import DATA_GET, IGNORED, UNDECLARED, plain, readable
from tensormagic.watch.memory import Memory
from tensormagic.watch.writes import Writes

# Plain numbers: the operators of IntFlag make objects and cost more than all the rest of a call.
_GRAD, _INFERENCE, _RAISED = int(CallFlag.GRAD_ENABLED), int(CallFlag.INFERENCE), int(CallFlag.RAISED)
_ENGINE, _CHECKED = int(CallFlag.IN_BACKWARD), int(CallFlag.CHECKED)
_NAN, _INF = int(CallFlag.NAN_OUT), int(CallFlag.INF_OUT)
_TENSORS = {torch.Tensor, torch.nn.Parameter}
_PLAIN = {int, float, bool, str, type(None), slice, type(Ellipsis), torch.dtype, torch.device, torch.Size}


class CallMode(TorchFunctionMode):
    """Records each torch call: function, step, inputs with versions, outputs, graph node.

    Args:
        recording, clock, memory, writes: what the watchers of one trace share.
        max_calls: past this many calls only counts are kept (said in a notice).
        check_elements: outputs of at most this many elements are looked at for NaN and infinity.
    """

    def __init__(
        self, recording: Recording, clock: Clock, memory: Memory, writes: Writes, max_calls: int, check_elements: int
    ) -> None:
        super().__init__()
        self.recording, self.clock, self.memory, self.writes = recording, clock, memory, writes
        self.max_calls, self.check_elements = max_calls, check_elements
        self.callsites = Callsites()
        self.functions: dict[Any, int] = {}  # function object -> string number
        self.mutators: dict[Any, bool] = {}
        self.arguments: list[tuple[int, tuple[Any, ...]]] = []  # (call, plain arguments), put into words at the end
        self.on = False
        self.nested = 0  # calls of ours that are under way: the mode is off inside them
        self.over = 0
        self.failure: BaseException | None = None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.on:
            return func(*args, **kwargs)
        if func in IGNORED:
            return func(*args, **kwargs)
        through = self.callsites.at(sys._getframe(1), func)
        try:
            touched, call = self._begin(func, args, kwargs)
        except Exception as error:  # a fault of ours: noted once, the call goes on
            self._fail(error)
            return through(func, args, kwargs)
        self.nested += 1
        before, self.clock.call = self.clock.call, call
        try:
            out = through(func, args, kwargs)
        except BaseException:
            self._end(func, call, touched, None, _RAISED)
            touched = None
            raise
        finally:
            self.nested -= 1
            self.clock.call = before
        self._end(func, call, touched, out, 0)
        return out

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error
            self.clock.notice("recorder-fault", "calls", error=type(error).__name__, text=str(error)[:200])
        error.__traceback__ = None

    def _begin(self, func: Any, args: Any, kwargs: Any) -> tuple[list[Any] | None, int]:
        """The call's row and its inputs'; what to compare afterwards: (record, tensor, version)."""
        recording, clock = self.recording, self.clock
        call = len(recording.calls)
        if call >= self.max_calls:
            self.over += 1
            return None, NONE
        name = self.functions.get(func)
        if name is None:
            name = self.functions[func] = clock.string(readable(func))
        touched: list[Any] = []
        rest: list[Any] = []
        self._gather(args, touched, rest, 0)
        if kwargs:
            for key, value in kwargs.items():
                self._gather((value,), touched, rest, 0, key)
        inputs = recording.inputs
        flags = _GRAD if torch.is_grad_enabled() else 0
        if torch.is_inference_mode_enabled():
            flags |= _INFERENCE
        if clock.engine:
            flags |= _ENGINE
        recording.calls.add(clock.step, name, NONE, len(inputs), len(touched), len(recording.outputs), 0, NONE, flags)
        for live, _value, version in touched:
            inputs.add(live.object, version)
        if rest and clock.detail:
            self.arguments.append((call, tuple(rest)))
        if func in UNDECLARED:
            self.writes.suspect(touched)
        return touched, call

    def _gather(self, values: Any, touched: list[Any], rest: list[Any], depth: int, key: str | None = None) -> None:
        for value in values:
            kind = type(value)
            if kind in _TENSORS or isinstance(value, torch.Tensor):
                if kind in _TENSORS:
                    live = self.memory.tensor(value)
                    version = self.memory.version(value)
                else:  # a subclass may override what we read
                    with private.no_torch_function():
                        live = self.memory.tensor(value)
                        version = self.memory.version(value)
                if live.version != version:
                    self.writes.seen_late(live, value, version)
                touched.append((live, value, version))  # three: see identity below
                if not depth:
                    rest.append(_TENSOR if key is None else (key, _TENSOR))
            elif kind is list or kind is tuple:
                if depth < 3:
                    if not depth and len(value) < 8 and all(type(item) in _PLAIN for item in value):
                        rest.append(tuple(value) if key is None else (key, tuple(value)))
                    else:
                        inner: list[Any] = []
                        self._gather(value if len(value) <= 4096 else value[:4096], touched, inner, depth + 1)
                        if not depth:
                            rest.append(_MANY if key is None else (key, _MANY))
            elif kind in _PLAIN and not depth:
                rest.append(value if key is None else (key, value))

    def _end(self, func: Any, call: int, touched: Any, out: Any, flags: int) -> None:
        """Writes, outputs and the graph's counter, after the call."""
        if touched is None:
            return
        try:
            with private.no_torch_function():
                self.writes.after_call(call, touched, self._mutates(func))
                first = len(self.recording.outputs)
                if out is not None:
                    flags |= self._outputs(func, call, touched, out)
                row = self.recording.calls
                start = call * row.width
                row.flat[start + 5] = first
                row.flat[start + 6] = len(self.recording.outputs) - first
                row.flat[start + 7] = private.sequence_number()
                row.flat[start + 8] |= flags
        except Exception as error:
            self._fail(error)

    def _outputs(self, func: Any, call: int, touched: Any, out: Any, depth: int = 0) -> int:
        kind = type(out)
        if kind in _TENSORS or isinstance(out, torch.Tensor):
            return self._output(func, call, touched, out)
        flags = 0
        if isinstance(out, (tuple, list)) and depth < 2:
            for item in out[:4096] if len(out) > 4096 else out:
                flags |= self._outputs(func, call, touched, item, depth + 1)
        elif kind.__name__ == "ndarray":
            self.writes.exposed(touched)
        return flags

    def _output(self, func: Any, call: int, touched: Any, out: Any) -> int:
        memory = self.memory
        live = memory.find(out)
        fresh = live is None
        if live is None:
            live = memory.tensor(out, call)
            if func != DATA_GET:
                for source, _value, _version in touched:
                    if source.storage == live.storage and source.storage >= 0:
                        live.counter = source.counter  # views and detach() share the version counter
                        break
        elif live.object not in [item[0].object for item in touched]:
            memory.note_state(out, live, call)
        self.recording.outputs.add(live.object, int(fresh))
        return self._check(out) if self.clock.detail else 0

    def _check(self, out: Any) -> int:
        """Flags that say whether an output holds NaN or infinity."""
        if not raw.is_inexact(out) or out.numel() > self.check_elements:
            return 0
        array = raw.view(out)
        if array is None:
            return 0
        nans, infs = raw.non_finite(array, raw.dtype_name(out.dtype) == "bfloat16")
        return _CHECKED | (_NAN if nans else 0) | (_INF if infs else 0)

    def _mutates(self, func: Any) -> bool:
        """May the call change what its first argument is, without touching the version counter?"""
        known = self.mutators.get(func)
        if known is None:
            name = self.recording.strings[self.functions[func]]
            known = name.endswith(" =") or name == "Tensor.retain_grad" or (name[-1] == "_" and name[-2:] != "__")
            self.mutators[func] = known
        return known

    def finish(self) -> None:
        """Put what was kept raw into words, after the cell."""
        column = self.recording.calls.column("args")
        for call, rest in self.arguments:
            text = plain(rest)
            if text:
                column[call] = self.clock.string(text)
        self.recording.calls.set_column("args", column)
        self.arguments.clear()
        self.functions.clear()
        self.mutators.clear()
        self.callsites.clear()
        if self.over:
            self.clock.notice("calls-bound", calls=self.max_calls, more=self.over)


class _Mark:
    """Stands for an argument that is not plain."""

    def __init__(self, text: str) -> None:
        self.text = text


_TENSOR, _MANY = _Mark("tensor"), _Mark("...")
