"""Everything that touches IPython's insides. Each has a guard: where the inside is missing, the plain way is left.

The cell is run by IPython itself: a transformer of the input puts a call of the magic in the magic's place and leaves
the body to the shell. So the last value, a `;`, `await`, `!`, `%`, history and errors are those of a plain cell.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from IPython.core.inputtransformer2 import cell_magic

_MAGIC = re.compile(r"%%tensortrace(?![\w?])[ \t]*(.*?)\s*", re.S)
_OWN = re.compile(r"\s*%{1,2}tensortrace\b")
_BEGIN = "get_ipython().run_cell_magic('tensortrace', "
BODY_IS_IPYTHONS = "\n"  # the body that says: begin now, the shell runs what follows


# ---- the text of a cell ------------------------------------------------------------------------------------------


def transform(lines: list[str]) -> list[str]:
    """Put a call in the place of `%%tensortrace`; every other line keeps its number.

    It stands first among the clean-ups, before IPython takes empty lines off the top, so that lines keep the numbers
    that the editor shows. It depends on the text alone: shells transform a cell several times, to see if it is whole.
    """
    first = next((number for number, line in enumerate(lines) if line.strip()), None)
    if first is None:
        return lines
    found = _MAGIC.fullmatch(lines[first])
    if found is None:
        return lines
    body = lines[first + 1 :]
    start = next((number for number, line in enumerate(body) if line.strip()), len(body))
    call = f"{_BEGIN}{found[1]!r}, {BODY_IS_IPYTHONS!r})\n"
    # Another cell magic may come first in the body. IPython looks for those at the top of a cell only.
    return [call] + ["\n"] * first + body[:start] + cell_magic(body[start:])


# IPython asks as you type whether a cell is whole; it knows by the `%%` that a cell magic ends at an empty line, so it
# must see the text as it is then. It leaves out what is marked like this.
transform.has_side_effects = True  # type: ignore[attr-defined]


def magic_below(raw: str) -> str | None:
    """The name of another cell magic that stands first in the body; its lines run as code of its own."""
    lines = [line for line in raw.splitlines() if line.strip()]
    found = re.match(r"%%(\w+)", lines[1]) if len(lines) > 1 and _MAGIC.fullmatch(lines[0]) else None
    return None if found is None else found[1]


def magic_above(raw: str) -> str:
    """The name of the cell magic that the cell begins with."""
    found = re.match(r"\s*%%(\w+)", raw)
    return "" if found is None else found[1]


def cell_frame(shell: Any, frame: FrameType) -> FrameType | None:
    """The frame of the cell itself, where `frame` is of code that a magic made of the cell's text by rules of its own.

    %%time compiles the text as it is, so its lines can be followed. %%prun and %%timeit put lines around it, and give
    it a file name that other generated code has, too.

    Returns:
        None where `frame` can be followed.
    """
    file = frame.f_code.co_filename
    if file == "<timed exec>" or is_cell_file(shell, file):
        return None
    outer: FrameType | None = frame
    while outer is not None and not is_cell_file(shell, outer.f_code.co_filename):
        outer = outer.f_back
    return outer


def begin_call() -> str:
    """Source of the call that begins a trace with no options."""
    return f"{_BEGIN}'', {BODY_IS_IPYTHONS!r})"


def is_own(cell: str) -> bool:
    """Does the cell begin with a magic of ours?"""
    return _OWN.match(cell) is not None


def single_line(shell: Any) -> Callable[[list[str]], list[str]]:
    """IPython gives cells of one line a treatment of their own (`exit`, automagic); so shall a body of one line."""

    def transform_single(lines: list[str]) -> list[str]:
        if not lines or not lines[0].startswith(_BEGIN):
            return lines
        body = [number for number, line in enumerate(lines) if number and line.strip()]
        manager = getattr(shell, "prefilter_manager", None)
        if len(body) != 1 or manager is None:
            return lines
        with shell.builtin_trap:
            text = manager.prefilter_lines(lines[body[0]].rstrip("\n"))
        return lines[: body[0]] + [text + "\n"] + lines[body[0] + 1 :]

    return transform_single


# ---- files of cells ----------------------------------------------------------------------------------------------


def user_frame(shell: Any) -> FrameType | None:
    """The innermost frame that runs in the notebook's namespace: that of the statement which called the magic."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals is not shell.user_global_ns:
        frame = frame.f_back
    return frame


