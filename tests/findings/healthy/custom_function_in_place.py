"""A healthy program: no warning."""

CELL = """\
import torch
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x
    @staticmethod
    def backward(ctx, g):
        return g * 2
w = torch.ones(3, requires_grad=True)
h = Double.apply(w * 1)
h.sum().backward()
"""
