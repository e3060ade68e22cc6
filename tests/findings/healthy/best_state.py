"""A healthy program: no warning."""

CELL = """\
import torch
import copy, io
net = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
best, lowest = None, float('inf')
for epoch in range(3):
    loss = net(torch.ones(3, 2)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if loss.item() < lowest:
        lowest, best = loss.item(), copy.deepcopy(net.state_dict())
    buffer = io.BytesIO()
    torch.save(net.state_dict(), buffer)
net.load_state_dict(best)
"""
