"""Starts and stops the watchers in order; owns nothing else."""

from __future__ import annotations

import linecache
import platform
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import torch

from tensormagic.recording.model import NONE, Recording
from tensormagic.recording.values import count_non_finite
from tensormagic.watch import private
from tensormagic.watch.backward import Engine
from tensormagic.watch.calls import CallMode
from tensormagic.watch.callsite import NAME
from tensormagic.watch.clock import Clock, fault_notice
from tensormagic.watch.compiled import Compiled
from tensormagic.watch.errors import error_info, without_place
from tensormagic.watch.graph import Graph
from tensormagic.watch.interrupts import Held
from tensormagic.watch.late_nan import LateNaN
from tensormagic.watch.lines import make_lines
from tensormagic.watch.loops import Loops
from tensormagic.watch.memory import Memory
from tensormagic.watch.names import Names
from tensormagic.watch.options import Options
from tensormagic.watch.statements import statements
from tensormagic.watch.steps import Steps
from tensormagic.watch.swaps import Swaps
from tensormagic.watch.writes import Writes

_OPTIMIZED = 0x1  # co_flags of a function's code; class bodies lack it
_INNER = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", NAME}


class Watch:
    """One trace, from start to stop, on one thread.

    Args:
        namespace: the names of the cell, looked at after every step; not kept after stop().
        cell: the source, in which line k is line k of the editor.
        filename: co_filename of the cell's code.
        options: bounds.
        name: what the cell is called, None for no name.
        user_files: says whether the code of another file is the user's too (other cells of the notebook).
    """

    def __init__(
        self, namespace: dict[str, Any], cell: str, filename: str, options: Options | None = None,
        name: str | None = None, user_files: Callable[[str], bool] | None = None,
    ) -> None:  # fmt: skip
        options = options or Options()
        self.recording = recording = Recording()
        recording.cell = filename
        recording.sources[filename] = cell
        recording.about = {
            "name": name, "torch": torch.__version__, "python": platform.python_version(),
            "values": options.values, "first": options.first, "max_steps": options.max_steps,
        }  # fmt: skip
        self.filename, self.user_files, self.options = filename, user_files, options
        self.clock = clock = Clock(recording)
        self.memory = Memory(recording, clock)
        self.writes = Writes(recording, clock, self.memory, options.values)
        self.mode = CallMode(
            recording, clock, self.memory, self.writes, self.is_user_code, options.max_calls, options.check_elements
        )
        self.graph = Graph(recording, clock, self.memory, options.max_nodes)
        self.engine = Engine(recording, clock, self.memory, self.writes, self.graph, self.mode, options.values)
        self.engine.late = self.mode.light.late = LateNaN(recording, self.graph, self.is_user_code)
        self.names = Names(recording, clock, self.memory, self.writes, options, self.is_user_code)
        self.variables: Callable[[], dict[str, Any]] = lambda: namespace
        self.steps = Steps(
            recording,
            clock,
            self.names,
            self.writes,
            options,
            self.variables,
            filename,
            self._statements,
            lambda file: Loops(self._source(file)),
        )
        self.lines = make_lines(self.is_watched, self.steps)
        self.compiled = Compiled(clock, self._leave, self._come_back)
        self.swaps = Swaps(clock, self.memory)
        self.started = self.interrupted = False
        self.parts: list[Callable[[], None]] = []  # what is left to be done to stop
        self.threads: set[int | None] = set()

    # ---- whose code is it ----------------------------------------------------------------------------------------

    def is_user_code(self, code: CodeType) -> bool:
        """Does the code stand in the cell or in another file of the user's?"""
        file = code.co_filename
        return file == self.filename or (self.user_files is not None and self.user_files(file))

    def is_watched(self, code: CodeType) -> bool:
        """Are its lines steps? Comprehensions belong to the line they stand on, class bodies to the class."""
        if code.co_name in _INNER or not self.is_user_code(code):
            return False
        # "<module>"; IPython 7 names the code of a cell "<cell line: 3>". A class body bears the name of its class.
        return bool(code.co_flags & _OPTIMIZED) or code.co_name.startswith("<")

    def _statements(self, file: str) -> dict[int, int]:
        return statements(self._source(file))

    def _source(self, file: str) -> str:
        text = self.recording.sources.get(file)
        if text is None:
            text = self.recording.sources[file] = "".join(linecache.getlines(file))
        return text

    # ---- start and stop ------------------------------------------------------------------------------------------

    def start(self, root: FrameType | None = None) -> None:
        """Begin to record on this thread. `root`: a running frame to follow from its next line on (a script).

        A watcher that cannot be started is left out, and a notice says so; this never raises.
        """
        self.started = True
        if root is not None and root.f_code.co_flags & _OPTIMIZED:
            self.variables = self.steps.variables = lambda: root.f_locals  # a `with` block in a function
        with Held():
            self._guarded(self._first_look)
            self._guarded(self.steps.learn, self.filename)
            self._guarded(self.engine.start)
            self._guarded(self._start_mode)
            self._guarded(self.compiled.start)
            self._guarded(self.swaps.start)
            self._guarded(self._start_lines, root)

    def at_once(self, root: FrameType) -> None:
        """Count the line that the root frame stands on as a step; otherwise the next line is the first."""
        self._guarded(self.steps.line, root, root.f_lineno)

    def stop(self, error: BaseException | None = None) -> Recording:
        """Stop recording, put everything back, and give what was recorded.

        Args:
            error: the exception that ended the cell, None where it ended well.

        Nothing is raised but an interrupt that came meanwhile, and by then everything is back in its place; what was
        recorded can be had by a second call.
        """
        if self.started:
            self.started = False
            self.interrupted = isinstance(error, KeyboardInterrupt)
            self.parts = [
                self._stop_lines, self.swaps.stop, self.compiled.stop, self._stop_mode, self.engine.stop, self._company,
                self._last_look, self.mode.finish, self.steps.finish, self.memory.close, self._unreadable, self._count,
            ]  # fmt: skip
        with Held():
            while self.parts:
                self._guarded(self.parts[0])
                del self.parts[0]
        if error is not None:
            self._guarded(self._note_error, error)
        self.variables = self.steps.variables = dict
        return self.recording

    def _guarded(self, part: Callable[..., None], *args: Any) -> None:
        """Run a part of ours; its fault is noted, and what comes after it still runs."""
        try:
            part(*args)
        except Exception as fault:
            self.clock.fault(getattr(part, "__name__", "watch"), fault)

    def _first_look(self) -> None:
        self.threads = {thread.ident for thread in threading.enumerate()}
        with private.no_torch_function():
            self.writes.begin_look()
            self.names.look(0, self.variables())
            self.writes.end_look()

    def _start_mode(self) -> None:
        self.mode.guarded = private.function_modes() > 0
        self.mode.__enter__()
        self.mode.on = True

    def _start_lines(self, root: FrameType | None) -> None:
        self.lines.start(root)
        self.mode.hook, self.mode.shared = self.lines.hook, self.lines.shared
        self.mode.blind = self._blind

    def _blind(self, frame: FrameType | None) -> None:
        """Another tracer took our place: the lines that call torch are known by their calls."""
        try:
            while frame is not None and not (frame.f_code.co_name != NAME and self.is_watched(frame.f_code)):
                frame = frame.f_back
            if frame is not None:
                self.steps.met(frame)
        except Exception as fault:
            self.clock.fault("lines", fault)
            self.mode.blind = lambda frame: None

    def _stop_lines(self) -> None:
        try:  # asked while it runs: afterwards the place in sys.settrace is somebody else's by right
            if self.lines.lost:
                # Ctrl-C may come in the few instructions in which our hook is off: then nobody has taken its place.
                off = self.lines.interrupted or (self.interrupted and sys.gettrace() is None)
                self.clock.notice("lines-interrupted" if off else "lines-lost")
        finally:
            self.lines.stop()

    def _stop_mode(self) -> None:
        self.mode.on = False
        while private.is_in_function_mode(self.mode):  # an interrupt may have left it there a second time
            private.leave_function_mode(self.mode)

    def _leave(self) -> tuple[bool, int]:
        """Compiled code is about to run: be away, as if there were no trace."""
        hook = self.lines.deafen()
        self.mode.on = False
        place = private.leave_function_mode(self.mode)
        self.engine.stop()
        return hook, place

    def _come_back(self, left: tuple[bool, int]) -> None:
        hook, place = left
        self.engine.start()
        private.enter_function_mode(self.mode, place)
        self.mode.on = self.started
        self.lines.hear(hook)

    def _unreadable(self) -> None:
        for kind, why in self.memory.unreadable.items():
            self.clock.notice("no-memory", kind, type=kind, why=why)

    def _count(self) -> None:
        count_non_finite(self.recording.blobs)

    def _note_error(self, error: BaseException) -> None:
        self.recording.error = without_place(error)  # should the rest not be had
        self.recording.error = error_info(error, self.filename, self.is_user_code, len(self.recording.steps) - 1)

    def _company(self) -> None:
        """Say what ran beside the traced thread: it is recorded by nobody."""
        threads = [thread.name for thread in threading.enumerate() if thread.ident not in self.threads]
        if threads:
            self.clock.notice("threads", names=", ".join(threads[:4]))
        processes = sys.modules.get("multiprocessing")
        if processes is not None and processes.active_children():
            self.clock.notice("processes", count=len(processes.active_children()))

    def _last_look(self) -> None:
        """What names stand for at the end, and how much graph hangs on each."""
        steps = self.steps
        self.clock.step = steps.order[-1] if steps.order else NONE
        with private.no_torch_function():
            self.writes.begin_look()
            found = self.names.collect(0, self.variables(), steps.stale, steps.stored_at)
            self.writes.end_look()
            seen = set()
            for value, live in found:
                if live.object in seen or not private.get_requires_grad(value) or private.get_is_leaf(value):
                    continue
                seen.add(live.object)
                try:
                    node = private.get_grad_fn(value)
                except RuntimeError:
                    continue  # its base was changed: torch refuses the graph, and says so to whoever uses it
                nodes, _, truncated = self.graph.walk([node])
                self.recording.walks.add(self.clock.step, live.object, len(nodes), int(truncated))
                del node, nodes


