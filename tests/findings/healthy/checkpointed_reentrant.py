"""A healthy program: no warning."""

CELL = """\
import torch
from torch.utils.checkpoint import checkpoint
block, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
opt = torch.optim.SGD([*block.parameters(), *head.parameters()], lr=0.1)
for step in range(3):
    x = torch.randn(3, 2, requires_grad=True)
    h = checkpoint(block, x, use_reentrant=True)
    loss = head(torch.relu(h)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
