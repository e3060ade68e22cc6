"""What every name stood for after a step, and the spellings by which it is found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensormagic
from tensormagic.analysis import names
from tensormagic.analysis.index import Index
from tensormagic.analysis.names import UnknownName, parse
from tensormagic.recording.model import ObjectKind
from tests.builder import ATTR, BUFFER, GRAD, ITEM, KEY, PARAM, SUB, Builder

SPELLINGS = [
    (["w"], "w", ["w", " w "]),
    (["net", (SUB, "fc"), (PARAM, "weight")], "net.fc.weight", ["net['fc'].weight", "net.fc['weight']"]),
    (["layers", (ITEM, 0), (PARAM, "weight")], "layers[0].weight", ["layers.0.weight", "layers[ 0 ].weight"]),
    (["seq", (SUB, "3"), (PARAM, "bias")], "seq.3.bias", ["seq[3].bias", "seq['3'].bias"]),
    (["best", (KEY, "'weight'")], "best['weight']", ['best["weight"]', "best[ 'weight' ]"]),
    (["best", (KEY, "'a.0]'")], "best['a.0]']", ['best["a.0]"]']),
    (["d", (KEY, "(1, 2)")], "d[(1, 2)]", ["d[1, 2]", "d[1,2]"]),
    (["d", (KEY, "7")], "d[7]", ["d.7"]),
    (["env", (ATTR, "obs")], "env.obs", []),
    (["bn", (BUFFER, "running_mean")], "bn.running_mean", []),
    (["w", (GRAD, "grad")], "w.grad", []),
]


def everything():
    b = Builder()
    b.line(1)
    for segments, _, _ in SPELLINGS:
        b.bind(b.tensor((2,)), *segments)
    return Index(b.recording)


@pytest.mark.parametrize("number", range(len(SPELLINGS)))
def test_every_spelling_finds_the_recorded_name(number):
    at = names.at(everything())
    _, text, others = SPELLINGS[number]
    for spelling in [text, *others]:
        assert at[spelling].object == number
        assert at[spelling].text == text
    assert list(at)[number] == text


@pytest.mark.parametrize("name", ["best.weight", "w['grad']", "env['obs']", "layers['0'].weight", "net.fc"])
def test_another_name_is_not_guessed(name):
    with pytest.raises((UnknownName, ValueError)):
        names.at(everything())[name]


@pytest.mark.parametrize("name", ["", "w +", "f(w)", "w if w else w", "1", "(w, w)", "'w'", "w[", "\0"])
def test_what_is_no_name_is_refused_with_a_sentence(name):
    with pytest.raises(ValueError, match="is no name: expected a variable"):
        names.at(everything())[name]


def test_a_name_that_is_too_deep_for_some_parsers_is_refused():
    with pytest.raises((UnknownName, ValueError)):
        names.at(everything())["a" + "[0]" * 9000]


@given(st.text(alphabet="wd[]'\".0:,()\\ \n_netbs-", max_size=14))
def test_no_text_raises_anything_else(text):
    try:
        names.at(_EVERYTHING)[text]
    except (UnknownName, ValueError):
        pass


_EVERYTHING = everything()


def test_names_change_from_step_to_step():
    b = Builder()
    b.line(1)
    first, second = b.tensor((2,)), b.tensor((2,))
    b.bind(first, "w")
    b.line(2)
    b.bind(second, "w")
    b.bind(first, "old")
    b.line(3)
    b.bind(-1, "old")
    r = b.recording
    assert {name: n.object for name, n in names.at(r, 0).items()} == {"w": first}
    assert {name: n.object for name, n in names.at(r, 1).items()} == {"w": second, "old": first}
    assert {name: n.object for name, n in names.at(r).items()} == {"w": second}
    assert dict(names.at(r, -1)) == {}
    with pytest.raises(IndexError, match="no step 3: the trace has steps 0 to 2"):
        names.at(r, 3)


def test_a_binding_counts_from_its_step_on_whenever_it_was_written_down():
    b = Builder()
    for line in (1, 2, 3):
        b.line(line)
    first, second = b.tensor((2,)), b.tensor((2,))
    b.bind(first, "w", step=2)
    b.bind(second, "w", step=1)
    assert names.at(b.recording, 1)["w"].object == second
    assert names.at(b.recording)["w"].object == first


def test_an_unknown_name_tells_close_ones_and_when_it_was_there():
    b = Builder()
    b.line(1)
    b.bind(b.tensor((2,)), "weights")
    b.line(5)
    b.bind(-1, "weights")
    b.bind(b.tensor((2,)), "weight")
    with pytest.raises(UnknownName) as caught:
        names.at(b.recording)["weights"]
    assert str(caught.value) == (
        "no name 'weights' at the end: it was last bound at step 0, line 1, and is gone; close to it: weight"
    )
    assert caught.value.close == ["weight"] and caught.value.gone == 1
    with pytest.raises(UnknownName, match=r"no name 'weight' after step 0: it is first bound at step 1, line 5"):
        names.at(b.recording, 0)["weight"]
    with pytest.raises(KeyError):
        names.at(b.recording)["other"]


def test_what_a_name_led_to_is_gone_with_it():
    b = Builder()
    b.line(1)
    b.bind(b.object(ObjectKind.MODULE, "Linear"), "net")
    b.bind(b.tensor((2,)), "net", (PARAM, "weight"))
    b.line(2)
    b.bind(-1, "net")
    assert list(names.at(b.recording, 0)) == ["net", "net.weight"]
    assert list(names.at(b.recording)) == []
    b.line(3)
    b.bind(b.tensor((2,)), "net", (PARAM, "weight"))
    assert list(names.at(b.recording)) == ["net.weight"]


def test_locals_come_first_and_hide_the_cell_s_names():
    b = Builder()
    b.line(1)
    outer, x, inner = b.tensor((2,)), b.tensor((2,)), b.tensor((3,))
    b.bind(outer, "w")
    b.bind(x, "x")
    f = b.frame("f", 4)
    b.line(2, frame=f)
    b.bind(inner, "w", frame=f)
    b.line(4)
    inside, after = names.at(b.recording, 1), names.at(b.recording, 2)
    assert [(name, n.object) for name, n in inside.items()] == [("w", inner), ("x", x)]
    assert [(name, n.object) for name, n in after.items()] == [("w", outer), ("x", x)]
    assert inside.names_of(inner) == ["w"] and inside.tensors() == ["w", "x"]


def test_a_line_inside_a_call_sees_what_its_caller_made_before():
    """y = f(x.clone()): the clone belongs to the caller's step, which ends after the lines of f."""
    b = Builder()
    b.line(1)
    x = b.call("torch.zeros", "2", [], (2,))
    f = b.frame("f", 2)
    b.now = 2
    clone = b.call("Tensor.clone", "", [x], (2,))  # call 1, of step 2
    b.line(5, frame=f)  # step 1 begins after call 1
    b.bind(clone, "arg", frame=f)
    b.now = 2
    b.call("Tensor.detach_", "", [clone], (1,), out=clone, storage=1, offset=1)
    b.line(2)
    index = Index(b.recording)
    assert names.at(index, 1)["arg"].shape == (2,)
    assert index.state(clone, 0) is None
    assert index.state(clone, 2).offset == 1


