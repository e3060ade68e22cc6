"""A healthy program: no warning."""

CELL = """\
import torch
w = torch.nn.Parameter(torch.tensor([1.0]))
opt = torch.optim.SGD([w], lr=0.1)
for outer in range(4):
    fast = w
    for inner in range(4):
        (g,) = torch.autograd.grad((fast * 2).pow(2).sum(), fast, create_graph=True)
        fast = fast - 0.01 * g
    opt.zero_grad()
    fast.pow(2).sum().backward()
    opt.step()
"""
