"""Every module and every autograd.Function of torch's own databases gives the same with the trace and without.

In the ordinary run every sixth module and its first two samples; with TENSORMAGIC_ALL=1 all of them.
"""

from __future__ import annotations

import copy
import itertools
import os
import warnings
from typing import Any

import pytest
import torch

from tests.program.compare import Ran, bits, facts, flat, told_of_run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.autograd_function_db import autograd_function_db
    from torch.testing._internal.common_modules import module_db

ALL = bool(os.environ.get("TENSORMAGIC_ALL"))
EVERY, SAMPLES = (1, 10**6) if ALL else (6, 2)
TRAINING = """\
module = make()
module.train(training)
out = module(*args, **kwargs)
outs = [t for t in flat(out) if t.requires_grad]
wanted = [p for p in (*module.parameters(), *flat(args)) if p.requires_grad]
if outs:
    torch.autograd.backward(outs, [torch.ones_like(t) for t in outs])
state = list(module.parameters()) + list(module.buffers())
"""
FUNCTION = """\
out = op(inp, *args, **kwargs)
outs = [t for t in flat(out) if t.requires_grad and t.dtype.is_floating_point]
grads = ()
if outs:
    wanted = [t for t in flat((inp, args)) if t.requires_grad]
    grads = torch.autograd.grad(outs, wanted, [torch.ones_like(t) for t in outs], allow_unused=True)
"""


def left(ran: Ran, names: tuple[str, ...]) -> tuple[Any, ...]:
    """What a run left behind, in a form that can be compared."""
    tensors = [t for name in names for t in flat(ran.namespace.get(name))]
    grads = [t.grad for t in tensors if t.is_leaf and t.grad is not None]
    every = tensors + grads
    return [facts(t) for t in every], [bits(t) for t in every], ran.error, ran.warned, ran.states


def fresh(value: Any) -> Any:
    """The sample's own tensors must not carry the gradients of the run before."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (tuple, list)):
        return type(value)(fresh(item) for item in value)
    return {key: fresh(item) for key, item in value.items()} if isinstance(value, dict) else copy.copy(value)


def both(source: str, make: Any, names: tuple[str, ...]) -> Ran:
    """Run bare and traced in equal namespaces; nothing may differ."""
    bare, traced = Ran(source, make(), False), Ran(source, make(), True)
    assert left(traced, names) == left(bare, names)
    told_of_run(traced.trace)
    return traced


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("info", module_db[::EVERY], ids=lambda info: info.name)
@pytest.mark.filterwarnings("ignore")
def test_module(info: Any, training: bool) -> None:
    torch.manual_seed(0)
    samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
    for sample in itertools.islice(samples, SAMPLES):
        made, given = sample.constructor_input, sample.forward_input
        if given is None:  # the sample is of the constructor alone
            continue

        def make(made: Any = made, given: Any = given) -> dict[str, Any]:
            def module() -> torch.nn.Module:
                return info.module_cls(*made.args, **made.kwargs)

            return {
                "torch": torch, "make": module, "training": training, "flat": flat,
                "args": fresh(given.args), "kwargs": fresh(given.kwargs),
            }  # fmt: skip

        both(TRAINING, make, ("out", "state", "wanted"))


@pytest.mark.parametrize(
    "info",
    [info for info in module_db if info.module_error_inputs_func][:: 1 if ALL else 3],
    ids=lambda info: info.name,
)
@pytest.mark.filterwarnings("ignore")
def test_module_that_raises(info: Any) -> None:
    """The error of a wrong argument is the same, with its text."""
    torch.manual_seed(0)
    samples = info.module_error_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=False, training=True)
    for sample in samples:
        made, given = sample.module_error_input.constructor_input, sample.module_error_input.forward_input

        def make(made: Any = made, given: Any = given) -> dict[str, Any]:
            names = {"torch": torch, "info": info, "made": made, "given": given, "fresh": fresh}
            return names

        source = "module = info.module_cls(*made.args, **made.kwargs)\nout = module(*given.args, **given.kwargs)\n"
        ran = both(source, make, ())
        assert ran.error is not None


@pytest.mark.parametrize("op", autograd_function_db, ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore")
def test_function(op: Any) -> None:
    torch.manual_seed(0)
    for sample in op.sample_inputs("cpu", torch.float32, requires_grad=True):

        def make(sample: Any = sample) -> dict[str, Any]:
            return {
                "torch": torch, "op": op, "flat": flat, "inp": fresh(sample.input), "args": fresh(sample.args),
                "kwargs": fresh(sample.kwargs),
            }  # fmt: skip

        both(FUNCTION, make, ("out", "grads"))
