"""A healthy program: no warning."""

CELL = """\
import torch
enc, dec = torch.nn.Linear(4, 4), torch.nn.Linear(2, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()])
for step in range(3):
    x = torch.rand(5, 4)
    mu, logvar = enc(x).chunk(2, dim=1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum()
    loss = (dec(z) - x).pow(2).sum() + kl
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
