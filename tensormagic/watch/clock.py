"""What time it is in the trace: the step and the call that are running, and the strings met so far."""

from __future__ import annotations

from tensormagic.recording.model import NONE, Notice, Recording


class Clock:
    """Shared by all watchers of one trace.

    Attributes:
        step: the step that runs now (numbered by its beginning until the trace is finished), -1 before the first.
        call: the torch call that runs now, -1 between calls.
        detail: whether this step is recorded in detail.
        engine: how many runs of the autograd engine are under way.
    """

    __slots__ = ("_codes", "_strings", "call", "detail", "engine", "recording", "step")

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.step = NONE
        self.call = NONE
        self.detail = True
        self.engine = 0
        self._strings: dict[str, int] = {}
        self._codes: set[str] = set()

    def string(self, text: str) -> int:
        """The number of a string in the recording."""
        number = self._strings.get(text)
        if number is None:
            number = self._strings[text] = len(self.recording.strings)
            self.recording.strings.append(text)
        return number

    def fault(self, part: str, error: BaseException) -> None:
        """Note once (per part) a fault of ours, and let go of the frames that its traceback holds."""
        mark = f"recorder-fault/{part}"
        if mark not in self._codes:
            self._codes.add(mark)
            self.recording.notices.append(fault_notice(part, error, self.step))
        error.__traceback__ = None

    def notice(self, code: str, key: str = "", **facts: object) -> None:
        """Note once (per code and key) that something was not recorded."""
        mark = f"{code}/{key}"
        if mark not in self._codes:
            self._codes.add(mark)
            self.recording.notices.append(Notice(code, dict(facts), self.step))


def fault_notice(part: str, error: BaseException, step: int = NONE) -> Notice:
    """A fault of ours as a notice; `part` says which watcher it was in."""
    return Notice("recorder-fault", {"error": type(error).__name__, "text": f"{part}: {error}"[:200]}, step)
