"""first-nan: the call or the derivative that gave it, early and late; where it came from."""

import pytest
import torch

import tensormagic
from tensormagic.recording.model import CallFlag
from tests.findings.cells import one, told

RULE = "first-nan"
W = "w = torch.nn.Parameter(torch.tensor([1.0]))\n"
LOOP = W + "for step in (n for n in range(120)):\n    factor = 1.0 if step < 100 else -1.0\n    {}\n"


@pytest.mark.parametrize(
    ("cell", "line", "words"),
    [
        (
            "x = torch.tensor([100.0, 1.0])\ne = torch.exp(x)\np = e / e.sum()\n",
            4,
            "out of an infinity, which `exp` on line 3 gave",
        ),
        ("w = torch.ones(2)\nloss = w[w > 5].mean()\n", 3, "`mean` gives it"),
        ("x = torch.tensor([-1.0])\ny = x.sqrt()\n", 3, "what it was given holds none"),
    ],
)
def test_forward(cell, line, words):
    finding = one(RULE, cell)
    assert (finding.line, finding.phase) == (line, "forward")
    assert words in finding.message


@pytest.mark.parametrize(
    ("body", "line", "op"),
    [
        ("h = (w * factor).sqrt()\n    loss = h.sum()\n    loss.backward()", 5, "sqrt"),
        ("y = torch.log(w * factor)\n    loss = (y * 2).sum()\n    seen = loss.item()", 5, "log"),
        ("loss = torch.sigmoid((w * factor) ** 0.5).sum()\n    loss.backward()", 5, "pow"),
    ],
)
def test_late(body, line, op):
    finding = one(RULE, LOOP.format(body))
    assert (finding.line, finding.phase, finding.op) == (line, "forward", op)
    assert "most likely born" in finding.message
    assert "101st time" in finding.message


def test_late_in_a_function():
    cell = (
        W
        + "def model(factor):\n    return (w * factor).log() * 2\nfor step in range(60):\n    loss = model(30.5 - step).sum()\n    loss.backward()\n"
    )
    finding = one(RULE, cell)
    assert (finding.line, finding.op) == (4, "log")
    assert "32nd time" in finding.message


@pytest.mark.parametrize(
    "body",
    [
        "h = (w * abs(factor)).sqrt()\n    loss = h.sum()\n    loss.backward()",
        "x = torch.tensor([factor if factor > 0 else float('nan')])\n    loss = (w * x).sum()\n    loss.backward()",  # it is in the data
        "loss = ((w * factor).sqrt() + (w * factor).log()).sum()\n    loss.backward()",  # either of the two
    ],
)
def test_late_silent(body):
    assert told(RULE, LOOP.format(body)) == []


def test_the_last_round_is_looked_at_call_by_call():
    body = "loss = ((w * factor).sqrt() + (w * factor).log()).sum()\n    loss.backward()"
    finding = one(RULE, LOOP.replace("(n for n in range(120))", "range(120)").format(body))
    assert (finding.line, finding.op) == (5, "sqrt")
    assert finding.message.startswith("A NaN is born")
    assert "not looked at one by one" in finding.message


def test_a_leaf_that_holds_it_already_is_no_birth():
    cell = (
        W
        + "for step in range(60):\n    w.data.fill_(1.0 if step < 40 else float('nan'))\n    loss = w.sqrt().sum()\n    loss.backward()\n"
    )
    assert [finding for finding in told(RULE, cell) if finding.line != 4] == []


def test_nothing_that_was_packed_is_unpacked():
    cell = (
        W + "unpacked = []\ndef pack(x):\n    return x\ndef unpack(x):\n    unpacked.append(1)\n    return x\n"
        "for step in range(30):\n    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):\n"
        "        h = (w * (25.5 - step)).sqrt()\n    seen = h.sum().item()\nassert not unpacked\n"
    )
    assert one(RULE, cell).line == 11


DIVERGES = (
    "torch.manual_seed(0)\nnet = torch.nn.Linear(3, 1)\nopt = torch.optim.SGD(net.parameters(), lr={})\nx = torch.ones(4, 3)\n"
    "for step in range({}):\n    loss = (net(x) - 1).pow(2).mean()\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
)


def test_the_last_round_does_not_take_a_weight_that_holds_it_for_fine():
    finding = one(RULE, DIVERGES.format(1.0, 500))
    assert (finding.line, finding.phase) == (10, "backward")
    assert "wrote it there" in finding.message


def test_a_step_that_made_it_in_a_round_that_was_looked_at():
    assert told(RULE, DIVERGES.format(1e9, 10)) == []
    assert one("first-infinity", DIVERGES.format(1e9, 10)).line == 7


@pytest.mark.parametrize(
    "make", ["x.new_empty(3)", "torch.empty_like(x)", "x.new_empty_strided((3,), (1,))", "torch.ones(0).resize_(3)"]
)
def test_memory_that_nobody_has_written_is_no_birth(make):
    """Deterministic algorithms fill it with NaN; without them it holds whatever was there before."""
    cell = f"torch.use_deterministic_algorithms(True)\nx = torch.ones(3)\ne = {make}\ny = e.fill_(2) * x\nz = torch.log(y - 3)\n"
    try:
        trace = tensormagic.run(cell, {"torch": torch})
    finally:
        torch.use_deterministic_algorithms(False)
    assert trace.recording.calls[1].flags & CallFlag.NAN_OUT or trace.recording.calls[2].flags & CallFlag.NAN_OUT
    assert [(f.rule, f.line) for f in trace.findings if f.rule == "first-nan"] == [("first-nan", 5)]
