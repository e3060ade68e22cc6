"""A healthy program: no warning."""

CELL = """\
import torch
D = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
opt = torch.optim.Adam(D.parameters())
for step in range(3):
    x = torch.randn(4, 3, requires_grad=True)
    (g,) = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    loss = (g.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
