"""A healthy program: no warning."""

CELL = """\
import torch
bias = torch.randn(3, requires_grad=True)
x = torch.randn(4, 3)
y = x + bias.expand(4, 3)
rows = torch.arange(3).expand(4, 3)
(y * rows).sum().backward()
"""
