"""A healthy program: no warning."""

CELL = """\
import torch
w = torch.zeros(2, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
x, y = torch.randn(10, 2), torch.randn(10, 1)
for step in range(5):
    loss = ((x @ w[:, None] + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in (w, b):
            p -= 0.1 * p.grad
            p.grad.zero_()
"""
