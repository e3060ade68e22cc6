"""A healthy program: no warning."""

CELL = """\
import torch
w = torch.randn(4, requires_grad=True)
hard = w + (w.round() - w).detach()
hard.sum().backward()
"""
