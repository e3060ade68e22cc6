"""Torch calls, seen by a TorchFunctionMode.

The hot path: `__torch_function__` runs for every torch call of the cell. It may look up, count and append whole
numbers; it may not format, sort, search, allocate per element, ask an object of torch's for an attribute that it may
not have (`OpOverloadPacket.__getattr__` costs ten calls), or keep anything of the user's.

Up to Python 3.11 a line tracer makes every instruction slow while it is set, in frames that it does not follow too, and
is called for every function that begins. So `__torch_function__` takes it off as soon as it knows that a call is
recorded, and nothing of ours but the few instructions around that runs under it; the trampoline puts it back for the
call itself, unless the call cannot come to code of the user's (`_is_alone`). Past the bound of detail all the work is
in two functions, `Light.begin` and `Light.end`.

Identity: Python hands the address of a temporary that just died to the next object of its size, and programs print
such addresses (`id(a.detach()) == id(b.detach())`). So between the start of a call and its result nothing of a tensor's
size (80 bytes with the collector's header: a tuple of four or five, an enum) is made and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import _getframe, gettrace, settrace
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from tensormagic.recording.model import NONE, CallFlag, Recording
from tensormagic.watch import private, raw
from tensormagic.watch.callsite import Callsites, untold
from tensormagic.watch.clock import Clock
from tensormagic.watch.functions import (
    DATA_GET,
    GRAD,
    IGNORED,
    SPECIAL,
    UNDECLARED,
    may_write,
    moves,
    mutates,
    plain,
    readable,
    runs_alone,
)  # fmt: skip
from tensormagic.watch.light import Light
from tensormagic.watch.memory import Memory
from tensormagic.watch.writes import Writes

# Plain numbers: the operators of IntFlag make objects and cost more than all the rest of a call.
_GRAD, _INFERENCE, _RAISED = int(CallFlag.GRAD_ENABLED), int(CallFlag.INFERENCE), int(CallFlag.RAISED)
_ENGINE, _CHECKED = int(CallFlag.IN_BACKWARD), int(CallFlag.CHECKED)
_NAN, _INF = int(CallFlag.NAN_OUT), int(CallFlag.INF_OUT)
_TENSORS = {torch.Tensor, torch.nn.Parameter}
_PLAIN = {int, float, bool, str, type(None), slice, type(Ellipsis), torch.dtype, torch.device, torch.Size}
_SIMPLE = _TENSORS | _PLAIN
_jit_tracing = private.jit_tracing
_FIRST_OUT, _FLAGS, _WIDTH = 5, 8, 9  # places in a row of `calls`, and its length


class _Function(NamedTuple):
    """What is known of a function, worked out at its first call."""

    name: int  # string
    mutates: bool  # may change what its first argument is without touching the version counter
    moves: bool  # may make its first argument look at other memory or in another shape
    writes: bool  # may write into what it takes, as far as its name and arguments tell
    undeclared: bool  # its kernel may write into an input without telling
    detaches: bool  # gives a tensor with a version counter of its own on the same memory
    keeps_args: bool  # its arguments are needed in the light record too
    alone: bool  # given plain arguments it runs no code of the user's
    code: CodeType | None  # of a function that is written in Python


class CallMode(TorchFunctionMode):
    """Records each torch call: function, step, inputs with versions, outputs, graph node.

    Args:
        recording, clock, memory, writes: what the watchers of one trace share.
        is_user_code: is this code the user's?
        max_calls: past this many calls only counts are kept (said in a notice).
        check_elements: outputs of at most this many elements are looked at for NaN and infinity.
    """

    def __init__(
        self, recording: Recording, clock: Clock, memory: Memory, writes: Writes,
        is_user_code: Callable[[CodeType], bool], max_calls: int, check_elements: int,
    ) -> None:  # fmt: skip
        super().__init__()
        self.recording, self.clock, self.memory, self.writes = recording, clock, memory, writes
        self.is_user_code, self.max_calls, self.check_elements = is_user_code, max_calls, check_elements
        self.most = max_calls * _WIDTH
        self.callsites = Callsites()
        self.light = Light(recording, clock, memory, writes)
        self.functions: dict[Any, _Function] = {}
        self.files: dict[str, bool] = {}  # file name -> is it the user's?
        self.foreign: set[str] = set()  # the files that are not
        self.arguments: list[tuple[int, tuple[Any, ...]]] = []  # (call, plain arguments), put into words at the end
        self.calls, self.inputs, self.outputs = recording.calls.flat, recording.inputs.flat, recording.outputs.flat
        self.pack_call, self.pack_pair = recording.calls.pack, recording.inputs.pack
        self.on = False
        self.hook: Any = None  # see Lines.hook
        self.guarded = False  # another function mode lies below: our own reads must not reach it
        self.shared = False  # another tracer hears from ours: it is to hear of torch's own functions, too
        self.nested = 0  # calls of ours that are under way: the mode is off inside them
        self.over = 0
        self.blind: Callable[[Any], None] = lambda frame: None  # told the frame of a call whose line nobody told

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # While the line tracer is set every line here costs, so there are few of them.
        if (special := SPECIAL.get(func)) is not None:
            if special == IGNORED or _getframe(1).f_code.co_filename in self.foreign:
                # An optimizer reads and clears .grad: what that did is seen elsewhere.
                return func(*args, **kwargs) if kwargs else func(*args)
        if (hook := self.hook) is not None and (gettrace() is not hook or settrace(None)):  # settrace gives None
            hook = None  # a tracer of the program's own: not ours to take off
        return self._record(_getframe(1), func, args, kwargs or {}, special == GRAD, hook)

    def _record(self, frame: Any, func: Any, args: Any, kwargs: Any, grad: bool, hook: Any) -> Any:
        """Make the call and record it; `hook` is the line tracer where it was taken off."""
        if not self.on or (grad and not self._users(frame.f_code)) or _jit_tracing() is not None:
            if self.on and not grad:
                self._left_alone()
            if hook is not None:
                settrace(hook)
            return func(*args, **kwargs)
        clock = self.clock
        if hook is None and self.hook is not None and not self.nested:
            self.blind(frame)  # a tracer of the program's own took our place: nobody else tells the line
        light = not clock.detail
        touched: list[Any] = []
        known, call, through, traced = None, NONE, untold, hook is not None
        try:
            known = self.functions.get(func) or self._learn(func)
            if traced and known.alone and not self.shared and _is_alone(args, kwargs):
                traced = False
            through = self.callsites.at(frame, known.code, traced)
            del frame
            if len(self.calls) >= self.most:
                self.over += 1
            elif self.guarded:
                with private.no_torch_function():
                    call = (self.light.begin if light else self._begin)(known, args, kwargs, touched)
            else:
                call = (self.light.begin if light else self._begin)(known, args, kwargs, touched)
        except Exception as error:  # a fault of ours: noted once, the call goes on
            self._fail(error)
            traced = hook is not None
            if traced:
                settrace(hook)
        except BaseException:  # Ctrl-C: the user's
            if hook is not None:
                settrace(hook)
            raise
        before = clock.call
        if call >= 0:
            clock.call = call
        self.nested += 1
        out, flags = None, _RAISED
        try:
            out = through(func, args, kwargs, settrace, hook)
            flags = 0
            return out
        finally:
            if traced and (gettrace() is not hook or settrace(None)):
                hook = None  # the call itself set another
            self.nested -= 1
            clock.call = before
            if call >= 0:
                try:
                    if light and not self.guarded:
                        self.light.end(known, call, touched, args, kwargs, out, flags)
                    else:
                        self._after(known, call, touched, args, kwargs, out, flags, light)
                except Exception as error:
                    self._fail(error)
                except BaseException:
                    if hook is not None:
                        settrace(hook)
                    raise
            touched.clear()
            if hook is not None:
                settrace(hook)

    def _left_alone(self) -> None:
        """A call that torch.jit.trace is writing down."""
        try:
            self.clock.notice("jit-traced")
        except Exception as error:
            self._fail(error)

    def _users(self, code: CodeType) -> bool:
        known = self.files.get(code.co_filename)
        if known is None:
            try:
                known = self.is_user_code(code)
            except Exception as error:
                self._fail(error)
                known = False
            self.files[code.co_filename] = known
            if not known:
                self.foreign.add(code.co_filename)
        return known

    def _learn(self, func: Any) -> _Function:
        name = readable(func)
        known = self.functions[func] = _Function(
            self.clock.string(name), mutates(name), moves(name), func in UNDECLARED or may_write(func, name),
            func in UNDECLARED, func == DATA_GET,
            name.endswith("_set_grad_enabled") or "_record_function_enter" in name, runs_alone(func),
            code if isinstance(code := getattr(func, "__code__", None), CodeType) else None,
        )  # fmt: skip
        return known

    def _fail(self, error: BaseException) -> None:
        self.clock.fault("calls", error)

    def _begin(self, known: _Function, args: Any, kwargs: Any, touched: list[Any]) -> int:
        """Write the call's row and its inputs'. `touched` is filled with (record, tensor, version)."""
        calls = self.calls
        call = len(calls) // _WIDTH
        clock = self.clock
        flags = _GRAD if torch.is_grad_enabled() else 0
        if torch.is_inference_mode_enabled():
            flags |= _INFERENCE
        if clock.engine:
            flags |= _ENGINE
        rest: list[Any] = []
        self._gather(args, touched, rest, 0)
        if kwargs:
            for key, value in kwargs.items():
                self._gather((value,), touched, rest, 0, key)
        inputs = self.inputs
        calls.frombytes(self.pack_call(clock.step, known.name, NONE, len(inputs) // 2, len(touched), 0, 0, NONE, flags))
        pack = self.pack_pair
        for live, _value, version in touched:
            inputs.frombytes(pack(live.object, version))
        if rest:
            self.arguments.append((call, tuple(rest)))
        if known.undeclared:
            self.writes.suspect(touched)
        return call

    def _gather(self, values: Any, touched: list[Any], rest: Any, depth: int, key: str | None = None) -> None:
        memory = self.memory
        for value in values:
            kind = type(value)
            if kind in _TENSORS:
                live = memory.live.get(id(value))
                if live is None or live() is not value:
                    live = memory.tensor(value)
                version = memory.version(value)
                if live.version != version:
                    self.writes.seen_late(live, value, version)
                touched.append((live, value, version))
                if rest is not None and not depth:
                    rest.append(_TENSOR if key is None else (key, _TENSOR))
            elif kind in _PLAIN:
                if rest is not None and not depth:
                    rest.append(value if key is None else (key, value))
            elif kind is list or kind is tuple:
                self._gather_many(value, touched, rest, depth, key)
            elif isinstance(value, torch.Tensor):
                with private.no_torch_function():  # a subclass may override what we read
                    live = memory.tensor(value)
                    version = memory.version(value)
                    if live.version != version:
                        self.writes.seen_late(live, value, version)
                touched.append((live, value, version))
                if rest is not None and not depth:
                    rest.append(_TENSOR if key is None else (key, _TENSOR))

    def _gather_many(self, value: Any, touched: list[Any], rest: Any, depth: int, key: str | None) -> None:
        if depth >= 3:
            return
        if rest is not None and not depth:
            if len(value) < 8 and all(type(item) in _PLAIN for item in value):
                rest.append(tuple(value) if key is None else (key, tuple(value)))
                return
            rest.append(_MANY if key is None else (key, _MANY))
        self._gather(value if len(value) <= _MOST else value[:_MOST], touched, rest, depth + 1)

    def _after(
        self, known: Any, call: int, touched: list[Any], args: Any, kwargs: Any, out: Any, flags: int, light: bool
    ) -> None:
        """Writes, outputs and the graph's counter, after the call."""
        if light:
            with private.no_torch_function():
                self.light.end(known, call, touched, args, kwargs, out, flags)
        elif self.guarded or type(out) not in _TENSORS:
            with private.no_torch_function():
                self._finish_call(known, call, touched, out, flags)
        else:
            self._finish_call(known, call, touched, out, flags)

    def _finish_call(self, known: _Function, call: int, touched: list[Any], out: Any, flags: int) -> None:
        outputs, calls = self.outputs, self.calls
        self.writes.after_call(call, touched, known.mutates, known.moves)
        first = len(outputs) // 2
        if out is not None:
            flags |= self._give(known, call, touched, out, 0)
        start = call * _WIDTH + _FIRST_OUT
        calls[start] = first
        calls[start + 1] = len(outputs) // 2 - first
        calls[start + 2] = private.sequence_number()
        if flags:
            calls[start + _FLAGS - _FIRST_OUT] |= flags

    def _give(self, known: _Function, call: int, touched: list[Any], out: Any, depth: int) -> int:
        """Note an output, or those inside a tuple or list."""
        kind = type(out)
        if kind in _TENSORS or isinstance(out, torch.Tensor):
            return self._output(known, call, touched, out)
        flags = 0
        if isinstance(out, (tuple, list)) and depth < 2:
            for item in out[:_MOST] if len(out) > _MOST else out:
                flags |= self._give(known, call, touched, item, depth + 1)
        elif kind.__name__ == "ndarray":
            self.writes.exposed(touched)
        return flags

    def _output(self, known: _Function, call: int, touched: list[Any], out: Any) -> int:
        memory = self.memory
        live = memory.live.get(id(out))
        if live is not None and live() is out:
            self.outputs.frombytes(self.pack_pair(live.object, 0))
            if known.moves:
                memory.note_state(out, live, call)
        else:
            live = memory.tensor(out, call)
            self.outputs.frombytes(self.pack_pair(live.object, 1))
            for source, _value, _version in touched:
                if source.storage == live.storage and live.storage >= 0:
                    if known.detaches:
                        memory.keep_home(out, source)
                    else:
                        live.counter = source.counter  # views and detach() share the version counter
                    break
        return self._check(out) if self.clock.detail else 0

    def _check(self, out: Any) -> int:
        """Flags that say whether an output holds NaN or infinity."""
        array = raw.view(out) if raw.is_inexact(out) else None
        if array is None or array.size > self.check_elements:
            return 0
        nans, infs = raw.non_finite(array, raw.dtype_name(out.dtype) == "bfloat16")
        return _CHECKED | (_NAN if nans else 0) | (_INF if infs else 0)

    def finish(self) -> None:
        """Put what was kept raw into words, after the cell."""
        column = self.recording.calls.column("args")
        for call, rest in self.arguments + self.light.arguments:
            text = plain(rest)
            if text:
                column[call] = self.clock.string(text)
        self.recording.calls.set_column("args", column)
        self.arguments.clear()
        self.light.arguments.clear()
        self.functions.clear()
        self.callsites.clear()
        if self.over:
            self.clock.notice("calls-bound", calls=self.max_calls, more=self.over)


def _is_alone(args: Any, kwargs: Any) -> bool:
    """Can a function that `runs_alone` come to no code of the user's: are its arguments plain, and is no hook for saved
    tensors and no dispatch mode there?"""
    for value in args:
        kind = type(value)
        if kind not in _SIMPLE:
            if kind is not list and kind is not tuple:
                return False
            for item in value:
                if type(item) not in _SIMPLE:
                    return False
    for value in kwargs.values():
        if type(value) not in _SIMPLE:
            return False
    return private.saved_hooks(True) is None and not private.dispatch_modes()


class _Mark:
    """Stands for an argument that is not plain."""

    def __init__(self, text: str) -> None:
        self.text = text


_TENSOR, _MANY = _Mark("tensor"), _Mark("...")
_MOST = 4096  # tensors of one list that a call's record names
