"""A healthy program: no warning."""

CELL = """\
import torch
x = torch.randn(2, 4, requires_grad=True)
lin = torch.nn.Linear(4, 4)
out = lin(x)
out += x
out = torch.relu(out)
out.sum().backward()
"""
