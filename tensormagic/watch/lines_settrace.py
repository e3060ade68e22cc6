"""Lines by `sys.settrace`: for Python 3.10 and 3.11, and later where sys.monitoring cannot be had.

The interpreter calls the global function (`_make_hook`) for every frame that begins or goes on in this thread, and a
frame's local function (`_make_local`) for its lines and its end; only watched frames get one. A tracer that was there
before is called first, for every frame, with its own local functions; `_Pair` keeps the two apart.

When the user's program calls `sys.settrace` itself, theirs wins. Our local functions notice at the next event that the
hook is gone, and take themselves off their frame. So does one that is met after the end, on a generator that slept.

Limits. Of two that run at once the first gives way to the second, and is `lost`. A program that removes the tracer and
puts it back (`old = sys.gettrace(); ...; sys.settrace(old)`) hides from us what ran in between, without a word. A frame
of *unwatched* code that begins on the very last free level of the stack fails one level early, because the hook has no
room. `f_trace` of a watched frame is ours, which a debugger that steps out into it can see.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from sys import gettrace
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

from .lines import Lines, Verdicts, first_offset, leave_room

TraceFunction = Callable[[FrameType, str, Any], Any]

_PAUSES = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE
_RETURNS = frozenset(dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST") if name in dis.opmap)
_YIELDS = frozenset(dis.opmap[name] for name in ("YIELD_VALUE",) if name in dis.opmap)
_YIELD_FROM = dis.opmap.get("YIELD_FROM")  # Python 3.10: steps back by one instruction when it yields
_STEP = 2 if sys.version_info >= (3, 13) else 0  # 3.13: a frame that yields stands on the instruction behind already


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the local function has to know of a watched code object.

    A "return" event does not say whether the frame returned, yielded or is left by an exception; the instruction that
    the frame stands on does.
    """

    root_only: bool  # of this code only the root frame is followed
    pauses: bool  # a generator or coroutine
    first: int  # see first_offset
    returns: frozenset[int]  # offsets of the instructions that return
    yields: frozenset[int]  # offsets at which a frame stands while it yields


def _exits(code: CodeType) -> tuple[frozenset[int], frozenset[int]]:
    returns, yields = set(), set()
    for index, opcode in enumerate(code.co_code[::2]):
        if opcode in _RETURNS:
            returns.add(2 * index)
        elif opcode in _YIELDS:
            yields.add(2 * index + _STEP)
        elif opcode == _YIELD_FROM:
            yields.add(2 * index - 2)
    return frozenset(returns), frozenset(yields)


