"""A healthy program: no warning."""

CELL = """\
import torch
cell, head = torch.nn.GRUCell(2, 3), torch.nn.Linear(3, 1)
opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
h = torch.zeros(1, 3)
for t in range(5):
    h = cell(torch.randn(1, 2), h.detach())
    loss = head(h).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
