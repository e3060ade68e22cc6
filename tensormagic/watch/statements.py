"""Which lines belong to one statement.

A statement that is written over several lines runs as several lines, and some of them twice. For a person it is one
step. This says which lines to take together.
"""

from __future__ import annotations

import ast
import functools
import io
import tokenize
import warnings
from collections.abc import Iterator

_COMPOUND = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.FunctionDef, ast.AsyncFunctionDef,
    ast.ClassDef, ast.Match, ast.ExceptHandler, ast.match_case,
)  # fmt: skip
_NO_HEADER = tuple(getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name))
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")

Position = tuple[int, int]  # line, 1-based, and column in characters


@functools.lru_cache(maxsize=2)  # the cell's is asked for twice in a row
def parse(source: str) -> ast.Module | None:
    """The syntax tree of a source, not to be changed; None where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the user gets theirs when the code is compiled to run
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # what the parser raises, null bytes and depth too
        return None


def statements(source: str) -> dict[int, int]:
    """Map every line of a statement that is written over several lines to the statement's first line.

    Of a compound statement (`with`, `for`, `def`, ...) only the header counts, from its first decorator to its colon.
    Statements on one line are not in the answer. Where a line holds the end of one statement and the start of the next,
    it belongs to the first, and so does the rest of the next.

    Arguments:
        source: Python source, as the interpreter gets it.

    Returns:
        line to first line, both 1-based; {} for source that does not parse.
    """
    tree = parse(source)
    if tree is None:
        return {}
    text = io.StringIO(source, newline=None).read().split("\n")
    colons = _Colons(text)
    first_of: dict[int, int] = {}
    for first, last in sorted(_spans(tree, text, colons)):
        if last > first:
            first = first_of.get(first, first)
            for line in range(first, last + 1):
                first_of.setdefault(line, first)
    return first_of


def _spans(tree: ast.AST, text: list[str], colons: _Colons) -> Iterator[Position]:
    """First and last line of every simple statement and every header."""
    for node in ast.walk(tree):
        if isinstance(node, _COMPOUND):
            start, end = _header(node)
            yield start[0], colons.after(_characters(start, text), _characters(end, text))
        elif isinstance(node, ast.stmt) and not isinstance(node, _NO_HEADER):
            yield node.lineno, node.end_lineno


def _header(node: ast.AST) -> tuple[Position, Position]:
    """Where the header starts, and where the last expression in it ends. Columns in bytes, as `ast` counts."""
    bodies = {id(inner) for name in ("body", "orelse", "finalbody", "handlers", "cases")
              for inner in getattr(node, name, ())}  # fmt: skip
    parts = [
        inner
        for child in ast.iter_child_nodes(node)
        if id(child) not in bodies
        for inner in ast.walk(child)
        if hasattr(inner, "lineno")
    ]
    starts = [(inner.lineno, inner.col_offset) for inner in parts]
    start = (node.lineno, node.col_offset) if hasattr(node, "lineno") else min(starts)  # `case` has no position
    end = max([(inner.end_lineno, inner.end_col_offset) for inner in parts], default=start)
    if getattr(node, "decorator_list", ()):
        # The `def` or `class` itself stands after its decorators, and so does the colon that is looked for.
        return min(start, *starts), max(start, end)
    return start, max(start, end)


def _characters(position: Position, text: list[str]) -> Position:
    line, column = position
    return line, len(text[line - 1].encode()[:column].decode(errors="replace"))


class _Colons:
    """Finds the colon that ends a header."""

    def __init__(self, text: list[str]) -> None:
        self._colons: list[Position] = []  # those outside of all brackets
        depth = 0
        lines = iter([line + "\n" for line in text])
        try:
            for token in tokenize.generate_tokens(lambda: next(lines, "")):
                if token.type == tokenize.OP:
                    if token.string in _OPEN:
                        depth += 1
                    elif token.string in _CLOSE:
                        depth -= 1
                    elif token.string == ":" and depth == 0:
                        self._colons.append(token.start)
        except (tokenize.TokenError, SyntaxError):
            pass  # what parses and does not tokenize: headers end with their last expression

    def after(self, start: Position, end: Position) -> int:
        """The line of the first colon behind the header's last expression, else of that expression's end."""
        return next((line for line, column in self._colons if (line, column) >= end), end[0])
