"""A healthy program: no warning."""

CELL = """\
import torch
import copy
net = torch.nn.Linear(2, 1)
shadow = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    net(torch.randn(3, 2)).mean().backward()
    opt.step()
    opt.zero_grad()
    with torch.no_grad():
        for slow, fast in zip(shadow.parameters(), net.parameters()):
            slow.mul_(0.9).add_(fast, alpha=0.1)
"""
