"""A healthy program: no warning."""

CELL = """\
import torch
t = torch.nn.Parameter(torch.tensor(1.0))
opt = torch.optim.SGD([t], lr=0.5)
for step in range(4):
    loss = (torch.ones(3) / t).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        t.clamp_(0.5, 2.0)
"""
