"""The work that is measured, as source: what a person would write in a cell."""

from __future__ import annotations

_MLP = """
net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(),
                          torch.nn.Linear(64, 10))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(32, 32)
y = torch.randint(0, 10, (32,))
for step in range({steps}):
    out = net(x)
    loss = torch.nn.functional.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""

VIEWS = """
base = torch.arange(100.0)
views = []
for i in range(50):
    views.append(base[i:])
"""

VIEWS_IN_ONE_LINE = """
base = torch.arange(100.0)
views = [base[i:] for i in range(50)]
"""

TRANSFORMER = """
layer = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True)
tokens = torch.randn(8, 128, 512)
out = layer(tokens)
loss = out.square().mean()
loss.backward()
"""

LECTURE = """
w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
x = torch.tensor([0.5, -1.0, 2.0])
view = x[1:]
hidden = w * x
loss = (hidden ** 2).sum()
loss.backward()
view.mul_(2)
memory = [hidden.detach(), w.detach()]
with torch.no_grad():
    w -= 0.1 * w.grad
w.grad = None
"""


def mlp(steps: int) -> str:
    """A three-layer MLP 32-64-64-10, batch 32, SGD: nearly all of its time is overhead."""
    return _MLP.format(steps=steps)


def calls(count: int, a_line: int = 10) -> str:
    """About `count` torch calls, `a_line` of them on one line of a loop."""
    line = "x" + " + 1" * a_line
    return f"x = torch.zeros(4)\nfor i in range({count // a_line}):\n    y = {line}\n"
