"""Ctrl-C at any moment, in the recorder's own code too: the cell is interrupted, and nothing of ours is left behind."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import warnings
from typing import Any

import pytest
import torch

import tensormagic
from tests.program.test_faults import left_behind

CELL = """
w = torch.ones(4, requires_grad=True)
base = torch.arange(8.0)
array = base.numpy()
rounds = 0
for step in range(20_000):
    y = (w * base[:4]).exp().sum()
    y.backward()
    base[2:4].mul_(1.0)
    array[0] += 0
    w.grad = None
    rounds += 1
"""
TIMES = 3000 if os.environ.get("TENSORMAGIC_ALL") == "1" else 80
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C there")


def interrupted(delay: float, cell: str = CELL) -> tuple[Any, dict[str, Any]]:
    """Run a cell that is interrupted after `delay` seconds, as by Ctrl-C: its trace and its namespace."""
    namespace: dict[str, Any] = {"torch": torch}
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
    except KeyboardInterrupt:
        return interrupted(delay + 0.001, cell)  # it came before there was anything to interrupt
    try:
        trace = tensormagic.run(cell, namespace)
    finally:
        timer.join()
    return trace, namespace


def test_interrupts_at_random_moments():
    generator = random.Random(7)
    hooks = (sys.gettrace(), sys.getprofile(), list(warnings.filters), torch.is_grad_enabled())
    for number in range(TIMES):
        delay = generator.choice((0.0005, 0.003, 0.02, 0.06)) * (0.2 + generator.random())
        trace, namespace = interrupted(delay)
        assert left_behind() == [], f"interrupt {number}, after {delay} s"
        assert (sys.gettrace(), sys.getprofile(), list(warnings.filters), torch.is_grad_enabled()) == hooks
        assert trace.error is not None
        assert trace.error.type == "KeyboardInterrupt"
        assert len(trace.recording.steps) or "w" not in namespace
        codes = {notice.code for notice in trace.recording.notices}
        assert codes <= {"threads", "lines-interrupted"}
        if number % 10 == 0:
            trace.summary()
    after = tensormagic.run("x = torch.ones(2)\ny = x[1:]\ny.mul_(2)\n", {"torch": torch})
    assert [write.line for write in after.writes] == [3]
    assert after.recording.notices == []


def test_a_cell_that_takes_the_interrupt_goes_on():
    cell = (
        "try:\n"
        + "".join(f"    {line}\n" for line in CELL.strip().split("\n"))
        + "except KeyboardInterrupt:\n    caught = True\n"
    )
    for delay in (0.02, 0.05):
        trace, namespace = interrupted(delay, cell)
        assert left_behind() == []
        assert trace.error is None or trace.error.type == "KeyboardInterrupt"
        assert namespace.get("caught") or trace.error is not None
