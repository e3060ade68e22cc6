"""What a custom Function gives gets its node after the last call was recorded: flags and node are right all the same."""

import pytest

import tensormagic

CELL = """import torch
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        return {}
    @staticmethod
    def backward(ctx, g):
        return g * 3, None
w = torch.ones(2, requires_grad=True)
y = Scale.apply(w, 3.0)
z = y.detach()
loss = (y * 2).sum()
loss.backward()
"""


@pytest.mark.parametrize("result", ["x * factor", "(x + 1) * factor", "x.clone()", "x.view(2)"])
def test_result(result):
    namespace = {}
    trace = tensormagic.run(CELL.format(result), namespace)
    assert trace.error is None
    for name in ("w", "y", "z", "loss"):
        seen, real = trace[name], namespace[name]
        assert (seen.requires_grad, seen.is_leaf) == (real.requires_grad, real.is_leaf), name
        assert seen.grad_fn == (type(real.grad_fn).__name__ if real.grad_fn is not None else None), name
    assert trace["w"].grad.values == [6.0, 6.0]
    assert [finding for finding in trace.findings if finding.severity != "note"] == []


def test_result_that_is_no_tensor_of_the_graph():
    cell = CELL.format("x * factor").replace(
        "def forward(ctx, x, factor):", "def forward(ctx, x, factor):\n        ctx.set_materialize_grads(False)"
    )
    trace = tensormagic.run(
        cell.replace("w = torch.ones(2, requires_grad=True)", "w = torch.ones(2)").replace("loss.backward()", ""), {}
    )
    assert (trace["y"].requires_grad, trace["y"].is_leaf) == (False, True)
