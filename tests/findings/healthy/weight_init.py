"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
for m in net:
    torch.nn.init.xavier_uniform_(m.weight)
    torch.nn.init.zeros_(m.bias)
with torch.no_grad():
    net[0].bias[1] = 2.0
    net[1].weight.view(-1)[:2] *= 0.5
net(torch.ones(1, 3)).sum().backward()
"""
