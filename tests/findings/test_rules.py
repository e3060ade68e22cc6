"""Each rule speaks on its own example, names the line, and stays silent on a near miss."""

from __future__ import annotations

import pytest

import tensormagic
from tensormagic.analysis.findings import ERROR, rules

RULES = {rule.id: rule for rule in rules()}
NEAR_MISSES = {
    "saved-tensor-overwritten": "a = torch.ones(3, requires_grad=True)\nb = a * 2\nb[1] = 2.0\nb.sum().backward()\n",
    "first-nan": "x = torch.tensor([float('nan')])\ny = x * 2\nz = torch.tensor([1.0]).log()\n",
    "graph-kept-alive": "w = torch.ones(2, requires_grad=True)\nlast = None\nfor i in range(5):\n    last = (w * i).sum()\n"
    "    last.backward()\n",
    "storage-kept-by-view": "big = torch.zeros(1000, 1000)\nsmall = big[:2].clone()\nhalf = big[:500]\n",
    "gradient-cut": "w = torch.ones(3, requires_grad=True)\nseen = torch.tensor(w.detach())\n(w * 2).sum().backward()\n",
    "gradient-carried-over": "w = torch.nn.Parameter(torch.zeros(1))\nopt = torch.optim.SGD([w], lr=0.1)\n"
    "for i in range(4):\n    (w * 2).sum().backward()\n    if i % 2:\n        opt.step()\n        opt.zero_grad()\n",
    "optimizer-empty": "net = torch.nn.Linear(2, 1)\nparams = list(net.parameters())\nfor e in range(2):\n"
    "    opt = torch.optim.SGD([{'params': params}], lr=0.1)\n",
    "parameter-not-registered": "class Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.a = torch.nn.Linear(2, 2)\n        self.order = [self.a]\nnet = Net()\n",
    "one-tensor-many-items": "t = torch.zeros(2)\nitems = [t, t.clone()]\nitems[0] += 1\ntwice = [t, t]\n",
    "reference-not-copy": "import copy\nm = torch.nn.Linear(2, 1)\nbest = copy.deepcopy(m.state_dict())\n"
    "with torch.no_grad():\n    m.weight += 1\n",
    "base-or-view-written": "x = torch.ones(4, requires_grad=True) * 1.0\na, b = x.chunk(2)\nloss = a.sum()\nx.mul_(2)\n",
    "backward-second-time": "w = torch.ones(3, requires_grad=True)\nfor i in range(2):\n    (w * w).sum().backward()\n",
    "no-graph-at-backward": "w = torch.ones(2, requires_grad=True)\nseen = (w * 2).sum().detach()\n(w * 2).sum().backward()\n",
    "leaf-written-in-place": "w = torch.ones(3, requires_grad=True)\nwith torch.no_grad():\n    w[0] = 2.0\n",
    "expanded-memory-written": "r = torch.arange(1, 5).expand(3, 4).clone()\nr[0] = 0\n",
    "requires-grad-on-cut": "net = torch.nn.Linear(2, 1)\nx = net(torch.ones(1, 2)).detach().requires_grad_()\n"
    "(x * 2).sum().backward()\n",
    "sparse-gradient": "emb = torch.nn.Embedding(5, 2, sparse=True)\nemb(torch.tensor([1])).sum().backward()\n",
    "optimizer-holds-old-parameter": "net = torch.nn.Linear(2, 1)\nnet.weight = torch.nn.Parameter(torch.ones(1, 2))\n"
    "opt = torch.optim.SGD(net.parameters(), lr=0.1)\nnet(torch.ones(3, 2)).sum().backward()\nopt.step()\n",
    "gradient-thrown-away": "w = torch.nn.Parameter(torch.ones(2))\nopt = torch.optim.SGD([w], lr=0.1)\n"
    "for i in range(3):\n    (w * 2).sum().backward()\n    opt.step()\n    opt.zero_grad()\n",
    "default-argument-written": "def f(x, start=torch.zeros(2)):\n    return start + x\na = f(torch.ones(2))\n"
    "b = f(torch.ones(2))\n",
    "non-leaf-taken-for-leaf": "a = torch.tensor(5.0, requires_grad=True)\nb = a * 2\nb.retain_grad()\nb.backward()\n"
    "seen = (a.grad, b.grad)\n",
    "dirty-input-not-returned": RULES["dirty-input-not-returned"].example.replace("return x.clone()", "return x"),
    "inference-tensor-used": "with torch.inference_mode():\n    x = torch.ones(3)\nw = torch.ones(3, requires_grad=True)\n"
    "y = (x.clone() * w).sum()\n",
    "view-written-in-place": "x = torch.ones(4, requires_grad=True) * 1.0\nv = x[:2]\nv.add_(1)\n",
    "detach-on-a-view": "x = torch.ones(4, requires_grad=True) * 2\nv = x[:2]\nv = v.detach()\nx.detach_()\n",
    "transform-misuse": "def f(x):\n    return x.sum()\nout = torch.vmap(f)(torch.ones(3, 2)).tolist()\n",
    "backward-of-many-values": "w = torch.ones(3, requires_grad=True)\n(w * 2).mean().backward()\n",
    "custom-backward-returns": RULES["custom-backward-returns"].example.replace("ctx.factor\nw", "ctx.factor, None\nw"),
    "checkpoint-misuse": RULES["checkpoint-misuse"].example.replace("len(calls) == 1", "calls"),
    "unused-in-grad": RULES["unused-in-grad"].example.replace("[w, b]", "[w]"),
    "optimizer-forgets-parameter": RULES["optimizer-forgets-parameter"].example.replace("teacher.", "student."),
    "first-infinity": "s = torch.zeros(2, 3, requires_grad=True)\nmask = torch.full((2, 3), float('-inf')).triu(1)\n"
    "(torch.softmax(s + mask, -1) * torch.arange(3.0)).sum().backward()\n",
    "hook-writes-shared-gradient": RULES["hook-writes-shared-gradient"].example.replace("g.mul_(0)", "g * 0"),
    "stored-then-overwritten": RULES["stored-then-overwritten"].example.replace("= out", "= out.clone()"),
    "clip-before-backward": "w = torch.nn.Parameter(torch.ones(2))\nopt = torch.optim.SGD([w], lr=0.1)\nfor i in range(2):\n"
    "    opt.zero_grad()\n    (w * 100).sum().backward()\n    torch.nn.utils.clip_grad_norm_([w], 1.0)\n    opt.step()\n",
    "tie-lost": "a = torch.nn.Linear(2, 2)\nb = torch.nn.Linear(2, 2)\nb.weight = a.weight\n"
    "b.weight = torch.nn.Parameter(torch.ones(2, 2))\n",
}  # fmt: skip


def found(cell: str) -> list[tensormagic.analysis.findings.Finding]:
    return tensormagic.run("import torch\n" + cell).findings


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_speaks_on_its_example(rule: str) -> None:
    spoken = [finding for finding in found(RULES[rule].example) if finding.rule == rule]
    assert spoken
    for finding in spoken:
        assert finding.line > 1
        assert finding.message
        assert finding.message.endswith(".")
        assert finding.fix


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_silent_on_its_near_miss(rule: str) -> None:
    assert [finding for finding in found(NEAR_MISSES[rule]) if finding.rule == rule] == []


def test_errors_stand_first() -> None:
    findings = found("big = torch.zeros(1000, 1000)\npart = big[:2]\n" + RULES["saved-tensor-overwritten"].example)
    assert findings[0].severity == ERROR
    assert {finding.rule for finding in findings} == {"saved-tensor-overwritten", "storage-kept-by-view"}
