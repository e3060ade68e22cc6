"""Every function of the watchers made to raise, one after the other: the cell ends as it would have.

Its values, gradients and error are those of the untraced run, its record says what is missing, and nothing of ours is
left behind.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import sys
import warnings
from importlib import import_module
from typing import Any

import pytest
import torch
from torch.overrides import _get_current_function_mode_stack

import tensormagic
import tensormagic.watch
from tensormagic.watch import private

CELL = """
import numpy as np
def scaled(t, by):
    out = t * by
    return out
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
torch.manual_seed(0)
base = torch.arange(12.0)
view = base[2:6]
view.mul_(3)
shared = base.numpy()
shared[0] = 7
base.data = base.data.clone()
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(5, 4)
losses = []
for step in range(5):
    opt.zero_grad()
    loss = Double.apply(scaled(net(x), 2.0)).square().mean()
    loss.backward()
    opt.step()
    losses.append(loss.item())
weight = net[0].weight.detach().clone()
grad = net[0].weight.grad.clone()
out = torch.empty(3)
torch.add(torch.ones(3), 1, out=out)
both = torch.stack([out, out])
big = torch.ones(1000)
with torch.no_grad():
    big += 1
one, two = torch.ones(2), torch.zeros(2)
torch.utils.swap_tensors(one, two)
"""
RAISING = CELL + "w = torch.ones(2, requires_grad=True)\ny = w.exp()\ny.add_(1)\ny.sum().backward()\n"
ASKED = ("base", "view", "losses", "weight", "grad", "out", "both", "big", "one", "two")

# What stands between a fault of ours and the user's program. If one of these itself raises, nobody can catch it; they
# hold nothing but calls of what is injected here, flags, and the user's own call.
GUARDS = {
    "calls.CallMode.__torch_function__", "calls.CallMode._record", "calls.CallMode._fail", "calls.CallMode._users",
    "backward.Engine.run", "backward.Engine._begin", "backward.Engine._end", "backward.Engine._fail",
    "errors.clean", "watch.Watch.start", "watch.Watch.stop", "watch.Watch._guarded", "watch.make_watch", "watch.stopped",
    "interrupts.Held.__init__", "callsite.untold",
    "callsite._traced", "clock.Clock.notice", "clock.Clock.fault", "clock.fault_notice",
    "swaps.Swaps._swapped",
    # swap_tensors refuses what has weak references: without this watcher it would be refused under a trace.
    "swaps.Swaps.start", "swaps.Swaps._cover", "swaps._not_ours", "private.has_swap_names",
    # The arguments are the user's own: a wrong one is to be refused.
    "options.Options.__init__",
}  # fmt: skip
# What puts things back: that it was made to fail is said, and the test puts them back.
PUTS_BACK = {
    "watch.Watch._stop_lines", "watch.Watch._stop_mode", "backward.Engine.stop", "private.leave_function_mode",
    "lines.Lines.stop", "lines_settrace.SettraceLines._uninstall", "lines_monitoring.MonitoringLines._uninstall",
    "compiled.Compiled.stop", "swaps.Swaps.stop", "private.function_modes", "private.is_in_function_mode",
}  # fmt: skip
EVERYTHING = os.environ.get("TENSORMAGIC_ALL") == "1"


def functions() -> dict[str, tuple[Any, str]]:
    """ "module.Class.function" -> (owner, name) of every function and method of the watchers."""
    found = {}
    for info in pkgutil.iter_modules(tensormagic.watch.__path__):
        if info.name == "lines_monitoring" and not hasattr(sys, "monitoring"):
            continue
        module = import_module(f"tensormagic.watch.{info.name}")
        for name, member in vars(module).items():
            if getattr(member, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(member):
                found[f"{info.name}.{name}"] = (module, name)
            elif inspect.isclass(member):
                for inner, value in vars(member).items():
                    if inspect.isfunction(inner_function(value)) and (inner == "__init__" or not is_special(inner)):
                        found[f"{info.name}.{name}.{inner}"] = (member, inner)
    return found


def is_special(name: str) -> bool:
    return name.startswith("__") and name != "__torch_function__"


def inner_function(value: Any) -> Any:
    return value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


ALL = functions()
FUNCTIONS = {name: place for name, place in ALL.items() if name not in GUARDS}


def bare(cell: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(cell, "<bare>", "exec"), namespace)
        except RuntimeError as error:
            namespace["raised"] = type(error).__name__
    return namespace


WELL = bare(CELL)


def left_behind() -> list[str]:
    """What of ours is still there, put back."""
    found = []
    if sys.gettrace() is not None:
        found.append("sys.settrace")
        sys.settrace(None)
    while _get_current_function_mode_stack():
        found.append("function mode")
        torch.overrides._pop_mode()
    if getattr(torch.autograd._engine_run_backward, "__module__", "").startswith("tensormagic"):
        found.append("engine entry")
        torch.autograd._engine_run_backward = ENGINE
    for holder, name, original in SWAPS:
        if getattr(holder, name) is not original:
            found.append(f"{holder.__name__}.{name}")
            setattr(holder, name, original)
    return found


ENGINE = torch.autograd._engine_run_backward
SWAPS = [
    (torch._C, private.SWAP_ENTRY, getattr(torch._C, private.SWAP_ENTRY)),
    (torch.utils, private.SWAP_REFERENCES, getattr(torch.utils, private.SWAP_REFERENCES)),
]
ERRORS = {"RuntimeError": RuntimeError, "MemoryError": MemoryError, "RecursionError": RecursionError}


def inject(monkeypatch: pytest.MonkeyPatch, name: str, error: type[Exception], after: int = 0) -> list[int]:
    """Let a function raise from its call number `after` on; gives a list that grows with each time it did."""
    owner, attribute = FUNCTIONS[name]
    original = inspect.getattr_static(owner, attribute)
    function, raised, calls = inner_function(original), [], []

    def failing(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) <= after:
            return function(*args, **kwargs)
        raised.append(1)
        raise error("injected")

    monkeypatch.setattr(owner, attribute, staticmethod(failing) if isinstance(original, staticmethod) else failing)
    # Names that other modules imported refer to the function itself.
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("tensormagic.watch") and module is not owner:
            if vars(module).get(attribute) is original:
                monkeypatch.setattr(module, attribute, failing)
    return raised


def check(monkeypatch: pytest.MonkeyPatch, name: str, cell: str, error: type[Exception], after: int) -> None:
    namespace: dict[str, Any] = {"torch": torch}
    with monkeypatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        raised = inject(patch, name, error, after)
        trace = tensormagic.run(cell, namespace, first=2)
    left = left_behind()
    if name not in PUTS_BACK:
        assert left == []
    for asked in ASKED:
        assert_same(namespace[asked], WELL[asked], asked)
    if cell is RAISING:
        assert trace.error is not None
        assert trace.error.type == "RuntimeError"
        assert "modified by an inplace operation" in trace.error.message
    else:
        assert trace.error is None, trace.error
    if raised and error is RuntimeError:
        said = [str(notice.facts) for notice in trace.recording.notices if "injected" in str(notice.facts)]
        assert said, "nothing says that something was not recorded"
        assert len(said) == len(set(said)) <= 8, "once for each watcher"


def assert_same(one: Any, other: Any, name: str) -> None:
    if isinstance(other, torch.Tensor):
        assert torch.equal(one, other), name
    else:
        assert one == other, name


def test_what_is_left_out_is_there():
    """A name that is gone would leave out nothing, and hide that."""
    elsewhere = {"lines_monitoring.MonitoringLines._uninstall"} if not hasattr(sys, "monitoring") else set()
    assert sorted((GUARDS | PUTS_BACK) - elsewhere - set(ALL)) == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_fault_of_ours_is_not_the_users(monkeypatch, name):
    check(monkeypatch, name, CELL, RuntimeError, 0)


@pytest.mark.parametrize("name", sorted(FUNCTIONS)[:: 1 if EVERYTHING else 15])
@pytest.mark.parametrize("error", ["MemoryError", "RecursionError"])
def test_other_faults(monkeypatch, name, error):
    check(monkeypatch, name, CELL, ERRORS[error], 0)


@pytest.mark.parametrize("name", sorted(FUNCTIONS)[:: 1 if EVERYTHING else 6])
def test_a_fault_later_in_a_cell_that_raises(monkeypatch, name):
    check(monkeypatch, name, RAISING, RuntimeError, 3)
