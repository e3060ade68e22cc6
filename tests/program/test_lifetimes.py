"""What the user's objects live for: each dies at the same line with the trace as without, and is counted the same.

After every statement of a program its line is written into a log, and into the same log each watched thing writes when
it dies: a tensor, an array that a storage lies in, a module, an optimizer, a hook that only a node of the graph holds.
Reference counts and what `gc.collect()` found are written too. The log of the traced run must be that of the bare run.
"""

from __future__ import annotations

import ast
import gc
import sys
import weakref
from typing import Any

import numpy
import pytest
import torch

import tensormagic

PROGRAMS = {
    "names bound anew": """
x = seen(torch.ones(3), "x")
y = seen(x * 2, "y")
x = seen(torch.zeros(3), "second x")
y = None
del x
""",
    "views and their base": """
array = seen(numpy.zeros(6), "array")
base = seen(torch.from_numpy(array), "base")
del array
view = seen(base[2:], "view")
other = seen(view.view(2, 2).t(), "other")
del base
view = None
del other
""",
    "temporaries of one line": """
x = torch.ones(3)
y = seen(seen(seen(x + 1, "first") * 2, "second").sum(), "third")
seen(x.clone(), "never bound")
z = [seen(x * n, n).sum().item() for n in range(3)]
w = (lambda t: seen(t * 2, "inside"))(x).mean()
""",
    "a function's locals": """
def inner(x):
    a = seen(x * 2, "a")
    b = seen(a + 1, "b")
    a = None
    c = seen(b.view(-1), "c")
    del b
    return c
def outer(x):
    kept = inner(seen(x + 1, "argument"))
    kept = kept * 2
    return kept
result = outer(torch.ones(2))
del result
""",
    "a loop": """
total = torch.zeros(2)
for n in range(12):
    t = seen(torch.full((2,), float(n)), n)
    u = seen(t[:1], ("view", n))
    total = total + t
del t
u = None
""",
    "the graph after backward": """
w = torch.ones(3, requires_grad=True)
a = seen(w * 2, "a")
b = seen(a.exp(), "b")
hooked(b, "hook on b")
loss = seen(b.sum(), "loss")
del a
loss.backward()
b = None
loss = None
w.grad = seen(w.grad.clone(), "grad")
w.grad = None
""",
    "retain_graph": """
w = torch.ones(3, requires_grad=True)
b = w.exp()
hooked(b, "hook on b")
loss = b.sum()
b = None
loss.backward(retain_graph=True)
loss.backward()
loss = None
w = None
""",
    "losses in a list": """
w = torch.ones(3, requires_grad=True)
losses = []
for n in range(6):
    y = w * n
    hooked(y, n)
    losses.append(y.sum())
    losses[-1].backward()
losses.clear()
y = None
""",
    "training": """
net = seen(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)), "net")
seen(net[0].weight, "weight")
opt = seen(torch.optim.Adam(net.parameters()), "opt")
x = torch.randn(5, 3)
for n in range(8):
    opt.zero_grad()
    out = seen(net(x), ("out", n))
    loss = out.square().mean()
    loss.backward()
    seen(net[0].weight.grad, ("grad", n))
    opt.step()
seen(opt.state[net[0].weight]["exp_avg"], "exp_avg")
counted(net[0].weight)
counted(net)
del opt
found = gc.collect()
del net
found = gc.collect()
del loss, out
found = gc.collect()
""",
    "an exception that is caught": """
def fails(x):
    held = seen(x * 2, "held")
    return held @ torch.ones(7)
try:
    fails(torch.ones(3))
except RuntimeError as error:
    kept = error
kept = None
try:
    seen(torch.ones(2), "in try").view(3)
except RuntimeError:
    pass
""",
    "an exception that ends the cell": """
def fails(x):
    held = seen(x * 2, "held")
    return held @ torch.ones(7)
a = seen(torch.ones(3), "a")
fails(a)
""",
    "an error of backward": """
w = torch.ones(3, requires_grad=True)
y = w.exp()
hooked(y, "hook")
y.add_(1)
try:
    y.sum().backward()
except RuntimeError:
    pass
y = None
""",
    "cycles": """
class Node:
    __slots__ = ("other", "tensor", "__weakref__")
a, b = Node(), Node()
a.other, b.other = b, a
a.tensor = seen(torch.ones(3), "in a cycle")
seen(a, "a")
del a, b
found = gc.collect()
listed = [seen(torch.ones(2), "in a list of itself")]
listed.append(listed)
listed = None
found = gc.collect()
""",
    "generators and closures": """
def numbers(x):
    for n in range(3):
        part = seen(x + n, ("part", n))
        yield part
gen = numbers(torch.ones(2))
first = next(gen)
second = next(gen)
first = None
gen.close()
gen = second = None
def counter():
    held = seen(torch.zeros(1), "closed over")
    return lambda: held.add_(1)
count = counter()
count()
count = None
""",
    "containers": """
box = {"a": seen(torch.ones(2), "a"), "b": [seen(torch.ones(3), "b")]}
memory = []
for n in range(5):
    memory.append(seen(torch.full((2,), n), n))
    if len(memory) > 2:
        memory.pop(0)
box.pop("a")
box["b"][0] = None
memory.clear()
""",
    "a custom Function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        seen(ctx, "ctx")
        ctx.save_for_backward(x)
        ctx.kept = seen(x.detach().clone(), "kept on ctx")
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return seen(g * 2, "made in backward")
w = torch.ones(2, requires_grad=True)
y = Double.apply(w)
y.sum().backward()
y = None
z = Double.apply(w).sum()
z = None
""",
    "hooks and saved tensors": """
w = torch.ones(2, requires_grad=True)
handle = w.register_hook(seen(Probe(), "hook on a leaf"))
(w * 2).sum().backward()
handle.remove()
handle = None
with torch.autograd.graph.saved_tensors_hooks(lambda t: seen(t.detach().clone(), "packed"), lambda t: t):
    y = w.exp()
y.sum().backward()
y = None
w = None
""",
    "no_grad, data and copies": """
w = seen(torch.ones(4, requires_grad=True), "w")
with torch.no_grad():
    e = seen(w.clone(), "e")
    e.mul_(0.9).add_(w, alpha=0.1)
d = seen(w.detach(), "d")
w.data = seen(torch.zeros(4), "new data")
d = None
e = None
w = None
""",
    "swapped": """
a, b = torch.zeros(3), torch.ones(3)
torch.utils.swap_tensors(a, b)
seen(a, "a")
seen(b, "b")
a = None
b = None
""",
    "counts": """
def use(x):
    return x.sum()
x = torch.ones(4, requires_grad=True)
counted(x)
v = x[:2]
counted(x)
counted(v)
listed = [x, v]
counted(x)
use(x)
counted(x)
loss = use(v)
counted(v)
loss.backward()
counted(x)
counted(x.grad)
del listed
counted(x)
""",
    "copied models": """
import copy
net = torch.nn.Linear(2, 2)
best = seen(copy.deepcopy(net.state_dict())["weight"], "best")
other = seen(copy.deepcopy(net), "copy")
other.load_state_dict(net.state_dict())
other = None
best = None
found = gc.collect()
""",
    "data loader": """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(seen(torch.arange(12.0), "data"))
for (batch,) in DataLoader(data, batch_size=4):
    seen(batch, "batch")
    s = batch.sum()
data = None
batch = None
""",
}  # fmt: skip
IN_FUNCTIONS = {
    "a function in the middle of a line": """
def inner(x):
    a = seen(x * 2, "a")
    a = None; note("after a")
inner(torch.ones(2))
""",
    "counts in a function": """
def inner(x):
    a = x * 2
    counted(a)
    counted(x)
inner(torch.ones(2))
""",
}

ATTRIBUTES = """
class Node:
    pass
a = Node()
a.itself = a
found = 0
a = None
found = gc.collect()
"""


class Probe:
    """A hook that changes nothing; where only the graph holds it, its death is that of the node."""

    def __call__(self, *_: Any) -> None:
        return None


class Log:
    """What happened, in order."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def note(self, word: Any) -> None:
        self.lines.append(word)

    def seen(self, value: Any, name: Any) -> Any:
        weakref.finalize(value, self.lines.append, ("gone", name)).atexit = False
        return value

    def hooked(self, tensor: Any, name: Any) -> None:
        tensor.register_hook(self.seen(Probe(), name))

    def counted(self, value: Any) -> None:
        self.lines.append(("count", sys.getrefcount(value), value._use_count() if hasattr(value, "_use_count") else 0))


class Noted(ast.NodeTransformer):
    """Writes the line of each statement into the log once it ran."""

    def visit(self, node: ast.AST) -> ast.AST:
        super().visit(node)
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                setattr(node, field, [new for one in block for new in self._with_note(one)])
        return node

    @staticmethod
    def _with_note(one: ast.stmt) -> list[ast.stmt]:
        if isinstance(one, (ast.Return, ast.Raise, ast.Pass, ast.Import, ast.ImportFrom, ast.ClassDef)):
            return [one]
        found = "found" in {name.id for name in ast.walk(one) if isinstance(name, ast.Name)}
        note = ast.parse(f"note(({one.lineno}, found))" if found else f"note({one.lineno})").body[0]
        return [one, note]


def with_notes(source: str) -> str:
    """The program with a note on a line of its own after each statement; a note tells the line in `source`."""
    return ast.unparse(Noted().visit(ast.parse(source)))


def log_of(source: str, traced: bool, **options: Any) -> list[Any]:
    log = Log()
    space = {
        "torch": torch, "numpy": numpy, "gc": gc, "Probe": Probe, "__name__": "__main__",
        "seen": log.seen, "hooked": log.hooked, "note": log.note, "counted": log.counted,
    }  # fmt: skip
    torch.manual_seed(0)
    gc.collect()
    gc.disable()  # what dies by the collector dies where the program asks for it
    try:
        if traced:
            trace = tensormagic.run(source, space, **options)
            assert [n for n in trace.recording.notices if n.code == "recorder-fault"] == []
        else:
            try:
                exec(compile(source, "<bare>", "exec"), space)
            except Exception as error:
                error.__traceback__ = None  # as an output of a notebook is shown and let go
    finally:
        gc.enable()
    log.note("end")
    for name in [name for name in space if name not in ("note", "seen")]:
        del space[name]
    log.note("names gone")
    gc.collect()
    return log.lines


@pytest.mark.parametrize("first", [2, 10**6])
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_everything_dies_at_the_same_line(name, first):
    source = with_notes(PROGRAMS[name])
    log_of(source, traced=False)  # what torch makes once
    bare = log_of(source, traced=False)
    assert any(word != "end" and isinstance(word, tuple) for word in bare), "nothing was watched"
    assert log_of(source, traced=True, first=first) == bare


@pytest.mark.xfail(
    sys.version_info < (3, 13),
    strict=True,
    reason="Before Python 3.13 a frame keeps what f_locals gave until it is asked again, at the next line",
)
@pytest.mark.parametrize("name", sorted(IN_FUNCTIONS))
def test_a_functions_locals_within_a_line(name):
    assert log_of(IN_FUNCTIONS[name], traced=True) == log_of(IN_FUNCTIONS[name], traced=False)


@pytest.mark.xfail(
    sys.version_info >= (3, 11),
    strict=True,
    reason="Since Python 3.11 the attributes of an object become a dict of its own when they are looked at: one more is collected",
)
def test_attributes_in_a_cycle_are_counted_the_same():
    source = with_notes(ATTRIBUTES)
    assert log_of(source, traced=True) == log_of(source, traced=False)
