"""Which round of a `for` loop is its last, so that it can be recorded in full like the first ones.

A loop's length is worked out when it is entered, from what its line says and what the names in it stand for: nothing
of the user's is called. Where it cannot be known so (a generator, a `while`, a class of the user's) there is no answer.
A length that turns out wrong (a `break`, a container that grows) only puts the detail elsewhere.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tensormagic.watch.statements import parse

_SIZED = (list, tuple, dict, set, frozenset, range, deque, str, bytes)
_SAME_LENGTH = {"enumerate", "tqdm", "reversed", "sorted", "list", "tuple", "iter"}
_VIEWS = {"items", "keys", "values"}

Lookup = Callable[[str], Any]  # what a name stands for, None where it has nothing


class Loop(NamedTuple):
    """A `for` statement."""

    line: int  # of its header
    first: int  # lines of its body
    last: int
    over: ast.expr


class Loops:
    """The `for` loops of one source.

    Attributes:
        heads: header line -> loop.
        around: line -> header lines of the loops that it is part of, within its own function.
    """

    def __init__(self, source: str) -> None:
        self.heads: dict[int, Loop] = {}
        self.around: dict[int, tuple[int, ...]] = {}
        tree = parse(source)
        if tree is not None:
            self._walk(tree.body, ())

    def _walk(self, body: list[ast.stmt], around: tuple[int, ...]) -> None:
        """Note every line of these statements; iterative over nesting levels of blocks, which the parser bounds."""
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self._walk(node.body, ())
                continue
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                self.around[line] = around
            inner = around
            if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and node.body[0].lineno > node.lineno:
                if not isinstance(node, ast.While):
                    last = node.body[-1].end_lineno or node.body[-1].lineno
                    self.heads[node.lineno] = Loop(node.lineno, node.body[0].lineno, last, node.iter)
                inner = (*around, node.lineno)  # of a `while` no round is known to be the last
                self.around[node.lineno] = inner
            for name in ("body", "orelse", "finalbody"):
                block = getattr(node, name, None)
                if isinstance(block, list):
                    self._walk(block, inner if name == "body" else around)
            for handler in getattr(node, "handlers", ()):
                self._walk(handler.body, around)
            for case in getattr(node, "cases", ()):
                self._walk(case.body, inner)


class Rounds:
    """The loops that one running frame is in.

    Attributes:
        ending: header lines of the loops that are in their last round.
    """

    __slots__ = ("ending", "left")

    def __init__(self) -> None:
        self.left: dict[int, int] = {}  # header line -> rounds that are still to begin
        self.ending: set[int] = set()

    def begin(self, loop: Loop, lookup: Lookup) -> None:
        """The loop is entered; what its length depends on is looked up."""
        self.left[loop.line] = length(loop.over, lookup)

    def head(self, loop: Loop) -> None:
        """The header runs: another round begins, or the loop is over."""
        line = loop.line
        left = self.left[line] = self.left.get(line, 0) - 1
        if left == 0:
            self.ending.add(line)
        else:
            self.ending.discard(line)


def length(node: ast.expr, lookup: Lookup) -> int:
    """How many rounds a loop over this expression has; 0 where that is not known."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return 0 if any(isinstance(item, ast.Starred) for item in node.elts) else len(node.elts)
    if isinstance(node, ast.Call):
        return _of_call(node, lookup)
    return _size(_value(node, lookup))


def _of_call(node: ast.Call, lookup: Lookup) -> int:
    called = node.func
    if isinstance(called, ast.Attribute):
        if called.attr in _VIEWS and not node.args:
            return _size(_value(called.value, lookup))
        return length(node.args[0], lookup) if called.attr in _SAME_LENGTH and node.args else 0
    if not isinstance(called, ast.Name) or not node.args:
        return 0
    if called.id in ("range", "trange"):
        numbers = [_number(argument, lookup) for argument in node.args]
        if len(numbers) > 3 or any(number is None for number in numbers) or numbers[2:] == [0]:
            return 0
        return len(range(*[number for number in numbers if number is not None]))
    if called.id in ("zip", "map"):
        given = node.args if called.id == "zip" else node.args[1:]
        known = [size for argument in given if (size := length(argument, lookup))]
        return min(known, default=0)
    return length(node.args[0], lookup) if called.id in _SAME_LENGTH else 0


def _size(value: Any) -> int:
    """The length of a container of Python's or torch's own, asked of the type itself."""
    kind = type(value)
    if kind in _SIZED:
        return len(value)
    if kind in (torch.Tensor, torch.nn.Parameter):
        shape = torch.Tensor.shape.__get__(value)
        return shape[0] if shape else 0
    if kind is torch.utils.data.DataLoader:
        return _batches(vars(value))
    return 0


def _batches(loader: dict[str, Any]) -> int:
    """Batches of a DataLoader over a data set whose length is known without code of the user's."""
    data, batch = loader.get("dataset"), loader.get("batch_size")
    if type(data) is torch.utils.data.TensorDataset:
        tensors = vars(data).get("tensors")
        data = tensors[0] if type(tensors) is tuple and tensors else None
    size = _size(data)
    if not size or type(batch) is not int or batch < 1:
        return 0
    return size // batch if loader.get("drop_last") else -(-size // batch)


def _value(node: ast.expr, lookup: Lookup) -> Any:
    """What a name stands for; None for any other expression."""
    return lookup(node.id) if isinstance(node, ast.Name) else None


def _number(node: ast.expr, lookup: Lookup) -> int | None:
    """A whole number that a name, a literal, `len(name)` or a sum, difference, product or quotient of such gives."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        value = lookup(node.id)
        return value if type(value) is int else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _number(node.operand, lookup)
        return None if value is None else -value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        return _size(_value(node.args[0], lookup)) or None
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left, lookup), _number(node.right, lookup)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv) and right:
            return left // right
    return None
