"""A healthy program: no warning."""

CELL = """\
import torch
acts, grads = {}, []
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
handle = net[0].register_forward_hook(lambda module, args, out: acts.__setitem__("first", out.detach()))
net[0].weight.register_hook(lambda g: g.clamp(-1, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
handle.remove()
"""
