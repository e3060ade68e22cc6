"""How many bytes a call costs: in the tables that stay, and at the highest point while the cell runs."""

from __future__ import annotations

import gc
import tracemalloc

import torch

import tensormagic
from benchmarks import work
from tensormagic.recording.model import TABLES


def bytes_a_call(count: int) -> None:
    source = work.calls(count)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        trace = tensormagic.run(source, {"torch": torch})
        gc.collect()
        stays, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    recording = trace.recording
    made = len(recording.calls)
    tables = {name: getattr(recording, name).flat for name in TABLES}
    total = sum(len(flat) * flat.itemsize for flat in tables.values())
    largest = sorted(tables, key=lambda name: len(tables[name]), reverse=True)[:3]
    shares = ", ".join(f"{name} {len(tables[name]) * tables[name].itemsize / made:.0f}" for name in largest)
    print(
        f"{made:>9} calls: tables {total / made:.0f} bytes a call ({shares}); all that stays {(stays - before) / made:.0f};"
        f" highest point {(peak - before) / made:.0f} a call, {(peak - before) / 1e6:.1f} MB"
    )


def report(long: bool) -> None:
    for count in (1_000, 10_000, 100_000) + ((1_000_000,) if long else ()):
        bytes_a_call(count)
