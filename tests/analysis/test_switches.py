"""Which line of the source switches gradients off around another."""

import pytest

import tensormagic
from tensormagic.analysis.switches import switch_line

SOURCE = """@torch.no_grad()
def f(x):
    return net(x)
with torch.inference_mode():
    y = f(1)
    def later():
        return 2
@other
@torch.set_grad_enabled(
    False)
def g():
    with open("a") as a, torch.no_grad():
        b = 1
    return b
z = 3
"""


@pytest.mark.parametrize(
    ("line", "own"), [(3, 1), (5, 4), (7, -1), (13, 12), (14, 9), (15, -1), (1, -1)]
)  # fmt: skip
def test_the_innermost_switch_of_the_line_s_own_function(line, own):
    assert switch_line(SOURCE, line) == own


def test_only_what_is_asked_for():
    assert switch_line(SOURCE, 5, ("no_grad",)) == -1
    assert switch_line(SOURCE, 13, decorators_only=True) == 9
    assert switch_line("%magic\n" + SOURCE, 4) == 2


NET = "import torch\nnet = torch.nn.Linear(2, 1)\n"


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        (NET + "@torch.no_grad()\ndef f(x):\n    return net(x).sum()\nloss = f(torch.ones(2))\nloss.backward()\n", 3),
        (NET + "@torch.inference_mode()\ndef f(x):\n    return net(x).sum()\nloss = f(torch.ones(2))\nloss.backward()\n", 3),
        (NET + "def f(x):\n    return net(x).sum()\nwith torch.inference_mode():\n    loss = f(torch.ones(2))\nloss.backward()\n", 5),
        (NET + "def f(x):\n    return net(x).sum()\nwith torch.no_grad():\n    loss = f(torch.ones(2))\nloss.backward()\n", 5),
    ],
)  # fmt: skip
def test_the_line_to_change_is_the_switch(cell, line):
    trace = tensormagic.run(cell)
    assert trace.findings[0].line == line
    assert trace.explain("net.weight").line == line
