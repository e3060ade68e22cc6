"""inference-tensor-used: which tensor of the line it is, and where it was made."""

import pytest

from tests.findings.cells import one, told

RULE = "inference-tensor-used"
MADE = "with torch.inference_mode():\n    a = torch.ones(3)\n    b = torch.ones(3)\nw = torch.ones(3, requires_grad=True)\n"


@pytest.mark.parametrize("use", ["val = (b * w).sum()", "b.add_(1)", "b.requires_grad_()"])
def test_the_tensor_and_the_line_that_made_it(use):
    finding = one(RULE, MADE + use + "\n")
    assert (finding.severity, finding.line, finding.names) == ("error", 4, ("b",))
    assert finding.lines == {"made": 4, "raised": 6}


def test_inside_a_function():
    finding = one(RULE, MADE + "def f(t):\n    t.add_(1)\nf(a)\n")
    assert (finding.line, finding.names[0], finding.lines["raised"]) == (3, "a", 7)


@pytest.mark.parametrize(
    "use", ["y = (b.clone() * w).sum()", "y = b * 2", "raise RuntimeError('Inplace update to inference tensor')"]
)
def test_silent(use):
    assert told(RULE, MADE + use + "\n") == []
