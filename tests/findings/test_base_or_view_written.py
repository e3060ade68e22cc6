"""base-or-view-written: the first write that made the views useless."""

import pytest

from tests.findings.cells import one, told

RULE = "base-or-view-written"
SPLIT = "x = torch.ones(4, requires_grad=True) * 1.0\na, b = x.chunk(2)\n"


@pytest.mark.parametrize(
    ("cell", "line", "names", "raised"),
    [
        (SPLIT + "x.mul_(2)\nloss = a.sum()\n", 4, ("a", "b", "x"), 5),
        (SPLIT + "x.mul_(2)\nx.add_(1)\nloss = a.sum()\n", 4, ("a", "b", "x"), 6),
        (SPLIT + "v = x[1:3]\nv.mul_(2)\nloss = b.sum()\n", 5, ("a", "b", "v", "x"), 6),
        (SPLIT + "x.mul_(2)\na.grad_fn\n", 4, ("a", "b", "x"), 5),
        (SPLIT + "def act(t):\n    return t.relu_()\nact(x)\nloss = (a * b).sum()\n", 5, ("a", "b", "x"), 7),
    ],
)
def test_the_write_is_told(cell, line, names, raised):
    finding = one(RULE, cell)
    assert (finding.severity, finding.line, finding.names) == ("error", line, names)
    assert finding.lines == {"viewed": 3, "written": line, "raised": raised}


def test_a_view_made_under_no_grad():
    finding = one(
        RULE,
        "x = torch.ones(4, requires_grad=True) * 1.0\nwith torch.no_grad():\n    v = x[:2]\nx.mul_(2)\ny = v.sum()\n",
    )
    assert (finding.line, finding.names) == (5, ("v", "x"))
    assert "no_grad" in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        SPLIT + "loss = a.sum()\nx.mul_(2)\n",
        SPLIT + "x = x * 2\nloss = a.sum()\n",
        SPLIT + "a.mul_(2)\n",  # another rule's: the view itself is written
        "x = torch.ones(4, requires_grad=True) * 1.0\nv = x[:2]\nx.mul_(2)\nloss = v.sum()\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
