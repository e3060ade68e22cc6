"""Hooks that write into shared gradients, activations overwritten after a hook stored them, clipping at the wrong time."""

import pytest

from tests.findings.cells import one, told

LEAVES = "a = torch.ones(2, requires_grad=True)\nb = torch.ones(2, requires_grad=True)\n"


def test_a_hook_that_writes_into_a_shared_gradient():
    finding = one(
        "hook-writes-shared-gradient", LEAVES + "a.register_hook(lambda g: g.mul_(0))\n((a + b) * 2).sum().backward()\n"
    )
    assert (finding.severity, finding.line, finding.names) == ("warning", 4, ("b",))


@pytest.mark.parametrize(
    "cell",
    [
        LEAVES + "a.register_hook(lambda g: g * 0)\n((a + b) * 2).sum().backward()\n",
        LEAVES + "a.register_hook(lambda g: g.mul_(0))\n(a * 2 + b * 3).sum().backward()\n",
        LEAVES + "a.register_hook(lambda g: g.mul_(0))\nb.register_hook(lambda g: g * 2)\n(a * b).sum().backward()\n",
    ],
)
def test_hooks_silent(cell):
    assert told("hook-writes-shared-gradient", cell) == []


NET = (
    "acts = {{}}\nnet = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(inplace={}))\ndef keep(module, args, out):\n"
    "    acts['out'] = {}\nnet[{}].register_forward_hook(keep)\ny = net(torch.ones(1, 2))\n"
)


@pytest.mark.parametrize("stored", ["out", "out.detach()"])
def test_a_stored_activation_that_the_next_layer_overwrites(stored):
    finding = one("stored-then-overwritten", NET.format(True, stored, 0))
    assert (finding.severity, finding.line, finding.lines) == ("warning", 5, {"stored": 5, "written": 7})
    assert finding.names[0] == "acts['out']"


@pytest.mark.parametrize("args", [(True, "out.clone()", 0), (False, "out", 0), (True, "out", 1)])
def test_activations_silent(args):
    assert told("stored-then-overwritten", NET.format(*args)) == []


LOOP = "w = torch.nn.Parameter(torch.ones(2))\nopt = torch.optim.SGD([w], lr=0.1)\nfor i in range(3):\n{}"
CLIP, BACK, STEP = (
    "    torch.nn.utils.clip_grad_norm_([w], 1.0)\n",
    "    (w * 9).sum().backward()\n",
    "    opt.step()\n    opt.zero_grad()\n",
)


def test_clipping_before_backward():
    finding = one("clip-before-backward", LOOP.format(CLIP + BACK + STEP))
    assert (finding.line, finding.lines) == (5, {"clipped": 5, "backward": 6})


@pytest.mark.parametrize(
    "body", [BACK + CLIP + STEP, BACK + CLIP + BACK + CLIP + STEP, CLIP + BACK, BACK + STEP + CLIP]
)
def test_clipping_silent(body):
    assert told("clip-before-backward", LOOP.format(body)) == []


def test_a_comment_is_no_call():
    """Only the code of a line counts: a note about clipping, or about a checkpoint, does nothing."""
    noted = BACK.replace("\n", "  # clip_grad_norm_(w) comes later\n")
    assert told("clip-before-backward", LOOP.format("    i + 0  # clip_grad_norm_(\n" + noted + STEP)) == []
