"""The way from one name to another, as calls and lines."""

from tensormagic.analysis.index import Index
from tensormagic.analysis.way import chain, way
from tensormagic.recording.model import ObjectKind
from tests.builder import Builder


def cell():
    """x; y = x.detach(); z = y[:2]; w = x.view(4); c = x.clone(); n = c.numpy() unseen"""
    b = Builder("x = torch.zeros(2, 2)\ny = x.detach()\nz = y[:1]\nw = x.view(4)\nc = x.clone()\nn = f(c)\n")
    b.line(1)
    x = b.call("torch.zeros", "2, 2", [], (2, 2))
    b.bind(x, "x")
    b.line(2)
    y = b.call("Tensor.detach", "", [x], (2, 2), storage=0)
    b.bind(y, "y")
    b.line(3)
    b.bind(b.call("Tensor.__getitem__", "[:1]", [y], (1, 2), storage=0), "z")
    b.line(4)
    b.bind(b.call("Tensor.view", "4", [x], (4,), storage=0), "w")
    b.line(5)
    c = b.call("Tensor.clone", "", [x], (2, 2))
    b.bind(c, "c")
    b.line(6)
    b.bind(b.tensor((2, 2), storage=1, kind=ObjectKind.ARRAY), "n")
    return b


def told(hops):
    return [("<- " if hop.back else "-> ") + f"{hop.function} {hop.args}".strip() + f" line {hop.line}" for hop in hops]


def test_down_from_the_base():
    hops = way(cell().recording, "x", "z")
    assert told(hops) == ["-> Tensor.detach line 2", "-> Tensor.__getitem__ [:1] line 3"]
    assert [(hop.source, hop.target, hop.call, hop.step) for hop in hops] == [(0, 1, 1, 1), (1, 2, 2, 2)]


def test_up_to_the_base():
    hops = way(cell().recording, "z", "x")
    assert told(hops) == ["<- Tensor.__getitem__ [:1] line 3", "<- Tensor.detach line 2"]
    assert [(hop.source, hop.target) for hop in hops] == [(2, 1), (1, 0)]


def test_over_the_tensor_that_both_come_from():
    hops = way(cell().recording, "z", "w")
    assert told(hops) == ["<- Tensor.__getitem__ [:1] line 3", "<- Tensor.detach line 2", "-> Tensor.view 4 line 4"]
    assert [(hop.source, hop.target) for hop in hops] == [(2, 1), (1, 0), (0, 3)]


def test_one_object_needs_no_way_and_a_copy_has_none():
    recording = cell().recording
    assert way(recording, "x", "x") == ()
    assert way(recording, "x", "c") is None
    assert chain(Index(recording), 4) == []


def test_an_array_whose_call_was_not_seen():
    hops = way(cell().recording, "c", "n")
    assert told(hops) == ["-> numpy line 6"]
    assert hops[0].call == -1 and hops[0].step == 5


def test_a_tensor_whose_call_was_not_seen():
    b = cell()
    b.bind(b.tensor((2,), storage=1), "t")
    assert told(way(b.recording, "t", "n")) == ["<-  line 6", "-> numpy line 6"]


def test_a_part_goes_the_way_of_its_tensor():
    assert told(way(cell().recording, "x[0]", "y")) == ["-> Tensor.detach line 2"]


def test_memory_that_was_given_later():
    """p.data = x: p was made elsewhere and came to x's storage by an assignment."""
    b = cell()
    b.line(7)
    p = b.call("torch.ones", "2, 2", [], (2, 2))
    b.bind(p, "p")
    b.line(8)
    b.call("Tensor.data.__set__", "", [p, 0], (2, 2), out=p, storage=0)
    assert told(way(b.recording, "x", "p")) == ["-> Tensor.data.__set__ line 8"]
    assert way(b.recording, "x", "p", step=6) is None


def test_calls_that_name_each_other_end():
    """A damaged recording in which two tensors each claim to come from the other."""
    b = Builder()
    b.line(1)
    b.storage(16)
    one, two = b.tensor((4,), storage=0, call=0), b.tensor((4,), storage=0, call=1)
    b.bind(one, "a")
    b.bind(two, "b")
    b.call("f", "", [two], (4,), out=one)
    b.call("f", "", [one], (4,), out=two)
    assert len(chain(Index(b.recording), one)) <= 2
    way(b.recording, "a", "b")
