"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(3, 2).requires_grad_(False)
x = torch.randn(1, 3)
x_adv = x.clone().detach().requires_grad_(True)
for step in range(3):
    loss = torch.nn.functional.cross_entropy(net(x_adv), torch.tensor([0]))
    (g,) = torch.autograd.grad(loss, x_adv)
    x_adv = (x_adv.detach() + 0.1 * g.sign()).requires_grad_(True)
"""
