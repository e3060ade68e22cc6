"""Starting and stopping, and what other tracers notice of it: nothing. On every backend."""

from __future__ import annotations

import sys

import pytest

from tests.watch.lines_alone import (
    BACKENDS,
    CALLS,
    HAS_MONITORING,
    Other,
    Recorder,
    compiled,
    in_program,
    make_lines,
    needs_monitoring,
    nobody_tracing,
    only_lines,
    oracle,
    watch,
)


@pytest.fixture(params=BACKENDS)
def backend(request):
    with nobody_tracing():
        yield request.param


# ----------------------------------------------------------------------------------------------- starting, stopping


def test_picks_monitoring_where_there_is_one():
    assert make_lines(in_program, Recorder()).backend == ("monitoring" if HAS_MONITORING else "settrace")


def test_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="'dtrace' is not known: use 'monitoring', 'settrace'"):
        make_lines(in_program, Recorder(), "dtrace")


@pytest.mark.skipif(HAS_MONITORING, reason="this interpreter has sys.monitoring")
def test_monitoring_is_refused_where_there_is_none():
    with pytest.raises(ValueError, match=r"needs Python 3\.12"):
        make_lines(in_program, Recorder(), "monitoring")


def test_start_twice_is_refused_and_stop_twice_is_not(backend):
    lines = make_lines(in_program, Recorder(), backend)
    lines.stop()
    lines.start()
    with pytest.raises(RuntimeError, match="call stop"):
        lines.start()
    lines.stop()
    lines.stop()
    assert not lines.lost


def test_starts_again(backend):
    listener = Recorder()
    lines = make_lines(in_program, listener, backend)
    first = list(watch(CALLS, backend, listener, lines=lines))
    listener.heard.clear()
    assert watch(CALLS, backend, listener, lines=lines) == first


def test_starts_again_on_code_that_was_not_watched_before(backend):
    code, listener = compiled(CALLS), Recorder()
    for watched in (False, True, False, True):
        listener.heard.clear()
        lines = make_lines(lambda code, watched=watched: watched and in_program(code), listener, backend)
        lines.start()
        exec(code, {})
        lines.stop()
        assert bool(listener.heard) == watched
    exec(code, {})
    assert listener.heard.count("f:2") == 3


def test_stop_inside_a_function(backend):
    heard = watch("def f():\n    lines.stop()\n    return 1\nf()\nx = 1\n", backend)
    assert heard == ["<module>+", "<module>:1", "<module>:4", "f+", "f:2"]


def test_stop_from_the_listener(backend):
    class Stops(Recorder):
        def line(self, frame, line):
            super().line(frame, line)
            if line == 2:
                lines.stop()

    listener = Stops()
    lines = make_lines(in_program, listener, backend)
    assert watch(CALLS, backend, listener, lines=lines)[-1] == "f:2"
    assert listener.failures == []


def test_start_inside_a_function_does_not_follow_frames_that_ran_before(backend):
    source = """\
        def f(n):
            if n: return f(n - 1)
            lines.start()
            g()
        def g():
            x = 1
        f(1)
        f(0) if 0 else g()
        lines.stop()
        """
    listener = Recorder()
    exec(compiled(source), {"lines": make_lines(in_program, listener, backend)})
    assert listener.heard == ["g+", "g:6", "g-"] * 2


def test_root_is_followed_from_its_next_line(backend):
    source = """\
        import sys
        def f():
            x = 1
        def main(n=1):
            if n:
                lines.start(sys._getframe())
                f()
                main(0)
                lines.stop()
        main()
        x = 1
        """
    listener = Recorder()
    lines = make_lines(lambda code: in_program(code) and code.co_name == "f", listener, backend)
    exec(compiled(source), {"lines": lines})
    assert listener.heard == ["main+", "main:7", "f+", "f:3", "f-", "main:8", "main:9"]


def test_root_that_pauses_and_ends(backend):
    source = """\
        import sys
        def main():
            lines.start(sys._getframe())
            yield
            x = 1
        list(main())
        list(main()) if 0 else 1
        lines.stop()
        """
    listener = Recorder()
    exec(compiled(source), {"lines": make_lines(lambda code: False, listener, backend)})
    assert listener.heard == ["main+", "main:4", "main<", "main>", "main:5", "main-"]


