"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
total = 0
for batch in range(4):
    total = total + net(torch.randn(3, 2)).pow(2).mean()
opt.zero_grad()
total.backward()
opt.step()
"""
