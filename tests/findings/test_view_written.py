"""view-written-in-place: why autograd cannot follow the write, and the line that made the view."""

import pytest

from tests.findings.cells import one, told

RULE = "view-written-in-place"
BASE = "x = torch.ones(4, requires_grad=True) * 1.0\n"
CUSTOM = """class F(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view(-1)
    @staticmethod
    def backward(ctx, g):
        return g.view(2, 2)
h = torch.ones(2, 2, requires_grad=True) * 1
v = F.apply(h)
v.add_(1)
"""


@pytest.mark.parametrize(
    ("cell", "line", "name", "viewed", "word"),
    [
        (BASE + "a, b = x.split(2)\na.add_(1)\n", 4, "a", 3, "split"),
        (BASE + "for r in x.unbind(0):\n    r += 1\n", 4, "r", 3, "unbind"),
        (BASE + "with torch.no_grad():\n    v = x[:2]\nv.add_(1)\n", 5, "v", 4, "no_grad"),
        (CUSTOM, 11, "v", 5, "custom"),
    ],
)
def test_each_reason(cell, line, name, viewed, word):
    finding = one(RULE, cell)
    assert (finding.severity, finding.line, finding.names) == ("error", line, (name,))
    assert finding.lines == {"written": line, "raised": line, "viewed": viewed}
    assert word in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        BASE + "v = x[:2]\nv.add_(1)\n",
        BASE + "with torch.no_grad():\n    v = x[:2]\n    v.add_(1)\n",
        "x = torch.ones(4)\na, b = x.split(2)\na.add_(1)\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
