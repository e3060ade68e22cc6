"""A trace that is being made by a command, and what becomes of it: the variable, the file, the panel."""

from __future__ import annotations

import sys
import threading
from typing import Any

from IPython.core.error import UsageError
from IPython.display import display

from tensormagic import shell as inside
from tensormagic.analysis.findings import ERROR
from tensormagic.magic_live import LiveLine
from tensormagic.magic_options import DEFAULT_NAME, Settings
from tensormagic.recording.model import Recording
from tensormagic.tracing import Trace
from tensormagic.watch.watch import NoWatch, Watch, stopped


class Running:
    """One trace from its begin to its end, on the thread that began it."""

    def __init__(self, watch: Watch | NoWatch, settings: Settings, publisher: Any = None) -> None:
        self.watch, self.settings = watch, settings
        self.live = LiveLine(publisher, watch.recording) if publisher is not None else None
        self.info: Any = None  # ExecutionInfo of the cell
        self.place: Any = None  # the instruction that began it, so that a second run of it is known
        self.of_every = False  # begun by `%tensortrace on`
        self.written: str | None = None  # the source as the user wrote it, line by line that which ran
        self.recording: Recording | None = None
        self._thread = threading.get_ident()

    def is_here(self) -> bool:
        """Does the caller stand on the thread of the trace? Modes and tracers are a thread's own."""
        return threading.get_ident() == self._thread

    def stop(self, error: BaseException | None) -> Recording:
        """Stop recording; a second call changes nothing."""
        if self.recording is None:
            self.recording = stopped(self.watch, error)[0]
            if self.live is not None:
                self.live.end()
            if self.written is not None:
                self.recording.sources[self.recording.cell] = self.written
        return self.recording


class Shelf:
    """Where finished traces go. A trace holds a record only: nothing of the user's lives longer because of it."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self.last: Trace | None = None
        self._put: Trace | None = None  # what stands in the default variable, if we put it there

    def check_name(self, settings: Settings) -> None:
        """Refuse a name that would take a variable of the user's, before anything has run."""
        name = settings.name
        if name is not None and not self._is_free(name):
            held = type(self._shell.user_ns[name]).__name__
            raise UsageError(f"--name {name}: the variable {name} holds a {held} of yours; take another name.")

    def _is_free(self, name: str) -> bool:
        names = self._shell.user_ns
        if name not in names:
            return True
        # By the default name only what was put there may be replaced; a name that was asked for may take any trace.
        return names[name] is self._put if name == DEFAULT_NAME else isinstance(names[name], Trace)

    def deliver(self, running: Running) -> None:
        """Put a finished trace into its variable and file, and show it. Faults here are told, and end nothing."""
        settings, recording = running.settings, running.recording
        assert recording is not None
        try:
            trace = Trace(recording)
        except Exception as fault:
            _tell("the record could not be read", fault)
            return
        self._keep(trace, settings)
        if settings.save is not None:
            try:
                trace.save(settings.save)
            except Exception as fault:
                _tell(f"the trace could not be saved to {settings.save}", fault)
        if recording.error is not None:
            self._say_why(trace)
        if not running.of_every or recording.error is not None or len(recording.calls) or len(recording.writes):
            self.show(trace, settings)

    def _say_why(self, trace: Trace) -> None:
        """One line under the traceback, where a rule knows why the cell raised."""
        try:
            found = [finding for finding in trace.findings if finding.severity == ERROR]
        except Exception as fault:
            _tell("the findings could not be worked out", fault)
            return
        if found:
            print(f"tensormagic: {found[0].message.replace('`', '')} {found[0].fix.replace('`', '')}")

    def _keep(self, trace: Trace, settings: Settings) -> None:
        name = settings.name or DEFAULT_NAME
        if self._is_free(name):
            self._shell.user_ns[name] = trace
            if name == DEFAULT_NAME:
                self._put = trace
        else:
            print(
                f"tensormagic: the variable {name} is yours and stays as it is; --name gives the trace another.",
                file=sys.stderr,
            )
        self.last = trace

    def show(self, trace: Trace, settings: Settings) -> None:
        """The panel below the cell, or text where it was asked for or nothing else can be shown."""
        if not settings.panel:
            return
        try:
            if settings.text or not inside.has_kernel(self._shell):
                print(trace.summary())
            else:
                display(trace.panel())
        except Exception as fault:
            _tell("the trace was recorded, but could not be shown", fault)

    def show_last(self, settings: Settings) -> None:
        """`%tensortrace last`."""
        if self.last is None:
            raise UsageError("no cell has been traced yet: put %%tensortrace on one.")
        if settings.save is not None:
            self.last.save(settings.save)
        self.show(self.last, settings)

    def clear(self) -> None:
        """Take the default variable away, where it is still ours."""
        if self._put is not None and self._shell.user_ns.get(DEFAULT_NAME) is self._put:
            del self._shell.user_ns[DEFAULT_NAME]
        self.last = self._put = None


def _tell(what: str, fault: Exception) -> None:
    print(f"tensormagic: {what} ({type(fault).__name__}: {fault})", file=sys.stderr)
