"""Why a gradient is None, zero or what it is: the line that decided it, and a sentence that is true."""

from __future__ import annotations

import pytest

import tensormagic

FUNCTION = (
    "class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, factor):\n        with torch.no_grad():\n"
    "            y = x * 1\n        return y * factor\n    @staticmethod\n    def backward(ctx, g):\n        return g * 3, None\n"
)
NET = "net = torch.nn.Linear(2, 1)\n"
W = "w = torch.ones(2, requires_grad=True)\n"


def told(cell: str, name: str) -> tuple[int, str]:
    found = tensormagic.run("import torch\n" + cell, {"__name__": "__main__"}).explain(name)
    return found.line, found.text


@pytest.mark.parametrize(
    ("cell", "name", "line", "words"),
    [
        ("w = torch.ones(2)\nv = torch.ones(2, requires_grad=True)\ny = (w * v).sum()\nw.requires_grad_()\ny.backward()\n",
         "w", 5, "did not want a gradient yet"),
        (NET + "net.requires_grad_(False)\nout = net(torch.ones(1, 2))\nnet.requires_grad_(True)\n", "net.weight", 5, "only after"),
        (W + "loss = w.pow(2).sum()\n(g,) = torch.autograd.grad(loss, w)\n", "w", 4, "puts none into"),
        (W + "g = torch.func.grad(lambda v: (v ** 2).sum())(w)\n", "w", 2, "transforms of `torch.func`"),
        (NET + "for p in net.parameters():\n    p.requires_grad = False\n", "net.weight", 4, "switched"),
        (W + "h = torch.nn.Parameter(w * 2)\nh.sum().backward()\n", "w", 3, "a leaf of its own"),
        (W + "lin = torch.nn.Linear(2, 1, bias=False)\nlin.weight.data = (w * 2).view(1, 2)\nlin(torch.ones(1, 2)).sum().backward()\n",
         "w", 4, "`.data` on line 4"),
        (W + "mask = torch.zeros(2)\nv = torch.ones(2, requires_grad=True)\nmask[torch.topk(w, 1).indices] = 1.0\n(v * mask).sum().backward()\n",
         "w", 5, "indices that `topk`"),
        (W + "buf = torch.zeros(2, 2)\nv = torch.ones(2, requires_grad=True)\nbuf[0] = w.detach()\n(buf * v).sum().backward()\n",
         "w", 5, "cut: `detach`"),
        (W + "leaf = torch.zeros(2, requires_grad=True)\nh = w * 2\nwith torch.no_grad():\n    leaf.copy_(h)\nleaf.sum().backward()\n",
         "w", 5, "switched gradients off when `copy"),
        (FUNCTION + W + "extra = Scale.apply(w, 2.0)\nv = torch.ones(2, requires_grad=True)\nv.sum().backward()\n",
         "w", 12, "(`Scale`), but the result never reaches the loss"),
        (W + "v = torch.ones(2, requires_grad=True)\ny = v * 3 if w.sum() > 1 else v\ny.sum().backward()\n", "w", 4, "`gt` on line 4"),
        (NET + "pred = net(torch.ones(3, 2))\nloss = torch.nn.functional.mse_loss(torch.ones(2), torch.zeros(2))\nloss.backward()\n",
         "net.weight", 3, "was not computed from that"),
        ("from torch.utils.checkpoint import checkpoint\n" + NET + "h = checkpoint(net, torch.ones(1, 2), use_reentrant=True)\n"
         "v = torch.ones(1, requires_grad=True)\n(h * v).sum().backward()\n", "net.weight", 4, "use_reentrant=True"),
    ],
)  # fmt: skip
def test_none(cell, name, line, words):
    found, text = told(cell, name)
    assert words in text
    assert found == line


@pytest.mark.parametrize(
    ("cell", "name", "line", "words"),
    [
        (W + "h = w * 3\nh.register_hook(lambda g: torch.zeros_like(g))\nh.sum().backward()\n", "w", 4, "most likely because the hook"),
        (W + "w.register_hook(lambda g: g * 0)\n(w * 3).sum().backward()\n", "w", 3, "the hook that line 3 put on it"),
        (W + "(w * 3).sum().backward()\nw.grad.zero_()\n", "w", 4, "line 4 (`zero_`) cleared it"),
        (W + "opt = torch.optim.SGD([w], lr=0.1)\n(w * 3).sum().backward()\nopt.zero_grad(set_to_none=False)\n", "w", 5, "cleared it"),
        (W + "h = w.clamp(2, 3)\nh.register_hook(print)\n(h * 3).sum().backward()\n", "w", 3, "or the hook that line 4 put on `h`"),
    ],
)  # fmt: skip
def test_zero(cell, name, line, words):
    found, text = told(cell, name)
    assert words in text
    assert found == line


def test_a_kept_gradient_was_kept_by_retain_grad():
    _, text = told(W + "h = w * 2\nh.retain_grad()\nh.sum().backward()\n", "h")
    assert "`retain_grad()` (line 4)" in text
    assert "line 5" in text


def test_only_runs_since_the_last_clearing_are_in_a_gradient():
    loop = "opt = torch.optim.SGD([w], lr=0.1)\nfor i in range(3):\n    opt.zero_grad()\n    (w * 2).sum().backward()\n    opt.step()\n"
    assert "one backward run" in told(W + loop, "w")[1]
    assert "3 backward runs" in told(W + loop.replace("    opt.zero_grad()\n", ""), "w")[1]
    assert "light record" in told(W + loop.replace("range(3)", "(n for n in range(30))"), "w")[1]


def test_whole_numbers_were_not_forgotten():
    assert "whole numbers" in told("w = torch.tensor([1, 2])\n", "w")[1]
    assert "nobody asked" in told("w = torch.tensor([1.0, 2])\n", "w")[1]


def test_an_inference_tensor_was_made_in_its_mode():
    assert told("with torch.inference_mode():\n    x = torch.ones(2)\n", "x")[0] == 2


def test_a_switch_inside_a_custom_forward_cuts_nothing():
    trace = tensormagic.run("import torch\n" + FUNCTION + W + "y = Scale.apply(w, 2.0)\n(y * 2).sum().backward()\n")
    assert [finding.rule for finding in trace.findings] == []
    assert "one backward run" in trace.explain("w").text