def test_a_with_statement_in_the_root(backend):
    class Tracing:
        def __enter__(self):
            lines.start(sys._getframe(1))
            return self

        def __exit__(self, *exc):
            lines.stop()

    listener = Recorder()
    lines = make_lines(in_program, listener, backend)
    exec(compiled("with tracing as t:\n    x = 1\n    y = 2\nz = 3\n"), {"tracing": Tracing()})
    assert listener.heard == ["<module>+", "<module>:2", "<module>:3", "<module>:1"]


def test_is_watched_is_asked_once(backend):
    asked = []

    def ask(code):
        asked.append(code)
        return in_program(code)

    lines = make_lines(ask, Recorder(), backend)
    watch(CALLS + "import random\nfor i in range(3): random.Random(1).randint(1, 2)\n", backend, lines=lines)
    assert len(asked) == len(set(map(id, asked))) > 4


def test_equal_code_of_another_file_is_another_code(backend):
    listener = Recorder()
    lines = make_lines(in_program, listener, backend)
    twin = compile("def f():\n    x = 1\n", "<elsewhere>", "exec")
    mine = compiled("def f():\n    x = 1\n")
    spaces = [{}, {}]
    exec(twin, spaces[0])
    exec(mine, spaces[1])
    lines.start()
    spaces[0]["f"]()
    spaces[1]["f"]()
    lines.stop()
    assert listener.heard == ["f+", "f:2", "f-"]


# ---------------------------------------------------------------------------------------------------- other tracers


@pytest.mark.parametrize("reinstalls", [False, True])
def test_other_tracer_sees_all_and_is_back_afterwards(backend, reinstalls):
    source = CALLS + "def g():\n    yield 1\n    yield\nlist(g())\ntry: f()\nexcept TypeError: pass\n"
    undisturbed, other = Other(), Other(reinstalls)
    sys.settrace(undisturbed)
    exec(compiled(source), {})
    sys.settrace(None)
    expected = watch(source, backend)
    sys.settrace(other)
    try:
        heard = watch(source, backend)
        assert sys.gettrace() is other
    finally:
        sys.settrace(None)
    assert heard == expected
    assert other.seen == undisturbed.seen


@pytest.mark.parametrize("followed", [True, False])
def test_other_tracer_of_a_running_frame(backend, followed):
    source = """\
        import sys
        def f():
            lines.start(sys._getframe() if followed else None)
            x = 1
            g()
            lines.stop()
            y = 1
        def g():
            z = 1
        f()
        """
    other, listener = Other(), Recorder()
    sys.settrace(other)
    try:
        exec(compiled(source), {"lines": make_lines(in_program, listener, backend), "followed": followed})
        assert sys.gettrace() is other
    finally:
        sys.settrace(None)
    assert [line for name, event, line in other.seen if event == "line"] == [1, 2, 8, 10, 3, 4, 5, 9, 6, 7]
    assert listener.heard == (["f+", "f:4", "f:5", "g+", "g:9", "g-", "f:6"] if followed else ["g+", "g:9", "g-"])


def test_running_frames_get_their_local_trace_function_back(backend):
    frame = sys._getframe()
    assert frame.f_trace is None
    lines = make_lines(in_program, Recorder(), backend)
    lines.start(frame)
    lines.stop()
    assert frame.f_trace is None
    mine = Other()
    frame.f_trace = mine
    lines.start(frame)
    lines.stop()
    assert frame.f_trace is mine
    frame.f_trace = None


def test_generator_that_sleeps_at_the_end_is_left_alone(backend):
    space = {}
    heard = watch("def g():\n    yield 1\n    yield 2\nt = g()\nnext(t)\n", backend, names=space)
    other, code = Other(), compiled("def g():\n    yield 1\n    yield 2\nt = g()\nnext(t)\n")
    lines = make_lines(in_program, listener := Recorder(), backend)
    lines.start()
    exec(code, space)
    lines.stop()
    assert listener.heard == heard
    sys.settrace(other)
    next(space["t"])
    sys.settrace(None)
    assert ("g", "line", 3) in other.seen
    assert listener.heard == heard


