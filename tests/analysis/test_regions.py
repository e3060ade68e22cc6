"""Byte sets against brute force: every address of every element, written out one by one."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensormagic.analysis import regions
from tensormagic.analysis.regions import Common, Region, compare


def brute(region):
    """The set of addresses, by the definition."""
    found = set()
    for index in itertools.product(*map(range, region.shape)):
        start = region.offset_bytes + sum(i * s for i, s in zip(index, region.stride_bytes, strict=True))
        found |= set(range(start, start + region.itemsize))
    return found


def written_out(form):
    """The set of addresses of a canonical form."""
    if form is None:
        return set()
    sums = itertools.product(*(range(0, s * n, s) for s, n in form.dims))
    return {form.start + sum(parts) for parts in sums}


@st.composite
def strided(draw):
    """Any strided region: overlapping, expanded, turned round, empty, without dimensions."""
    shape = tuple(draw(st.lists(st.integers(0, 4) | st.integers(1, 4), max_size=4)))
    stride = tuple(draw(st.integers(-12, 12)) for _ in shape)
    return Region(0, draw(st.integers(-8, 30)), shape, stride, draw(st.sampled_from([1, 2, 4, 8])))


@st.composite
def views(draw):
    """What torch's own views give: strides in whole elements, dimensions inside each other, then cut and turned."""
    base = torch.zeros(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)), dtype=torch.int16)
    tensor = base
    for _ in range(draw(st.integers(0, 4))):
        d = draw(st.integers(0, tensor.dim() - 1))
        what = draw(st.sampled_from(["slice", "transpose", "expand", "select", "flat"]))
        if what == "slice":
            begin = draw(st.integers(0, tensor.shape[d]))
            tensor = tensor.narrow(d, begin, tensor.shape[d] - begin)[(slice(None),) * d + (slice(None, None, 2),)]
        elif what == "transpose":
            tensor = tensor.transpose(d, draw(st.integers(0, tensor.dim() - 1)))
        elif what == "expand":
            tensor = tensor.unsqueeze(d).expand(*tensor.shape[:d], 3, *tensor.shape[d:])
        elif what == "select" and tensor.dim() > 1 and tensor.shape[d]:
            tensor = tensor.select(d, draw(st.integers(0, tensor.shape[d] - 1)))
        elif what == "flat" and tensor.is_contiguous() and tensor.numel():
            tensor = tensor.view(-1)
    size = tensor.element_size()
    return Region(
        0, tensor.storage_offset() * size, tuple(tensor.shape), tuple(s * size for s in tensor.stride()), size
    )


def check(a, b, exact=True):
    bytes_a, bytes_b = brute(a), brute(b)
    if not bytes_a or not bytes_b:
        assert (a.form() is None) == (not bytes_a) and (b.form() is None) == (not bytes_b)
        return
    common = bytes_a & bytes_b
    right = Common(len(common), len(bytes_a), len(bytes_b), bool(common), bytes_a >= bytes_b, bytes_b >= bytes_a)
    got = compare(a.form(), b.form())
    if exact:
        assert got == right
    for told, truth in zip(got, right, strict=True):  # within any bound, what is told is true
        assert told is None or told == truth


@given(strided() | views())
@example(Region(0, 0, (3, 4), (4, 2), 2))
def test_the_canonical_form_is_the_same_set(region):
    form = region.form()
    assert written_out(form) == brute(region)
    if form is not None:
        assert form.count() == len(brute(region))
        assert (form.start, form.end) == (min(brute(region)), max(brute(region)) + 1)


@settings(max_examples=400, deadline=None)
@given(strided(), strided())
def test_any_two_strided_regions(a, b):
    check(a, b)


@settings(max_examples=400, deadline=None)
@given(views(), views())
def test_any_two_views(a, b):
    check(a, b)


@settings(max_examples=300, deadline=None)
@given(strided() | views(), strided() | views(), st.integers(0, 3), st.integers(0, 200))
def test_past_the_bounds_nothing_false_is_told(a, b, runs, work):
    old = regions.MOST_RUNS, regions.MOST_WORK
    regions.MOST_RUNS, regions.MOST_WORK = runs, work
    caches = (regions._runs, regions._compare_from)
    try:
        for cache in caches:
            cache.cache_clear()
        check(a, b, exact=False)
    finally:
        regions.MOST_RUNS, regions.MOST_WORK = old
        for cache in caches:
            cache.cache_clear()


@given(views(), views())
def test_equal_sets_of_torch_s_views_have_one_form(a, b):
    """Where no byte is reached twice the form is unique, so equal sets are seen without writing them out."""
    if brute(a) == brute(b):
        assert a.form() == b.form()


@given(st.data())
def test_numpy_s_views_with_negative_strides(data):
    base = np.zeros((4, 5), np.int32)
    cuts = [tuple(slice(*data.draw(st.tuples(*[st.none() | st.integers(-6, 6)] * 2, st.sampled_from([-2, -1, 1, 2]))))
                  for _ in range(2)) for _ in range(2)]  # fmt: skip
    first, second = (base[cut] for cut in cuts)
    a, b = (Region(0, x.ctypes.data - base.ctypes.data, x.shape, x.strides, 4) for x in (first, second))
    check(a, b)
    if a.form() and b.form():
        assert compare(a.form(), b.form()).overlap == np.shares_memory(first, second)


BIG = 10**7


@pytest.mark.parametrize(
    ("a", "b", "right"),
    [
        # columns of a matrix of ten million rows: the same period, so one row decides
        (Region(0, 0, (BIG,), (12,), 4), Region(0, 4, (BIG,), (12,), 4), (0, False)),
        (Region(0, 0, (BIG, 2), (12, 4), 4), Region(0, 4, (BIG, 2), (12, 4), 4), (4 * BIG, True)),
        (Region(0, 0, (BIG, 3), (12, 4), 4), Region(0, 8, (BIG,), (12,), 4), (4 * BIG, True)),
        # other periods: only the solver can tell, and only whether they meet
        (Region(0, 0, (BIG,), (6,), 1), Region(0, 3, (BIG,), (9,), 1), (None, True)),
        (Region(0, 0, (BIG,), (6,), 1), Region(0, 1, (BIG,), (9,), 1), (0, False)),
    ],
)
def test_large_regions(a, b, right):
    got = compare(a.form(), b.form())
    assert (got.common, got.overlap) == right


def test_a_strided_part_of_one_large_run_is_told_to_be_inside():
    whole, column = Region(0, 0, (BIG, 3), (12, 4), 4).form(), Region(0, 8, (BIG,), (12,), 4).form()
    assert whole.solid
    assert compare(whole, column) == Common(4 * BIG, 12 * BIG, 4 * BIG, True, True, False)
    assert compare(column, whole) == Common(4 * BIG, 4 * BIG, 12 * BIG, True, False, True)


def test_an_undecided_pair_says_so(monkeypatch):
    monkeypatch.setattr(regions, "MOST_WORK", 1)
    hard = [tuple((7 * k + 11) * 10**6 + j for k in range(6)) for j in (1, 3)]
    a, b = (Region(0, j, (30,) * 6, hard[j], 1).form() for j in (0, 1))
    assert compare(a, b) == Common(None, None, None, None, False, False)


@pytest.mark.parametrize("form", [Region(0, 2**70, (2,), (2**69,), 4), Region(0, -(2**62), (3,), (2**61,), 4)])
def test_addresses_past_64_bits_raise_nothing(form):
    other = Region(0, form.offset_bytes + 2, (2, 2), (2**64, 9), 4)
    assert compare(form.form(), other.form()).overlap in (True, None)
