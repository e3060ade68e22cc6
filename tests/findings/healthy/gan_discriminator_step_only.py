"""A healthy program: no warning."""

CELL = """\
import torch
G, D = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
od = torch.optim.Adam(D.parameters())
fake = G(torch.randn(4, 2))
loss_d = D(fake.detach()).mean() - D(torch.randn(4, 3)).mean()
loss_d.backward()
od.step()
"""
