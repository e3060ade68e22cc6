"""What is followed from a variable on: containers, attributes, slots, classes; and that no code of the user's runs."""

from __future__ import annotations

import pytest
import torch

import tensormagic
from tensormagic.watch import names

DATA = "import dataclasses\n@dataclasses.dataclass\nclass Batch:\n    x: torch.Tensor\nbatch = Batch(t)\n"
SLOTS = "class Slotted:\n    __slots__ = ('t', 'empty')\n    def __init__(self, t):\n        self.t = t\nholder = Slotted(t)\n"
SLOTS_DATA = (
    "import dataclasses\n@dataclasses.dataclass(slots=True)\nclass Batch:\n    x: torch.Tensor\nbatch = Batch(t)\n"
)
EMPTY = "class Config:\n    pass\nconfig = Config()\nconfig.t = t\n"
CLASS = "class Meter:\n    history = []\n    def push(self, t):\n        self.history.append(t)\nmeter = Meter()\nmeter.push(t)\n"
METHOD = "class Net:\n    def go(self, seen=[]):\n        seen.append(1)\nNet.total = t\nnet = Net()\n"
MODULE = "class Net(torch.nn.Module):\n    table = t\nnet = Net()\n"
DATASET = "from torch.utils.data import DataLoader, TensorDataset\nloader = DataLoader(TensorDataset(t))\n"


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        (DATA, "batch.x"), (SLOTS, "holder.t"), (SLOTS_DATA, "batch.x"), (EMPTY, "config.t"), (CLASS, "Meter.history[0]"),
        (CLASS, "meter.history[0]"), (METHOD, "Net.total"), (METHOD, "net.total"), (MODULE, "net.table"),
        (DATASET, "loader.dataset.tensors[0]"), ("q = {(0, 1): t, 0.5: [t], None: t}\n", "q[(0, 1)]"),
        ("q = {(0, 1): t, 0.5: [t], None: t}\n", "q[0, 1]"), ("q = {(0, 1): t, 0.5: [t], None: t}\n", "q[0.5][0]"),
        ("d = torch.distributions.Normal(t, torch.ones(2))\n", "d.loc"),
        ("best = t.max(dim=0)\nvals, _ = best\nt = vals\n", "best.values"),
        ("import types\nns = types.SimpleNamespace(t=t)\n", "ns.t"),
    ],
)  # fmt: skip
def test_a_name_for_it(cell, name):
    trace = tensormagic.run("import torch\nt = torch.zeros(2)\n" + cell, {"__name__": "__main__"})
    assert trace.error is None, trace.error
    assert trace.sharing(name, "t").name in ("SAME_OBJECT", "SAME_BYTES")
    assert not [notice for notice in trace.recording.notices if notice.code == "recorder-fault"]


def test_no_code_of_a_class_runs():
    cell = """\
class Loud:
    kept = []
    def __init__(self, t):
        self._t = t
    def __getattr__(self, name):
        asked.append(name)
        raise AttributeError(name)
    @property
    def t(self):
        asked.append("t")
        return self._t
    def __eq__(self, other):
        asked.append("==")
    __hash__ = None
asked = []
loud = Loud(t)
again = {1: loud}
"""
    namespace = {"__name__": "__main__"}
    trace = tensormagic.run("import torch\nt = torch.zeros(2)\n" + cell, namespace)
    assert namespace["asked"] == []
    assert trace.sharing("again[1]._t", "t").name == "SAME_OBJECT"


def test_a_named_tuple_s_class_has_no_names_of_its_own():
    cell = "from typing import NamedTuple\nclass Pair(NamedTuple):\n    a: object\n    b: object\np = Pair(t, t[:1])\n"
    trace = tensormagic.run("import torch\nt = torch.zeros(2)\n" + cell, {"__name__": "__main__"})
    assert [name for name in trace.at() if name.startswith("Pair")] == []
    assert trace.sharing("p.a", "t").name == "SAME_OBJECT"


def test_a_list_that_another_thread_shortens_while_it_is_read(monkeypatch):
    """What is left of it is followed, and nothing is said to be missing."""
    follow = names.Names._tensor

    def shortening(self, value, path, depth):
        follow(self, value, path, depth)
        if len(stack) == 3:
            del stack[1:]  # as a thread of the program's may, between two items

    stack = [torch.ones(1), torch.ones(2), torch.ones(3)]
    monkeypatch.setattr(names.Names, "_tensor", shortening)
    trace = tensormagic.run("x = 1\n", {"stack": stack})
    assert len(stack) == 1 and trace.recording.notices == []
    assert "stack[0]" in trace.at() and "stack[1]" not in trace.at()
