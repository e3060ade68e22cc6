"""What is set in the process is the same after a traced cell as after the bare one, however the cell ends."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch.utils.hooks import RemovableHandle

import tensormagic
from tests.notebook.kernels import Kernel
from tests.program.state import differences, state
from tests.program.test_faults import left_behind

WORK = """
import numpy as np
base = torch.arange(12.0)
view = base[2:6]
view.mul_(3)
shared = base.numpy()
shared[0] = 7
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.1)
x = torch.randn(5, 4)
for step in range(5):
    opt.zero_grad()
    loss = net(x).square().mean()
    loss.backward()
    opt.step()
one, two = torch.ones(2), torch.zeros(2)
torch.utils.swap_tensors(one, two)
with torch.autograd.set_detect_anomaly(True, check_nan=False), torch.inference_mode():
    three = one + two
"""
ENDS = {
    "to its end": "",
    "raises": "torch.ones(2) @ torch.ones(3)\n",
    "raises in backward": "w = torch.ones(2, requires_grad=True)\ny = w.exp()\ny.add_(1)\ny.sum().backward()\n",
    "is interrupted": "import signal\nsignal.raise_signal(signal.SIGINT)\n",
    "exits": "import sys\nsys.exit(3)\n",
    "does not compile": "x = = 1\n",
    "raises in a no_grad block": "with torch.no_grad():\n    net[0].weight.add_(torch.ones(7))\n",
}
# (what the cell sets, what sets it back). `put` is from the test: both runs put the very same object there.
CHANGES = {
    "grad mode": ("torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)"),
    "a no_grad that is never left": ("guard = torch.no_grad()\nguard.__enter__()", "guard.__exit__(None, None, None)"),
    "anomaly mode": ("torch.autograd.set_detect_anomaly(True)", "torch.autograd.set_detect_anomaly(False)"),
    "autocast": ("cast = torch.autocast('cpu')\ncast.__enter__()", "cast.__exit__(None, None, None)"),
    "default dtype": ("torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
    "default device": ("torch.set_default_device('meta')", "torch.set_default_device(None)"),
    "deterministic": ("torch.use_deterministic_algorithms(True)", "torch.use_deterministic_algorithms(False)"),
    "print options": ("torch.set_printoptions(precision=2)", "torch.set_printoptions(profile='default')"),
    "warning filter": ("import warnings\nwarnings.filterwarnings('error', 'much')", "warnings.filters.pop(0)"),
    "seeds": ("import random\ntorch.manual_seed(3)\nnp.random.seed(4)\nrandom.seed(5)", ""),
    "thread name": (
        "import threading\nthreading.current_thread().name = 'teacher'",
        "threading.current_thread().name = 'MainThread'",
    ),
    "excepthook": ("import sys\nsys.excepthook = put", "sys.excepthook = sys.__excepthook__"),
    "signal handler": ("import signal\nold = signal.signal(signal.SIGTERM, put)", "signal.signal(signal.SIGTERM, old)"),
    "trace function": ("import sys\nsys.settrace(put)", "sys.settrace(None)"),
    "profile function": ("import sys\nsys.setprofile(put)", "sys.setprofile(None)"),
    "recursion limit": ("import sys\nlimit = sys.getrecursionlimit()\nsys.setrecursionlimit(5000)", "sys.setrecursionlimit(limit)"),
    "a function of torch": ("old = torch.relu\ntorch.relu = put", "torch.relu = old"),
    "a method of Tensor": ("torch.Tensor.shout = put", "del torch.Tensor.shout"),
    # Not taken from there by the cell: under a trace it would be given ours.
    "the engine's entry": (
        "torch.autograd._engine_run_backward = put",
        "torch.autograd._engine_run_backward = engine",
    ),
    "a global hook": (
        "handle = torch.nn.modules.module.register_module_forward_hook(put)",
        "handle.remove()",
    ),
    "a function mode": ("mode.__enter__()", "mode.__exit__(None, None, None)"),
    "gc": ("import gc\ngc.disable()", "gc.enable()"),
}  # fmt: skip


class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    """Everything is imported that will be, so that only what a cell sets is seen."""
    tensormagic.run("import torch\n" + WORK)


@pytest.fixture(autouse=True)
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def seed() -> None:
    torch.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)
    RemovableHandle.next_id = 0  # it counts the user's own hooks: both runs begin with the same number


def bare(cell: str, namespace: dict[str, Any]) -> None:
    with contextlib.suppress(Exception, KeyboardInterrupt, SystemExit):
        exec(compile(cell, "<bare>", "exec"), namespace)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("bounds", [{}, {"first": 1}, {"max_steps": 3}], ids=["whole", "light", "bounded"])
def test_nothing_is_left_however_the_cell_ends(end: str, bounds: dict[str, int]) -> None:
    cell = ENDS[end] if end == "does not compile" else WORK + ENDS[end]
    seed()
    begin = state()
    bare(cell, {"torch": torch})
    wanted = state()
    assert set(differences(begin, wanted)) <= {"RNG"}
    seed()
    trace = tensormagic.run(cell, {"torch": torch}, **bounds)
    assert (trace.error is not None) == (end != "to its end")
    assert differences(wanted, state()) == []


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("last", ["", "raise KeyError('no')\n"], ids=["and ends", "and raises"])
def test_what_the_cell_sets_stays_set(change: str, last: str) -> None:
    sets, back = CHANGES[change]
    cell = WORK + sets + "\n" + last
    common = {
        "torch": torch,
        "put": lambda *args, **kwargs: None,
        "mode": Mode(),
        "engine": torch.autograd._engine_run_backward,
    }
    found = []
    begin = state()
    for traced in (False, True):
        namespace = dict(common)
        seed()
        if traced:
            tensormagic.run(cell, namespace)
        else:
            bare(cell, namespace)
        found.append(state())
        exec(back, namespace)
        assert left_behind() == []
    assert set(differences(begin, found[0])) - {"RNG"}, "the cell set nothing that state() sees"
    assert differences(*found) == []


def test_asking_and_showing_sets_nothing() -> None:
    trace = tensormagic.run(WORK + ENDS["raises in backward"], {"torch": torch})
    trace.panel(), trace.summary()  # what they import has been imported
    begin = state()
    assert trace.findings and trace.summary() and trace.explain("w") and trace.panel() is not None
    assert differences(begin, state()) == []


def test_a_trace_that_ends_while_another_thread_runs(tmp_path: Path) -> None:
    """State that belongs to a thread is that thread's own."""
    ready, stop, found = threading.Event(), threading.Event(), []

    def other() -> None:
        with torch.no_grad():
            begin = state()
            ready.set()
            stop.wait(60)
            found.append((differences(begin, state()), torch.is_grad_enabled()))

    thread = threading.Thread(target=other, name="reader")
    thread.start()
    assert ready.wait(60)
    seed()
    tensormagic.run(WORK, {"torch": torch}).save(tmp_path / "trace.json")
    stop.set()
    thread.join(60)
    ((changed, grad_enabled),) = found
    assert set(changed) <= {"RNG", "numpy.random", "random"} and grad_enabled is False