def test_two_at_once(backend):
    outer, inner = Recorder(), Recorder()
    lines = [make_lines(in_program, listener, backend) for listener in (outer, inner)]
    for each in lines:
        each.start()
    exec(compiled(CALLS), {})
    for each in reversed(lines):
        each.stop()
    assert only_lines(inner.heard) == oracle(CALLS)
    assert outer.heard == inner.heard or lines[0].lost


def test_stopped_in_the_wrong_order_nothing_is_left(backend):
    lines = [make_lines(in_program, Recorder(), backend) for _ in range(2)]
    for each in lines:
        each.start()
    for each in lines:
        each.stop()
    exec(compiled(CALLS), {})
    assert sys.gettrace() is None


def test_program_that_sets_its_own_tracer_wins_over_settrace():
    with nobody_tracing():
        source = "import sys\ndef f():\n    x = 1\nf()\nsys.settrace(other)\nf()\nx = 1\n"
        other, listener = Other(), Recorder()
        lines = make_lines(in_program, listener, "settrace")
        try:
            watch(source, "settrace", listener, {"other": other}, lines)
            assert sys.gettrace() is other
        finally:
            sys.settrace(None)
        assert lines.lost
        assert listener.heard[-1] == "<module>:5"
        assert ("f", "line", 3) in other.seen
        exec(compiled(CALLS), {})
        assert listener.heard[-1] == "<module>:5"


def test_lost_is_told_while_it_runs_and_forgotten_at_the_next_start():
    with nobody_tracing():
        lines = make_lines(in_program, Recorder(), "settrace")
        lines.start()
        assert not lines.lost
        sys.settrace(None)
        assert lines.lost
        lines.stop()
        assert lines.lost
        lines.start()
        assert not lines.lost
        lines.stop()
        assert not lines.lost


@needs_monitoring
def test_program_that_sets_its_own_tracer_does_not_disturb_monitoring():
    with nobody_tracing():
        lines = make_lines(in_program, listener := Recorder(), "monitoring")
        watch(
            "import sys\nsys.settrace(lambda *a: None)\nx = 1\nsys.settrace(None)\n",
            "monitoring",
            listener,
            None,
            lines,
        )
        assert not lines.lost
        assert listener.heard[-2:] == ["<module>:4", "<module>-"]


@needs_monitoring
def test_takes_no_id_that_is_held_and_none_that_is_reserved():
    with nobody_tracing():
        for number in (3, 4, 5):
            sys.monitoring.use_tool_id(number, "somebody")
        try:
            assert make_lines(in_program, Recorder()).backend == "settrace"
            with pytest.raises(RuntimeError, match="somebody"):
                make_lines(in_program, Recorder(), "monitoring").start()
            sys.monitoring.free_tool_id(4)
            lines = make_lines(in_program, Recorder())
            lines.start()
            assert sys.monitoring.get_tool(4) == "tensormagic"
            lines.stop()
            assert sys.monitoring.get_tool(4) is None
            sys.monitoring.use_tool_id(4, "somebody")
        finally:
            for number in (3, 4, 5):
                sys.monitoring.free_tool_id(number)


@needs_monitoring
def test_monitoring_leaves_no_events_and_no_callbacks():
    with nobody_tracing():
        code = compiled(CALLS)
        lines = make_lines(in_program, Recorder(), "monitoring")
        lines.start()
        exec(code, {})
        lines.stop()
        monitoring = sys.monitoring
        monitoring.use_tool_id(3, "looks")
        events = [getattr(monitoring.events, name) for name in dir(monitoring.events) if name.isupper()]
        try:
            assert monitoring.get_events(3) == 0
            assert monitoring.get_local_events(3, code) == 0
            singles = [event for event in events if event and event & (event - 1) == 0]
            callbacks = [monitoring.register_callback(3, event, None) for event in singles]
            assert len(callbacks) > 10
            assert set(callbacks) == {None}
        finally:
            monitoring.free_tool_id(3)
