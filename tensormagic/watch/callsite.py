"""Runs a torch function as if its caller had called it.

Python writes a warning down to the frame that is on top when torch warns: its file, its line, its once-per-place
registry. Under a function mode that would be a frame of ours, and the user would see our file and lose repeated
warnings. So the call goes through a one-line function that bears the caller's file, line and globals.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType, FunctionType
from typing import Any

NAME = "<tensortrace>"  # co_name of every trampoline: the line watcher and the traceback cleaner know it by this


# The trampolines. `set` is sys.settrace: where the line tracer was taken off, it is back for the call itself, and does
# not see the trampoline begin.


def untold(func: Any, args: Any, kwargs: Any, set: Any, hook: Any) -> Any:
    return func(*args, **kwargs)


def _traced(func: Any, args: Any, kwargs: Any, set: Any, hook: Any) -> Any:
    return set(hook) or func(*args, **kwargs)  # set() gives None


_TEMPLATES = (untold.__code__, _traced.__code__)
_OVERRIDES = sys.modules["torch.overrides"].__file__ if "torch.overrides" in sys.modules else None


class Callsites:
    """Trampolines by place; dropped with the trace, since each holds its caller's globals."""

    def __init__(self) -> None:
        # By the code's address, since hashing a code object reads all of it; the code stands beside it, so it lives.
        self._made: dict[int, tuple[CodeType, dict[int, FunctionType]]] = {}

    def at(self, frame: FrameType, own: CodeType | None, traced: bool) -> FunctionType:
        """The trampoline for the place that `frame` is at; torch's own dispatch frames are looked through.

        Args:
            frame: who called, or a frame of torch's dispatch.
            own: the code of the called function, which asks for its dispatch itself where it is written in Python.
            traced: whether the line tracer was taken off and is to be put back.
        """
        while frame.f_code.co_filename == _OVERRIDES or frame.f_code is own:
            caller = frame.f_back
            if caller is None:
                break
            frame = caller
        code = frame.f_code
        entry = self._made.get(id(code))
        if entry is None:
            entry = self._made[id(code)] = (code, {})
        place = 2 * frame.f_lasti + traced
        made = entry[1].get(place)
        if made is None:
            made = entry[1][place] = self._make(frame, _TEMPLATES[traced])
        return made

    @staticmethod
    def _make(frame: FrameType, template: CodeType) -> FunctionType:
        code = template.replace(
            co_filename=frame.f_code.co_filename, co_firstlineno=frame.f_lineno or 1, co_name=NAME,
            **_one_line(template),
        )  # fmt: skip
        return FunctionType(code, frame.f_globals, NAME)

    def clear(self) -> None:
        self._made.clear()


def _one_line(code: CodeType) -> dict[str, Any]:
    """A line table by which every instruction stands on the first line."""
    if sys.version_info >= (3, 11):
        size = len(code.co_code) // 2
        table = bytearray()
        while size > 0:  # PEP 657 entries: code 13 (no columns), up to 8 units each, line delta 0
            units = min(size, 8)
            table += bytes([0x80 | 13 << 3 | (units - 1), 0])
            size -= units
        return {"co_linetable": bytes(table)}
    return {"co_linetable": bytes([len(code.co_code), 0])}