def test_a_part_of_a_tensor_is_worked_out():
    b = Builder()
    b.line(1)
    b.bind(b.tensor((4, 3), offset=2), "x")
    at = names.at(b.recording)
    part = at["x[1:3].T[ 0 ]"]
    assert (part.text, part.object, part.base) == ("x[1:3].T[0]", -1, 0)
    assert (part.state.offset, part.shape, part.stride) == (5, (2,), (3,))
    assert at["x.2"].shape == (3,)
    for wrong in ("x[9]", "x[[0]]", "x.grad", "x[mask]"):
        with pytest.raises(ValueError, match="x"):
            at[wrong]


def test_an_object_without_memory_has_no_parts():
    b = Builder()
    b.line(1)
    b.bind(b.object(ObjectKind.CONTAINER, "list"), "memory")
    with pytest.raises(UnknownName, match=r"no name 'memory\[3\]' at the end; close to it: memory"):
        names.at(b.recording)["memory[3]"]


def test_parse_gives_segments():
    assert parse('a.b["c"].0[1:2, None]') == ((".", "a"), (".", "b"), ("[", "'c'"), ("[", "0"), ("[", "1:2, None"))


def test_members_of_an_optimizer_are_reached_as_it_holds_them():
    cell = """\
import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD([{"params": [net.weight]}, {"params": [net.bias], "lr": 0.1}], lr=1)
old = net.weight
net.weight = torch.nn.Parameter(torch.zeros(1, 2))
opt.add_param_group({"params": [net.weight]})
"""
    trace = tensormagic.run(cell, {})
    assert trace.sharing("opt.param_groups[0]['params'][0]", "old").name == "SAME_OBJECT"
    assert trace.sharing("opt.param_groups[0]['params'][0]", "net.weight").name == "SEPARATE"
    assert trace.sharing('opt.param_groups[2]["params"][0]', "net.weight").name == "SAME_OBJECT"
    assert trace.sharing("opt.param_groups[1]['params'][0][:1]", "net.bias").name == "SAME_BYTES"
    assert trace["opt.param_groups[1]['params'][0]"].shape == (1,)
    assert trace.explain("opt.param_groups[0]['params'][0]").line == 2
    for name in ("opt.param_groups[0]['params'][1]", "opt.param_groups[3]['params'][0]", "opt.param_groups[0]['lr']"):
        with pytest.raises(UnknownName):
            trace.sharing(name, "old")
    with pytest.raises(UnknownName):
        trace.sharing("opt.param_groups[2]['params'][0]", "old", step=3)
