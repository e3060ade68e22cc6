"""Indexing by arithmetic, against torch and numpy on the same index."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tensormagic.analysis import indexing

ends = st.none() | st.integers(-7, 7)
parts = st.one_of(
    st.integers(-6, 6).map(str),
    st.just("None"),
    st.just("..."),
    st.tuples(ends, ends, st.sampled_from([None, 1, 2, 3, -1, -2])).map(
        lambda s: ":".join("" if end is None else str(end) for end in s)
    ),
)


@given(st.lists(parts, min_size=1, max_size=5), st.lists(st.integers(0, 5), min_size=0, max_size=3))
def test_any_basic_index_is_what_numpy_makes_of_it(parts, shape):
    source = ", ".join(parts)
    base = np.zeros(shape, np.int8)
    stride = base.strides
    try:
        right = eval(f"base[{source}]", {"base": base})
    except IndexError:
        with pytest.raises(indexing.NotBasic):
            indexing.item(source, 7, base.shape, stride)
        return
    offset, size, step = indexing.item(source, 7, base.shape, stride)
    assert size == np.shape(right)
    if right.size and isinstance(right, np.ndarray):
        assert offset - 7 == right.ctypes.data - base.ctypes.data
        assert [s for s, n in zip(step, size) if n > 1] == [s for s, n in zip(right.strides, size) if n > 1]


@given(st.lists(parts, min_size=1, max_size=4).filter(lambda parts: parts.count("...") < 2))
def test_any_basic_index_is_what_torch_makes_of_it(parts):
    source = ", ".join(parts)
    x = torch.zeros(9, 5, 4)[2:].transpose(0, 2)
    try:
        right = eval(f"x[{source}]", {"x": x})
    except (IndexError, ValueError):  # torch refuses negative steps as well
        return
    offset, size, step = indexing.item(source, x.storage_offset(), tuple(x.shape), x.stride())
    assert size == tuple(right.shape)
    if right.numel():
        assert offset == right.storage_offset()
        assert [s for s, n in zip(step, size) if n > 1] == [s for s, n in zip(right.stride(), size) if n > 1]


@pytest.mark.parametrize("name", ["T", "mT", "data"])
def test_views_by_attribute(name):
    x = torch.zeros(3, 4)[:, 1:]
    right = getattr(x, name)
    found = indexing.attribute(name, 1, (3, 3), (4, 1))
    assert found == (right.storage_offset(), tuple(right.shape), right.stride())


@pytest.mark.parametrize("source", ["[0, 1]", "mask", "f()", "1.5", "True", "'key'", "0:1:0", "9", "..., ..., 0"])
def test_everything_else_is_refused(source):
    with pytest.raises(indexing.NotBasic):
        indexing.item(source, 0, (3, 3, 3), (9, 3, 1))


def test_unknown_attributes_are_refused():
    with pytest.raises(indexing.NotBasic, match=r"no name is recorded for \.H"):
        indexing.attribute("H", 0, (2, 2), (2, 1))
