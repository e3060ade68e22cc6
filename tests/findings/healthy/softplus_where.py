"""A healthy program: no warning."""

CELL = """\
import torch
x = torch.tensor([0.0, 4.0], requires_grad=True)
root = torch.sqrt(torch.where(x > 0, x, torch.ones_like(x)))
y = torch.where(x > 0, root, torch.zeros_like(x))
y.sum().backward()
"""
