"""Every operator of torch's own database gives the same with the trace and without, to the bit.

In the ordinary run every eighth operator is tried; with TENSORMAGIC_ALL=1 all of them.

One thing differs, and is not compared: the version counter of a gradient that several paths add up to. The engine adds
in place where nobody else holds the first part, and a hook on its node holds it for a moment.
"""

from __future__ import annotations

import itertools
import os
import warnings
from typing import Any

import pytest
import torch

import tensormagic
from tests.program.compare import Ran, bits, check_sharing, facts, flat, told_of_run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

EVERY = 1 if os.environ.get("TENSORMAGIC_ALL") else 8
SAMPLES = 2
UNWRITTEN = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}  # any bytes
CELL = """\
out = run(op, inp, args, kwargs)
outs = [t for t in flat(out) if t.requires_grad and t.dtype.is_floating_point]
grads = ()
if outs:
    wanted = [t for t in flat((leaves, args)) if t.requires_grad]
    grads = torch.autograd.grad(outs, wanted, [torch.ones_like(t) for t in outs], allow_unused=True)
"""


def plain(op: Any, inp: Any, args: Any, kwargs: Any) -> Any:
    return op(inp, *args, **kwargs)


def outcome(op: Any, sample: Any, traced: bool, in_place: bool) -> tuple[Any, ...]:
    inp = sample.input
    leaves = inp
    if in_place:
        inp = inp.clone()
    namespace = {
        "torch": torch, "op": op.inplace_variant if in_place else op, "inp": inp, "args": sample.args,
        "kwargs": sample.kwargs, "leaves": leaves, "flat": flat, "run": plain,
    }  # fmt: skip
    start = inp._version if type(inp) is torch.Tensor else 0  # some operators write into their sample, run after run
    torch.manual_seed(1)
    error = None
    trace = None
    if traced:
        trace = tensormagic.run(CELL, namespace)
        error = trace.error and (trace.error.type, trace.error.message)
    else:
        try:
            exec(compile(CELL, "<bare>", "exec"), namespace)
        except Exception as raised:
            error = (type(raised).__name__, str(raised))
    given, grads = flat(namespace.get("out")), flat(namespace.get("grads"))
    compared = (
        [facts(t) for t in given + grads],
        [t._version - (start if t is inp else 0) for t in given if not t.is_inference()],
    )
    values = [] if op.name in UNWRITTEN else [bits(t) for t in given + grads]
    return (*compared, values, error, torch.get_rng_state().tolist()), trace, namespace


@pytest.mark.parametrize("op", op_db[::EVERY], ids=lambda op: f"{op.name}-{op.variant_test_name}")
@pytest.mark.filterwarnings("ignore")
def test_operator(op: Any) -> None:
    torch.manual_seed(0)
    try:
        samples = list(
            itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=op.supports_autograd), SAMPLES)
        )
    except Exception as reason:  # no float32 samples on the CPU: nothing of ours has run yet
        pytest.skip(f"torch gives no samples: {type(reason).__name__}")
    for sample in samples:
        for in_place in (False, True) if op.inplace_variant and type(sample.input) is torch.Tensor else (False,):
            bare, _, _ = outcome(op, sample, False, in_place)
            traced, trace, namespace = outcome(op, sample, True, in_place)
            assert traced == bare
            told_of_run(trace)
            check_sharing(trace, namespace, "inp", "out")


OUT = """\
written = run(op, inp, args, {**kwargs, "out": given})
outs = flat(written)
"""


def given_for(out: torch.Tensor, kind: str) -> torch.Tensor:
    """A tensor for out=: of the right size, one to be resized, a strided view, or one of another dtype."""
    if kind == "empty":
        return torch.empty(0, dtype=out.dtype)
    if kind == "view":
        return torch.zeros(*out.shape, 2, dtype=out.dtype)[..., 0]
    return torch.zeros_like(out, dtype=torch.complex128 if kind == "wider" else out.dtype).contiguous()


def written_out(op: Any, sample: Any, shaped: Any, kind: str, traced: bool) -> tuple[Any, Any, Any]:
    """What a call with out= leaves: its tensors, its error, its warnings, the random state."""
    tensors = [given_for(t, kind) for t in flat(shaped)]
    given = tensors[0] if isinstance(shaped, torch.Tensor) else tuple(tensors)
    namespace = {
        "op": op,
        "inp": sample.input,
        "args": sample.args,
        "kwargs": sample.kwargs,
        "flat": flat,
        "run": plain,
    }
    namespace |= {"given": given, "first": tensors[0]}
    ran = Ran(OUT, namespace, traced)
    outs = flat(namespace.get("written"))
    left = ([facts(t) for t in outs + tensors], [t._version for t in outs + tensors])
    values = [] if op.name in UNWRITTEN else [bits(t) for t in outs + tensors]
    same = [a is b for a in outs for b in tensors]
    return (left, values, same, ran.error, ran.warned, ran.states), ran.trace, namespace


@pytest.mark.parametrize(
    "op", [op for op in op_db if op.supports_out][::EVERY], ids=lambda op: f"{op.name}-{op.variant_test_name}"
)
def test_out(op: Any) -> None:
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = list(itertools.islice(op.sample_inputs("cpu", torch.float32, requires_grad=False), SAMPLES))
            shaped = [op(sample.input, *sample.args, **sample.kwargs) for sample in samples]
    except Exception as reason:  # as above
        pytest.skip(f"torch gives no samples: {type(reason).__name__}")
    for sample, out in zip(samples, shaped):
        if not flat(out) or any(t.layout != torch.strided for t in flat(out)):
            continue
        for kind in ("right", "empty", "view", "wider"):
            bare, _, _ = written_out(op, sample, out, kind, False)
            traced, trace, namespace = written_out(op, sample, out, kind, True)
            assert traced == bare
            told_of_run(trace)
            check_sharing(trace, namespace, "first", "written")
            check_sharing(trace, namespace, "inp", "written")
