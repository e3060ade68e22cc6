"""The cell's source as a syntax tree: asked by rules that need what no recording has, such as where a loop's body ends."""

from __future__ import annotations

import ast
import functools
import re
import warnings

# A string on one line (its quotes, its escapes), or a comment.
_STRING_OR_COMMENT = re.compile(r"""(\'(?:\\.|[^\'\\])*\'|"(?:\\.|[^"\\])*")|\#.*""")
_NOT_PYTHON = re.compile(r"^([ \t]*)[%!?][^\n]*$", re.MULTILINE)


@functools.lru_cache(maxsize=32)
def parsed(source: str) -> ast.Module | None:
    """The syntax tree of a source, every node at its line.

    Args:
        source: as the user typed it. Lines that are IPython's (`%time f()`, `!ls`) count as `pass`.

    Returns:
        the tree, shared by all who ask: not to be changed. None where the source does not parse.
    """
    for text in (source, _NOT_PYTHON.sub(r"\1pass", source)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the user gets theirs when the code is compiled to run
                return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # what the parser raises: null bytes and depth, too
    return None


@functools.lru_cache(maxsize=4096)
def code_of(line: str) -> str:
    """One line of a source without its indentation and its comment; what stands in a string stays."""
    if "#" not in line:
        return line.strip()
    return _STRING_OR_COMMENT.sub(lambda found: found[1] or "", line).strip()
