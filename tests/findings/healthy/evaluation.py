"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(3, 2)
outputs = []
with torch.no_grad():
    for batch in range(4):
        outputs.append(net(torch.randn(2, 3)))
with torch.inference_mode():
    more = [net(torch.randn(2, 3)).softmax(1) for batch in range(3)]
scores = torch.cat(outputs).argmax(1).float().mean()
"""
