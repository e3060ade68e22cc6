"""Which names a write reaches: those of the function that wrote, of its callers and of the cell, on whatever storage."""

from __future__ import annotations

import pytest

import tensormagic

RECURSION = "def fill(t, depth):\n    if depth:\n        t[depth - 1] = depth\n        fill(t[:2], depth - 1)\nout = torch.zeros(3)\nfill(out, 3)\n"
NESTED = """\
def outer(start):
    kept = start.clone()
    view, apart = kept[:2], torch.zeros(2)
    def inner(t):
        later = 1
        t.add_(later)
        return later
    inner(view)
    kept = torch.ones(3)
    inner(apart)
    return kept
result = outer(torch.zeros(3))
"""
NET = """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
    def forward(self, x):
        bump(self.seen, x)
        return x
def bump(total, x):
    total += x
net = Net()
alias = net.seen
net(torch.ones(2))
"""


def reached(cell: str, line: int) -> list[set[str]]:
    found = tensormagic.run("import numpy as np\nimport torch\n" + cell, {"__name__": "__main__"})
    assert found.error is None, found.error
    return [set(write.reaches) for write in found.writes if write.line == line]


def test_names_of_the_callers():
    assert reached(NESTED, 8) == [{"t", "view", "kept"}, {"t", "apart"}]


def test_attributes_of_a_caller_s_self():
    assert reached(NET, 11) == [{"total", "self.seen", "net.seen", "alias"}]


def test_every_call_of_a_recursion():
    assert reached(RECURSION, 5) == [{"t", "out"}] * 3


def test_a_name_that_the_same_line_moves_away():
    assert reached("x = torch.zeros(2)\nx = x.add_(1) + 1\n", 4) == [{"x"}]


@pytest.mark.parametrize(
    ("made", "write", "names"),
    [
        ("a = np.zeros(4)\nt = torch.from_numpy(a)\nu = torch.from_numpy(a[1:3])\nv = torch.tensor(a)\n", "a[2] = 9", {"a", "t", "u"}),
        ("a = np.zeros(4)\nt = torch.from_numpy(a)\nu = torch.from_numpy(a[1:3])\nv = torch.tensor(a)\n", "a[0] = 9", {"a", "t"}),
        ("a = np.zeros((3, 2))\nt = [torch.from_numpy(row) for row in a]\nb = a[1:]\n", "t[1].mul_(0).add_(2)", {"a", "b", "t[1]"}),
        ("a = bytearray(8)\nt = torch.frombuffer(a, dtype=torch.int32)\nu = torch.frombuffer(a, dtype=torch.uint8)\n", "u[5] = 3",
         {"t", "u"}),
        ("a = np.zeros(4, np.float32)\nt = torch.from_numpy(a)\nu = torch.from_numpy(a.view(np.int16))\n", "u[7] = 1", {"a", "t", "u"}),
    ],
)  # fmt: skip
def test_several_storages_on_one_piece_of_memory(made, write, names):
    line = made.count("\n") + 3
    for found in reached(made + write + "\n", line):
        assert found == names
