"""Reads tensors' memory without torch's dispatcher: no operation of ours is seen by a user's mode or profiler.

Every reader takes a tensor that is alive for the whole call and copies what it needs: nothing here keeps an address.
"""

from __future__ import annotations

import ctypes
from ctypes import string_at
from math import isfinite
from typing import Any

import numpy as np
import torch

from tensormagic.recording.model import Blob
from tensormagic.watch import private

_NUMPY: dict[Any, Any] = {
    torch.float32: np.float32, torch.float64: np.float64, torch.float16: np.float16,
    torch.int8: np.int8, torch.int16: np.int16, torch.int32: np.int32, torch.int64: np.int64,
    torch.uint8: np.uint8, torch.bool: np.bool_, torch.complex64: np.complex64, torch.complex128: np.complex128,
    torch.bfloat16: np.uint16,  # numpy has none: the bits are kept and decoded later
}  # fmt: skip
for _name, _dtype in (("uint16", np.uint16), ("uint32", np.uint32), ("uint64", np.uint64)):
    if hasattr(torch, _name):
        _NUMPY[getattr(torch, _name)] = _dtype
_NUMPY = {dtype: (np.dtype(plain), np.dtype(plain).itemsize) for dtype, plain in _NUMPY.items()}
SUMMARY = 1 << 18  # tensors of at most this many elements are summarized, larger ones keep their shape alone
_SCALARS = {torch.float32: ctypes.c_float, torch.float64: ctypes.c_double}
_LARGE = 1 << 12
_CPU = torch.device("cpu")
# Bytes of an address as a buffer. An array type of ctypes would do, but each size is a class of its own, with cycles
# that only the collector takes away: `gc.collect()` of the user's would find them.
_memory = ctypes.pythonapi.PyMemoryView_FromMemory
_memory.argtypes, _memory.restype = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int), ctypes.py_object
_READ_ONLY = 0x100  # PyBUF_READ
# The reductions themselves: the methods of an array are written in Python and cost twice as much on small ones.
_LEAST, _MOST, _SUM = np.minimum.reduce, np.maximum.reduce, np.add.reduce
_INEXACT = {torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128}
_PLAIN = {torch.Tensor, torch.nn.Parameter}
_NAMES: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


def shape_of(tensor: Any) -> tuple[int, ...]:
    """A tensor's shape; () where it has none in whole numbers (nested and jagged tensors, symbolic sizes)."""
    try:
        shape = tuple(private.get_shape(tensor))
    except RuntimeError:
        return ()
    return shape if type(tensor) in _PLAIN or all(type(size) is int for size in shape) else ()


def address_of(storage: Any) -> int:
    """A storage's address, 0 where it has none to give (a fake tensor's, autograd's tensors of zeros)."""
    try:
        return int(storage.data_ptr())
    except RuntimeError:
        return 0


def _readable(tensor: Any) -> tuple[Any, int] | None:
    """numpy's dtype of a tensor and the size of an element; None where there is no memory of ours to read."""
    if type(tensor) not in _PLAIN or private.get_device(tensor) != _CPU:
        return None
    known = _NUMPY.get(private.get_dtype(tensor))
    if known is None or private.get_layout(tensor) is not torch.strided or private.is_wrapped(tensor):
        return None
    return None if private.is_nested(tensor) else known


def view(tensor: Any) -> Any:
    """The tensor's elements as a numpy array over its own memory, or None where there is none to read.

    The array must not outlive the caller's use of `tensor`. bfloat16 comes as uint16 bits.
    """
    known = _readable(tensor)
    if known is None:
        return None
    dtype, itemsize = known
    shape = private.get_shape(tensor)
    if 0 in shape:
        return np.empty(tuple(shape), dtype)
    storage = private.get_storage(tensor)
    nbytes = storage.nbytes()
    address = address_of(storage)
    if not address or not nbytes:
        return None
    memory = _memory(address, nbytes, _READ_ONLY)
    strides = [step * itemsize for step in private.get_stride(tensor)]
    return np.ndarray(tuple(shape), dtype, memory, private.get_offset(tensor) * itemsize, strides)


