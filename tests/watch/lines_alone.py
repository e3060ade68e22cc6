"""What the tests of the line watchers share. Needs only pytest: see test_lines_on_other_pythons.py."""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

# `import tensormagic` imports torch. The line watchers need none, and these tests run on interpreters that have none;
# so the modules are taken from their files, in a bare package that stands beside the real one and does not disturb it.
ALONE = ModuleType("tensormagic_watch_alone")
ALONE.__path__ = [str(Path(__file__).parents[2] / "tensormagic" / "watch")]
sys.modules.setdefault(ALONE.__name__, ALONE)
make_lines = importlib.import_module("tensormagic_watch_alone.lines").make_lines
statements = importlib.import_module("tensormagic_watch_alone.statements").statements

HAS_MONITORING = hasattr(sys, "monitoring")
FILE = "<program>"
needs_monitoring = pytest.mark.skipif(not HAS_MONITORING, reason="sys.monitoring came with Python 3.12")
CALLS = "def f(x):\n    y = x\n    return y\nfor i in range(3):\n    f(i)\n"
BACKENDS = ["settrace", "monitoring"] if HAS_MONITORING else ["settrace"]


@contextlib.contextmanager
def nobody_tracing():
    """A test starts and must end without a tracer, whatever pytest itself runs under (coverage, a debugger)."""
    gc.collect()  # a generator that an earlier program left in a cycle would be closed, and heard, in this one
    before = sys.gettrace()
    sys.settrace(None)
    tools = tool_names()
    yield
    left_behind = sys.gettrace()
    sys.settrace(before)
    assert left_behind is None
    assert tools == tool_names()


def tool_names():
    return [sys.monitoring.get_tool(number) for number in range(6)] if HAS_MONITORING else []


class Recorder:
    """A listener that keeps what it hears, as words: "f+" entered, "f:3" line, "f-" left, "f!" raised, "f<" ">"."""

    def __init__(self):
        self.heard = []
        self.failures = []

    def entered(self, frame):
        self.heard.append(f"{frame.f_code.co_name}+")

    def line(self, frame, line):
        self.heard.append(f"{frame.f_code.co_name}:{line}")

    def left(self, frame, raised):
        self.heard.append(f"{frame.f_code.co_name}{'!' if raised else '-'}")

    def paused(self, frame):
        self.heard.append(f"{frame.f_code.co_name}<")

    def resumed(self, frame):
        self.heard.append(f"{frame.f_code.co_name}>")

    def failed(self, exc):
        self.failures.append(exc)


def in_program(code):
    return code.co_filename == FILE


def compiled(source):
    return compile(dedent(source), FILE, "exec")


def watch(source, backend, listener=None, names=None, lines=None):
    """Run a program under watch; the exception that ends it is part of what was heard."""
    listener = listener or Recorder()
    code = compiled(source)
    lines = lines or make_lines(in_program, listener, backend)
    space = {"lines": lines, **(names or {})}
    lines.start()
    try:
        exec(code, space)
    except Exception as exc:
        listener.heard.append(type(exc).__name__)
    finally:
        lines.stop()
    assert lines.backend == backend
    return listener.heard


def oracle(source):
    """The lines of a program as the plainest possible sys.settrace function sees them."""
    seen = []

    def trace(frame, event, arg):
        if frame.f_code.co_filename != FILE:
            return None
        if event == "line":
            seen.append(f"{frame.f_code.co_name}:{frame.f_lineno}")
        return trace

    code = compiled(source)
    sys.settrace(trace)
    try:
        exec(code, {})
    except Exception:
        seen.append("raised")
    finally:
        sys.settrace(None)
    return seen


def only_lines(heard):
    return [word for word in heard if ":" in word]


class Other:
    """A tracer that keeps every event of the program; `reinstalls` does what coverage's C tracer does."""

    def __init__(self, reinstalls=False):
        self.seen = []
        self.reinstalls = reinstalls

    def __call__(self, frame, event, arg):
        if not in_program(frame.f_code):
            return None
        if self.reinstalls and event == "call":
            sys.settrace(self)
        self.seen.append((frame.f_code.co_name, event, frame.f_lineno))
        return self
