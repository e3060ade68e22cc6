"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for step in range(5):
    opt.zero_grad()
    loss = (net(torch.randn(8, 3)) - 1).pow(2).mean()
    loss.backward()
    opt.step()
"""
