"""A healthy program: no warning."""

CELL = """\
import torch
w = torch.ones(3, requires_grad=True)
h = (w * w).sum()
a, b = h * 2, h * 3
a.backward(retain_graph=True)
b.backward()
"""
