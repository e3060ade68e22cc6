"""A healthy program: no warning."""

CELL = """\
import torch
backbone, head = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
backbone.requires_grad_(False)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(3):
    loss = head(backbone(torch.randn(2, 3)).relu()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
