"""What the watchers record, against torch itself."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
import torch

import tensormagic
from tensormagic.analysis.sharing import Sharing
from tensormagic.recording import schema
from tensormagic.watch import private


def run(cell, **options):
    namespace = {"torch": torch}
    trace = tensormagic.run(cell, namespace, **options)
    assert trace.error is None, trace.error
    assert list(schema.problems(trace.recording)) == []
    return trace, namespace


def test_steps_are_lines_and_calls_belong_to_them():
    trace, _ = run("x = torch.ones(2)\ny = x.clone()\n")
    assert [step.line for step in trace.recording.steps] == [1, 2]
    assert [(trace.index.function(i), call.step) for i, call in enumerate(trace.recording.calls)] == [
        ("torch.ones", 0), ("Tensor.clone", 1),
    ]  # fmt: skip


def test_a_function_s_steps_come_before_the_line_that_called_it():
    trace, _ = run("def f(a):\n    b = a + 1\n    return b * 2\nx = f(torch.ones(1))\n")
    assert [step.line for step in trace.recording.steps] == [1, 2, 3, 4]
    assert trace.recording.steps[1].parent == 3
    assert trace.at(1)["b"].frame == 1


def test_a_multi_line_statement_is_one_step():
    trace, _ = run("x = torch.add(\n    torch.ones(2),\n    1,\n)\n")
    assert [step.line for step in trace.recording.steps] == [1]


@pytest.mark.parametrize("line, function", [
    ("v = x[1:]", "Tensor.__getitem__"), ("v = x.view(4)", "Tensor.view"), ("v = x.t()", "Tensor.t"),
    ("v = x.expand(3, 2, 2)", "Tensor.expand"), ("v = x.detach()", "Tensor.detach"), ("v = x.data", "Tensor.data"),
    ("v = x.T", "Tensor.T"), ("v = x.unbind()[0]", "Tensor.unbind"), ("v = torch.from_numpy(x.numpy())", ""),
    ("v = x.numpy()", "Tensor.numpy"),
])  # fmt: skip
def test_views_share_and_their_maker_is_known(line, function):
    trace, namespace = run(f"x = torch.zeros(2, 2)\n{line}\n")
    assert trace.sharing("x", "v") is not Sharing.SEPARATE
    if function and isinstance(namespace["v"], torch.Tensor):
        assert trace.index.function(trace.index.maker(trace.at()["v"].base)) == function


WRITES = {
    "x += 1": (True, "in place"), "x[0] = 5.0": (True, "index"), "x.mul_(2)": (True, "method"),
    "x.data += 1": (False, "data"), "x.numpy()[0] = 7": (False, "numpy"), "x.detach().zero_()": (True, "detach"),
    "torch.add(x, 1, out=x)": (True, "out"), "x.view(2)[:] = 3": (True, "view"),
}  # fmt: skip


@pytest.mark.parametrize("line", WRITES)
def test_writes_are_seen_and_reach_every_alias(line):
    trace, _ = run(f"x = torch.ones(2)\nalias = x.view(2)\narr = x.numpy()\n{line}\n")
    writes = [write for write in trace.writes if write.line == 4]
    assert len(writes) == 1
    assert {"x", "alias", "arr"} <= set(writes[0].reaches)
    assert writes[0].told is WRITES[line][0]


@pytest.mark.parametrize(
    "line", ["y = x + 1", "x = x * 2", "x.t_()", "x.unsqueeze_(0)", "x.requires_grad_()", "n = x.sum().item()"]
)
def test_no_write_where_no_byte_changes(line):
    trace, _ = run(f"x = torch.ones(2, 2)\n{line}\n")
    assert len(trace.writes) == 0


def test_batch_norm_s_unseen_write_is_one():
    trace, _ = run("bn = torch.nn.BatchNorm1d(2)\ny = bn(torch.randn(4, 2))\n")
    reached = {name for write in trace.writes if write.line == 2 for name in write.reaches}
    assert {"bn.running_mean", "bn.running_var"} <= reached


def test_an_address_that_is_used_again_is_not_the_same_storage():
    trace, _ = run("for i in range(5):\n    x = torch.full((3,), float(i))\n    del x\nx = torch.ones(3)\n")
    assert len(trace.recording.storages) == 6
    assert [row.death >= 0 for row in trace.recording.storages] == [True] * 5 + [False]


def test_gradients_contributions_and_accumulation():
    trace, _ = run("a = torch.tensor(2.0, requires_grad=True)\nb = a * 3 + a ** 2\nb.backward()\n(a * 5).backward()\n")
    first, second = trace.accumulations("a")
    assert sorted(value for _, value in first.parts) == [3.0, 4.0]
    assert (first.values, second.values) == (7.0, 5.0)
    assert (first.before, first.after, second.after) == (None, 7.0, 12.0)
    assert (first.in_place, second.in_place) == (False, True)
    assert trace["a"].grad.values == 12.0


def test_names_through_containers_modules_and_objects():
    trace, _ = run(
        "class Box:\n    def __init__(self):\n        self.t = torch.ones(1)\n"
        "box = Box()\nd = {'a': [torch.ones(1)]}\nnet = torch.nn.Sequential(torch.nn.Linear(1, 1))\n"
        "from collections import deque\nq = deque([box.t])\n"
    )
    names = set(trace.at())
    assert {"box.t", "d['a'][0]", "net[0].weight", "q[0]"} <= names
    assert trace.sharing("box.t", "q[0]") is Sharing.SAME_OBJECT


def test_bounds_are_said():
    trace, _ = run("xs = [torch.ones(1) for _ in range(300)]\n")
    assert any(notice.code == "items-bound" for notice in trace.recording.notices)
    trace, _ = run("for i in range(50):\n    x = torch.ones(1)\n", max_steps=20)
    assert any(notice.code == "steps-bound" for notice in trace.recording.notices)


def test_a_long_loop_is_light_and_still_names_the_overwritten_tensor():
    trace = tensormagic.run(
        "import torch\nw = torch.ones(2, requires_grad=True)\nfor i in range(60):\n    h = w * 2\n    y = (h * h).sum()\n"
        "    if i == 50:\n        h += 1\n    y.backward()\n"
    )
    assert trace.error.type == "RuntimeError"
    (finding,) = [f for f in trace.findings if f.rule == "saved-tensor-overwritten"]
    assert finding.lines == {"saved": 5, "modified": 7, "raised": 8}


def test_nothing_is_kept_alive():
    namespace = {"torch": torch}
    trace = tensormagic.run(
        "x = torch.ones(3, requires_grad=True)\ny = (x * 2).sum()\ny.backward()\nnet = torch.nn.Linear(2, 2)\n",
        namespace,
    )
    refs = [weakref.ref(namespace[name]) for name in ("x", "y", "net")]
    namespace.clear()
    gc.collect()
    assert [ref() for ref in refs] == [None] * 3
    assert trace["x"].grad.values == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("cell", ["x = torch.ones(2)", "1 / 0", "raise KeyboardInterrupt", "import sys; sys.exit(3)"])
def test_nothing_is_left_behind(cell):
    before = (
        sys.gettrace(),
        getattr(torch.autograd, private.ENGINE_ENTRY),
        private.function_modes(),
        torch.is_grad_enabled(),
    )
    tensormagic.run(cell, {"torch": torch})
    after = (
        sys.gettrace(),
        getattr(torch.autograd, private.ENGINE_ENTRY),
        private.function_modes(),
        torch.is_grad_enabled(),
    )
    assert before == after


def test_a_trace_block_in_a_script():
    with tensormagic.trace() as t:
        a = torch.zeros(4)
        b = a[:2]
        b += 1
    assert t.sharing("a", "b") is Sharing.CONTAINS
    assert [write.line for write in t.writes] and "a" in t.writes[0].reaches


def test_the_exception_of_a_block_passes_through():
    with pytest.raises(ZeroDivisionError) as caught, tensormagic.trace() as t:
        a = torch.zeros(1)
        1 / 0
    assert t.error.type == "ZeroDivisionError"
    assert not [
        entry
        for entry in caught.traceback
        if "tensormagic" in str(entry.path) and "tests" not in str(entry.path) and "tracing" not in str(entry.path)
    ]


def test_warnings_stand_at_the_user_s_line():
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trace = tensormagic.run("import torch\na = torch.ones(2, requires_grad=True) * 2\na.grad\n")
    (warning,) = [w for w in caught if "non-leaf" in str(w.message).lower() or "not a leaf" in str(w.message)]
    assert warning.filename == trace.recording.cell
    assert warning.lineno == 3


@pytest.mark.parametrize("line", ["p.data = u", "p.data = u[1:]"])
def test_a_tensor_that_is_given_other_memory_is_no_write(line):
    trace, namespace = run(
        "p = torch.nn.Parameter(torch.zeros(3))\nq = torch.nn.Parameter(torch.ones(3))\nd = p.detach()\nu = torch.ones(4)\n"
        f"d = None\n{line}\n"
    )
    assert len(trace.writes) == 0
    assert trace["p"].values == namespace["p"].tolist()


@pytest.mark.parametrize("line", ["p.data.fill_(2)", "p.data = u; p.data.fill_(2)"])
def test_a_write_behind_data(line):
    trace, _ = run(f"p = torch.nn.Parameter(torch.zeros(3))\nu = torch.ones(3)\n{line}\n")
    assert [(write.line, write.told, "p" in write.reaches) for write in trace.writes] == [(3, False, True)]


def test_an_array_of_its_own_has_a_name_and_no_memory_of_a_tensor():
    trace, _ = run(
        "import numpy as np\na = np.zeros(3)\nb = a[1:]\nt = torch.tensor(a)\nc = t.numpy()\nc = c.copy()\nlate = None\n"
        "u = torch.from_numpy(b)\nb[0] = 4\n"
    )
    assert [trace.sharing(one, other).name for one, other in ("tc", "ta", "au", "bu", "cu")] == [
        "SEPARATE", "SEPARATE", "CONTAINS", "SAME_BYTES", "SEPARATE",
    ]  # fmt: skip
    assert trace.relation("t", "c").exact
    assert [set(write.reaches) for write in trace.writes] == [{"a", "b", "u"}]
    with pytest.raises(ValueError, match="on no tensor's memory"):
        trace.sharing("a", "b", step=4)
    with pytest.raises(TypeError, match="no tensor"):
        trace["c"]


def test_an_array_whose_address_was_another_s_is_looked_at_anew():
    trace, _ = run(
        "import numpy as np\nt = torch.zeros(3)\nfor _ in range(3):\n    a = np.ones(3)\n    a = None\n    a = t.numpy()\n"
    )
    assert trace.sharing("a", "t").name == "SAME_BYTES"


def test_lines_are_known_by_their_calls_where_another_tracer_took_over():
    """pdb's `continue` leaves no tracer at all: what runs from there on is found at its torch calls."""
    trace = tensormagic.run(
        "import pdb, io\n"
        "def f(t):\n"
        "    pdb.Pdb(stdin=io.StringIO('c\\n'), stdout=io.StringIO(), nosigint=True).set_trace()\n"
        "    u = t + 1\n"
        "    return u\n"
        "g = f(torch.ones(2))\n"
        "h = g * 2\n"
        "for k in range(2):\n"
        "    h = h * 2 - 1\n",
        {"torch": torch},
    )
    if not [notice for notice in trace.recording.notices if notice.code == "lines-lost"]:
        return  # sys.monitoring: nobody takes its place
    assert list(trace.recording.steps.column("line")) == [1, 2, 3, 4, 6, 7, 9, 9]
    made = {name: trace.explain(name).made for name in "gh"}
    assert "line 4" in made["g"] and "line 9" in made["h"], made


def test_a_cell_that_does_not_compile_has_its_error():
    trace = tensormagic.run("x = (\n", {})
    assert (trace.error.type, trace.error.line) == ("SyntaxError", 1)