_ATTEMPTS = 8  # interrupts, one after the other, while a watch is stopped


class NoWatch:
    """Stands in for a Watch that could not be made: the cell runs, and its record says that there is none."""

    def __init__(self, cell: str, filename: str, fault: Exception) -> None:
        self.recording = Recording(cell=filename, sources={filename: cell})
        self.recording.notices.append(fault_notice("watch", fault))
        self.started = False

    def start(self, root: FrameType | None = None) -> None:
        """Nothing is recorded."""

    def at_once(self, root: FrameType) -> None:
        """Nor this line."""

    def stop(self, error: BaseException | None = None) -> Recording:
        """The record without steps, with the exception that ended the cell."""
        if error is not None:
            file = self.recording.cell
            self.recording.error = error_info(error, file, lambda code: code.co_filename == file, NONE)
        return self.recording


def make_watch(
    namespace: dict[str, Any], cell: str, filename: str, options: Options | None = None, name: str | None = None,
    user_files: Callable[[str], bool] | None = None,
) -> Watch | NoWatch:  # fmt: skip
    """A Watch (see there for the arguments), or what stands in for it where making it fails: this never raises."""
    try:
        return Watch(namespace, cell, filename, options, name, user_files)
    except Exception as fault:
        return NoWatch(cell, filename, fault)


def stopped(watch: Watch | NoWatch, failure: BaseException | None) -> tuple[Recording, BaseException | None]:
    """Stop a watch; an interrupt that comes meanwhile counts as the cell's where that had ended well.

    Returns:
        what was recorded, and the exception that ended the cell.
    """
    for _ in range(_ATTEMPTS):
        try:
            return watch.stop(failure), failure
        except BaseException as interrupt:
            if failure is None:
                failure = interrupt
    return watch.recording, failure
