"""Everything in the process that a cell does not hold in its names but that a tracer could change."""

from __future__ import annotations

import atexit
import builtins
import gc
import hashlib
import linecache
import logging
import pickle
import random
import signal
import sys
import threading
import tracemalloc
import types
import warnings
from typing import Any

import numpy
import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer as optimizers
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

HOOKS = (
    "excepthook",
    "displayhook",
    "unraisablehook",
    "breakpointhook",
    "stdout",
    "stderr",
    "stdin",
    "ps1",
    "last_value",
)
GLOBAL_HOOKS = (
    (modules, "_global_forward_hooks"),
    (modules, "_global_forward_pre_hooks"),
    (modules, "_global_backward_hooks"),
    (modules, "_global_backward_pre_hooks"),
    (modules, "_global_parameter_registration_hooks"),
    (optimizers, "_global_optimizer_pre_hooks"),
    (optimizers, "_global_optimizer_post_hooks"),
)


def state() -> dict[str, Any]:
    """What is set at this moment, by name. Two of them are compared by `differences`."""
    return {**_torch(), **_python(), **_attributes()}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The names of what changed: plain values by equality, everything else by identity."""
    return sorted(name for name in before.keys() | after.keys() if not _same(before.get(name), after.get(name)))


def _same(a: Any, b: Any) -> bool:
    if type(a) is type(b) is types.MethodType:
        return a == b  # made anew each time it is asked for
    return a is b or (type(a) is type(b) and isinstance(a, (bool, int, float, str, bytes, tuple, list)) and a == b)


def _torch() -> dict[str, Any]:
    found: dict[str, Any] = {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "anomaly": torch.is_anomaly_enabled(),
        "anomaly check_nan": torch.is_anomaly_check_nan_enabled(),
        "autocast cache": torch.is_autocast_cache_enabled(),
        "default dtype": str(torch.get_default_dtype()),
        "default device": str(torch.empty(0).device),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "deterministic, warns": torch.is_deterministic_algorithms_warn_only_enabled(),
        "deterministic, fills": torch.utils.deterministic.fill_uninitialized_memory,
        "warns always": torch.is_warn_always_enabled(),
        "engine's threads": torch._C._is_multithreading_enabled(),
        "threads": torch.get_num_threads(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "flush denormal": torch.tensor(1e-40, device="cpu").mul(1.0).item(),
        "cudnn": (torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic),
        "mkldnn": torch.backends.mkldnn.enabled,
        "print options": str(vars(torch._tensor_str.PRINT_OPTS)),
        "RNG": bytes(torch.get_rng_state().numpy()),
        "function modes": [type(mode).__qualname__ for mode in _get_current_function_mode_stack()],
        "dispatch modes": [type(mode).__qualname__ for mode in _get_current_dispatch_mode_stack()],
        "saved tensors' hooks": torch._C._autograd._top_saved_tensors_default_hooks(True) is None,
    }
    for kind in ("cpu", "cuda"):
        found[f"autocast {kind}"] = (torch.is_autocast_enabled(kind), str(torch.get_autocast_dtype(kind)))
    for module, name in GLOBAL_HOOKS:
        found[name] = tuple(map(id, getattr(module, name).values()))
    return found


def _python() -> dict[str, Any]:
    numpy_state = numpy.random.get_state(legacy=False)
    found: dict[str, Any] = {
        "random": hashlib.sha256(pickle.dumps(random.getstate())).hexdigest(),
        "numpy.random": hashlib.sha256(pickle.dumps(numpy_state)).hexdigest(),
        "numpy's errors": str(numpy.geterr()),
        "warning filters": [str(entry) for entry in warnings.filters],
        "showwarning": warnings.showwarning,
        "thread names": sorted(
            # pyzmq starts one of its own in a kernel when a message is large.
            thread.name
            for thread in threading.enumerate()
            if not type(thread).__module__.startswith("zmq.")
        ),
        "this thread's name": threading.current_thread().name,
        "trace function": sys.gettrace(),
        "profile function": sys.getprofile(),
        "threads' trace function": threading.gettrace() if hasattr(threading, "gettrace") else None,
        "threads' excepthook": threading.excepthook,
        "recursion limit": sys.getrecursionlimit(),
        "switch interval": sys.getswitchinterval(),
        "sys.path": list(sys.path),
        "meta path": tuple(map(id, sys.meta_path)),
        "gc": (gc.isenabled(), gc.get_threshold(), gc.get_debug(), len(gc.callbacks)),
        "tracemalloc": tracemalloc.is_tracing(),
        "atexit": atexit._ncallbacks(),
        "logging": (logging.root.level, len(logging.root.handlers)),
        "linecache": linecache.getlines,
        "__import__": builtins.__import__,
        "print": builtins.print,
        "wakeup": _wakeup(),
    }
    for name in HOOKS:
        found[f"sys.{name}"] = getattr(sys, name, None)
    for number in signal.valid_signals():
        found[f"handler of signal {int(number)}"] = signal.getsignal(number)
    monitoring = getattr(sys, "monitoring", None)
    for tool in range(6) if monitoring else ():
        found[f"monitoring {tool}"] = monitoring.get_tool(tool)
    return found


def _wakeup() -> int:
    if threading.current_thread() is not threading.main_thread():
        return -1
    number = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(number)
    return number


def _attributes() -> dict[str, Any]:
    """Every attribute of every module of torch and of every class in them, and what NumPy's first level holds."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, module in sorted(sys.modules.items()):
        if (name.split(".")[0] != "torch" and name != "numpy") or not isinstance(module, types.ModuleType):
            continue
        for key, value in list(vars(module).items()):
            if key in ("__warningregistry__", "CURRENT_DEVICE"):
                # The first is made by the interpreter where something warned; the second is asked for above.
                continue
            found[f"{name}.{key}"] = value
            if issubclass(type(value), type) and id(value) not in seen and value.__module__.startswith("torch"):
                seen.add(id(value))
                for attribute, member in list(vars(value).items()):
                    found[f"{value.__module__}.{value.__qualname__}.{attribute}"] = member
    return found
