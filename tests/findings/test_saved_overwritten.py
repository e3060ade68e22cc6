"""saved-tensor-overwritten: who wrote, what had kept the values, and what to write instead."""

import pytest

from tests.findings.cells import one, told

RULE = "saved-tensor-overwritten"
W = "w = torch.ones(2, requires_grad=True)\n"
SQUARE = (
    "class Square(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        y = x * x\n"
    "        ctx.save_for_backward(x)\n        return y\n    @staticmethod\n    def backward(ctx, g):\n"
    "        (x,) = ctx.saved_tensors\n        return 2 * x * g\n"
)


@pytest.mark.parametrize(
    ("cell", "lines", "words", "fix"),
    [
        (W + "h = torch.tanh(w)\nh.mul_(2)\nh.sum().backward()\n", (3, 4, 5), "Line 4 (`mul_`) changed `h`", "Make a new tensor"),
        (W + "h = torch.sigmoid(w)\ny = torch.relu_(h)\n(y + h).sum().backward()\n", (3, 4, 5), "(`relu_`)", "Make a new tensor"),
        (W + "act = torch.nn.ReLU(inplace=True)\nh = torch.sigmoid(w)\nact(h).sum().backward()\n", (4, 5, 5), "(`relu`)", "`inplace=False`"),
        ("a = torch.nn.Parameter(torch.ones(2))\nopt = torch.optim.SGD([a], lr=0.1)\none, two = (a * a).sum(), (a * a).sum()\n"
         "one.backward()\nopt.step()\ntwo.backward()\n", (4, 6, 7), "The optimizer's step on line 6", "before the optimizer's `step()`"),
        ("emb = torch.nn.Embedding(2, 2, max_norm=0.1)\nx = torch.ones(2, 1, requires_grad=True)\na = emb.weight @ x\n"
         "b = emb(torch.tensor([0, 1]))\n(a.sum() + b.sum()).backward()\n", (4, 5, 6), "`emb.weight`", "`max_norm`"),
        (W + "buf = torch.zeros(3, 2)\ntotal = 0.0\nfor i in range(3):\n    buf[i] = i\n    total = total + (buf * w).sum()\n"
         "total.backward()\n", (7, 6, 8), "Line 6 changed `buf`", "torch.stack"),
        (SQUARE + W + "h = w * 3\ny = Square.apply(h).sum()\nh.zero_()\ny.backward()\n", (6, 15, 10), "the forward of `Square`", "new"),
    ],
)  # fmt: skip
def test_raised(cell, lines, words, fix):
    finding = one(RULE, cell)
    assert finding.severity == "error"
    assert (finding.lines["saved"], finding.lines["modified"], finding.lines["raised"]) == lines
    assert finding.line == lines[1]
    assert words in finding.message
    assert fix in finding.fix


def test_a_node_inside_another_cannot_be_asked_and_is_found_by_the_version():
    cell = (
        W
        + "out = torch.ones(4)\nfor i in range(1, 4):\n    out[i] = out[i - 1].clone() * w[0]\n    out[i] *= out[i]\nout.sum().backward()\n"
    )
    finding = one(RULE, cell)
    assert finding.lines == {"saved": 6, "modified": 6, "raised": 7}
    assert "out" in finding.names


@pytest.mark.parametrize(
    ("cell", "line", "fix"),
    [
        (W + "h = w * 2\nloss = (h * h).sum()\nh.data.zero_()\nloss.backward()\n", 5, "`.data`"),
        (W + "h = w * 2\narr = h.detach().numpy()\nloss = (h * h).sum()\narr[0] = 5\nloss.backward()\n", 6, ".numpy().copy()"),
        ("bn = torch.nn.BatchNorm1d(1).eval()\nx = torch.ones(2, 1, requires_grad=True)\ny = bn(x)\nbn.train()\n"
         "bn(torch.tensor([[0.0], [9.0]]))\ny.sum().backward()\n", 6, "a layer of its own"),
    ],
)  # fmt: skip
def test_silent_in_torch(cell, line, fix):
    finding = told(RULE, cell)[0]
    assert (finding.severity, finding.line) == ("warning", line)
    assert fix in finding.fix


@pytest.mark.parametrize(
    "cell",
    [
        W + "h = w.exp()\nu = w * 2\nu.zero_()\nh.sum().backward()\n",
        W + "h = w * 2\nh.data.zero_()\nh.sum().backward()\n",
        SQUARE + W + "h = w * 3\ny = Square.apply(h.clone()).sum()\nh.zero_()\ny.backward()\n",
        W + "opt = torch.optim.SGD([w], lr=0.1)\nfor i in range(3):\n    (w * w).sum().backward()\n    opt.step()\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