def is_cell_file(shell: Any, file: str) -> bool:
    """Is this the co_filename of a cell's code?"""
    known = getattr(shell.compile, "_filename_map", None)
    if known is None:
        known = getattr(linecache, "_ipython_cache", None)  # IPython 7 keeps the text of cells there
    return file in known if isinstance(known, dict) else file.startswith("<ipython-input-")


def without_own_line(raw: str) -> str:
    """The text of a cell with a blank line in our place."""
    return "\n".join("" if _MAGIC.fullmatch(line) else line for line in raw.splitlines())


def own_line_out_of(file: str, raw: str) -> tuple[str, str]:
    """Blank the first line, our call, in the text by which tracebacks show lines.

    Returns:
        the source as Python runs it, and as the user wrote it: equal numbers of lines, a blank one in our place.
    """
    start = next((number for number, line in enumerate(raw.splitlines()) if _MAGIC.fullmatch(line)), None)
    written = raw.splitlines()
    entry = linecache.cache.get(file)
    if entry is None or len(entry) < 4:  # run by another magic, such as %%time, which keeps no text
        source = "\n" + "\n".join(written[(start or 0) + 1 :])
        return source, source
    lines = list(entry[2])
    if lines and lines[0].startswith(_BEGIN):
        lines[0] = "\n"
        linecache.cache[file] = entry = (entry[0], entry[1], lines, entry[3])
        if file in getattr(linecache, "_ipython_cache", {}):  # IPython 7 writes it back from there
            linecache._ipython_cache[file] = entry  # type: ignore[attr-defined]
    if start is not None:
        written[start] = ""
    source = "".join(lines)
    return source, "\n".join(written) if len(written) == len(lines) else source


# ---- errors ------------------------------------------------------------------------------------------------------


class Tracebacks:
    """While installed, an exception passes `before` on its way to be shown.

    Args:
        shell: IPython's shell.
        before: called with the exception and whether it ends the cell that runs.
    """

    def __init__(self, shell: Any, before: Callable[[BaseException, bool], None]) -> None:
        self._shell, self._before = shell, before
        self._covered = shell.__dict__.get("showtraceback")  # other tools put one there, too
        original = shell.showtraceback

        def showtraceback(exc_tuple: Any = None, *args: Any, **kwargs: Any) -> Any:
            error = (exc_tuple or sys.exc_info())[1]
            if error is not None and self._before is not None:
                self._before(error, bool(kwargs.get("running_compiled_code") or kwargs.get("exception_only")))
            return original(exc_tuple, *args, **kwargs)

        self._wrapper = shell.showtraceback = showtraceback

    def remove(self) -> None:
        """Put back what was there; where another tool has covered ours since, ours only passes on from now."""
        self._before = None  # type: ignore[assignment]
        own = self._shell.__dict__
        if own.get("showtraceback") is self._wrapper:
            if self._covered is None:
                del self._shell.showtraceback
            else:
                self._shell.showtraceback = self._covered


# ---- what is registered ------------------------------------------------------------------------------------------


def has_kernel(shell: Any) -> bool:
    """Is there a front end that shows more than text?"""
    return getattr(shell, "kernel", None) is not None


def forget_magics(shell: Any, owner: str, name: str) -> None:
    """IPython has no call to take a magic back."""
    manager = shell.magics_manager
    for kind in ("line", "cell"):
        manager.magics.get(kind, {}).pop(name, None)
    getattr(manager, "registry", {}).pop(owner, None)


def forget_completer(shell: Any, key: str) -> None:
    """Nor one to take a completer back."""
    dispatch = getattr(shell, "strdispatchers", {}).get("complete_command")
    getattr(dispatch, "strs", {}).pop(key, None)
