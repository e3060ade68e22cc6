"""A healthy program: no warning."""

CELL = """\
import torch
x = torch.randn(3, 4, requires_grad=True)
h = torch.nn.functional.conv1d(x[None], torch.randn(2, 3, 1))
h = torch.relu_(h)
h2 = h * 1.0
h2 += 1
h2.sum().backward()
"""
