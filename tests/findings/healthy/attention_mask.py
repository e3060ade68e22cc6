"""A healthy program: no warning."""

CELL = """\
import torch
q = torch.randn(1, 4, 8, requires_grad=True)
scores = q @ q.transpose(1, 2) / 8 ** 0.5
mask = torch.triu(torch.ones(4, 4), diagonal=1).bool()
weights = scores.masked_fill(mask, float('-inf')).softmax(-1)
(weights @ q).sum().backward()
"""
