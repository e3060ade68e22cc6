"""Basic indexing of a strided tensor by arithmetic: what `x[1:3, None, ..., 0]` or `x.T` is, without the tensor.

The rules are those of torch and numpy for whole numbers, slices, None and the ellipsis ("basic indexing"), which
always gives a view. Everything else (lists, masks, tensors) copies or depends on values, and is refused.
"""

from __future__ import annotations

import ast

Strided = tuple[int, tuple[int, ...], tuple[int, ...]]
"""(offset, shape, stride), all in elements."""


class NotBasic(ValueError):
    """An index that does not give a view, or does not fit the shape."""


def item(source: str, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> Strided:
    """The part of a strided tensor that `x[source]` is.

    Args:
        source: the text between the brackets.
        offset: elements from the start of the storage.
        shape: sizes.
        stride: elements, one a dimension.

    Raises:
        NotBasic: the index is not made of whole numbers, slices, None and `...`, or lies outside.
    """
    node = ast.parse(f"x[{source}]", mode="eval").body
    assert isinstance(node, ast.Subscript)
    parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
    constants = [part.value if isinstance(part, ast.Constant) else part for part in parts]
    taken = sum(1 for value in constants if value is not None and value is not Ellipsis)
    if constants.count(Ellipsis) > 1:
        raise NotBasic(f"[{source}] has more than one ellipsis")
    if taken > len(shape):
        raise NotBasic(f"[{source}] takes {taken} dimensions, but the tensor has {len(shape)}")
    if Ellipsis not in constants:
        parts.append(ast.Constant(Ellipsis))
    sizes: list[int] = []
    steps: list[int] = []
    d = 0
    for part in parts:
        if isinstance(part, ast.Constant) and part.value is None:
            sizes.append(1)
            steps.append(0)
        elif isinstance(part, ast.Constant) and part.value is Ellipsis:
            rest = len(shape) - taken
            sizes += shape[d : d + rest]
            steps += stride[d : d + rest]
            d += rest
        elif isinstance(part, ast.Slice):
            bounds = [None if end is None else _whole(end, source) for end in (part.lower, part.upper, part.step)]
            if bounds[2] == 0:
                raise NotBasic(f"[{source}]: a slice's step cannot be 0")
            start, stop, by = slice(*bounds).indices(shape[d])
            count = len(range(start, stop, by))
            if count:
                offset += start * stride[d]
            sizes.append(count)
            steps.append(stride[d] * by)
            d += 1
        else:
            number = _whole(part, source)
            if not -shape[d] <= number < shape[d]:
                raise NotBasic(f"[{source}]: {number} lies outside dimension {d}, which has {shape[d]} elements")
            offset += (number % shape[d]) * stride[d]
            d += 1
    return offset, tuple(sizes), tuple(steps)


def attribute(name: str, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]) -> Strided:
    """The view that `x.T`, `x.mT` or `x.data` is.

    Raises:
        NotBasic: the attribute is another one, or the shape does not allow it.
    """
    if name == "data":
        return offset, shape, stride
    if name == "T":
        return offset, shape[::-1], stride[::-1]
    if name == "mT" and len(shape) >= 2:
        return offset, (*shape[:-2], shape[-1], shape[-2]), (*stride[:-2], stride[-1], stride[-2])
    raise NotBasic(f"no name is recorded for .{name}, and it is not one of the views .T, .mT and .data")


def _whole(node: ast.expr, source: str) -> int:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        value = None
    if type(value) is not int:
        raise NotBasic(f"[{source}] is no index of whole numbers, slices, None and '...'")
    return value
