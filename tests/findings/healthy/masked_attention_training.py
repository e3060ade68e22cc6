"""A healthy program: no warning."""

CELL = """\
import torch
q = torch.nn.Linear(4, 4)
opt = torch.optim.Adam(q.parameters(), lr=0.01)
mask = torch.triu(torch.full((3, 3), float("-inf")), diagonal=1)
best = torch.tensor(float("inf"))
for step in range(30):
    x = torch.randn(3, 4)
    att = torch.softmax(q(x) @ x.t() + mask, -1)
    loss = (att @ x - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    best = torch.minimum(best, loss.detach())
"""
