"""A healthy program: no warning."""

CELL = """\
import torch
vgg, net = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.ones(1, 2)
for step in range(4):
    opt.zero_grad()
    loss = (vgg(net(x)) - vgg(x)).pow(2).mean()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
"""
