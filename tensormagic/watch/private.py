"""The one place that touches torch's private names.

Each is looked up once, here; where a torch release lacks it, the public fallback beside it is used or the feature says
that it is off. `tests/watch/test_private.py` asks every one of them for what is relied on.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

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
numel, data_ptr, is_contiguous = _base.numel, _base.data_ptr, _base.is_contiguous
get_is_view = _base._is_view
is_nested = _base.is_nested.__get__
get_storage = _base.untyped_storage if hasattr(_base, "untyped_storage") else torch.Tensor.untyped_storage


def _address_of_storage(tensor: Any) -> int:
    return id(get_storage(tensor))


# Where the storage itself lives (not its data): names it as long as it lives, without making a Python object for it.
storage_address = getattr(torch._C, "_storage_address", _address_of_storage)


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


# Far apart: a thread that makes handles of its own while one of ours is made gets a number in the gap.
_own_handles = itertools.count(-1000, -1000)


def register_hook(node: Any, hook: Any) -> Any:
    """`node.register_hook(hook)`, numbered below nought: the user's own hooks get the numbers they have without a trace."""
    before, own = getattr(RemovableHandle, "next_id", None), next(_own_handles)
    if before is None:
        return node.register_hook(hook)
    RemovableHandle.next_id = own
    try:
        return node.register_hook(hook)
    finally:
        # Another thread may have taken a number in between; the next one must not get the same.
        RemovableHandle.next_id = before + max(0, RemovableHandle.next_id - own - 1)


def node_number(node: Any) -> int:
    """The sequence number of a node of the graph, -1 where torch does not give one."""
    ask = getattr(node, "_sequence_nr", None)
    return -1 if ask is None else int(ask())


def _some(*_args: Any) -> Any:
    return ()


# How many TorchDispatchModes are active, and the pair of hooks that packs what is saved for backward (None: there is
# none; asked with True also where it is switched off). Code of the user's runs in both, in the middle of a torch call.
# Where torch does not tell, both answer as if there were some.
dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
saved_hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", _some)


def _never(_tensor: Any) -> bool:
    return False


_is_functorch = getattr(getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", _never)
_is_functional = getattr(torch, "_is_functional_tensor", _never)


def is_wrapped(tensor: Any) -> bool:
    """Is this a functorch or functionalization wrapper, which has no memory of its own?"""
    return bool(_is_functorch(tensor) or _is_functional(tensor))


def function_modes() -> int:
    """How many TorchFunctionModes are active."""
    return len(torch.overrides._get_current_function_mode_stack())


# What torch.jit.trace is writing down, None at all other times: then sizes are tensors, and what is read is warned of.
jit_tracing = getattr(torch._C, "_get_tracing_state", lambda: None)


def is_in_function_mode(mode: Any) -> bool:
    """Is this mode on the stack of TorchFunctionModes?"""
    return any(other is mode for other in torch.overrides._get_current_function_mode_stack())


def leave_function_mode(mode: Any) -> int:
    """Take a mode off the stack, wherever it lies; modes that the cell left above it stay.

    Returns:
        how many lie above the place that it was at, -1 where it was not on the stack.
    """
    above = []
    place = -1
    while function_modes():
        top = torch.overrides._pop_mode()
        if top is mode:
            place = len(above)
            break
        above.append(top)
    for other in reversed(above):
        torch.overrides._push_mode(other)
    return place


def enter_function_mode(mode: Any, place: int) -> None:
    """Put a mode back where `leave_function_mode` found it."""
    if place >= 0:
        above = [torch.overrides._pop_mode() for _ in range(min(place, function_modes()))]
        for other in [mode, *reversed(above)]:
            torch.overrides._push_mode(other)


# Every way into the engine (Tensor.backward, autograd.backward, autograd.grad, checkpoint) looks this name up in the
# module torch.autograd when it runs. Where it is gone, backward runs are recorded as calls only.
ENGINE_ENTRY = "_engine_run_backward"


def has_engine_entry() -> bool:
    return callable(getattr(torch.autograd, ENGINE_ENTRY, None))


# torch.utils.swap_tensors asks `weakref.getweakrefs` of this name in its module and ends in this function of torch._C.
# Where they are gone, a swap is refused while a trace runs.
SWAP_REFERENCES, SWAP_ENTRY = "weakref", "_swap_tensor_impl"


def has_swap_names() -> bool:
    return callable(getattr(torch._C, SWAP_ENTRY, None)) and hasattr(
        getattr(torch.utils, SWAP_REFERENCES, None), "getweakrefs"
    )


# Every compiled callable calls this name of this module as it begins, with what compiles, and as it ends, with what was
# there before. Where it is gone, Dynamo sees the recorder's mode, and compiled code runs slower and may be compiled anew.
COMPILE_MODULE, COMPILE_GATE = "torch._dynamo.eval_frame", "_maybe_set_eval_frame"


def has_compile_gate(module: Any) -> bool:
    return callable(getattr(module, COMPILE_GATE, None))


def compiled_name(frame: Any) -> str:
    """What the user calls the code that the frame of Dynamo's is about to run."""
    function = frame.f_locals.get("fn")
    return str(getattr(function, "__qualname__", None) or type(function).__name__).replace("<locals>.", "")


def skip_in_dynamo(module: Any, codes: list[Any]) -> None:
    """Have Dynamo run these functions as they are, where they happen to run inside compiled code."""
    skip = getattr(module, "skip_code", None)
    if skip is not None:
        for code in codes:
            skip(code)
