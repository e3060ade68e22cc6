"""A healthy program: no warning."""

CELL = """\
import torch
w = torch.ones(3, requires_grad=True)
handle = w.register_hook(lambda g: g.clamp(-1, 1))
h = w * 2
h.retain_grad()
(h ** 2).sum().backward()
handle.remove()
seen = h.grad
"""
