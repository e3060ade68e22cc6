"""Every optimizer of torch.optim, in each of its implementations, trains to the same bits with the trace and without."""

from __future__ import annotations

import pytest
import torch

from tests.program.compare import check_answers, run_both

HEAD = "import torch\nfrom torch import nn\ntorch.manual_seed(3)\n"
STEP = """\
net = nn.Sequential(nn.Linear(4, 3, bias=BIAS), nn.Tanh(), nn.Linear(3, 2, bias=BIAS))
opt = OPTIMIZER
x = torch.randn(5, 4)
for i in range(3):
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
"""
CLOSURE = """\
net = nn.Linear(4, 2)
opt = torch.optim.LBFGS(net.parameters(), max_iter=4, line_search_fn=SEARCH)
x = torch.randn(5, 4)
def closure():
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    return loss
for i in range(2):
    loss = opt.step(closure)
"""
NAMES = sorted(
    name
    for name in dir(torch.optim)
    if isinstance(getattr(torch.optim, name), type) and name not in ("Optimizer", "LBFGS", "SparseAdam")
)
KINDS = ("", "foreach=True", "fused=True", "maximize=True")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_optimizer(name: str, kind: str) -> None:
    given = "lr=0.01" if name != "Adadelta" else "lr=0.5"
    made = f"torch.optim.{name}(net.parameters(), {given}{', ' * bool(kind)}{kind})"
    try:
        eval(made, {"torch": torch, "net": torch.nn.Linear(2, 2, bias=name != "Muon")})
    except (TypeError, RuntimeError, ValueError) as reason:
        pytest.skip(f"it has no such implementation: {type(reason).__name__}")
    source = HEAD + STEP.replace("OPTIMIZER", made).replace("BIAS", str(name != "Muon"))
    _, traced = run_both(source)
    assert traced.error is None, traced.error
    check_answers(traced.trace, ("net", "x", "loss"))


@pytest.mark.parametrize("search", ["None", "'strong_wolfe'"])
def test_lbfgs(search: str) -> None:
    _, traced = run_both(HEAD + CLOSURE.replace("SEARCH", search))
    assert traced.error is None, traced.error
    check_answers(traced.trace, ("net", "x", "loss"))
