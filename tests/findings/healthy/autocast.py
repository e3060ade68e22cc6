"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    with torch.autocast('cpu', dtype=torch.bfloat16):
        loss = net(torch.randn(3, 4)).float().pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
