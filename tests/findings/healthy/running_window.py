"""A healthy program: no warning."""

CELL = """\
import collections
import torch
w = torch.nn.Parameter(torch.ones(2))
opt = torch.optim.SGD([w], lr=0.01)
recent = collections.deque(maxlen=2)
for step in range(6):
    loss = (w * step).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    recent.append(loss.detach())
"""
