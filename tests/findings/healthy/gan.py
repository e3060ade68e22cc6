"""A healthy program: no warning."""

CELL = """\
import torch
G, D = torch.nn.Linear(2, 3), torch.nn.Linear(3, 1)
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
bce = torch.nn.BCEWithLogitsLoss()
for step in range(3):
    real = torch.randn(4, 3)
    fake = G(torch.randn(4, 2))
    od.zero_grad()
    loss_d = bce(D(real), torch.ones(4, 1)) + bce(D(fake.detach()), torch.zeros(4, 1))
    loss_d.backward()
    od.step()
    og.zero_grad()
    loss_g = bce(D(fake), torch.ones(4, 1))
    loss_g.backward()
    og.step()
"""
