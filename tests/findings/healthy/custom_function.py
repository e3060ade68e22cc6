"""A healthy program: no warning."""

CELL = """\
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x
w = torch.ones(3, requires_grad=True)
Square.apply(w).sum().backward()
"""
