"""Ctrl-C waits while the recorder puts itself in place or takes itself away, and is delivered right after."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Held:
    """`with Held():` keeps SIGINT from the block; where one came, its own handler runs at the end of the block.

    Only the main thread runs handlers, and only one written in Python can raise: elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self._previous: Any = None
        self._came: list[int] = []

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            previous = signal.getsignal(signal.SIGINT)
            if callable(previous):
                self._previous = previous
                signal.signal(signal.SIGINT, self._hold)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self._came.append(number)  # not the frame: it would live longer than without us

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        previous, self._previous = self._previous, None
        if previous is not None:
            signal.signal(signal.SIGINT, previous)
            for number in self._came:
                previous(number, None)
