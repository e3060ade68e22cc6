"""Which torch functions are ignored, which need a second look, and how a function is called in words."""

from __future__ import annotations

from types import BuiltinFunctionType, CodeType, MethodDescriptorType, MethodWrapperType
from typing import Any

import torch

_base = torch._C.TensorBase
# Attribute reads that give a tensor or change what a tensor is: everything else that is a descriptor is dropped.
_KEPT = {"data", "real", "imag", "T", "mT", "H", "mH", "grad"}
_SET = {"data", "real", "imag", "grad", "requires_grad"}
_METADATA = [
    "dim", "size", "stride", "numel", "nelement", "data_ptr", "is_contiguous", "element_size", "storage_offset",
    "get_device", "is_floating_point", "is_complex", "is_signed", "is_inference", "untyped_storage", "is_shared",
    "has_names", "dim_order", "is_conj", "is_neg", "is_pinned", "is_set_to", "is_same_size", "type",
    "__len__", "__hash__", "__repr__", "__format__", "__dir__", "__reduce_ex__", "_is_view", "storage", "ndimension",
]  # fmt: skip


def _dropped() -> set[Any]:
    names = set()
    for cls in (_base, torch.Tensor):
        for name, member in vars(cls).items():
            if name not in _KEPT and hasattr(member, "__get__") and type(member).__name__ == "getset_descriptor":
                names.add(member.__get__)
            if name not in _SET and type(member).__name__ == "getset_descriptor":
                names.add(member.__set__)
            elif isinstance(member, property) and name not in _KEPT:
                names.add(member.__get__)
    for name in _METADATA:
        member = getattr(torch.Tensor, name, None)
        if member is not None:
            names.add(member)
    for name in ("is_tensor", "is_floating_point", "is_complex", "is_storage", "get_default_dtype", "typename"):
        names.add(getattr(torch, name))
    return names


IGNORED, GRAD = 1, 2
SPECIAL = dict.fromkeys(_dropped(), IGNORED)
SPECIAL[_base.grad.__get__] = SPECIAL[_base.grad.__set__] = GRAD  # recorded where the user's own code asks
DATA_GET = _base.data.__get__

# Functions whose kernels write into an input without telling the version counter. Only where to look: whether and what
# was written is read off the bytes.
UNDECLARED = {
    getattr(torch.nn.functional, name)
    for name in ("batch_norm", "instance_norm", "embedding", "embedding_bag")
    if hasattr(torch.nn.functional, name)
} | {torch.batch_norm, torch.instance_norm, torch.native_batch_norm, torch.embedding_renorm_}


# Functions that are written in Python and call nothing but torch.
_OF_TORCH_ALONE = {torch.nn.functional.__file__, torch.functional.__file__}
_BUILTIN = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType)


def runs_alone(func: Any) -> bool:
    """Does this function run no code of the user's, as long as its arguments are plain tensors and numbers?

    True of torch's builtin functions: what they call back stands in an argument, a hook for saved tensors, a dispatch
    mode, or (which is overlooked) a kernel in Python that the user registered for an operator of torch's own.
    """
    if isinstance(func, _BUILTIN):
        return True
    code = getattr(func, "__code__", None)
    return isinstance(code, CodeType) and code.co_filename in _OF_TORCH_ALONE


# Functions that write into an argument without a name that says so.
_IN_PLACE = "iadd isub imul imatmul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift idiv setitem"
_WRITERS = {f"__{name}__" for name in _IN_PLACE.split()} | {
    "batch_norm", "instance_norm", "native_batch_norm", "_native_batch_norm_legit", "rrelu_with_noise",
    "fused_moving_avg_obs_fake_quant", "_fused_moving_avg_obs_fq_helper", "_flash_attention_forward_no_dropout_inplace",
    "_cummax_helper", "_cummin_helper", "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation",
}  # fmt: skip


def may_write(func: Any, name: str) -> bool:
    """May this function, called without `out=`, change the bytes of what it takes?

    Args:
        func: the function.
        name: what `readable` calls it.

    A builtin function says so in its name (`add_`) or is in _WRITERS, one of torch.nn.functional has an argument
    `inplace`. Of any other nothing is known: it may.
    """
    last = name.rsplit(".", 1)[-1]
    if mutates(name) or last in _WRITERS:
        return True
    if isinstance(func, _BUILTIN):
        return False
    code = getattr(func, "__code__", None)
    if not isinstance(code, CodeType) or code.co_filename not in _OF_TORCH_ALONE:
        return True
    return "inplace" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


# In place, but of what a tensor is rather than of its bytes.
_MOVES = {
    "t_", "transpose_", "swapaxes_", "swapdims_", "squeeze_", "unsqueeze_", "resize_", "resize_as_", "set_", "as_strided_",
    "detach_", "data =", "sparse_resize_", "sparse_resize_and_clear_", "swap_tensors", "rename_",
}  # fmt: skip


def moves(name: str) -> bool:
    """May a function of this name make a tensor look at other memory, or at it in another way?"""
    return name.rsplit(".", 1)[-1] in _MOVES


def mutates(name: str) -> bool:
    """May a function of this name change what its first argument is without touching the version counter?"""
    last = name.rsplit(".", 1)[-1]
    return last.endswith(" =") or last == "retain_grad" or (last.endswith("_") and not last.endswith("__"))


def readable(func: Any) -> str:
    """The function's name as a user writes it: "Tensor.clone", "torch.relu", "Tensor.data", "nn.functional.linear"."""
    owner = getattr(func, "__self__", None)
    if type(owner).__name__ == "getset_descriptor":
        suffix = " =" if func.__name__ == "__set__" else ""
        return f"Tensor.{owner.__name__}{suffix}"
    if isinstance(owner, property):
        return f"Tensor.{getattr(owner.fget, '__name__', 'property')}"
    resolved = torch.overrides.resolve_name(func)
    if resolved is None:
        module = getattr(func, "__module__", None) or ""
        name = getattr(func, "__name__", type(func).__name__)
        resolved = f"{module}.{name}" if module else str(name)
    resolved = resolved.removeprefix("torch.") if resolved.startswith(("torch.Tensor.", "torch.nn.")) else resolved
    return resolved.replace("torch._C.", "torch.", 1)


def plain(rest: tuple[Any, ...]) -> str:
    """Plain arguments as source text; tensors after the first are shown as names by whoever knows them."""
    parts = []
    for index, item in enumerate(rest):
        if type(item) is tuple and len(item) == 2 and type(item[0]) is str and type(item[1]).__name__ == "_Mark":
            parts.append(f"{item[0]}={item[1].text}")
        elif type(item).__name__ == "_Mark":
            if index:
                parts.append(item.text)
        elif type(item) is tuple and len(item) == 2 and type(item[0]) is str:
            parts.append(f"{item[0]}={_one(item[1])}")
        else:
            parts.append(_one(item))
    return ", ".join(parts)


def _one(value: Any) -> str:
    if type(value) is slice:
        start = "" if value.start is None else _one(value.start)
        stop = "" if value.stop is None else _one(value.stop)
        return f"{start}:{stop}" if value.step is None else f"{start}:{stop}:{_one(value.step)}"
    if value is Ellipsis:
        return "..."
    if type(value) is tuple or type(value) is torch.Size:
        inner = ", ".join(_one(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    text = repr(value) if type(value) in (int, float, bool, str, type(None)) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
