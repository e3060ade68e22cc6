"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    for part in range(3):
        loss = net(torch.randn(2, 3)).pow(2).mean() / 3
        loss.backward()
    opt.step()
    opt.zero_grad()
"""
