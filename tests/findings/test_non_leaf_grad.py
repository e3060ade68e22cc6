"""non-leaf-taken-for-leaf: the line that computed it; silent where the program knows what it reads."""

import pytest

from tests.findings.cells import one, told

RULE = "non-leaf-taken-for-leaf"
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")


@pytest.mark.parametrize(
    ("cell", "severity", "line", "read"),
    [
        ("w = torch.ones(2, requires_grad=True) * 2\n(w * w).sum().backward()\nseen = w.grad\n", "warning", 2, 4),
        ("w = torch.ones(2, requires_grad=True).double()\n(w * w).sum().backward()\nseen = w.grad\n", "warning", 2, 4),
        ("w = torch.ones(2, requires_grad=True) * 2\nopt = torch.optim.SGD([w], lr=0.1)\n", "error", 2, 3),
        (
            "w = torch.ones(2, requires_grad=True)\nfor i in range(2):\n    (w * w).sum().backward()\n    w = w - 0.1 * w.grad\n",
            "error", 5, 5,
        ),
    ],
)  # fmt: skip
def test_what_computed_it(cell, severity, line, read):
    finding = one(RULE, cell)
    assert (finding.severity, finding.line, finding.names) == (severity, line, ("w",))
    assert finding.lines == {"made": line, "read": read}


@pytest.mark.parametrize(
    "cell",
    [
        "a = torch.ones(2, requires_grad=True)\nb = a * 2\nb.retain_grad()\nb.sum().backward()\nseen = (a.grad, b.grad)\n",
        "a = torch.ones(2, requires_grad=True)\nb = a * 2\nb.sum().backward()\nfor t in (a, b):\n    if t.grad is not None:\n"
        "        print(t.grad)\n",
        "a = torch.ones(2, requires_grad=True)\nb = a * 2\nb.grad = None\nb.sum().backward()\n",
        "x = torch.ones(2) * 2\nseen = x.grad\n",  # it wants none
        "w = (torch.ones(2) * 2).requires_grad_()\nopt = torch.optim.SGD([w], lr=0.1)\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
