"""What is read of a tensor's memory, against torch."""

from __future__ import annotations

import warnings

import pytest
import torch

import tensormagic
from tensormagic.recording import values
from tensormagic.watch import raw

ODD = [[float("nan"), 1.0], [float("inf"), 1.0], [float("-inf"), float("inf")], [3e38, 3e38], [-2.0, 5.0]]


@pytest.mark.parametrize("times", [1, 50, 5000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("odd", ODD, ids=str)
def test_nan_and_infinity_are_counted_without_a_warning(odd, dtype, times):
    tensor = torch.tensor(odd * times, dtype=dtype)
    right = (int(torch.isnan(tensor).sum()), int(torch.isinf(tensor).sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert raw.non_finite(raw.view(tensor), dtype is torch.bfloat16) == right
        kept = raw.blob(tensor, 4 * times, 0)
        values.count_non_finite([kept])
    assert (kept.nans, kept.infs) == right


def test_counts_of_many_blobs_are_each_its_own():
    tensors = [torch.tensor([1.0, float("nan")]), torch.ones(()), torch.ones(0), torch.full((3,), float("inf"))]
    tensors += [torch.tensor([complex(1, float("nan"))]), torch.tensor([1, 2])]
    blobs = [raw.blob(tensor, 64, 0) for tensor in tensors]
    values.count_non_finite(blobs)
    assert [(blob.nans, blob.infs) for blob in blobs] == [(1, 0), (0, 0), (0, 0), (0, 3), (1, 0), (0, 0)]


@pytest.mark.parametrize(
    "tensor",
    [torch.arange(6.0).reshape(2, 3).t(), torch.arange(6.0)[1::2], torch.ones(1).expand(4), torch.arange(6.0)[2:]],
    ids=["transposed", "strided", "expanded", "offset"],
)
def test_small_values_are_kept_as_the_tensor_shows_them(tensor):
    kept = raw.blob(tensor, 64, 0)
    assert values.values(kept) == tensor.tolist()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_large_tensor_is_summarized(dtype):
    torch.manual_seed(0)
    tensor = torch.randn(50, 40, dtype=dtype)
    tensor[3, 4], tensor[5, 6], tensor[7, 8] = float("nan"), float("inf"), float("-inf")
    finite = tensor[torch.isfinite(tensor)].double()
    trace = tensormagic.run("y = x\n", {"x": tensor})
    (kept,) = [blob for blob in trace.recording.blobs if blob.shape == (50, 40)]
    assert kept.data is None
    assert (kept.nans, kept.infs) == (1, 2)
    assert (kept.low, kept.high) == (float(finite.min()), float(finite.max()))
    assert kept.mean == pytest.approx(float(finite.mean()))


def test_a_tensor_past_the_bound_keeps_its_shape_alone():
    kept = raw.blob(torch.ones(10), 4, 9)
    assert (kept.shape, kept.data, kept.low, kept.mean) == ((10,), None, None, None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_one_number_is_nan_or_not(dtype):
    values_ = torch.tensor([1.0, float("nan"), float("inf")], dtype=dtype)
    assert [raw.is_nan(value) for value in values_] == [False, True, False]
    assert raw.is_nan(values_[1:2])
    assert not raw.is_nan(values_)
    assert not raw.is_nan(torch.empty((), device="meta"))
    assert not raw.is_nan(torch.tensor(1))
