"""Torch calls under which the line tracer is left off: only those that cannot come to lines of the user's."""

from __future__ import annotations

import sys

import pytest
import torch

import tensormagic
from tensormagic.watch.functions import may_write, readable, runs_alone

INSIDE = {
    "a hook that packs what is saved": """
def pack(t):
    return t * 1
w = torch.ones(2, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    y = (w * w).sum()
""",
    "a hook that packs, on the same line": """
def pack(t):
    return t * 1
w = torch.ones(2, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t): y = (w * w).sum()
""",
    "a function among the arguments": """
def distance(a, b):
    return (a - b).norm(dim=1)
a = torch.ones(2, 3)
loss = torch.nn.functional.triplet_margin_with_distance_loss(a, a, a, distance_function=distance)
""",
    "an object that turns itself into a number": """
class Number:
    def __index__(self):
        return 2
x = torch.ones(Number())
""",
    "a dispatch mode": """
from torch.utils._python_dispatch import TorchDispatchMode
class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))
x = torch.ones(2)
with Mode():
    y = x + 1
""",
    "a custom Function": """
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
w = torch.ones(2, requires_grad=True)
Double.apply(w).sum().backward()
""",
}


@pytest.mark.parametrize("cell", INSIDE.values(), ids=INSIDE)
def test_lines_of_the_users_inside_a_call_are_recorded(cell):
    namespace = {"torch": torch}
    trace = tensormagic.run(cell, namespace)
    assert trace.error is None, trace.error
    inner = [i for i, text in enumerate(cell.split("\n"), 1) if text.lstrip().startswith("return")]
    recorded = {step.line for step in trace.recording.steps}
    assert inner
    assert set(inner) <= recorded


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="lines come from sys.monitoring there")
def test_another_tracer_hears_of_torchs_own_functions():
    def heard(run):
        names = set()

        def tracer(frame, event, arg):
            names.add((frame.f_code.co_filename, frame.f_code.co_name))

        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            run()
        finally:
            sys.settrace(before)
        return {name for file, name in names if file == torch.nn.functional.__file__}

    cell = "y = torch.nn.functional.relu(torch.nn.functional.silu(torch.ones(2)))\n"
    plain = heard(lambda: exec(compile(cell, "<plain>", "exec"), {"torch": torch}))
    assert {"relu", "silu"} <= plain
    assert heard(lambda: tensormagic.run(cell, {"torch": torch})) >= plain


def test_which_functions_run_alone():
    class Mine(torch.autograd.Function):
        pass

    assert runs_alone(torch.Tensor.add_)
    assert runs_alone(torch.relu)
    assert runs_alone(torch.nn.functional.cross_entropy)
    assert not runs_alone(torch.Tensor.backward)
    assert not runs_alone(Mine.apply)
    assert not runs_alone(lambda x: x)


@pytest.mark.parametrize(
    "func",
    [torch.Tensor.add_, torch.Tensor.__iadd__, torch.Tensor.__setitem__, torch.relu_, torch._foreach_add_,
     torch.nn.functional.relu, torch.nn.functional.dropout, torch.nn.init.zeros_, torch.Tensor.backward],
    ids=readable,
)  # fmt: skip
def test_these_may_write(func):
    assert may_write(func, readable(func))


@pytest.mark.parametrize("func", [torch.Tensor.add, torch.matmul, torch.nn.functional.linear, torch.Tensor.__index__,
                                  torch.nn.functional.cross_entropy], ids=readable)  # fmt: skip
def test_these_may_not(func):
    assert not may_write(func, readable(func))


def test_every_builtin_operator_that_writes_is_among_those_that_may():
    """Against torch's own schemas: an operator that writes into a tensor has a name that says so, or is in the list."""
    silent = set()
    # Of every operator there is: `dir(torch.ops.aten)` knows only those that something has asked for.
    names = {name.removeprefix("aten::").split(".")[0] for name in torch._C._dispatch_get_all_op_names()}
    for name in sorted(names):
        if not hasattr(torch.ops.aten, name):
            continue
        packet = getattr(torch.ops.aten, name)
        func = getattr(torch.Tensor, name, None) or getattr(torch, name, None) or getattr(torch._C._nn, name, None)
        if func is None or not hasattr(packet, "overloads") or not runs_alone(func):
            continue
        for overload in packet.overloads():
            for argument in getattr(packet, overload)._schema.arguments:
                written = argument.alias_info is not None and argument.alias_info.is_write and not argument.is_out
                if (
                    written
                    and str(argument.type) in ("Tensor", "Optional[Tensor]")
                    and not may_write(func, readable(func))
                ):
                    silent.add(name)
    # Its schema says that it writes; it tells the allocator of a stream and leaves every byte.
    assert silent == {"record_stream"}
