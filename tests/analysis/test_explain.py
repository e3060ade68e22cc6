"""Why a tensor is as it is: the line that decided it, and sentences that are true."""

from __future__ import annotations

import pytest

import tensormagic

KEEPER = """\
class Keeper:
    def __init__(self, net):
        self.kept = {n: p.data for n, p in net.named_parameters()}
net = torch.nn.Linear(2, 1)
keeper = Keeper(net)
"""
NET = """\
class Net(torch.nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
mask = torch.ones(2)
net = Net(mask)
"""
SHIFT = "def shift(h):\n    h = h + 1\n    return h\nx = torch.zeros(2)\ny = shift(x)\n"
SAME = "def same(h):\n    h += 1\n    return h\nx = torch.zeros(2)\ny = same(x)\n"
STREAM = "def stream():\n    buf = torch.zeros(1)\n    for i in range(2):\n        yield buf\nitems = list(stream())\n"


def explained(cell: str, name: str):
    trace = tensormagic.run("import numpy as np\nimport torch\n" + cell, {"__name__": "__main__"})
    assert trace.error is None, trace.error
    return trace.explain(name)


@pytest.mark.parametrize(
    ("cell", "name", "line", "words"),
    [
        (KEEPER, "keeper.kept['weight']", 5, "made on line 5 by `data` of `net.weight`"),
        (NET, "net.mask", 6, "got it on line 6, the same object as `mask`"),
        (SHIFT, "y", 4, "The name `y` got it on line 7."),
        (SAME, "y", 7, "the same object as `x`: no copy was made"),
        (STREAM, "items[0]", 7, "the same object as"),
        ("t = torch.zeros(2)\np = torch.nn.Parameter(t)\n", "p", 4, "without a copy: it looks at the memory of `t`."),
        ("t = torch.zeros(2)\na = t.numpy()\nb = a[1:]\n", "b", 5, "is a NumPy array, first seen on line 5, without a copy"),
        ("t = torch.zeros(2)\na = t.numpy().copy()\n", "a", 4, "It shares no memory with a tensor."),
        ("a = np.zeros(2)\nt = torch.from_numpy(a)\n", "a", 3, "It shares S1 with `t`."),
        ("net = torch.nn.Linear(2, 1)\nold = net.weight.data\nnet.half()\n", "net.weight", 5, "no backward ran"),
        ("x = torch.zeros(2)\nv = x.view(2, 1)\na = x\n", "v", 4, "by `view` of `x`, without a copy"),
        ("a, b = torch.zeros(2), torch.ones(2)\na, b = b, a\n", "a", 4, "got it on line 4, the object that was `b`: no copy"),
        ("import pickle\nt = torch.zeros(2)\nback = pickle.loads(pickle.dumps(t))\n", "back", 5, "nobody asked for one"),
        ("w = torch.ones(2, requires_grad=True)\nw.requires_grad_(False)\nw.requires_grad_(False)\n", "w", 4, "switched"),
    ],
)  # fmt: skip
def test_the_line_that_decided(cell, name, line, words):
    found = explained(cell, name)
    assert words in found.text
    assert found.line == line


@pytest.mark.parametrize(
    ("cell", "name", "words"),
    [
        ("x = torch.zeros(4)\na, b = x.chunk(2)\n", "a", "It shares S1 with `x`. `b` lies on the same storage (S1), without a byte"),
        ("x = torch.zeros(3, 2)\na, b, c = x.unbind()\nx = None\n", "b", "`a` and `c` lie on the same storage"),
        ("a = np.zeros(4)\nt = torch.from_numpy(a)\nu = torch.from_numpy(a[1:3])\n", "u", "It shares S2 with `a` and `t`."),
        ("x = torch.zeros(2)\ny = x.clone()\n", "y", "No other name uses its memory, S2."),
        ("x = torch.zeros(2)\nv = [x[:1] for _ in range(9)]\n", "x", "`v[5]` and 3 more."),
    ],
)  # fmt: skip
def test_with_whom_it_shares(cell, name, words):
    assert words in explained(cell, name).memory


@pytest.mark.parametrize(
    ("cell", "name", "words"),
    [
        ("x = torch.zeros(4)\na, b = x.chunk(2)\nb += 1\n", "a", ""),
        ("x = torch.zeros(4)\na, b = x.chunk(2)\nb += 1\n", "b", "on line 5"),
        ("x = torch.zeros(4)\na, b = x.chunk(2)\nb += 1\nx += 1\n", "x", "on lines 5, 6"),
        ("x = torch.zeros(4)\na, b = x.chunk(2)\nb += 0\na += 1\n", "a", "on line 6"),
        ("x = torch.zeros(100000)\na, b = x.chunk(2)\nb += 1\n", "a", ""),
    ],
)
def test_lines_that_wrote_its_bytes(cell, name, words):
    found = explained(cell, name).writes
    assert words in found and bool(found) == bool(words)


def test_whose_memory_it_was_then():
    cell = "a = torch.nn.Linear(2, 2)\nb = torch.nn.Linear(2, 2)\na.weight.data, b.weight.data = b.weight.data, a.weight.data\nw = a.weight\n"
    assert "memory of" not in explained(cell, "b.weight").made
