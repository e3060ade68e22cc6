"""A healthy program: no warning."""

CELL = """\
import torch
backbone, head = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
with torch.no_grad():
    features = backbone(torch.randn(6, 3))
loss = head(features).mean()
loss.backward()
opt.step()
"""
