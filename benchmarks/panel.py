"""How long after the cell its panel is there: findings, view, picture and bundle."""

from __future__ import annotations

import time

import torch

import tensormagic
from benchmarks import work


def once(name: str, source: str, aim: float | None) -> None:
    trace = tensormagic.run(source, {"torch": torch})
    begin = time.perf_counter()
    bundle = trace.panel()._repr_mimebundle_()
    took = time.perf_counter() - begin
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    size = sum(len(text) for text in data.values() if isinstance(text, str))
    wanted = "" if aim is None else f" (aim {aim:g} s)"
    print(
        f"{name:28}{len(trace.recording.steps):>8} steps {len(trace.recording.calls):>8} calls: "
        f"{took:.3f} s{wanted}, {size / 1e3:.0f} kB",
        flush=True,
    )


def report() -> None:
    tensormagic.run(work.LECTURE, {"torch": torch}).panel()._repr_mimebundle_()  # imports are paid once a kernel
    once("lecture cell", work.LECTURE, 0.15)
    once("MLP, 166 iterations", work.mlp(166), 1.0)  # about 1,000 steps of the cell
    for count, aim in ((1_000, None), (3_000, None), (10_000, 1.0), (30_000, None), (100_000, 5.0)):
        once(f"{count:,} calls in a loop", work.calls(count), aim)
