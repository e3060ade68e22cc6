"""A healthy program: no warning."""

CELL = """\
import torch
logits = torch.randn(3, 4, requires_grad=True)
y = torch.nn.functional.gumbel_softmax(logits, hard=True)
(y * torch.randn(3, 4)).sum().backward()
"""
