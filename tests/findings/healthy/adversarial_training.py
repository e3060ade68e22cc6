"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(4, 3), torch.tensor([0, 1, 0, 1])
delta = torch.zeros_like(x, requires_grad=True)
loss = torch.nn.functional.cross_entropy(net(x + delta), y)
loss.backward()
x_adv = (x + 0.1 * delta.grad.sign()).detach()
opt.zero_grad()
torch.nn.functional.cross_entropy(net(x_adv), y).backward()
opt.step()
"""
