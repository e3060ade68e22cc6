"""A healthy program: no warning."""

CELL = """\
import torch
body, one, two = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1), torch.nn.Linear(4, 2)
params = [*body.parameters(), *one.parameters(), *two.parameters()]
opt = torch.optim.Adam(params)
for step in range(3):
    h = body(torch.randn(5, 3)).tanh()
    loss_a, loss_b = one(h).pow(2).mean(), two(h).abs().mean()
    opt.zero_grad()
    (loss_a + 0.5 * loss_b).backward()
    opt.step()
"""
