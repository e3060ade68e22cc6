"""Programs that people run every day and that are right: no warning, no fault, and the same numbers as without us."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest
import torch

import tensormagic
from tests.findings import healthy

NAMES = [module.name for module in pkgutil.iter_modules(healthy.__path__)]


def tensors(namespace: dict[str, Any]) -> dict[str, torch.Tensor]:
    found = {name: value for name, value in namespace.items() if isinstance(value, torch.Tensor)}
    for name, value in namespace.items():
        if isinstance(value, torch.nn.Module):
            found |= {f"{name}.{key}": tensor for key, tensor in value.named_parameters()}
            found |= {f"{name}.{key}": tensor for key, tensor in value.named_buffers()}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_healthy(name: str) -> None:
    cell = importlib.import_module(f"tests.findings.healthy.{name}").CELL
    torch.manual_seed(0)
    bare: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(cell, "<bare>", "exec"), bare)
    after_bare = torch.get_rng_state()
    torch.manual_seed(0)
    traced: dict[str, Any] = {"__name__": "__main__"}
    trace = tensormagic.run(cell, traced)
    assert trace.error is None
    assert [(f.rule, f.line, f.message) for f in trace.findings if f.severity != "note"] == []
    assert [notice for notice in trace.recording.notices if notice.code == "recorder-fault"] == []
    assert torch.equal(torch.get_rng_state(), after_bare)
    one, two = tensors(bare), tensors(traced)
    assert one.keys() == two.keys()
    for key, value in one.items():
        assert torch.equal(value.nan_to_num(), two[key].nan_to_num()), key
        if value.is_leaf and value.grad is not None:
            assert torch.equal(value.grad, two[key].grad), key
            assert value.grad.stride() == two[key].grad.stride()


def test_there_are_about_thirty() -> None:
    assert len(NAMES) >= 30
