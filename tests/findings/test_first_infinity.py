"""first-infinity: a loss or a gradient without a bound; masks, scalers and infinities that nothing uses stay silent."""

import pytest

from tests.findings.cells import one, told

RULE = "first-infinity"


@pytest.mark.parametrize(
    ("cell", "line", "phase", "words"),
    [
        ("p = torch.tensor([0.0], requires_grad=True)\nloss = -p.log().mean()\nloss.backward()\n", 3, "forward", "`log` on line 3"),
        ("w = torch.tensor([50.0], requires_grad=True)\ne = (w * 2).exp()\nloss = e.sum()\nloss.backward()\n", 3, "forward", "`exp` on line 3"),
        ("x = torch.zeros(1, requires_grad=True)\ny = x.sqrt().sum()\ny.backward()\n", 3, "backward", "derivative of `sqrt`"),
        ("w = torch.nn.Parameter(torch.tensor([1.0]))\nopt = torch.optim.SGD([w], lr=10.0)\nfor i in range(9):\n    opt.zero_grad()\n"
         "    loss = (w ** 4).sum()\n    loss.backward()\n    opt.step()\n", 6, "forward", "`pow` on line 6"),
    ],
)  # fmt: skip
def test_told(cell, line, phase, words):
    finding = one(RULE, cell)
    assert (finding.severity, finding.line, finding.phase) == ("warning", line, phase)
    assert words in finding.message


def test_growth_from_round_to_round_asks_for_a_smaller_rate():
    cell = "w = torch.nn.Parameter(torch.tensor([1.0]))\nfor i in range(9):\n    loss = (w ** 4).sum()\n    loss.backward()\n"
    cell += "    with torch.no_grad():\n        w -= 10 * w.grad\n    w.grad = None\n"
    assert "learning rate" in one(RULE, cell).fix


@pytest.mark.parametrize(
    "cell",
    [
        "best = torch.tensor(float('inf'))\nw = torch.ones(1, requires_grad=True)\nloss = w.sum()\nbest = torch.minimum(best, loss.detach())\nloss.backward()\n",
        "w = torch.zeros(1, requires_grad=True)\nseen = w.log()\n(w * 2).sum().backward()\n",
        "s = torch.zeros(3, requires_grad=True)\na = s.masked_fill(torch.tensor([True, False, False]), float('-inf')).softmax(0)\na[1].backward()\n",
        "s = torch.zeros(3, requires_grad=True)\ns.masked_fill(torch.tensor([True, False, False]), float('-inf')).logsumexp(0).backward()\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []


def test_an_optimizer_that_torch_refuses_for_want_of_parameters():
    cell = "net = torch.nn.Linear(2, 1)\nparams = net.parameters()\nn = sum(p.numel() for p in params)\nopt = torch.optim.SGD(params, lr=0.1)\n"
    finding = one("optimizer-empty", cell)
    assert (finding.severity, finding.line, finding.lines["raised"]) == ("error", 3, 5)
    finding = one("optimizer-empty", "opt = torch.optim.SGD([], lr=0.1)\n")
    assert (finding.line, finding.names) == (2, ())
