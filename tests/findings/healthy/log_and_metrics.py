"""A healthy program: no warning."""

CELL = """\
import torch
net = torch.nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
losses, kept, right, running = [], [], 0, 0.0
for step in range(4):
    x, y = torch.randn(5, 3), torch.randint(0, 2, (5,))
    out = net(x)
    loss = torch.nn.functional.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
    kept.append(loss.detach())
    running += float(loss)
    right += (out.argmax(1) == y).sum().item()
"""
