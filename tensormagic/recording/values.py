"""From recorded bytes to numbers: a Blob, or one tensor's slice of a storage's snapshot.

A dtype has torch's name ("float32", "bfloat16"). Where numpy has no such type and plain bit arithmetic does not give
the value (float8, quantized types), the answer is None: "not decoded". Nothing is guessed. Bytes are little-endian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensormagic.recording.model import Blob, Geometry

Array = NDArray[Any]

MOST_ELEMENTS = 1 << 24
"""Larger tensors are not decoded: an expanded shape from a file may claim more elements than there is memory."""


def _bfloat16(words: Array) -> Array:
    """A bfloat16 is the upper half of the float32 of the same value."""
    return (words.astype("<u4") << 16).view("<f4")


def _complex32(words: Array) -> Array:
    """A pair of float16; numpy's smallest complex type holds it exactly."""
    halves = np.ascontiguousarray(words).view("<f2").reshape(*words.shape, 2).astype("<f4")
    return halves.view("<c8")[..., 0]


def _bool(words: Array) -> Array:
    """torch writes 0 and 1; any other byte counts as true, as it does in torch."""
    return np.not_equal(words, 0)


_PLAIN = {
    "float64": "<f8", "float32": "<f4", "float16": "<f2", "complex64": "<c8", "complex128": "<c16",
    "int8": "<i1", "int16": "<i2", "int32": "<i4", "int64": "<i8",
    "uint8": "<u1", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8",
}  # fmt: skip
_BITS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "bfloat16": ("<u2", _bfloat16),
    "complex32": ("<u4", _complex32),
    "bool": ("<u1", _bool),
}
_SIZES = {name: np.dtype(code).itemsize for name, code in _PLAIN.items()}
_SIZES |= {name: np.dtype(code).itemsize for name, (code, _) in _BITS.items()}


_INEXACT = {"float64", "float32", "float16", "complex64", "complex128", "complex32", "bfloat16"}


def itemsize(dtype: str) -> int | None:
    """Bytes of one element of `dtype` (torch's name), or None where the type is not decoded."""
    return _SIZES.get(dtype)


def decode(blob: Blob) -> Array | None:
    """The values of a blob as an array of its shape.

    Args:
        blob: values as recorded; `data` is contiguous.

    Returns:
        a read-only array, or None where the values were not kept, the dtype is not decoded, or there are more than
        MOST_ELEMENTS elements. bfloat16 comes as float32 and complex32 as complex64, both exact.
    """
    if blob.data is None:
        return None
    return _read(blob.data, blob.dtype, blob.shape, None, 0)


def decode_slice(data: bytes, geometry: Geometry, offset: int) -> Array | None:
    """What a tensor of this geometry holds, read from the bytes of its whole storage.

    Args:
        data: the storage's bytes from its first one on (`Blob.data` of a snapshot with object -1).
        geometry: shape, stride (elements) and dtype of the tensor.
        offset: elements from the start of the storage to the tensor's first element.

    Returns:
        a read-only array, or None where the dtype is not decoded, the layout has no strides, an element lies
        outside `data`, or there are more than MOST_ELEMENTS elements.
    """
    if len(geometry.stride) != len(geometry.shape):
        return None
    return _read(data, geometry.dtype, geometry.shape, geometry.stride, offset)


def values(blob: Blob) -> Any:
    """The values of a blob as nested lists of Python numbers (one number for shape ()), or None as in `decode`."""
    array = decode(blob)
    return None if array is None else to_lists(array)


def count_non_finite(blobs: list[Blob]) -> None:
    """Fill in `nans` and `infs` of the blobs whose values were kept, all of one dtype in one piece.

    Args:
        blobs: changed in place; those without data, and of a dtype that is not decoded, stay as they are.
    """
    by_dtype: dict[str, list[Blob]] = {}
    for blob in blobs:
        if blob.data and blob.dtype in _INEXACT:
            by_dtype.setdefault(blob.dtype, []).append(blob)
    for dtype, group in by_dtype.items():
        data = b"".join(blob.data or b"" for blob in group)
        numbers = _read(data, dtype, (len(data) // _SIZES[dtype],), None, 0)
        if numbers is None or np.isfinite(numbers).all():
            continue
        starts = np.cumsum([0, *(len(blob.data or b"") // _SIZES[dtype] for blob in group[:-1])])
        nans = np.add.reduceat(np.isnan(numbers), starts, dtype=np.int64)
        infs = np.add.reduceat(np.isinf(numbers), starts, dtype=np.int64)
        for blob, nan, inf in zip(group, nans.tolist(), infs.tolist(), strict=True):
            blob.nans, blob.infs = nan, inf


def to_lists(array: Array) -> Any:
    """Nested lists of Python numbers; NaN and infinity stay floats, complex numbers stay complex."""
    return array.tolist()


def _read(data: bytes, dtype: str, shape: tuple[int, ...], stride: tuple[int, ...] | None, offset: int) -> Array | None:
    code, convert = (_PLAIN[dtype], None) if dtype in _PLAIN else _BITS.get(dtype, (None, None))
    if code is None or math.prod(shape) > MOST_ELEMENTS or len(shape) > 32:  # 32: numpy 1's most dimensions
        return None
    size = _SIZES[dtype]
    if 0 in shape:  # no element is read, so the offset may lie anywhere; a huge other dimension must not reach numpy
        if max(shape) > MOST_ELEMENTS:
            return None
        words: Array = np.empty(shape, code)
    else:
        if stride is None:
            stride = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
        low = offset + sum(min(0, s * (n - 1)) for n, s in zip(shape, stride, strict=True))
        high = offset + sum(max(0, s * (n - 1)) for n, s in zip(shape, stride, strict=True))
        if low < 0 or (high + 1) * size > len(data):
            return None
        # The stride of a dimension of one element is never used and may be any number, too large for numpy even.
        steps = [s * size if n > 1 else 0 for n, s in zip(shape, stride, strict=True)]
        words = np.ndarray(shape, code, data, offset * size, steps)
    array = words if convert is None else np.asarray(convert(words))
    array.flags.writeable = False
    return array
