"""The live line of a long cell: that something happens, and where. It goes when the panel comes."""

from __future__ import annotations

import contextvars
import html
import threading
import uuid
from typing import Any

from tensormagic.recording.model import Recording
from tensormagic.show.words import catalogue

AFTER = 2.0  # seconds until it appears: most cells never show it
EVERY = 0.5  # seconds between two updates
SAY = catalogue().SAY


class LiveLine:
    """Shows how far a trace has come, from a thread of its own, until `end`.

    The thread reads lengths of the recording and publishes; it runs no torch and none of the user's code.

    Args:
        publisher: the shell's `display_pub`.
        recording: what grows.
        ended: set when the cell has ended; tests give a clock of theirs.
    """

    def __init__(self, publisher: Any, recording: Recording, ended: threading.Event | None = None) -> None:
        self._publisher, self._recording = publisher, recording
        self._ended = ended or threading.Event()
        self._id = uuid.uuid4().hex
        self.shown = threading.Event()
        # In the cell's context: a kernel knows by it to which cell an output belongs.
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._watch,), name="tensortrace live line", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        wait, before = AFTER, ""
        while not self._ended.wait(wait):
            text = progress(self._recording)
            if text != before:
                self._publish(text)
            wait, before = EVERY, text

    def _publish(self, text: str) -> None:
        shown = f'<small style="opacity:.65">{html.escape(text)}</small>' if text else ""
        data = {"text/plain": text, "text/html": shown}
        self._publisher.publish(data=data, transient={"display_id": self._id}, update=self.shown.is_set())
        self.shown.set()

    def end(self) -> None:
        """Stop, and take the line away."""
        self._ended.set()
        self._thread.join()
        if self.shown.is_set():
            self._publish("")


def progress(recording: Recording) -> str:
    """The live line's text."""
    steps = len(recording.steps)
    if not steps:
        return str(SAY["live_begins"])
    return str(SAY["live"]).format(
        steps=_counted("step", steps),
        calls=_counted("call", len(recording.calls)),
        backwards=_counted("backward", len(recording.backwards)),
        line=recording.steps[steps - 1].line,
    )


def _counted(word: str, n: int) -> str:
    return str(SAY.get(f"{word}_{n}") or SAY[f"{word}s"].format(n=f"{n:,}"))
