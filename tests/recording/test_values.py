"""Decoding against torch itself: the bytes of a real tensor must give back what `tolist()` says."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.recording import values
from tensormagic.recording.model import Blob, Geometry

DTYPES = [
    "float64", "float32", "float16", "bfloat16", "complex64", "complex128", "complex32", "bool",
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


def raw(tensor):
    return bytes(tensor.contiguous().untyped_storage())


def geometry_of(tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    return Geometry(tuple(tensor.shape), tensor.stride(), dtype, tensor.element_size(), "cpu", "strided")


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.binary(min_size=16 * 6, max_size=16 * 6))
def test_every_bit_pattern_reads_as_torch_reads_it(dtype, data):
    size = values.itemsize(dtype)
    if dtype == "bool":
        data = bytes(byte & 1 for byte in data)
    count = len(data) // size
    tensor = torch.frombuffer(bytearray(data), dtype=getattr(torch, dtype)).reshape(2, count // 2)
    array = values.decode(Blob((2, count // 2), dtype, data))
    right = tensor.to(torch.complex64) if dtype == "complex32" else tensor
    np.testing.assert_array_equal(array, np.array(right.tolist(), dtype=array.dtype))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "qint8", "quint4x2", "no such type", ""])
def test_a_type_without_an_exact_reading_is_not_decoded(dtype):
    assert values.decode(Blob((2,), dtype, b"\x01\x02")) is None
    assert values.values(Blob((2,), dtype, b"\x01\x02")) is None


def test_values_that_were_not_kept_are_none():
    assert values.decode(Blob((100,), "float32", None, 0.0, 1.0, 0.5)) is None


def test_non_finite_numbers_stay_floats():
    tensor = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0], dtype=torch.bfloat16)
    got = values.values(Blob((4,), "bfloat16", raw(tensor)))
    assert math.isnan(got[0]) and got[1:3] == [math.inf, -math.inf] and math.copysign(1, got[3]) == -1


def test_a_scalar_is_one_number_and_an_empty_tensor_is_its_lists():
    assert values.values(Blob((), "int64", (7).to_bytes(8, "little"))) == 7
    assert values.values(Blob((2, 0), "float32", b"")) == [[], []]


VIEWS = {
    "transposed": lambda x: x.t(),
    "every second column": lambda x: x[:, ::2],
    "expanded": lambda x: x[:1].expand(5, 4),
    "windows that overlap": lambda x: x.as_strided((3, 3), (1, 2), 4),
    "one element": lambda x: x[2, 1],
    "no element": lambda x: x[2:2],
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex32", "bool", "int64"])
@pytest.mark.parametrize("view", VIEWS)
def test_a_slice_of_a_storage_reads_as_the_view_does(dtype, view):
    base = (torch.arange(12).reshape(3, 4) % 5).to(torch.complex64 if dtype == "complex32" else torch.float32)
    base = base.to(getattr(torch, dtype))
    tensor = VIEWS[view](base)
    array = values.decode_slice(raw(base), geometry_of(tensor), tensor.storage_offset())
    right = tensor.to(torch.complex64) if dtype == "complex32" else tensor
    assert values.to_lists(array) == right.tolist()
    assert array.shape == tuple(tensor.shape)


def test_a_numpy_array_with_negative_strides_reads_backwards():
    data = np.arange(6, dtype="<i4").tobytes()
    assert values.decode_slice(data, Geometry((3,), (-2,), "int32", 4, "cpu", "strided"), 5).tolist() == [5, 3, 1]


@pytest.mark.parametrize(
    ("shape", "stride", "offset"),
    [((4,), (1,), 0), ((3,), (1,), 1), ((2,), (-1,), 0), ((1,), (1,), -1), ((2, 2), (2**62, 1), 0), ((3,), (), 0)],
)
def test_an_element_outside_the_bytes_is_not_decoded(shape, stride, offset):
    geometry = Geometry(shape, stride, "int32", 4, "cpu", "strided")
    assert values.decode_slice(bytes(12), geometry, offset) is None


@pytest.mark.parametrize("shape", [(10**9,), (2**62, 4, 0), (1,) * 40])
def test_a_shape_beyond_the_bounds_is_not_decoded(shape):
    assert values.decode_slice(bytes(4), Geometry(shape, (0,) * len(shape), "bfloat16", 2, "cpu", "strided"), 0) is None


@given(st.binary(max_size=40), st.lists(st.integers(0, 4), max_size=3), st.data())
def test_no_geometry_raises(data, shape, draw):
    stride = draw.draw(st.lists(st.integers(-9, 9), min_size=len(shape), max_size=len(shape)))
    geometry = Geometry(tuple(shape), tuple(stride), draw.draw(st.sampled_from(DTYPES)), 4, "cpu", "strided")
    array = values.decode_slice(data, geometry, draw.draw(st.integers(-3, 12)))
    assert array is None or array.shape == tuple(shape)
