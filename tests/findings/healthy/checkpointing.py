"""A healthy program: no warning."""

CELL = """\
import torch
from torch.utils.checkpoint import checkpoint
a, b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
x = torch.randn(2, 3)
loss = b(checkpoint(a, x, use_reentrant=False)).mean()
loss.backward()
"""
