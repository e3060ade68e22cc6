"""no-graph-at-backward: what cut it, switched it off, or that nobody asked."""

import pytest

from tests.findings.cells import one, told

RULE = "no-graph-at-backward"
NET = "net = torch.nn.Linear(2, 1)\n"
BOTH = ("net.weight", "net.bias")


@pytest.mark.parametrize(
    ("cell", "line", "names", "role"),
    [
        (NET + "out = net(torch.ones(3, 2))\nloss = out.detach().sum()\nloss.backward()\n", 4, ("loss", *BOTH), "cut"),
        (NET + "with torch.no_grad():\n    loss = net(torch.ones(3, 2)).sum()\nloss.backward()\n", 3, ("loss", *BOTH), "cut"),
        (NET + "loss = torch.tensor(net(torch.ones(3, 2)).sum().item())\nloss.backward()\n", 3, ("loss",), "cut"),
        (NET + "loss = net(torch.ones(3, 2)).argmax(0).float().sum()\nloss.backward()\n", 3, ("loss", *BOTH), "cut"),
        (NET + "net.requires_grad_(False)\nloss = net(torch.ones(3, 2)).sum()\nloss.backward()\n", 3, ("loss", *BOTH), "switched off"),
        ("w = torch.ones(2)\nloss = (w * 2).sum()\nloss.backward()\n", 3, ("loss", "w"), "made"),
    ],
)  # fmt: skip
def test_why_there_is_no_graph(cell, line, names, role):
    finding = one(RULE, cell)
    assert (finding.severity, finding.line, finding.names) == ("error", line, names)
    assert finding.lines[role] == line
    assert finding.lines["raised"] > line


def test_of_several_roots_it_is_the_one_that_torch_means():
    finding = one(
        RULE,
        "w = torch.ones(2, requires_grad=True)\na = (w * 2).sum()\nb = a.detach()\ntorch.autograd.backward([a, b])\n",
    )
    assert (finding.line, finding.names) == (4, ("b", "w"))


def test_numbers_taken_on_an_earlier_line_are_no_guess():
    finding = one(
        RULE,
        NET
        + "parts = []\nfor i in range(2):\n    parts.append(net(torch.ones(2)).sum().item())\nloss = torch.tensor(parts).sum()\n"
        "loss.backward()\n",
    )
    assert (finding.line, finding.names) == (6, ("loss",))
    assert "plain numbers" in finding.message


def test_the_line_that_switched_gradients_off_is_found_though_finally_ran_after_the_error():
    cell = "torch.set_grad_enabled(False)\n" + NET + "loss = net(torch.ones(3, 2)).sum()\ntry:\n    loss.backward()\n"
    assert one(RULE, cell + "finally:\n    torch.set_grad_enabled(True)\n").line == 2


def test_a_plain_number_has_no_backward():
    finding = one(RULE, "w = torch.ones(2, requires_grad=True)\nloss = (w * 2).sum().item()\nloss.backward()\n")
    assert (finding.severity, finding.line, finding.names) == ("error", 3, ("w",))
    assert "plain number" in finding.message


def test_what_has_a_graph_and_was_left_out_is_named():
    finding = one(RULE, NET + "pred = net(torch.ones(3, 2))\nloss = torch.ones(2).pow(2).sum()\nloss.backward()\n")
    assert (finding.line, finding.fix) == (4, "Compute it from `pred`.")


@pytest.mark.parametrize(
    ("cell", "line"),
    [
        (
            "x = torch.tensor(2.0, requires_grad=True)\ny = x ** 3\n(dy,) = torch.autograd.grad(y, x)\n(dy ** 2).backward()\n",
            4,
        ),
        (
            "x = torch.tensor(2.0, requires_grad=True)\n(x ** 3).backward()\npenalty = x.grad ** 2\npenalty.backward()\n",
            3,
        ),
    ],
)
def test_a_gradient_without_a_graph_of_its_own(cell, line):
    finding = one(RULE, cell)
    assert (finding.line, finding.fix) == (line, f"`create_graph=True` on line {line}.")


def test_a_reentrant_checkpoint_is_told_as_such():
    cell = (
        "from torch.utils.checkpoint import checkpoint\n"
        + NET
        + "h = checkpoint(net, torch.ones(1, 2), use_reentrant=True)\n"
    )
    finding = one(RULE, cell + "h.sum().backward()\n")
    assert finding.line == 4
    assert "use_reentrant=False" in finding.fix


@pytest.mark.parametrize(
    "cell",
    [
        "x = {'a': 1.0}\ntry:\n    x['a'].backward()\nexcept AttributeError:\n    pass\n",
        "w = torch.ones(2, requires_grad=True)\nseen = (w * 2).sum().detach()\n(w * 2).sum().backward()\n",
        "w = torch.ones(2, requires_grad=True)\ntry:\n    w.detach().sum().backward()\nexcept RuntimeError:\n    pass\n",
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