class SettraceLines(Lines):
    """See `Lines`."""

    backend = "settrace"

    def _install(self, root: FrameType | None) -> None:
        self._verdicts = Verdicts()
        self._previous: TraceFunction | None = gettrace()
        enter = self._make_enter()
        self._hook = enter if self._previous is None else self._make_chained(enter)
        self._thrown: dict[int, int] = {}  # id of a frame -> see _raised
        self._local = self._make_local(self._hook)
        if root is not None:
            self._judge(root.f_code, root=True)
            root.f_trace = self._local if root.f_trace is None else _Pair(self, self._local, root.f_trace, root)
        sys.settrace(self._hook)

    @property
    def hook(self) -> TraceFunction | None:
        return self._hook if self._running else None

    @property
    def shared(self) -> bool:
        return self._running and self._previous is not None

    def _installed(self) -> bool:
        return gettrace() is self._hook

    def _uninstall(self) -> None:
        # From another thread our hook cannot be taken away; it does that itself when it is called next.
        if get_ident() == self._thread:
            now = gettrace()
            # None after an interrupt inside our callback: that made the interpreter drop the hook, not the user.
            if now is self._hook or (now is None and self.interrupted):
                sys.settrace(self._previous)
            else:
                self._lost = True
            frame = sys._getframe()
            while frame is not None:
                trace = frame.f_trace
                if type(trace) is _Pair and trace.lines is self:
                    trace.give_back(frame)
                elif trace is self._local:
                    frame.f_trace = None
                frame = frame.f_back
        self._verdicts.clear()

    def _judge(self, code: CodeType, root: bool = False) -> _Facts | bool:
        """Ask about a code object that is met for the first time; False if it is not watched."""
        watched = self._is_watched(code)
        if not watched and not root:
            self._verdicts.note(code, False)
            return False
        pauses = bool(code.co_flags & _PAUSES)
        facts = _Facts(not watched, pauses, first_offset(code), *_exits(code))
        self._verdicts.note(code, facts)
        return facts

    def _adopt(self) -> bool:
        """The tracer before us put something in our place while we called it: go on in front of that.

        coverage's C tracer does so at every call; a debugger that was told to continue leaves nothing, and then no
        frame that runs has a local function any more: that run is lost.
        """
        now = gettrace()
        if now is None:
            self._lost = True
            return False
        self._previous = now
        sys.settrace(self._hook)
        return True

    # The hooks. Functions with their own cells instead of methods: this is the hot path, and they must be one object.
    # `None` for an answer would leave f_trace as it is, whatever the documentation says.

    def _make_enter(self) -> TraceFunction:
        """The global function when no other tracer is there; answers the frame's local function or None."""
        lines, known = self, self._verdicts.known

        def enter(frame: FrameType, event: str, arg: Any) -> TraceFunction | None:
            try:
                facts = known.get(id(frame.f_code))
                if facts is False:
                    return None
                if facts is None:
                    if not lines._running or get_ident() != lines._thread:
                        if gettrace() is enter:
                            sys.settrace(None)
                        return None
                    facts = lines._judge(frame.f_code)
                    if facts is False:
                        return None
                if facts.root_only and id(frame) != lines._root:
                    return None
                if facts.pauses and frame.f_lasti > facts.first:
                    lines._listener.resumed(frame)
                else:
                    lines._listener.entered(frame)
                leave_room()
                return lines._local if lines._running else None
            except Exception as exc:
                if lines._cause is None:
                    lines._cause = exc
                lines._listener = None
                try:
                    lines._give_up()
                except RecursionError:
                    pass  # no stack left to say so: the next event comes here again
                return None
            except BaseException:
                lines.interrupted = True
                raise

        return enter

    def _make_chained(self, enter: TraceFunction) -> TraceFunction:
        """The global function in front of another tracer."""
        lines = self

        def chained(frame: FrameType, event: str, arg: Any) -> TraceFunction | None:
            before = frame.f_trace
            if type(before) is _Pair and before.deaf:
                frame.f_trace_lines = False  # as they left it: a generator that goes on
            theirs = lines._previous(frame, event, arg)
            if gettrace() is not chained and not (lines._running and lines._adopt()):
                return theirs
            if not lines._running:
                sys.settrace(lines._previous)
                return theirs
            ours = enter(frame, event, arg)
            if ours is None:
                return theirs
            if theirs is None:  # a generator that goes on keeps the local function that it had
                theirs = before.theirs if type(before) is _Pair else frame.f_trace
            return _Pair(lines, ours, theirs, frame)

        return chained

    def _make_local(self, hook: TraceFunction) -> TraceFunction:
        """The local function of every watched frame."""
        lines, thrown = self, self._thrown

        def local(frame: FrameType, event: str, arg: Any) -> TraceFunction | None:
            try:
                if gettrace() is not hook:
                    return lines._step_aside(frame)
                if event == "line":
                    if thrown:
                        lines._forget(frame)
                    lines._listener.line(frame, frame.f_lineno)
                elif event == "return":
                    lines._ended(frame, arg)
                elif event == "exception":
                    lines._raised(frame)
                return frame.f_trace
            except Exception as exc:
                if lines._cause is None:
                    lines._cause = exc
                lines._listener = None
                try:
                    lines._give_up()
                except RecursionError:
                    pass  # as above
                return None
            except BaseException:
                lines.interrupted = True
                raise

        return local

    def _step_aside(self, frame: FrameType) -> None:
        """Our local function runs and the hook is gone: stopped meanwhile, or replaced by the user's program."""
        if self._running and get_ident() == self._thread:
            self._lost = True
        if frame.f_trace is self._local:
            frame.f_trace = None

    def _ended(self, frame: FrameType, arg: Any) -> None:
        facts, at = self._verdicts.known[id(frame.f_code)], frame.f_lasti
        thrown_at = self._thrown.pop(id(frame), None)
        if at in facts.yields and not (arg is None and thrown_at == at):
            self._listener.paused(frame)
            return
        if id(frame) == self._root:
            self._root = 0
        self._listener.left(frame, at not in facts.returns)

    # An exception that is thrown into a generator leaves it while it stands on the very `yield` that it had paused at;
    # a `finally` in between does not change that. To tell this from yielding None there again, `_thrown` notes at which
    # yield an exception appeared, until a line begins before it: handlers come behind what they guard.

    def _raised(self, frame: FrameType) -> None:
        if frame.f_lasti in self._verdicts.known[id(frame.f_code)].yields:
            self._thrown[id(frame)] = frame.f_lasti

    def _forget(self, frame: FrameType) -> None:
        if frame.f_lasti < self._thrown.get(id(frame), -1):
            del self._thrown[id(frame)]


class _Pair:
    """The local function of a watched frame while another tracer is there: theirs, then ours.

    Theirs goes first: when a debugger jumps to another line, or ends the program, what is recorded is what happened.
    A tracer may switch off the lines of a frame that it does not care for (coverage's in Python does): they are on for
    us, and it is not told of them.
    """

    __slots__ = ("deaf", "lines", "ours", "theirs")

    def __init__(
        self, lines: SettraceLines, ours: TraceFunction, theirs: TraceFunction | None, frame: FrameType
    ) -> None:
        self.lines, self.ours, self.theirs = lines, ours, theirs
        self.deaf = not frame.f_trace_lines
        frame.f_trace_lines = True

    def give_back(self, frame: FrameType) -> None:
        """Leave the frame to them."""
        frame.f_trace = self.theirs
        if self.deaf:
            frame.f_trace_lines = False

    def __call__(self, frame: FrameType, event: str, arg: Any) -> TraceFunction | None:
        lines = self.lines
        mine = gettrace() is lines._hook
        told = self.theirs is not None and not (self.deaf and event == "line")
        if told and (lines._previous is not None or not mine):  # else theirs is not in use now
            answer = self.theirs(frame, event, arg)
            if frame.f_trace is not self:  # they may set it themselves
                self.theirs = frame.f_trace
            if answer is not None:
                self.theirs = answer
        if mine and (gettrace() is lines._hook or lines._adopt()):
            frame.f_trace = self
            self.ours(frame, event, arg)
        elif lines._running and get_ident() == lines._thread:
            lines._lost = True
        if not (mine and lines._running):
            self.give_back(frame)
        return frame.f_trace
