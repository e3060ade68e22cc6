"""A healthy program: no warning."""

CELL = """\
import torch
import numpy as np
data = np.random.default_rng(0).normal(size=(6, 2)).astype('float32')
data -= data.mean(0)
x = torch.from_numpy(data)
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = net(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
out = net(x).detach().numpy().copy()
out[0] = 0
"""
