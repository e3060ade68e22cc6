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
from tensormagic.analysis.sharing import Sharing
from tensormagic.recording import schema

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


def flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in flat(item)] if isinstance(value, (tuple, list)) else []


def plain(op: Any, inp: Any, args: Any, kwargs: Any) -> Any:
    return op(inp, *args, **kwargs)


def bits(tensor: torch.Tensor) -> Any:
    if tensor.layout != torch.strided or tensor.is_quantized:
        return tensor.layout
    if torch._is_zerotensor(tensor):  # autograd's tensor of zeros without memory
        return "zeros"
    copy = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1)
    return bytes(copy.view(torch.uint8).numpy()) if copy.numel() else b""


def facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    stride = tensor.stride() if tensor.layout == torch.strided else ()
    return tensor.shape, stride, tensor.dtype, tensor.requires_grad, tensor.is_leaf, type(tensor)


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


def check_told(trace: Any, namespace: dict[str, Any]) -> None:
    """What the trace tells of sharing, against the memory."""
    out, inp = namespace.get("out"), namespace["inp"]
    if not (type(out) is type(inp) is torch.Tensor) or out.layout != torch.strided or inp.layout != torch.strided:
        return
    if not out.numel() or not inp.numel():
        return
    told = trace.sharing("inp", "out")
    assert (told is Sharing.SAME_OBJECT) == (out is inp)
    if out.untyped_storage().data_ptr() != inp.untyped_storage().data_ptr():
        assert told is Sharing.SEPARATE
    else:
        assert told is not Sharing.SEPARATE


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
            assert [n for n in trace.recording.notices if n.code == "recorder-fault"] == []
            assert list(schema.problems(trace.recording)) == []
            check_told(trace, namespace)
