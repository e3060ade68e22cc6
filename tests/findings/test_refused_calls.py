"""The errors of calls that torch refuses: many values, gradients of custom Functions, checkpoint, an unused input."""

import pytest

from tests.findings.cells import one, told

W = "w = torch.ones(3, requires_grad=True)\n"
CHECKPOINT = "from torch.utils.checkpoint import checkpoint\n"


@pytest.mark.parametrize(
    ("cell", "line", "names", "words"),
    [
        (W + "loss = (w - 1) ** 2\nloss.backward()\n", 3, ("loss",), "shape [3]"),
        (W + "(w * 2).backward()\n", 3, (), "holds many values"),
        (W + "y = w * 2\ny.backward(torch.ones(2))\n", 4, ("y",), "the shape [2]"),
    ],
)
def test_many_values(cell, line, names, words):
    finding = one("backward-of-many-values", cell)
    assert (finding.severity, finding.line, finding.names) == ("error", line, names)
    assert words in finding.message


def test_no_reduction_is_told_in_the_fix():
    cell = W + "loss = torch.nn.MSELoss(reduction='none')(w, torch.zeros(3))\nloss.backward()\n"
    assert "reduction='none'" in one("backward-of-many-values", cell).fix


@pytest.mark.parametrize(
    "cell",
    [W + "w.sum().backward()\n", W + "y = w * 2\ny.backward(torch.ones(3))\n", W + "(w[:1] * 2).backward()\n"],
)
def test_one_value_is_silent(cell):
    assert told("backward-of-many-values", cell) == []


FUNCTION = (
    "class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, factor):\n        return x.sum() * factor\n"
    "    @staticmethod\n    def backward(ctx, g):\n        return {}\n" + W + "y = Scale.apply(w, 3.0)\ny.backward()\n"
)


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        ("g * 3", "takes 2 beside `ctx`"),
        ("(g * 3).expand(3), None, g", "3 gradients"),
        ("g.expand(2), None", "argument 1"),
    ],
)
def test_custom_backward(returns, words):
    finding = one("custom-backward-returns", FUNCTION.format(returns))
    assert (finding.line, finding.lines["applied"], finding.lines["raised"]) == (8, 10, 11)
    assert "w" in finding.names
    assert words in finding.message


@pytest.mark.parametrize("returns", ["(g * 3).expand(3), None", "g + torch.ones(5) + torch.ones(4), None"])
def test_custom_backward_silent(returns):
    assert told("custom-backward-returns", FUNCTION.format(returns)) == []


BLOCK = (
    CHECKPOINT
    + "calls = []\n"
    + W
    + "def block(x):\n    calls.append(1)\n    if len(calls) == 1:\n        x = x{}\n    return x.exp()\n"
)


def test_checkpoint_that_does_something_else_the_second_time():
    finding = one(
        "checkpoint-misuse",
        BLOCK.format(" * x") + "y = checkpoint(block, w, use_reentrant=False)\ny.sum().backward()\n",
    )
    assert (finding.line, finding.lines) == (10, {"checkpoint": 10, "raised": 11, "differs": 9})
    assert "w" in finding.names


def test_checkpoint_that_gives_another_shape():
    finding = one(
        "checkpoint-misuse",
        BLOCK.format("[:2]") + "y = checkpoint(block, w, use_reentrant=False)\ny.sum().backward()\n",
    )
    assert "another shape" in finding.message


def test_checkpoint_and_autograd_grad():
    cell = CHECKPOINT + W + "y = checkpoint(torch.exp, w, use_reentrant=True).sum()\ntorch.autograd.grad(y, w)\n"
    finding = one("checkpoint-misuse", cell)
    assert (finding.line, finding.fix) == (4, "`use_reentrant=False`.")


@pytest.mark.parametrize(
    "cell",
    [
        CHECKPOINT + W + "checkpoint(torch.exp, w, use_reentrant=False).sum().backward()\n",
        CHECKPOINT + W + "y = checkpoint(torch.exp, w, use_reentrant=False)\nraise RuntimeError('mine')\n",
    ],
)
def test_checkpoint_silent(cell):
    assert told("checkpoint-misuse", cell) == []


@pytest.mark.parametrize(
    ("loss", "line", "words"),
    [("(w * 2).sum()", 5, "did not go into it"), ("(w * b.detach()).sum()", 4, "`detach` on line 4")],
)
def test_unused_in_grad(loss, line, words):
    finding = one(
        "unused-in-grad",
        W + f"b = torch.ones(3, requires_grad=True)\nloss = {loss}\ntorch.autograd.grad(loss, [w, b])\n",
    )
    assert (finding.line, finding.names) == (line, ("b", "loss"))
    assert words in finding.message


@pytest.mark.parametrize(
    "cell",
    [
        W + "b = torch.ones(3, requires_grad=True)\ntorch.autograd.grad((w * 2).sum(), [w, b], allow_unused=True)\n",
        W + "torch.autograd.grad((w * 2).sum(), [w])\n",
    ],
)
def test_unused_in_grad_silent(cell):
    assert told("unused-in-grad", cell) == []


def test_a_shape_that_does_not_fit_is_no_matter_of_vmap():
    assert told("transform-misuse", "total = torch.zeros(2)\ntotal.add_(torch.ones(3, 2))\n") == []
    write = "total = torch.zeros(2)\ndef add(row):\n    total.add_(row)\n    return total\ntorch.vmap(add)(torch.ones(3, 2))\n"
    assert one("transform-misuse", write).line == 4
