"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.5))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    net.train()
    loss = net(torch.randn(6, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    net.eval()
    with torch.no_grad():
        check = net(torch.randn(6, 2)).mean().item()
"""
