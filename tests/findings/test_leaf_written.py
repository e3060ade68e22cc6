"""leaf-written-in-place: the leaf, the view, the line; silent where the leaf may be written or the error is another."""

import pytest

from tests.findings.cells import one, told

RULE = "leaf-written-in-place"
LEAF = "w = torch.ones(3, requires_grad=True)\n"


@pytest.mark.parametrize("write", ["w.add_(1)", "w += 1", "w.normal_()", "torch._foreach_add_([w], 1.0)"])
def test_a_leaf_itself(write):
    finding = one(RULE, LEAF + write + "\n")
    assert (finding.severity, finding.line, finding.names) == ("error", 3, ("w",))
    assert finding.lines == {"written": 3, "raised": 3}


def test_a_view_of_a_leaf_names_both_and_the_view_s_line():
    finding = one(RULE, LEAF + "v = w[:2]\nv.mul_(2)\n")
    assert (finding.line, finding.names) == (4, ("w", "v"))
    assert finding.lines == {"written": 4, "raised": 4, "viewed": 3}
    assert "view" in finding.fix


def test_a_parameter_is_told_by_its_name_and_not_by_the_tensor_it_was_made_from():
    assert one(RULE, "net = torch.nn.Linear(2, 2)\nnet.weight[0] = 0\n").names == ("net.weight",)


def test_inside_a_function_the_line_is_that_of_the_write():
    assert one(RULE, LEAF + "def f(t):\n    t.add_(1)\nf(w)\n").line == 4


@pytest.mark.parametrize(
    "cell",
    [
        LEAF + "with torch.no_grad():\n    w[0] = 2.0\n",
        LEAF + "h = w * 1\nh[0] = 2.0\n",
        LEAF
        + "try:\n    w.add_(1)\nexcept RuntimeError:\n    pass\nraise RuntimeError('a leaf Variable that requires grad "
        "is being used in an in-place operation')\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
