"""The one place that touches torch's private names.

Each is looked up once, here; where a torch release lacks it, the public fallback beside it is used or the feature says
that it is off. `tests/watch/test_private.py` asks every one of them for what is relied on.
"""

from __future__ import annotations

from typing import Any

import torch

# Switches off __torch_function__ of subclasses *and* modes for a block: the recorder reads attributes inside it.
no_torch_function = torch._C.DisableTorchFunction

# Bound once: reading through the base class's own descriptors cannot reach an override in a subclass.
_base = torch._C.TensorBase
get_version = _base._version.__get__
get_grad_fn = _base.grad_fn.__get__
get_grad = _base.grad.__get__
get_requires_grad = _base.requires_grad.__get__
_is_leaf = _base.is_leaf.__get__
get_retains_grad = _base.retains_grad.__get__
get_shape = _base.shape.__get__
get_dtype = _base.dtype.__get__
get_device = _base.device.__get__
get_layout = _base.layout.__get__
get_stride = _base.stride
get_offset = _base.storage_offset
get_is_view = _base._is_view
get_storage = _base.untyped_storage if hasattr(_base, "untyped_storage") else torch.Tensor.untyped_storage


def get_is_leaf(tensor: Any) -> bool:
    """Is it a leaf? A view whose base was changed where torch forbids it refuses the question: it is none."""
    try:
        return bool(_is_leaf(tensor))
    except RuntimeError:
        return False


def _no_sequence() -> int:
    return -1


# Autograd numbers its nodes as they are made; the counter tells which nodes a call made without holding any of them.
sequence_number = getattr(torch._C._autograd, "_get_sequence_nr", _no_sequence)


def node_number(node: Any) -> int:
    """The sequence number of a node of the graph, -1 where torch does not give one."""
    ask = getattr(node, "_sequence_nr", None)
    return -1 if ask is None else int(ask())


def dispatch_modes() -> int:
    """How many TorchDispatchModes are active: under one of the user's, our own tensor operations would be seen by it."""
    ask = getattr(torch._C, "_len_torch_dispatch_stack", None)
    return 0 if ask is None else int(ask())


def is_wrapped(tensor: Any) -> bool:
    """Is this a functorch or functionalization wrapper, which has no memory of its own?"""
    functorch = getattr(torch._C, "_functorch", None)
    if functorch is not None and functorch.is_functorch_wrapped_tensor(tensor):
        return True
    ask = getattr(torch, "_is_functional_tensor", None)
    return bool(ask is not None and ask(tensor))


def function_modes() -> int:
    """How many TorchFunctionModes are active."""
    return len(torch.overrides._get_current_function_mode_stack())


def leave_function_mode(mode: Any) -> None:
    """Take a mode off the stack, wherever it lies; modes that the cell left above it stay."""
    above = []
    while function_modes():
        top = torch.overrides._pop_mode()
        if top is mode:
            break
        above.append(top)
    for other in reversed(above):
        torch.overrides._push_mode(other)


# Every way into the engine (Tensor.backward, autograd.backward, autograd.grad, checkpoint) looks this name up in the
# module torch.autograd when it runs. Where it is gone, backward runs are recorded as calls only.
ENGINE_ENTRY = "_engine_run_backward"


def has_engine_entry() -> bool:
    return callable(getattr(torch.autograd, ENGINE_ENTRY, None))
