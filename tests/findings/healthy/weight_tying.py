"""A healthy program: no warning."""

CELL = """\
import torch
emb = torch.nn.Embedding(5, 3)
head = torch.nn.Linear(3, 5, bias=False)
head.weight = emb.weight
opt = torch.optim.SGD(emb.parameters(), lr=0.1)
for step in range(3):
    loss = torch.nn.functional.cross_entropy(head(emb(torch.tensor([0, 1]))), torch.tensor([1, 2]))
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
