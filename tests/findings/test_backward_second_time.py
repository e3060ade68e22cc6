"""backward-second-time: the run that freed the graph, the piece that is shared, and which of the two lines to change."""

import pytest

from tests.findings.cells import one, told

RULE = "backward-second-time"
W = "w = torch.ones(3, requires_grad=True)\n"


def test_two_losses_on_one_piece():
    finding = one(RULE, W + "h = (w * w).sum()\na = h * 2\nb = h * 3\na.backward()\nb.backward()\n")
    assert (finding.severity, finding.line) == ("error", 6)
    assert finding.lines == {"first": 6, "shared": 3, "raised": 7}
    assert {"a", "b", "h"} <= set(finding.names)


def test_what_the_failing_run_freed_itself_is_not_shared():
    finding = one(
        RULE,
        "G = torch.nn.Linear(2, 2)\nD = torch.nn.Linear(2, 1)\nfake = G(torch.ones(3, 2)).tanh()\n"
        "d_loss = D(fake).pow(2).mean()\nd_loss.backward()\ng_loss = (D(fake) - 1).pow(2).mean()\ng_loss.backward()\n",
    )
    assert finding.lines == {"first": 6, "shared": 4, "raised": 8}
    assert set(finding.names) == {"g_loss", "d_loss", "fake"}


@pytest.mark.parametrize(
    "again", ["loss.backward()\nloss.backward()\n", "g = torch.autograd.grad(loss, w)\nloss.backward()\n"]
)
def test_the_same_loss_twice(again):
    finding = one(RULE, W + "loss = (w * w).sum()\n" + again)
    assert (finding.line, finding.names) == (4, ("loss",))


def test_built_before_the_loop():
    finding = one(RULE, W + "s = w.exp()\nfor i in range(3):\n    loss = (s * i).pow(2).sum()\n    loss.backward()\n")
    assert finding.line == finding.lines["shared"] == 3
    assert "s" in finding.names


def test_built_before_the_loop_and_used_in_a_function():
    finding = one(
        RULE,
        W
        + "s = w.exp()\ndef train(i):\n    loss = (s * i).pow(2).sum()\n    loss.backward()\nfor i in range(3):\n    train(i)\n",
    )
    assert finding.line == 3
    assert finding.lines["raised"] == 6


def test_carried_from_one_round_to_the_next():
    finding = one(
        RULE,
        W
        + "h = torch.zeros(3)\nfor i in range(3):\n    h = torch.tanh(h + w)\n    loss = h.sum()\n    loss.backward()\n",
    )
    assert finding.line == 5
    assert "h" in finding.names
    assert "detach" in finding.fix


@pytest.mark.parametrize(
    "cell",
    [
        W + "for i in range(2):\n    (w * w).sum().backward()\n",
        W + "h = (w * w).sum()\n(h * 2).backward(retain_graph=True)\n(h * 3).backward()\n",
        W + "y = w.exp()\ny.sum().backward()\ny.grad_fn._saved_result\n",  # an error of the same text, and no backward
    ],
)
def test_silent(cell):
    assert told(RULE, cell) == []
