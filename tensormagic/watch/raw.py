"""Reads tensors' memory without torch's dispatcher: no operation of ours is seen by a user's mode or profiler.

Every reader takes a tensor that is alive for the whole call and copies what it needs: nothing here keeps an address.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import torch

from tensormagic.recording.model import Blob
from tensormagic.watch import private

_NUMPY = {
    torch.float32: np.float32, torch.float64: np.float64, torch.float16: np.float16,
    torch.int8: np.int8, torch.int16: np.int16, torch.int32: np.int32, torch.int64: np.int64,
    torch.uint8: np.uint8, torch.bool: np.bool_, torch.complex64: np.complex64, torch.complex128: np.complex128,
    torch.bfloat16: np.uint16,  # numpy has none: the bits are kept and decoded later
}  # fmt: skip
for _name, _dtype in (("uint16", np.uint16), ("uint32", np.uint32), ("uint64", np.uint64)):
    if hasattr(torch, _name):
        _NUMPY[getattr(torch, _name)] = _dtype
_LARGE = 1 << 12
_INEXACT = {torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128}
_PLAIN = {torch.Tensor, torch.nn.Parameter}
_NAMES: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    name = _NAMES.get(dtype)
    if name is None:
        name = _NAMES[dtype] = str(dtype).removeprefix("torch.")
    return name


def shape_of(tensor: Any) -> tuple[int, ...]:
    """A tensor's shape; () for a nested tensor, which has none."""
    try:
        return tuple(private.get_shape(tensor))
    except RuntimeError:
        return ()


def address_of(storage: Any) -> int:
    """A storage's address, 0 where it has none to give (a fake tensor's, autograd's tensors of zeros)."""
    try:
        return int(storage.data_ptr())
    except RuntimeError:
        return 0


def view(tensor: Any) -> Any:
    """The tensor's elements as a numpy array over its own memory, or None where there is none to read.

    The array must not outlive the caller's use of `tensor`. bfloat16 comes as uint16 bits.
    """
    if type(tensor) not in _PLAIN or private.get_device(tensor).type != "cpu":
        return None
    dtype = _NUMPY.get(private.get_dtype(tensor))
    if dtype is None or private.get_layout(tensor) is not torch.strided or private.is_wrapped(tensor):
        return None
    if tensor.is_nested:
        return None
    shape = private.get_shape(tensor)
    if 0 in shape:
        return np.empty(tuple(shape), dtype)
    storage = private.get_storage(tensor)
    nbytes = storage.nbytes()
    address = address_of(storage)
    if not address or not nbytes:
        return None
    itemsize = np.dtype(dtype).itemsize
    memory = (ctypes.c_char * nbytes).from_address(address)
    strides = [step * itemsize for step in private.get_stride(tensor)]
    offset = private.get_offset(tensor) * itemsize
    return np.ndarray(tuple(shape), dtype, memory, offset, strides)


def storage_bytes(storage: Any) -> bytes | None:
    """A copy of a CPU storage's bytes; None where it has no address (meta, an empty or fake storage)."""
    if storage.device.type != "cpu":
        return None
    address = address_of(storage)
    return ctypes.string_at(address, storage.nbytes()) if address else None


def is_inexact(tensor: Any) -> bool:
    return private.get_dtype(tensor) in _INEXACT


def non_finite(array: Any, bfloat16: bool = False) -> tuple[int, int]:
    """(count of NaN, count of infinity) in an array of numbers."""
    if bfloat16:
        bits = array & 0x7FFF
        infs = int(np.count_nonzero(bits == 0x7F80))
        return int(np.count_nonzero(bits > 0x7F80)), infs
    if array.dtype.kind not in "fc":
        return 0, 0
    if array.dtype != np.float16 and array.size:
        # One number tells the ordinary case: it is finite only if every element is (it can overflow, so look again).
        with np.errstate(all="ignore"):
            if array.size > _LARGE and array.flags.c_contiguous and array.dtype.kind == "f":
                flat = array.reshape(-1)
                total = np.dot(flat, flat)  # BLAS reads memory twice as fast as a sum
            else:
                total = array.sum()
        if math.isfinite(total.real) and math.isfinite(total.imag):
            return 0, 0
    return int(np.count_nonzero(np.isnan(array))), int(np.count_nonzero(np.isinf(array)))


def blob(tensor: Any, limit: int, bound: int) -> Blob | None:
    """What is kept of a tensor's values: all of them up to `limit` elements, a summary up to `bound`, else the shape.

    None where the memory cannot be read at all (another device, a layout without strides).
    """
    array = view(tensor)
    if array is None:
        return None
    name = dtype_name(private.get_dtype(tensor))
    shape = tuple(array.shape)
    half = name == "bfloat16"
    if array.size <= limit:
        nans, infs = non_finite(array, half)
        return Blob(shape, name, np.ascontiguousarray(array).tobytes(), nans=nans, infs=infs)
    if array.size > bound or array.dtype.kind == "c":
        return Blob(shape, name)
    return _summary(array, shape, name, half)


def _summary(array: Any, shape: tuple[int, ...], name: str, half: bool) -> Blob:
    if half:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    nans, infs = non_finite(array)
    if nans or infs:
        array = array[np.isfinite(array)]
    if not array.size:
        return Blob(shape, name, nans=nans, infs=infs)
    with np.errstate(all="ignore"):
        mean = float(array.mean(dtype=np.float64))
    return Blob(shape, name, None, float(array.min()), float(array.max()), mean, nans, infs)
