"""expanded-memory-written: refused or silent, through the tensor or a part of it; only what shows in two places counts."""

import pytest

from tests.findings.cells import one, told

RULE = "expanded-memory-written"
EXPANDED = "x = torch.zeros(1, 3)\ne = x.expand(4, 3)\n"
WINDOWS = "x = torch.arange(6.)\nu = x.unfold(0, 3, 1)\n"


def test_refused():
    finding = one(RULE, EXPANDED + "e.add_(1)\n")
    assert (finding.severity, finding.line, finding.names) == ("error", 4, ("e",))
    assert finding.lines == {"written": 4, "expanded": 3}


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        (EXPANDED + "e[2, 1] = 5.0\n", ("e",)),
        (WINDOWS + "u[0, 2] = 9.0\n", ("u",)),
        (WINDOWS + "u.mul_(2)\n", ("u",)),
        ("x = torch.arange(6.)\nu = x.as_strided((4, 3), (1, 1))\nu[:, 0] = 0\n", ("u",)),
    ],
)
def test_not_refused(cell, names):
    finding = one(RULE, cell)
    assert (finding.severity, finding.line, finding.names) == ("warning", 4, names)
    assert finding.lines == {"written": 4, "expanded": 3}


def test_through_a_part_of_it():
    finding = one(RULE, EXPANDED + "row = e[2]\nrow[1] = 5.0\n")
    assert (finding.line, finding.names) == (5, ("e", "row"))


@pytest.mark.parametrize(
    "cell",
    [
        EXPANDED + "x += 1\ns = e.sum()\n",  # through the tensor that was expanded
        "x = torch.zeros(1, 3)\ne = x.expand(1, 3)\ne.add_(1)\n",  # nothing is repeated
        EXPANDED + "c = e.clone()\nc[0] = 1\n",
        "x = torch.arange(6.)\nu = x.unfold(0, 3, 3)\nu.mul_(2)\n",  # windows beside each other
        WINDOWS + "u[0, 0] = 9.0\n",  # in the first window only
        "x = torch.zeros(3, 3)\nd = x.as_strided((3,), (4,))\nd.fill_(1)\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
