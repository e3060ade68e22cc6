"""Past the bound of detail: what was written and what autograd saved are still known, by line."""

from __future__ import annotations

import pytest
import torch

import tensormagic

WAYS = {
    "its own method": "h.mul_(2)",
    "augmented": "h += 1",
    "an index": "h[0] = 0",
    "out=": "torch.add(h.detach(), 1, out=h.detach())",
    "inplace=True": "torch.nn.functional.relu(h, inplace=True)",
    "a list of tensors": "torch._foreach_mul_([h], 2)",
}
CELL = """
w = torch.ones(3, requires_grad=True)
for i in range(60):
    h = (w * 2).exp()
    y = h * h
    if i == 57:
        {write}
    y.sum().backward()
"""


@pytest.mark.parametrize("write", WAYS.values(), ids=WAYS)
def test_an_overwritten_saved_tensor_late_in_a_loop(write):
    trace = tensormagic.run(CELL.format(write=write), {"torch": torch})
    assert trace.error is not None
    found = [finding for finding in trace.findings if finding.rule == "saved-tensor-overwritten"]
    assert [finding.lines for finding in found] == [{"saved": 5, "modified": 7, "raised": 8}]


def test_a_value_saved_for_another_factor():
    cell = """
w = torch.ones(3, requires_grad=True)
scale = torch.ones(3)
for i in range(60):
    y = w * scale
    if i == 50:
        scale.add_(1)
    y.sum().backward()
"""
    trace = tensormagic.run(cell, {"torch": torch})
    found = [finding for finding in trace.findings if finding.rule == "saved-tensor-overwritten"]
    assert [(finding.lines, finding.names[:1]) for finding in found] == [
        ({"saved": 5, "modified": 7, "raised": 8}, ("scale",))
    ]


def test_an_inference_tensor_late_in_a_loop():
    cell = """
with torch.inference_mode():
    x = torch.ones(2)
for i in range(40):
    with torch.inference_mode():
        x.add_(1)
"""
    trace = tensormagic.run(cell, {"torch": torch})
    assert trace.error is None
    assert [notice.code for notice in trace.recording.notices] == []
