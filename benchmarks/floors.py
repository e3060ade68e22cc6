"""The same work bare, traced, and under what cannot be cheaper: each gives the seconds of one whole run."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

import tensormagic
from tensormagic.watch.lines import make_lines

_FILE = "<benchmark>"


def _timed(run: Callable[[dict[str, Any]], object]) -> float:
    """Seconds of a run in a fresh namespace. What it leaves is collected before the next one, outside the time."""
    torch.manual_seed(0)
    gc.collect()
    begin = time.perf_counter()
    run({"torch": torch, "__name__": "__main__"})
    return time.perf_counter() - begin


def bare(source: str) -> float:
    return _timed(lambda names: exec(compile(source, _FILE, "exec"), names))


def traced(source: str) -> float:
    def run(names: dict[str, Any]) -> None:
        error = tensormagic.run(source, names).error
        if error is not None:
            raise RuntimeError(f"the traced work failed: {error.type}: {error.message}")

    return _timed(run)


class _IdleMode(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _IdleListener:
    """Hears about every line and does nothing."""

    def entered(self, frame: FrameType) -> None: ...
    def line(self, frame: FrameType, line: int) -> None: ...
    def left(self, frame: FrameType, raised: bool) -> None: ...
    def paused(self, frame: FrameType) -> None: ...
    def resumed(self, frame: FrameType) -> None: ...


def _ours(code: CodeType) -> bool:
    return code.co_filename == _FILE


@contextlib.contextmanager
def _idle_lines() -> Iterator[None]:
    lines = make_lines(_ours, _IdleListener())
    lines.start()
    try:
        yield
    finally:
        lines.stop()


@contextlib.contextmanager
def _both() -> Iterator[None]:
    with _IdleMode(), _idle_lines():
        yield


def _profiler() -> Any:
    return torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True, record_shapes=True, profile_memory=True
    )


def _inside(make: Callable[[], Any]) -> Callable[[str], float]:
    def run(source: str) -> float:
        def body(names: dict[str, Any]) -> None:
            with make():
                exec(compile(source, _FILE, "exec"), names)

        return _timed(body)

    return run


FLOORS: dict[str, Callable[[str], float]] = {
    "idle function mode": _inside(_IdleMode),
    "idle line tracer": _inside(_idle_lines),
    "both idle": _inside(_both),
    "torch.profiler": _inside(_profiler),
}
