"""Faults of the listener, interrupts, the stack, lifetimes and threads: the program comes first."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest

from tests.watch.lines_alone import (
    BACKENDS,
    CALLS,
    Other,
    Recorder,
    compiled,
    in_program,
    make_lines,
    nobody_tracing,
    only_lines,
    watch,
)


@pytest.fixture(params=BACKENDS)
def backend(request):
    with nobody_tracing():
        yield request.param


# -------------------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("method", ["entered", "line", "left", "paused", "resumed"])
def test_a_fault_of_the_listener_ends_the_listening_only(backend, method):
    def fault(self, *args):
        self.heard.append("fault")
        raise LookupError("mine")

    listener = type("Faulty", (Recorder,), {method: fault})()
    lines = make_lines(in_program, listener, backend)
    space = {"out": []}
    source = "def g():\n    yield 1\n    yield 2\nfor v in g():\n    out.append(v)\nout.append(3)\n"
    assert watch(source, backend, listener, space, lines)[-1] == "fault"
    assert space["out"] == [1, 2, 3]
    assert [str(exc) for exc in listener.failures] == ["mine"]
    assert listener.heard.count("fault") == 1
    assert listener.failures[0].__traceback__ is None
    assert lines.failure == "LookupError: mine"
    assert not lines.lost


def test_a_fault_at_the_root_and_in_is_watched(backend):
    def fault(*args):
        raise LookupError("mine")

    listener = type("Faulty", (Recorder,), {"entered": fault})()
    lines = make_lines(in_program, listener, backend)
    lines.start(sys._getframe())
    assert len(listener.failures) == 1
    lines.stop()

    lines = make_lines(fault, listener := Recorder(), backend)
    watch(CALLS, backend, listener, lines=lines)
    assert [str(exc) for exc in listener.failures] == ["mine"]
    assert listener.heard == []


def test_a_listener_that_cannot_be_told(backend):
    class Silent(Recorder):
        failed = None

        def line(self, frame, line):
            raise LookupError("mine")

    lines = make_lines(in_program, Silent(), backend)
    watch(CALLS, backend, lines=lines)
    assert lines.failure == "LookupError: mine"

    def faulty(self, exc):
        raise OSError("too")

    lines = make_lines(in_program, type("Faulty", (Silent,), {"failed": faulty})(), backend)
    watch(CALLS, backend, lines=lines)
    assert lines.failure == "LookupError: mine; and failed() raised OSError: too"


def test_other_tracer_survives_a_fault_of_the_listener(backend):
    listener = type("Faulty", (Recorder,), {"line": lambda *args: 1 / 0})()
    other, undisturbed = Other(), Other()
    for tracer in (other, undisturbed):
        sys.settrace(tracer)
        try:
            if tracer is other:
                watch(CALLS, backend, listener)
            else:
                exec(compiled(CALLS), {})
            assert sys.gettrace() is tracer
        finally:
            sys.settrace(None)
    assert other.seen == undisturbed.seen
    assert len(listener.failures) == 1


@pytest.mark.parametrize("with_other", [False, True])
def test_an_interrupt_inside_the_listener_is_the_programs(backend, with_other):
    class Interrupted(Recorder):
        def line(self, frame, line):
            super().line(frame, line)
            if line == 3:
                raise KeyboardInterrupt

    other = Other() if with_other else None
    lines = make_lines(in_program, listener := Interrupted(), backend)
    space = {}
    sys.settrace(other)
    try:
        watch("try:\n    x = 1\n    x = 2\nexcept KeyboardInterrupt:\n    y = 3\n", backend, listener, space, lines)
        assert sys.gettrace() is other
    finally:
        sys.settrace(None)
    assert listener.failures == []
    assert lines.failure is None
    assert listener.heard[3] == "<module>:3"
    with pytest.raises(KeyboardInterrupt):
        exec_under(lines, "x = 1\nx = 2\nx = 3\n")


def exec_under(lines, source):
    lines.start()
    try:
        exec(compiled(source), {})
    finally:
        lines.stop()


def depth_reached(source, lines, listener):
    """How deep a program recurses before RecursionError, and whether it can go on afterwards."""
    space = {"lines": lines, "out": []}
    if lines is not None:
        lines.start()
    try:
        exec(compiled(source), space)
    finally:
        if lines is not None:
            lines.stop()
    return space["out"]


DEEP = """
out.append(0)
def f():
    out[0] += 1
    f()
