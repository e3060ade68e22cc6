"""dirty-input-not-returned: the return of the Function that ran, whatever else is called forward."""

import pytest

from tests.findings.cells import one, told

RULE = "dirty-input-not-returned"
CELL = """class Other(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(3)
        ctx.mark_dirty(x)
        LAST
    @staticmethod
    def backward(ctx, g):
        return g * 3
w = torch.ones(2, requires_grad=True)
h = Other.apply(w)
h = Scale.apply(h)
"""


@pytest.mark.parametrize("last", ["return x.clone()", "y = x + 1; return y"])
def test_the_return(last):
    finding = one(RULE, CELL.replace("LAST", last))
    assert (finding.severity, finding.line) == ("error", 14)
    assert finding.lines == {"returned": 14, "changed": 12, "raised": 20}
    assert {"h", "w"} <= set(finding.names)


def test_nothing_returned():
    finding = one(RULE, CELL.replace("LAST", "z = 1"))
    assert finding.line == 14
    assert "without returning" in finding.message


def test_inside_a_module_s_forward():
    cell = (
        CELL
        + "class Net(torch.nn.Module):\n    def forward(self, x):\n        y = x * 1\n        return Scale.apply(y)\nNet()(w)\n"
    )
    finding = one(RULE, cell.replace("h = Scale.apply(h)\n", "").replace("LAST", "return x.clone()"))
    assert finding.line == 14


def test_silent_when_the_marked_tensor_is_returned():
    assert told(RULE, CELL.replace("LAST", "return x")) == []
