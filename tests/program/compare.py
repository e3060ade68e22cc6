"""Runs a cell bare and traced, and compares what must not differ. Shared by the tests of this folder.

`run_both(source, make, ...)` calls `make()` twice for two equal namespaces, runs the cell bare in one and traced in the
other, and compares every tensor reachable from the names of the cell, the error with its text, the warnings by kind and
text, what was printed and the random states. `check_facts` then asks the trace about all it tells.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import random
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import torch

import tensormagic
from tensormagic.analysis.sharing import Sharing
from tensormagic.recording import schema


def flat(value: Any) -> list[torch.Tensor]:
    """The tensors in nested tuples and lists, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for item in value for tensor in flat(item)] if isinstance(value, (tuple, list)) else []


def bits(tensor: torch.Tensor) -> Any:
    """The bytes of a tensor's elements in logical order; a word where it has none of its own."""
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_meta:
        return str(tensor.layout)
    if tensor.numel() > 1 << 22:  # only expanded: its memory is compared under another name
        return "huge"
    if torch._is_zerotensor(tensor):  # autograd's tensor of zeros without memory
        return "zeros"
    copy = tensor.detach().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format).reshape(-1)
    return bytes(copy.view(torch.uint8).numpy()) if copy.numel() else b""


def facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    """What a program can ask of a tensor besides its elements."""
    stride = tensor.stride() if tensor.layout == torch.strided else ()
    return tensor.shape, stride, tensor.dtype, tensor.requires_grad, leaf(tensor), type(tensor)


def leaf(tensor: torch.Tensor) -> bool | str:
    """Its .is_leaf; what torch says where it refuses: some views have no grad_fn once their base was written."""
    try:
        return tensor.is_leaf
    except RuntimeError as error:
        return str(error)


def told_of_run(trace: Any) -> None:
    """The recording is whole: no fault of ours and no broken table."""
    assert [n for n in trace.recording.notices if n.code == "recorder-fault"] == []
    assert list(schema.problems(trace.recording)) == []


def check_sharing(trace: Any, namespace: Mapping[str, Any], a: str, b: str) -> None:
    """What the trace tells of two names' memory, against the memory."""
    x, y = namespace.get(a), namespace.get(b)
    if not (type(x) is type(y) is torch.Tensor) or x.layout != torch.strided or y.layout != torch.strided:
        return
    if not x.numel() or not y.numel():
        return
    told = trace.sharing(a, b)
    if x.is_meta or y.is_meta:  # nothing is there to share
        return
    assert (told is Sharing.SAME_OBJECT) == (x is y)
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        assert told is Sharing.SEPARATE
    else:
        assert told is not Sharing.SEPARATE


def plain(value: Any, depth: int = 0) -> Any:
    """A value made comparable: tensors to facts and bytes, containers and modules to plain ones, the rest to itself."""
    if depth > 8:
        return "deep"
    if isinstance(value, torch.Tensor):
        return _plain_tensor(value)
    if isinstance(value, numpy.ndarray):
        return ("array", value.shape, value.tobytes())
    if isinstance(value, torch.nn.Module):
        return (type(value).__name__, plain(dict(value.state_dict(keep_vars=True)), depth + 1))
    if isinstance(value, torch.optim.Optimizer):
        return (type(value).__name__, plain(value.state_dict(), depth + 1))
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item, depth + 1) for item in value]
    return value if isinstance(value, (int, float, str, bytes, bool, type(None))) else type(value).__name__


def _plain_tensor(tensor: torch.Tensor) -> Any:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        with torch._C.DisableTorchFunctionSubclass():
            return (
                type(tensor).__name__,
                tuple(tensor.shape) if tensor.layout == torch.strided else str(tensor.layout),
            )
    grad = plain(tensor.grad) if leaf(tensor) is True and tensor.requires_grad and tensor.grad is not None else None
    return (*facts(tensor), bits(_strided(tensor)), grad)


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_quantized:
        return tensor.dequantize()
    if tensor.layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        return tensor.detach().to_dense()
    return tensor


class Ran:
    """What one run of a cell left behind: .all is compared, .trace and .namespace are for further questions."""

    def __init__(self, source: str, namespace: dict[str, Any], traced: bool) -> None:
        self.namespace, self.trace, error = namespace, None, None
        torch.manual_seed(1)
        random.seed(1)
        numpy.random.seed(1)
        printed = io.StringIO()
        always = torch.is_warn_always_enabled()
        torch.set_warn_always(True)  # what torch says once a process would only be said to the first run
        with warnings.catch_warnings(record=True) as warned, contextlib.redirect_stdout(printed):
            warnings.simplefilter("always")
            if traced:
                self.trace = tensormagic.run(source, namespace)
                error = self.trace.error and (self.trace.error.type, self.trace.error.message)
            else:
                linecache.cache["<bare>"] = (
                    len(source),
                    None,
                    source.splitlines(keepends=True),
                    "<bare>",
                )  # as run() does
                try:
                    exec(compile(source, "<bare>", "exec"), namespace)
                except Exception as raised:
                    error = (type(raised).__name__, str(raised))
        torch.set_warn_always(always)
        states = (bytes(torch.get_rng_state().numpy()), random.getstate(), numpy.random.get_state()[1].tobytes())
        self.error = error
        self.warned = [(w.category.__name__, str(w.message)) for w in warned]
        self.printed, self.states = printed.getvalue(), states

    def values(self) -> dict[str, Any]:
        """Every name of the cell made comparable."""
        return {name: plain(value) for name, value in self.namespace.items() if not name.startswith("_")}


def run_both(source: str, make: Callable[[], dict[str, Any]] = dict) -> tuple[Ran, Ran]:
    """Run `source` bare and traced in namespaces from `make()`; assert that nothing differs; give both runs."""
    bare = Ran(source, {"__name__": "__main__", **make()}, traced=False)
    traced = Ran(source, {"__name__": "__main__", **make()}, traced=True)
    assert traced.error == bare.error
    assert traced.warned == bare.warned
    assert traced.printed == bare.printed
    assert traced.states == bare.states
    wanted, given = bare.values(), traced.values()
    assert given.keys() == wanted.keys()
    assert [name for name in wanted if given[name] != wanted[name]] == []
    told_of_run(traced.trace)
    return bare, traced


def check_answers(trace: Any, names: tuple[str, ...] = ()) -> None:
    """Everything the trace can be asked answers, and a healthy program has neither error nor warning."""
    assert [f for f in trace.findings if f.severity in ("error", "warning")] == []
    assert trace.summary()
    assert trace.panel() is not None
    for name in names:
        assert trace.explain(name).text
