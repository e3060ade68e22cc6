"""A healthy program: no warning."""

CELL = """\
import torch
cell = torch.nn.RNNCell(2, 3)
opt = torch.optim.SGD(cell.parameters(), lr=0.1)
for epoch in range(3):
    h, outs = torch.zeros(1, 3), []
    for t in range(4):
        h = cell(torch.randn(1, 2), h)
        outs.append(h)
    loss = torch.stack(outs).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
