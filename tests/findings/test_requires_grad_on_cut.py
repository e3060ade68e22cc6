"""requires-grad-on-cut: only what was surely not meant. A copy that is trained on purpose looks nearly the same."""

import pytest

from tests.findings.cells import one, told

RULE = "requires-grad-on-cut"
NET = "net = torch.nn.Linear(2, 1)\n"
BOTH = ("net.weight", "net.bias")


@pytest.mark.parametrize(
    ("cell", "line", "asked", "names"),
    [
        (NET + "loss = net(torch.ones(4, 2)).detach().sum()\nloss.requires_grad = True\nloss.backward()\n", 3, 4, ("loss", *BOTH)),
        (
            NET + "with torch.no_grad():\n    out = net(torch.ones(4, 2))\nloss = out.sum()\nloss.requires_grad_(True)\n"
            "loss.backward()\n",
            3, 6, ("loss", *BOTH),
        ),
        (NET + "loss = net(torch.ones(4, 2)).argmax(0).float().sum().requires_grad_()\nloss.backward()\n", 3, 3, ("loss", *BOTH)),
        (NET + "loss = torch.tensor(net(torch.ones(2)).sum().item(), requires_grad=True)\nloss.backward()\n", 3, 3, ("loss", *BOTH)),
        (
            NET + "outs = [net(torch.ones(2)).sum() for _ in range(2)]\nloss = torch.tensor(outs, requires_grad=True).sum()\n"
            "loss.backward()\n",
            4, 4, BOTH,
        ),
    ],
)  # fmt: skip
def test_the_cut_is_told(cell, line, asked, names):
    finding = one(RULE, cell)
    assert (finding.severity, finding.line, finding.names) == ("warning", line, names)
    assert finding.lines == {"cut": line, "set": asked}


@pytest.mark.parametrize(
    "cell",
    [
        NET + "x = torch.ones(3, 2)\nadv = (x + 0.1).detach().requires_grad_()\nnet(adv).sum().backward()\n",
        NET
        + "with torch.no_grad():\n    z = net(torch.ones(1, 2)).expand(1, 2).clone()\nz.requires_grad_()\nnet(z).sum().backward()\n",
        "emb = torch.nn.Linear(3, 1)\nids = torch.nn.Linear(2, 3)(torch.ones(2, 2)).argmax(1)\n"
        "oh = torch.nn.functional.one_hot(ids, 3).float().requires_grad_()\nemb(oh).sum().backward()\n",
        "a = torch.ones(2, requires_grad=True)\nw = torch.tensor(a, requires_grad=True)\n(w * 2).sum().backward()\n",
        NET + "scale = torch.tensor(net.weight.mean().item()).requires_grad_()\n(scale * 2).backward()\n",
        NET + "loss = net(torch.ones(4, 2)).sum()\nloss.requires_grad_()\nloss.backward()\n",
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_silent(cell):
    assert told(RULE, cell) == []
