"""Two training steps of models from packages that nobody here wrote: equal to the bit with the trace and without, and
no finding cries wolf."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything is made from a configuration: nothing is fetched

from tests.program.compare import run_both
from tests.program.models import MODELS

TRAIN = """
for step in range(2):
    opt.zero_grad()
    loss = loss_of(net)
    loss.backward()
    total = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    history.append(loss.item())
"""
OPTIMIZERS = {
    name: getattr(torch.optim, name)
    for name in (
        "SGD", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "ASGD", "Adagrad", "Adadelta", "Adafactor", "Muon",
    )
    if hasattr(torch.optim, name)
}  # fmt: skip


def make(name: str, optimizer: str, **options: Any) -> dict[str, Any]:
    torch.manual_seed(0)
    net, loss_of = MODELS[name][1]()
    parameters = [p for p in net.parameters() if optimizer != "Muon" or p.ndim == 2]
    opt = OPTIMIZERS[optimizer](parameters, **options)
    return {"torch": torch, "net": net.train(), "opt": opt, "loss_of": loss_of, "history": []}


def check(name: str, optimizer: str, **options: Any) -> None:
    package = MODELS[name][0]
    if package is not None and os.environ.get("CI") != "true":
        pytest.importorskip(package)
    _, traced = run_both(TRAIN, lambda: make(name, optimizer, **options))
    assert traced.error is None
    assert len(traced.namespace["history"]) == 2 and all(value > 0 for value in traced.namespace["history"])
    trace = traced.trace
    assert [f for f in trace.findings if f.severity in ("error", "warning")] == []
    assert trace.summary() and trace.panel() is not None
    parameter = next(name for name, named in trace.at().items() if name.startswith("net") and named.state is not None)
    assert trace.explain(parameter).text


@pytest.mark.parametrize("name", MODELS)
def test_training_is_the_same_to_the_bit(name: str) -> None:
    check(name, "AdamW", lr=1e-3)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_trains_the_same(optimizer: str) -> None:
    check("packed_lstm", optimizer)


@pytest.mark.parametrize(
    "options", [{"momentum": 0.9, "nesterov": True}, {"foreach": True}, {"fused": True}, {"maximize": True}]
)
def test_ways_of_sgd(options: dict[str, Any]) -> None:
    check("convolutions", "SGD", lr=0.05, **options)
