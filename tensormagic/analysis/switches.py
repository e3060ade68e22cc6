"""Where the source of a cell switches gradients off around a line: a `with` block, or a decorator of its function."""

from __future__ import annotations

import ast
import functools

from tensormagic.analysis.source import parsed

MODES = ("no_grad", "inference_mode", "set_grad_enabled")


def switch_line(source: str, line: int, modes: tuple[str, ...] = MODES, decorators_only: bool = False) -> int:
    """The line of the innermost switch around a line, within the function that the line stands in.

    Args:
        source: the text of the cell.
        line: 1-based.
        modes: names of the switches that count.
        decorators_only: leave `with` blocks out.

    Returns:
        the line of the `with` or of the decorator; -1 where there is none, or where the source cannot be read (magics).
    """
    best = -1
    for first, last, own, found, block in _switches(source):
        if first <= line <= last and found in modes and not (block and decorators_only):
            best = max(best, own)
    start = max((first for first, last in _functions(source) if first <= line <= last), default=0)
    return best if best >= start else -1


@functools.lru_cache(maxsize=16)
def _functions(source: str) -> tuple[tuple[int, int], ...]:
    """(first line, decorators included; last line) of every function."""
    tree = parsed(source)
    return tuple(
        (min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


@functools.lru_cache(maxsize=16)
def _switches(source: str) -> tuple[tuple[int, int, int, str, bool], ...]:
    """(first and last line that it holds for, its own line, its name, is it a `with` block?) of every switch."""
    found = []
    tree = parsed(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.With, ast.AsyncWith)):
            first, block, marks = node.body[0].lineno, True, [item.context_expr for item in node.items]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first, block, marks = node.body[0].lineno, False, node.decorator_list
        else:
            continue
        for mark in marks:
            called = mark.func if isinstance(mark, ast.Call) else mark
            name = (
                called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
            )
            if name in MODES:
                found.append((first, node.end_lineno or first, mark.lineno, name, block))
    return tuple(found)
