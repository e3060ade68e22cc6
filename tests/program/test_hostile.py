"""Looking at names runs no code of the user's: what counts the calls of its methods counts the same without a trace."""

from __future__ import annotations

import pytest
import torch

import tensormagic

HEAD = """
seen = []
def note(name, answer=None):
    def method(self, *args, **kwargs):
        seen.append(name)
        return answer(self) if callable(answer) else answer
    return method
"""
CELLS = {
    "repr, str, eq, hash, bool, len, iter": """
class Odd:
    pass
for name in ("__repr__", "__str__", "__eq__", "__bool__", "__len__", "__iter__", "__format__", "__dir__", "__sizeof__"):
    setattr(Odd, name, note(name))
Odd.__hash__ = lambda self: seen.append("__hash__") or 1
odd = Odd()
odd.w = torch.ones(2)
many = [odd, odd]
""",
    "attribute access": """
class Odd:
    def __getattr__(self, name):
        seen.append(name)
        return torch.ones(1)
    def __getattribute__(self, name):
        seen.append(name)
        return object.__getattribute__(self, name)
    @property
    def value(self):
        seen.append("value")
        return torch.ones(2)
odd = Odd()
""",
    "a class that lies": """
class Odd:
    @property
    def __class__(self):
        seen.append("__class__")
        return torch.Tensor
odd = Odd()
held = [odd]
""",
    "a metaclass": """
class Meta(type):
    def __instancecheck__(cls, value):
        seen.append("isinstance")
        return True
    def __getattribute__(cls, name):
        seen.append(name)
        return type.__getattribute__(cls, name)
class Odd(metaclass=Meta):
    w = torch.ones(2)
odd = Odd()
seen.clear()
""",
    "containers": """
class Items(dict):
    items = keys = values = __iter__ = __getitem__ = __len__ = __contains__ = note("dict")
class Row(list):
    __iter__ = __getitem__ = __len__ = __contains__ = __bool__ = note("list")
class Pair(tuple):
    __iter__ = __getitem__ = __len__ = __bool__ = note("tuple")
items = Items(a=torch.ones(2))
row = Row([torch.ones(3)])
pair = Pair([torch.ones(4)])
""",
    "keys": """
class Key:
    def __hash__(self):
        seen.append("hash")
        return 1
    def __eq__(self, other):
        seen.append("eq")
        return torch.ones(2)
    def __repr__(self):
        raise ValueError("no text")
table = {Key(): torch.ones(2)}
net = torch.nn.Linear(2, 2)
net.__dict__[Key()] = torch.ones(3)
seen.clear()
""",
    "a module's own registers": """
class Parameters(dict):
    __bool__ = __len__ = note("register", 1)
net = torch.nn.Linear(2, 2)
net.__dict__["_buffers"] = Parameters()
seen.clear()
""",
    "an optimizer's members": """
class Members(list):
    __bool__ = note("members", True)
    def __iter__(self):
        seen.append("iter")
        return list.__iter__(self)
w = torch.ones(2, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
opt.param_groups[0]["params"] = Members([w])
seen.clear()
""",
    "the name of a module": """
class Name:
    def __eq__(self, other):
        seen.append("eq")
        return False
    def __hash__(self):
        seen.append("hash")
        return 1
class Odd:
    pass
Odd.__module__ = Name()
odd = Odd()
""",
    "cycles and a million items": """
loop = []
loop.append(loop)
table = {"me": None}
table["me"] = table
long = [0] * 1_000_000
long[-1] = torch.ones(2)
""",
}


@pytest.mark.parametrize("cell", CELLS.values(), ids=CELLS)
def test_nothing_of_the_users_is_called(cell):
    source = HEAD + cell + "x = torch.ones(2)\ny = x[1:]\ny.mul_(2)\n"
    bare = {"torch": torch, "__name__": "__main__"}
    exec(compile(source, "<bare>", "exec"), bare)
    traced = {"torch": torch, "__name__": "__main__"}
    trace = tensormagic.run(source, traced)
    assert trace.error is None, trace.error
    assert traced["seen"] == bare["seen"]
    assert [notice for notice in trace.recording.notices if notice.code == "recorder-fault"] == []
    assert trace.sharing("x", "y").name == "CONTAINS"
    again = tensormagic.run("z = x + 1\n", traced)  # now all of it stands in the namespace before the cell
    assert again.error is None
    assert traced["seen"] == bare["seen"]
