"""The exception that ended the cell, as plain data, and its traceback without frames of ours."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import CodeType, TracebackType

from tensormagic.recording.model import NONE, ErrorInfo, Recording
from tensormagic.watch.callsite import NAME
from tensormagic.watch.clock import fault_notice

_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def is_ours(code: CodeType) -> bool:
    """Does this code belong to the recorder?"""
    return code.co_name == NAME or code.co_filename.startswith(_OURS)


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Unlink the recorder's frames from a traceback, in place; gives its new head."""
    head = None
    last: TracebackType | None = None
    while traceback is not None:
        following = traceback.tb_next
        if not is_ours(traceback.tb_frame.f_code):
            if last is None:
                head = traceback
            else:
                last.tb_next = traceback
            last = traceback
        traceback = following
    if last is not None:
        last.tb_next = None
    return head


def clean(error: BaseException, recording: Recording) -> None:
    """Take our frames out of an exception, of its cause and its context; a fault in doing so is told in the recording."""
    try:
        _clean(error)
    except Exception as fault:
        recording.notices.append(fault_notice("traceback", fault))


def _clean(error: BaseException) -> None:
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        one = stack.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = without_ours(one.__traceback__)
        stack += [one.__cause__, one.__context__]


def error_info(error: BaseException, cell: str, is_users: Callable[[CodeType], bool], step: int) -> ErrorInfo:
    """What is kept of the exception.

    The line is that of the innermost frame that stands in the cell: where the user's own code was when it happened.
    """
    frames = []
    line = 0
    traceback = error.__traceback__
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_users(code) and code.co_name != NAME:
            frames.append((code.co_filename, code.co_name, traceback.tb_lineno))
            if code.co_filename == cell:
                line = traceback.tb_lineno
        traceback = traceback.tb_next
    if isinstance(error, SyntaxError) and error.filename == cell and error.lineno:
        line = error.lineno
    info = without_place(error)
    info.line, info.step, info.frames = line, step, frames
    return info


def without_place(error: BaseException) -> ErrorInfo:
    """An exception's type and message alone."""
    try:
        message = str(error)
    except Exception as fault:  # the user's own __str__ raised: that is what is known of the message
        message = f"(its text could not be made: {type(fault).__name__})"
    return ErrorInfo(type(error).__name__, message[:20_000], 0, NONE)
