"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(inplace=True), torch.nn.MaxPool2d(2),
    torch.nn.Flatten(), torch.nn.Linear(36, 3),
)
opt = torch.optim.Adam(net.parameters())
for step in range(2):
    loss = torch.nn.functional.cross_entropy(net(torch.randn(2, 1, 8, 8)), torch.tensor([0, 2]))
    opt.zero_grad(set_to_none=False)
    loss.backward()
    opt.step()
"""
