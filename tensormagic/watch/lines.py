"""Which line of the user's code runs, told to a listener as it happens.

What this has to do:

- Only frames whose code `is_watched` are reported; all other Python code pays as little as the interpreter allows.
- Only the thread that called `start` is followed.
- Another tracer that is installed (a debugger, coverage) keeps working, and is back afterwards, exactly.
- A fault of the listener never reaches the user's program: it ends the listening. A KeyboardInterrupt that happens to
  arrive inside the listener is the user's and goes on to their program.
- No strong reference to a frame or a code object of the user's outlives the callback that needed it: what their
  program keeps alive, and when it is freed, stays as it was.

Two backends say the same: `lines_monitoring` (sys.monitoring, Python 3.12 on) and `lines_settrace`. This module imports
neither torch nor IPython, and only siblings, relatively, so that it can be tested on an interpreter that has neither.
"""

from __future__ import annotations

import dis
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from threading import get_ident
from types import CodeType, FrameType
from typing import Any, Protocol

_RESUME = dis.opmap.get("RESUME")  # Python 3.11 on


class Listener(Protocol):
    """What hears about the lines. It is called on the user's thread, in the middle of their program: be quick.

    A listener may also have a method `failed(exc)`. It is called once, with the first exception that one of these
    methods raised; nothing is reported after it. Format the exception there and then: its traceback is cut off
    afterwards, because it holds the user's frames.
    """

    def entered(self, frame: FrameType) -> None:
        """A watched frame begins to run."""

    def line(self, frame: FrameType, line: int) -> None:
        """`line` (1-based) of `frame` is about to run. A loop that stands on one line reports it every time round."""

    def left(self, frame: FrameType, raised: bool) -> None:
        """The frame returned, or (`raised`) an exception leaves it."""

    def paused(self, frame: FrameType) -> None:
        """A generator or coroutine yields. It need not come back: one that is dropped may go without a word."""

    def resumed(self, frame: FrameType) -> None:
        """It goes on, by `next`, `send` or `throw`. It may have been entered before the listening started."""


class _Deaf:
    """Hears nothing."""

    def line(self, frame: FrameType, line: int) -> None:
        pass

    def left(self, frame: FrameType, raised: bool) -> None:
        pass

    def entered(self, frame: FrameType) -> None:
        pass

    paused = resumed = entered


_DEAF = _Deaf()


class Lines(ABC):
    """Reports executed lines from `start` to `stop`, of the thread that calls `start`.

    Arguments:
        is_watched: asked once per code object in a run. It may be asked on any thread.
        listener: see `Listener`.
    """

    backend: str

    def __init__(self, is_watched: Callable[[CodeType], bool], listener: Listener) -> None:
        self._is_watched = is_watched
        self._given = listener
        # What the callbacks talk to. None from a failure on, so that a callback which comes late fails into
        # `_give_up` again: setting it needs no stack, and there may be none left when a listener fails.
        self._listener: Listener | None = None
        self._cause: Exception | None = None
        self._root = 0  # id of the root frame while it runs
        self._running = False
        self._lost = False
        self._thread = 0
        self.interrupted = False  # Ctrl-C came while our hook ran: the interpreter dropped it
        self.failure: str | None = None

    @property
    def lost(self) -> bool:
        """Whether someone else took our place during the run: lines were not reported any more from then on."""
        if self._running and not self._lost and get_ident() == self._thread:
            self._lost = not self._installed()
        return self._lost

    @property
    def hook(self) -> Callable[..., Any] | None:
        """What stands in `sys.settrace`; None where the interpreter calls nothing for frames that are not watched.

        Every Python function costs a call of it. A recorder that runs much code of its own takes it off meanwhile,
        if it is still there (`sys.gettrace() is lines.hook`), and puts it back.
        """
        return None

    @property
    def shared(self) -> bool:
        """Whether another tracer is called by our hook, which is to hear of everything that it would hear of."""
        return False

    def start(self, root: FrameType | None = None) -> None:
        """Begin to report.

        Arguments:
            root: a frame that runs already and is followed from its next line on, whether or not its code is watched
                (the frame of a `with` statement in a script). It is reported as `entered` now.

        Raises:
            RuntimeError: when it was started before and not stopped.
        """
        if self._running:
            raise RuntimeError("these lines are being watched already: call stop() before start()")
        self._listener, self._cause, self.failure = self._given, None, None
        self._lost, self.interrupted, self._thread = False, False, get_ident()
        self._root = 0 if root is None else id(root)
        if root is not None and not self._announce(root):
            return
        self._running = True  # before the hooks are in place: another thread may call them at once
        try:
            self._install(root)
        except BaseException:
            self._running = False
            raise

    def stop(self) -> None:
        """Stop reporting and put everything back as it was. May be called again, and from inside the listener."""
        if self._running:
            self._uninstall()
            self._running = False
        self._listener = None
        self._root = 0
        self._tell()

    def deafen(self) -> bool:
        """Report nothing until `hear`: code runs that nobody may look into. Gives whether the hook was taken off."""
        if not self._running or self._listener is None:
            return False
        self._listener = _DEAF
        hook = self.hook
        if self.shared or hook is None or sys.gettrace() is not hook:
            return False
        sys.settrace(None)
        return True

    def hear(self, hook: bool) -> None:
        """Report again; `hook` is what `deafen` gave."""
        if self._running and self._listener is _DEAF:
            self._listener = self._given
            if hook and sys.gettrace() is None:
                sys.settrace(self.hook)

    def _announce(self, root: FrameType) -> bool:
        try:
            self._given.entered(root)
        except Exception as exc:
            self._cause = exc
            self.stop()
            return False
        return True

    def _give_up(self) -> None:
        """End the run because of `_cause`, the listener's first exception; called from the hooks.

        Shallow on purpose: it is often called with the stack nearly used up (see `leave_room`). When even this does
        not fit, the RecursionError leaves `_running` set and the next event comes here again.
        """
        if self._running:
            self._uninstall()
            self._running = False
        self._root = 0
        self._tell()

    def _tell(self) -> None:
        """Tell the listener of its failure. Where there is no stack left for that, `stop` does it."""
        cause = self._cause
        if cause is None:
            return
        self.failure = f"{type(cause).__name__}: {cause}"
        try:
            failed = getattr(self._given, "failed", None)
            if failed is not None:
                failed(cause)
        except RecursionError:
            return
        except Exception as exc:
            self.failure += f"; and failed() raised {type(exc).__name__}: {exc}"
        self._cause = None
        cause.__traceback__ = cause.__context__ = None

    @abstractmethod
    def _install(self, root: FrameType | None) -> None:
        """Put the hooks in place; the last thing it does is to switch them on."""

    @abstractmethod
    def _uninstall(self) -> None:
        """Take them away. May be called again when it did not come to its end."""

    @abstractmethod
    def _installed(self) -> bool:
        """Whether the hooks are still where `_install` put them."""