def is_nan(tensor: Any) -> bool:
    """Is it one number, a NaN? False where it cannot be read: of one float32 or float64 this is a microsecond."""
    kind = _SCALARS.get(private.get_dtype(tensor))
    if kind is None or _readable(tensor) is None or private.numel(tensor) != 1:
        return False
    try:
        address = private.data_ptr(tensor)
    except RuntimeError:
        return False  # autograd's tensors of zeros, a fake tensor
    value = kind.from_address(address).value if address else 0.0
    return bool(value != value)


def storage_bytes(storage: Any) -> bytes | None:
    """A copy of a CPU storage's bytes; None where it has no address (meta, an empty or fake storage)."""
    if storage.device.type != "cpu":
        return None
    address = address_of(storage)
    return string_at(address, storage.nbytes()) if address else None


def is_inexact(tensor: Any) -> bool:
    return private.get_dtype(tensor) in _INEXACT


def _is_finite(array: Any) -> bool:
    """Is every element finite? False where that is not sure."""
    if not array.size or array.dtype.kind == "c":
        return not array.size
    if array.size > _LARGE and array.dtype != np.float16 and array.flags.c_contiguous:
        flat = array.reshape(-1)
        with np.errstate(all="ignore"):
            return isfinite(np.dot(flat, flat))  # BLAS reads memory twice as fast; it can overflow
    return isfinite(_LEAST(array, None)) and isfinite(_MOST(array, None))  # NaN where there is one


def non_finite(array: Any, bfloat16: bool = False) -> tuple[int, int]:
    """(count of NaN, count of infinity) in an array of numbers."""
    if bfloat16:
        bits = array & 0x7FFF
        infs = int(np.count_nonzero(bits == 0x7F80))
        return int(np.count_nonzero(bits > 0x7F80)), infs
    if array.dtype.kind not in "fc":
        return 0, 0
    if _is_finite(array):
        return 0, 0
    return int(np.count_nonzero(np.isnan(array))), int(np.count_nonzero(np.isinf(array)))


def blob(tensor: Any, limit: int, bound: int) -> Blob | None:
    """What is kept of a tensor's values: all of them up to `limit` elements, a summary up to `bound`, else the shape.

    None where the memory cannot be read at all (another device, a layout without strides). NaN and infinity among the
    values that are kept are counted after the cell.
    """
    known = _readable(tensor)
    if known is None:
        return None
    name, shape = dtype_name(private.get_dtype(tensor)), tuple(private.get_shape(tensor))
    size = private.numel(tensor)
    if size <= limit and private.is_contiguous(tensor):
        try:
            address = private.data_ptr(tensor)
        except RuntimeError:
            return None  # autograd's tensors of zeros, a fake tensor
        if address and size:
            return Blob(shape, name, string_at(address, size * known[1]))
    array = view(tensor)
    if array is None:
        return None
    if size <= limit:
        return Blob(shape, name, np.ascontiguousarray(array).tobytes())
    if size > bound or array.dtype.kind == "c":
        return Blob(shape, name)
    return _summary(array, shape, name, name == "bfloat16")


def _summary(array: Any, shape: tuple[int, ...], name: str, half: bool) -> Blob:
    if half:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    low, high = _LEAST(array, None), _MOST(array, None)
    nans = infs = 0
    if not (isfinite(low) and isfinite(high)):
        nans, infs = non_finite(array)
        array = array[np.isfinite(array)]
        if not array.size:
            return Blob(shape, name, nans=nans, infs=infs)
        low, high = _LEAST(array, None), _MOST(array, None)
    mean = float(_SUM(array, None, np.float64)) / array.size
    return Blob(shape, name, None, float(low), float(high), mean, nans, infs)
