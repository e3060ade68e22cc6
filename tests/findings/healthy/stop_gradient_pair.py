"""A healthy program: no warning."""

CELL = """\
import torch
enc, pred = torch.nn.Linear(3, 4), torch.nn.Linear(4, 4)
opt = torch.optim.SGD([*enc.parameters(), *pred.parameters()], lr=0.1)
for step in range(3):
    a, b = enc(torch.randn(5, 3)), enc(torch.randn(5, 3))
    loss = -torch.nn.functional.cosine_similarity(pred(a), b.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
