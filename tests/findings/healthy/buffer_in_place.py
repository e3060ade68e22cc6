"""A healthy program: no warning."""

CELL = """\
import torch
class Running(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)
        self.register_buffer('mean', torch.zeros(2))
    def forward(self, x):
        out = self.lin(x)
        with torch.no_grad():
            self.mean.mul_(0.9).add_(out.mean(0), alpha=0.1)
        return out - self.mean.clone()
net = Running()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = net(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
