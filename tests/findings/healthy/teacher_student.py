"""A healthy program: no warning."""

CELL = """\
import torch
teacher, student = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
teacher.eval()
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for step in range(3):
    x = torch.randn(4, 3)
    with torch.no_grad():
        goal = teacher(x).softmax(1)
    loss = torch.nn.functional.kl_div(student(x).log_softmax(1), goal, reduction='batchmean')
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
