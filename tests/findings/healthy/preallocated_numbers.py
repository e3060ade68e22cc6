"""A healthy program: no warning."""

CELL = """\
import torch
w = torch.ones(2, requires_grad=True)
log = torch.zeros(5)
for step in range(5):
    loss = (w * step).sum()
    loss.backward()
    log[step] = loss.item()
    w.grad = None
"""