KERNEL = """
import sys
sys.path.insert(0, {root!r})
import signal, torch, numpy
from tests.program.state import differences, state
"""
# What the first use in a process may add: modules that were not there, with what their import registers.
ADDS = {"atexit", "meta path"}


def test_first_use_in_a_kernel() -> None:
    """From before `%load_ext` to after `%unload_ext`, with cells that end, raise, are interrupted and exit."""
    root = str(Path(__file__).resolve().parents[2])
    with Kernel() as kernel:
        assert kernel.run(KERNEL.format(root=root)).status == "ok"
        assert kernel.run(WORK).status == "ok"
        assert kernel.run("torch.manual_seed(0); begin = state()").status == "ok"
        assert kernel.run("%load_ext tensormagic").status == "ok"
        for end in ("raises", "is interrupted", "to its end"):
            ran = kernel.run("%%tensortrace\ntorch.manual_seed(0)\n" + WORK + ENDS[end])
            assert ran.status == ("ok" if end == "to its end" else "error")
        assert kernel.run("%unload_ext tensormagic").status == "ok"
        kernel.run("torch.manual_seed(0); end = state(); changed = differences(begin, end)")
        left = f"[n for n in changed if begin.get(n) is not None and n not in {ADDS!r}]"
        assert eval(kernel.evaluate(left)) == []
        added = "[n for n in changed if n not in begin and n.rpartition('.')[0] in known and not isinstance(end[n], type(sys))]"
        kernel.run("known = {n.rpartition('.')[0] for n in begin}")
        assert eval(kernel.evaluate(added)) == []


def test_state_sees_a_change() -> None:
    """The check can fail: each kind of thing that state() reads, changed by hand."""
    begin = state()
    old, handler = torch.relu, signal.getsignal(signal.SIGTERM)
    torch.relu = lambda x: x
    torch.nn.Linear.extra = 1
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.setswitchinterval(0.25)
    try:
        changed = differences(begin, state())
    finally:
        torch.relu = old
        del torch.nn.Linear.extra
        signal.signal(signal.SIGTERM, handler)
        sys.setswitchinterval(0.005)
    assert changed == [
        f"handler of signal {int(signal.SIGTERM)}",
        "switch interval",
        "torch.nn.modules.linear.Linear.extra",
        "torch.relu",
    ]
    assert differences(begin, state()) == []
