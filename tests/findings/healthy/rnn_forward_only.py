"""A healthy program: no warning."""

CELL = """\
import torch
cell = torch.nn.RNNCell(2, 3)
h = torch.zeros(1, 3)
for t in range(5):
    h = cell(torch.randn(1, 2), h)
out = h.sum()
"""