try:
    f()
except RecursionError:
    out.append("caught")
out.append("went on")
"""


@pytest.mark.parametrize("size", [0, 3, 30])
def test_a_program_that_uses_up_the_stack(backend, size):
    """It reaches the same depth, catches the same error and goes on; the listener is told once."""

    def deeper(n):
        return n and deeper(n - 1)

    class Deep(Recorder):
        def line(self, frame, line):
            deeper(size)

    plain = depth_reached(DEEP, None, None)
    lines = make_lines(in_program, listener := Deep(), backend)
    assert depth_reached(DEEP, lines, listener) == plain
    assert plain[1:] == ["caught", "went on"]
    assert [type(exc) for exc in listener.failures] == [RecursionError]
    assert lines.failure.startswith("RecursionError")


def test_unwatched_code_that_uses_up_the_stack(backend):
    """It may run out one level early (see lines_settrace); it must catch the error and go on."""
    plain = depth_reached(DEEP, None, None)
    lines = make_lines(lambda code: in_program(code) and code.co_name == "<module>", listener := Recorder(), backend)
    seen = depth_reached(DEEP, lines, listener)
    assert seen[1:] == plain[1:]
    assert plain[0] - seen[0] in (0, 1)


# ---------------------------------------------------------------------------------------------- lifetimes, threads


def test_keeps_nothing_of_the_users_alive(backend):
    source = """\
        class Thing: pass
        def f():
            thing = Thing()
            refs.append(weakref.ref(thing))
            return 1
        f()
        alive.append(refs[0]() is not None)
        refs.append(weakref.ref(f.__code__))
        del f
        alive.append(refs[1]() is not None)
        def g():
            thing = Thing()
            refs.append(weakref.ref(thing))
            yield
        t = g(); next(t); del t
        alive.append(refs[2]() is not None)
        """

    class Quiet(Recorder):
        def line(self, frame, line):
            self.heard.append(line)

    space = {"refs": [], "alive": [], "weakref": weakref}
    listener = Quiet()
    gc.disable()
    try:
        watch(source.replace("del f\n", "del f\n"), backend, listener, space)
    finally:
        gc.enable()
    # The module's code object holds that of `f` as a constant until the module has run.
    assert space["alive"] == [False, True, False]
    gc.collect()
    assert [ref() for ref in space["refs"]] == [None] * 3


def test_a_fault_keeps_nothing_alive(backend):
    class Faulty(Recorder):
        def line(self, frame, line):
            if line == 4:
                raise LookupError("mine")

    source = """\
        class Thing: pass
        def f():
            thing = Thing()
            ref = weakref.ref(thing)
            return ref
        r = f()
        alive.append(r())
        """
    space = {"alive": [], "weakref": weakref}
    gc.disable()
    try:
        watch(source, backend, listener := Faulty(), space)
    finally:
        gc.enable()
    assert len(listener.failures) == 1
    assert space["alive"] == [None]


def test_other_threads_are_not_heard(backend):
    listener = Recorder()
    code = compiled("def f(n):\n    for i in range(n): x = i\n    yield\n")
    space = {}
    exec(code, space)
    lines = make_lines(in_program, listener, backend)
    lines.start()
    go, done = threading.Event(), []

    def work():
        go.wait()
        for _ in range(50):
            list(space["f"](3))
        done.append(threading.get_ident())

    thread = threading.Thread(target=work)
    thread.start()
    go.set()
    list(space["f"](1))
    thread.join()
    lines.stop()
    assert len(done) == 1
    assert listener.heard == ["f+", "f:2", "f:2", "f:3", "f<", "f>", "f-"]


def test_stopped_from_another_thread(backend):
    listener = Recorder()
    lines = make_lines(in_program, listener, backend)
    lines.start()
    thread = threading.Thread(target=lines.stop)
    thread.start()
    thread.join()
    exec(compiled(CALLS), {})
    assert only_lines(listener.heard) == []
