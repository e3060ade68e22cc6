"""Lines by `sys.monitoring`, Python 3.12 and later: code that is not watched costs one call per code object.

PY_START, PY_RESUME, PY_THROW and PY_UNWIND are switched on for all code: the first two find the watched code objects
and are switched off, by DISABLE, wherever else they happen; the last two cannot be had per code object. LINE, JUMP,
PY_RETURN and PY_YIELD are switched on for watched code objects only.

sys.monitoring hears of all threads, and of frames that ran before the start. So each frame that begins or goes on in
our thread is noted, by its id, until it pauses or ends, and events of other frames are dropped.

sys.monitoring tells a line when it begins, not when a loop that stands on one line comes round again; sys.settrace
does, and so does this: a JUMP backwards onto its own line is reported as that line.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import _getframe as getframe
from sys import monitoring
from threading import get_ident
from types import CodeType, FrameType
from typing import Any

from .lines import Lines, Verdicts, first_offset, leave_room

_NAME = "tensormagic"
_EVENTS = monitoring.events
_EVERYWHERE = _EVENTS.PY_START | _EVENTS.PY_RESUME | _EVENTS.PY_THROW | _EVENTS.PY_UNWIND
_IN_WATCHED = _EVENTS.LINE | _EVENTS.JUMP | _EVENTS.PY_RETURN | _EVENTS.PY_YIELD

# 0, 1 and 2 belong to debuggers, coverage and profilers: the user's program may start one of those while we run.
_IDS = (3, 4, 5)


class _Watched:
    """What the callbacks have to know of a watched code object."""

    __slots__ = ("line_of", "root_only")

    def __init__(self, code: CodeType, root_only: bool) -> None:
        self.root_only = root_only  # of this code only the root frame is followed
        self.line_of = {at: line for start, end, line in code.co_lines() for at in range(start, end, 2)}


def free_tool_id() -> int | None:
    """A tool id that nobody uses."""
    return next((tool for tool in _IDS if monitoring.get_tool(tool) is None), None)


class MonitoringLines(Lines):
    """See `Lines`."""

    backend = "monitoring"

    def _install(self, root: FrameType | None) -> None:
        tool = free_tool_id()
        if tool is None:
            holders = ", ".join(str(monitoring.get_tool(tool)) for tool in _IDS)
            raise RuntimeError(f"no sys.monitoring tool id is free, {holders} hold them: use backend='settrace'")
        self._verdicts = Verdicts()
        self._frames: set[int] = set()  # ids of the watched frames that run in our thread
        self._tool = tool
        monitoring.use_tool_id(tool, _NAME)
        self._callbacks = self._make_callbacks()
        for event, callback in self._callbacks.items():
            monitoring.register_callback(tool, event, callback)
        if root is not None:
            self._judge(root.f_code, root=True)
            self._frames.add(id(root))
        monitoring.set_events(tool, _EVERYWHERE)
        monitoring.restart_events()  # what an earlier run answered DISABLE to is off until then

    def _installed(self) -> bool:
        return monitoring.get_tool(self._tool) == _NAME

    def _uninstall(self) -> None:
        if not self._installed():
            self._lost = True
            return
        for event in self._callbacks:  # first, and with nothing but C calls: needs no stack
            monitoring.register_callback(self._tool, event, None)
        monitoring.set_events(self._tool, 0)
        for code, verdict in self._verdicts.living():
            if verdict:
                monitoring.set_local_events(self._tool, code, 0)
        monitoring.free_tool_id(self._tool)
        self._verdicts.clear()
        self._frames.clear()

    def _judge(self, code: CodeType, root: bool = False) -> _Watched | bool:
        """Ask about a code object that is met for the first time, and switch its events on if it is watched."""
        watched = self._is_watched(code)
        verdict = _Watched(code, root_only=not watched) if watched or root else False
        self._verdicts.note(code, verdict)
        if verdict:
            monitoring.set_local_events(self._tool, code, _IN_WATCHED)
        return verdict

    def _make_callbacks(self) -> dict[int, Callable[..., Any]]:
        begins, ends = self._make_begins, self._make_ends
        on_line, on_jump = self._make_on_line()
        return {
            _EVENTS.PY_START: begins("entered", monitoring.DISABLE),
            _EVENTS.PY_RESUME: begins("resumed", monitoring.DISABLE),
            _EVENTS.PY_THROW: begins("resumed", None),  # cannot be disabled
            _EVENTS.LINE: on_line,
            _EVENTS.JUMP: on_jump,
            _EVENTS.PY_YIELD: ends("paused"),
            _EVENTS.PY_RETURN: ends("left", False),
            _EVENTS.PY_UNWIND: ends("left", True),
        }

    # The callbacks. Functions with their own cells instead of methods: this is the hot path. `getframe(1)` is the frame
    # that the event happened in. Each catches for itself, because with the stack used up nothing can be called.

    def _make_on_line(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        lines, frames, known, disable = self, self._frames, self._verdicts.known, monitoring.DISABLE

        def on_line(code: CodeType, line: int) -> None:
            try:
                frame = getframe(1)
                if id(frame) in frames:
                    lines._listener.line(frame, line)
            except Exception as exc:
                if lines._cause is None:
                    lines._cause = exc
                lines._listener = None
                try:
                    lines._give_up()
                except RecursionError:
                    pass  # no stack left to say so: the next event comes here again

        def on_jump(code: CodeType, source: int, target: int) -> object:
            try:
                line_of = known[id(code)].line_of
                if target > source or line_of[target] is None or line_of[target] != line_of[source]:
                    return disable  # where another line begins, LINE tells
                frame = getframe(1)
                if id(frame) in frames:
                    lines._listener.line(frame, line_of[target])
            except Exception as exc:
                if lines._cause is None:
                    lines._cause = exc
                lines._listener = None
                try:
                    lines._give_up()
                except RecursionError:
                    pass  # as above
            return None

        return on_line, on_jump

    def _make_begins(self, method: str, elsewhere: object) -> Callable[..., Any]:
        """A frame begins or goes on: tell by `method`; answer `elsewhere` when its code is not watched."""
        lines, frames, known, thread = self, self._frames, self._verdicts.known, self._thread

        def on_begin(code: CodeType, offset: int, thrown: BaseException | None = None) -> object:
            try:
                verdict = known.get(id(code))
                if verdict is None:
                    if not lines._running:
                        return None
                    verdict = lines._judge(code)
                if verdict is False:
                    return elsewhere
                if get_ident() != thread:
                    return None
                frame = getframe(1)
                if verdict.root_only and id(frame) != lines._root:
                    return None
                frames.add(id(frame))
                if thrown is not None and frame.f_lasti <= first_offset(code):
                    lines._listener.entered(frame)  # thrown into before its first line
                else:
                    getattr(lines._listener, method)(frame)
                leave_room()
            except Exception as exc:
                if lines._cause is None:
                    lines._cause = exc
                lines._listener = None
                try:
                    lines._give_up()
                except RecursionError:
                    pass  # as above
            return None

        return on_begin

    def _make_ends(self, method: str, *facts: bool) -> Callable[..., Any]:
        """A frame pauses or is left: tell by `method`, with `facts`."""
        lines, frames = self, self._frames

        def on_end(code: CodeType, offset: int, value: object) -> None:
            try:
                frame = getframe(1)
                if id(frame) not in frames:
                    return
                frames.discard(id(frame))
                if facts and id(frame) == lines._root:
                    lines._root = 0
                getattr(lines._listener, method)(frame, *facts)
            except Exception as exc:
                if lines._cause is None:
                    lines._cause = exc
                lines._listener = None
                try:
                    lines._give_up()
                except RecursionError:
                    pass  # as above

        return on_end
