"""A healthy program: no warning."""

CELL = """\
import torch
from torch.func import functional_call, grad, vmap
net = torch.nn.Linear(3, 1)
params = {k: v.detach() for k, v in net.named_parameters()}
def loss(params, x):
    return functional_call(net, params, (x,)).pow(2).sum()
each = vmap(grad(loss), in_dims=(None, 0))(params, torch.randn(4, 3))
"""
