"""A healthy program: no warning."""

CELL = """\
import torch
w = torch.zeros(2, requires_grad=True)
opt = torch.optim.LBFGS([w], max_iter=4)
def closure():
    opt.zero_grad()
    loss = (w - torch.tensor([1.0, 2.0])).pow(2).sum()
    loss.backward()
    return loss
for step in range(2):
    opt.step(closure)
"""