class Verdicts:
    """What is known of each code object, for one run.

    By identity: two functions of two files can have equal code objects, and hashing one costs more than a whole call.
    Held weakly, so that a function that the user drops is freed as ever.
    """

    def __init__(self) -> None:
        self.known: dict[int, object] = {}  # id of a code object -> what was noted; for the hot paths
        self._refs: dict[int, weakref.ref[CodeType]] = {}

    def note(self, code: CodeType, verdict: object) -> None:
        key = id(code)
        # A partial of a method of dict, not a function of ours: a settrace hook would see that run.
        self._refs[key] = weakref.ref(code, partial(self.known.pop, key))
        self.known[key] = verdict

    def living(self) -> Iterator[tuple[CodeType, object]]:
        """The code objects that are still there, with their verdicts."""
        for key, ref in list(self._refs.items()):
            code = ref()
            if code is not None:
                yield code, self.known.get(key)

    def clear(self) -> None:
        self._refs.clear()
        self.known.clear()


def first_offset(code: CodeType) -> int:
    """The value of `f_lasti` up to which a frame of this code has not run a line yet; beyond it, it was resumed."""
    if _RESUME is None:
        return -1  # Python 3.10
    return 2 * code.co_code[::2].index(_RESUME)


def leave_room(depth: int = 4) -> None:
    """Raise RecursionError now, as a watched frame begins, if the stack is about to be used up.

    A hook that cannot even be entered for lack of stack raises RecursionError into the user's program, and nobody can
    catch it there. Running out here instead, a few levels early and inside the hook, ends the listening while there is
    still room to do so, and the program goes on to its own limit.
    """
    if depth:
        leave_room(depth - 1)


def make_lines(is_watched: Callable[[CodeType], bool], listener: Listener, backend: str | None = None) -> Lines:
    """The way to watch lines that this interpreter offers.

    Arguments:
        is_watched, listener: see `Lines`.
        backend: "monitoring" or "settrace"; None takes sys.monitoring on Python 3.12 and later, unless other tools
            hold every id that we may take.

    Raises:
        ValueError: for another backend, or for "monitoring" on an interpreter that does not have it.
    """
    if backend not in (None, "monitoring", "settrace"):
        raise ValueError(f"backend {backend!r} is not known: use 'monitoring', 'settrace' or None")
    if backend != "settrace" and hasattr(sys, "monitoring"):
        from .lines_monitoring import MonitoringLines, free_tool_id  # here: it needs sys.monitoring to load

        if backend or free_tool_id() is not None:
            return MonitoringLines(is_watched, listener)
    if backend == "monitoring":
        raise ValueError("backend 'monitoring' needs Python 3.12 or later: use 'settrace' or None")
    from .lines_settrace import SettraceLines  # here: it derives from Lines

    return SettraceLines(is_watched, listener)
