"""The relation of names, against real tensors and brute-force sets of addresses."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tensormagic.analysis import regions
from tensormagic.analysis.index import Index
from tensormagic.analysis.names import NamesAt, UnknownName
from tensormagic.analysis.sharing import Bound, Sharing, codes, matrix, relation, sharing
from tensormagic.recording.model import ObjectKind
from tests.builder import GRAD, ITEM, SIZES, Builder


def bytes_of(tensor):
    """Absolute addresses of every byte of a tensor or array, by the definition."""
    array = tensor.detach().numpy() if isinstance(tensor, torch.Tensor) else tensor
    found = set()
    for index in itertools.product(*map(range, array.shape)):
        start = array.__array_interface__["data"][0] + sum(i * s for i, s in zip(index, array.strides, strict=True))
        found |= set(range(start, start + array.itemsize))
    return found


def truth(a, b, storage_a, storage_b):
    if a is b:
        return Sharing.SAME_OBJECT
    one, two = bytes_of(a), bytes_of(b)
    if one & two:
        if one == two:
            return Sharing.SAME_BYTES
        return Sharing.CONTAINS if one > two else Sharing.INSIDE if one < two else Sharing.OVERLAP
    return Sharing.SAME_STORAGE if storage_a == storage_b else Sharing.SEPARATE


def record(tensors):
    """A recording of real tensors and arrays under the names t[0], t[1], ..."""
    b = Builder()
    b.line(1)
    bases, storages, objects = [], [], {}
    for i, tensor in enumerate(tensors):
        base = tensor.untyped_storage()
        where = next((k for k, known in enumerate(bases) if known.data_ptr() == base.data_ptr()), None)
        if where is None:
            bases.append(base)
            where = b.storage(base.nbytes(), base.data_ptr())
        storages.append(where)
        if id(tensor) not in objects:
            dtype = str(tensor.dtype).removeprefix("torch.")
            objects[id(tensor)] = b.tensor(
                tuple(tensor.shape), tensor.stride(), where, offset=tensor.storage_offset(), dtype=dtype
            )
        b.bind(objects[id(tensor)], "t", (ITEM, i))
    return Index(b.recording), storages


@st.composite
def families(draw):
    """Tensors of which many are views of each other."""
    tensors = [torch.zeros(4, 6), torch.zeros(12)]
    for _ in range(draw(st.integers(1, 7))):
        t = draw(st.sampled_from(tensors))
        ways = [lambda t: t, lambda t: t.detach(), lambda t: t.t() if t.dim() < 3 else t, lambda t: t.unsqueeze(0)]
        ways += [lambda t: t[1:], lambda t: t[:2], lambda t: t[::2], lambda t: t[..., 1:], lambda t: t[..., ::2]]
        ways += [lambda t: t[:0], lambda t: t[:1].expand(3, *t.shape[1:]), lambda t: t.view(torch.int16)]
        ways += [lambda t: t.clone(), lambda t: t[..., 0], lambda t: t.as_strided((3, 2), (1, 1), t.storage_offset())]
        try:
            made = draw(st.sampled_from(ways))(t)
        except (RuntimeError, IndexError):  # torch has no such view of this one
            continue
        tensors.append(made)
    return tensors


@settings(max_examples=150, deadline=None)
@given(families())
def test_real_views_of_torch(tensors):
    index, storages = record(tensors)
    names, told = matrix(index)
    for i, j in itertools.product(range(len(tensors)), repeat=2):
        right = truth(tensors[i], tensors[j], storages[i], storages[j])
        found = relation(index, f"t[{i}]", f"t[{j}]")
        assert (found.sharing, found.exact) == (right, True)
        assert told[names.index(f"t[{i}]"), names.index(f"t[{j}]")] is right
        if right is not Sharing.SAME_OBJECT:
            assert found.bytes_common == len(bytes_of(tensors[i]) & bytes_of(tensors[j]))
        assert (found.bytes_a, found.bytes_b) == (len(bytes_of(tensors[i])), len(bytes_of(tensors[j])))


@st.composite
def strided(draw):
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    return (
        shape,
        tuple(draw(st.integers(-4, 6)) for _ in shape),
        draw(st.integers(0, 9)),
        draw(st.sampled_from([*SIZES])),
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(strided(), st.integers(0, 2)), min_size=2, max_size=6))
def test_the_matrix_and_single_questions_agree_on_anything_strided(layouts):
    """Three storages, of which the first two lie over each other."""
    b = Builder()
    b.line(1)
    for address in (4096, 4096 + 24, 9000):
        b.storage(64, address)
    sets = []
    for i, ((shape, stride, offset, dtype), storage) in enumerate(layouts):
        b.bind(b.tensor(shape, stride, storage, offset=offset, dtype=dtype), f"n{i}")
        size = SIZES[dtype]
        found = set()
        for index in itertools.product(*map(range, shape)):
            start = (4096, 4120, 9000)[storage] + (offset + sum(k * s for k, s in zip(index, stride))) * size
            found |= set(range(start, start + size))
        sets.append(found)
    names, told = matrix(b.recording)
    index = Index(b.recording)
    for (i, a), (j, c) in itertools.product(enumerate(names), repeat=2):
        assert sharing(index, a, c) is told[i, j]
        assert told[j, i] is told[i, j].turned
        if i != j:
            common = sets[i] & sets[j]
            assert bool(common) == (told[i, j] not in (Sharing.SAME_STORAGE, Sharing.SEPARATE))
            if common:
                assert (sets[i] >= sets[j]) == (told[i, j] in (Sharing.SAME_BYTES, Sharing.CONTAINS))
                assert (sets[i] <= sets[j]) == (told[i, j] in (Sharing.SAME_BYTES, Sharing.INSIDE))


def test_every_relation_has_a_glyph_of_one_character():
    assert [relation.glyph for relation in Sharing] == list("=■◧◨◪□·")
    assert Sharing.CONTAINS.turned is Sharing.INSIDE and Sharing.OVERLAP.turned is Sharing.OVERLAP


def two(shape_a, shape_b, **more):
    b = Builder()
    b.line(1)
    b.storage(4000)
    b.bind(b.tensor(shape_a, storage=0), "a")
    b.bind(b.tensor(shape_b, storage=0, **more), "b")
    return b


def test_empty_tensors_have_no_byte():
    b = two((0,), (4,))
    assert sharing(b.recording, "a", "b") is Sharing.SAME_STORAGE
    assert sharing(b.recording, "a", "a") is Sharing.SAME_OBJECT
    assert relation(b.recording, "a", "a").bytes_common == 0
    b = two((0,), (0,))
    assert sharing(b.recording, "a", "b") is Sharing.SAME_STORAGE
    assert matrix(b.recording)[1][0, 1] is Sharing.SAME_STORAGE


def test_parts_of_tensors_can_be_asked_for():
    b = two((4, 3), (3,), offset=3)
    assert sharing(b.recording, "a[1]", "b") is Sharing.SAME_BYTES
    assert sharing(b.recording, "a[1]", "a[1]") is Sharing.SAME_BYTES
    assert sharing(b.recording, "a[:, 0]", "a[:, 1]") is Sharing.SAME_STORAGE
    assert sharing(b.recording, "a", "a[..., None, 1:]") is Sharing.CONTAINS
    assert sharing(b.recording, "a.T", "a") is Sharing.SAME_BYTES
    names, told = matrix(b.recording, ["a[1]", "b", "a[1]"])
    assert names == ["a[1]", "b", "a[1]"]
    assert (told == Sharing.SAME_BYTES).sum() == 8 and told[1, 1] is Sharing.SAME_OBJECT


def test_a_step_is_asked_for():
    b = two((4,), (4,))
    b.line(2)
    b.bind(b.tensor((4,)), "b")
    assert sharing(b.recording, "a", "b", step=0) is Sharing.SAME_BYTES
    assert sharing(b.recording, "a", "b") is Sharing.SEPARATE
    with pytest.raises(UnknownName):
        sharing(b.recording, "a", "c")


def test_the_state_of_the_step_counts():
    b = two((4,), (4,))
    b.line(2)
    b.state(0, 0, (2,))
    assert sharing(b.recording, "a", "b", step=0) is Sharing.SAME_BYTES
    assert sharing(b.recording, "a", "b") is Sharing.INSIDE


def test_modules_and_containers_are_one_object_or_separate():
    b = Builder()
    b.line(1)
    net = b.object(ObjectKind.MODULE, "Linear")
    b.bind(net, "model")
    b.bind(net, "best")
    b.bind(b.object(ObjectKind.MODULE, "Linear"), "other")
    b.bind(b.tensor((2,)), "w")
    assert sharing(b.recording, "model", "best") is Sharing.SAME_OBJECT
    assert sharing(b.recording, "model", "other") is Sharing.SEPARATE
    assert relation(b.recording, "model", "w").exact
    assert matrix(b.recording)[0] == ["w"]
    assert matrix(b.recording, ["model", "best", "w"])[1][0].tolist() == [
        Sharing.SAME_OBJECT, Sharing.SAME_OBJECT, Sharing.SEPARATE
    ]  # fmt: skip


def test_two_storages_over_one_array_are_one_memory():
    array = np.zeros(8, np.float32)
    one, two, tail, alone = (torch.from_numpy(x) for x in (array, array, array[4:], np.zeros(2, np.float32)))
    b = Builder()
    b.line(1)
    for name, t in [("one", one), ("two", two), ("tail", tail), ("alone", alone)]:
        where = b.storage(t.untyped_storage().nbytes(), t.data_ptr())
        b.bind(b.tensor(tuple(t.shape), storage=where), name)
    assert sharing(b.recording, "one", "two") is Sharing.SAME_BYTES
    assert sharing(b.recording, "tail", "one") is Sharing.INSIDE
    assert sharing(b.recording, "one[:2]", "tail") is Sharing.SAME_STORAGE
    assert sharing(b.recording, "one", "alone") is Sharing.SEPARATE
    b.recording.resizes.add(0, 1, 32)  # the memory of `two` may have moved: its old address says nothing
    assert sharing(b.recording, "one", "two") is Sharing.SEPARATE


def test_an_address_of_freed_memory_says_nothing():
    """A name that was not looked at again, beside a tensor that got the freed memory."""
    b = Builder()
    b.line(1)
    b.bind(b.tensor((4,), storage=b.storage(16, 4096, death=1)), "old")
    b.bind(b.tensor((4,), storage=b.storage(16, 8192, death=1), kind=ObjectKind.ARRAY), "array")
    b.line(2)
    b.bind(b.tensor((4,), storage=b.storage(16, 4096)), "new")
    b.bind(b.tensor((4,), storage=b.storage(16, 8192)), "t")
    assert sharing(b.recording, "old", "new") is Sharing.SEPARATE
    assert sharing(b.recording, "array", "t") is Sharing.SAME_BYTES


def test_equal_addresses_on_two_devices_are_two_memories():
    b = Builder()
    b.line(1)
    b.bind(b.tensor((4,), storage=b.storage(16, 4096, "cuda:0")), "a")
    b.bind(b.tensor((4,), storage=b.storage(16, 4096, "cuda:1")), "b")
    b.bind(b.tensor((4,), storage=b.storage(16, 0, "meta")), "c")
    b.bind(b.tensor((4,), storage=b.storage(16, 0, "meta")), "d")
    assert sharing(b.recording, "a", "b") is sharing(b.recording, "c", "d") is Sharing.SEPARATE


def test_an_array_may_begin_before_the_storage_of_its_tensor():
    b = Builder()
    b.line(1)
    b.storage(8, 4096)
    b.bind(b.tensor((2,), storage=0), "t")
    b.bind(b.tensor((4,), storage=0, offset=-2, kind=ObjectKind.ARRAY), "array")
    b.bind(b.tensor((2,), storage=b.storage(8, 4088)), "head")
    assert sharing(b.recording, "array", "t") is Sharing.CONTAINS
    assert sharing(b.recording, "array", "head") is Sharing.CONTAINS
    assert sharing(b.recording, "t", "head") is Sharing.SEPARATE


def test_memory_that_was_not_recorded_is_said_to_be_unknown():
    b = Builder()
    b.line(1)
    b.bind(b.tensor((2,), storage=-1), "sparse")
    b.bind(b.tensor((2,)), "w")
    found = relation(b.recording, "sparse", "w")
    assert (found.sharing, found.exact, found.bound) == (Sharing.SEPARATE, False, Bound.MEMORY)
    assert relation(b.recording, "sparse", "sparse").sharing is Sharing.SAME_OBJECT
    at = NamesAt(Index(b.recording))
    _told, exact = codes(at.index, [at["sparse"], at["w"]], at.step)
    assert exact.tolist() == [[True, False], [False, True]]


def test_a_bound_that_was_reached_is_stated(monkeypatch):
    b = Builder()
    b.line(1)
    b.storage(10**12)
    strides = [tuple((7 * k + 11) * 10**6 + j for k in range(6)) for j in (1, 3)]
    b.bind(b.tensor((30,) * 6, strides[0], 0, dtype="uint8"), "a")
    b.bind(b.tensor((30,) * 6, strides[1], 0, offset=1, dtype="uint8"), "b")
    b.bind(b.tensor((10**7,), (6,), 0, dtype="uint8"), "c")
    b.bind(b.tensor((10**7,), (9,), 0, offset=3, dtype="uint8"), "d")
    monkeypatch.setattr(regions, "MOST_WORK", 1)
    found = relation(b.recording, "a", "b")
    assert (found.sharing, found.exact, found.bound) == (Sharing.OVERLAP, False, Bound.OVERLAP)
    monkeypatch.undo()
    regions._compare_from.cache_clear()
    found = relation(b.recording, "c", "d")
    assert (found.sharing, found.bytes_common) == (Sharing.OVERLAP, None)
    assert found.name == "OVERLAP"
    assert found.exact  # each has a byte past the other's ends or too many bytes to lie in it


def test_two_thousand_names_over_fifty_storages():
    b = Builder()
    b.line(1)
    for _ in range(50):
        b.storage(4000)
    for i in range(2000):
        shape, stride = [((10, 10), (10, 1)), ((10, 10), (1, 10)), ((10,), (10,)), ((5, 4), (20, 2))][i % 4]
        b.bind(b.tensor(shape, stride, i % 50, offset=i // 100), f"n{i}")
    names, told = matrix(b.recording)
    assert told.shape == (2000, 2000)
    index = Index(b.recording)
    for i, j in [(0, 50), (0, 100), (1, 51), (2, 3), (100, 150), (1999, 49), (3, 103)]:
        assert told[i, j] is sharing(index, names[i], names[j])


def test_a_gradient_has_a_name():
    b = two((4,), (4,))
    b.bind(b.tensor((4,), storage=0), "a", (GRAD, "grad"))
    assert sharing(b.recording, "a.grad", "b") is Sharing.SAME_BYTES
