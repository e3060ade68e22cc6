"""What lines say about a program, on every backend that this interpreter has."""

from __future__ import annotations

import sys

import pytest

from tests.watch.lines_alone import BACKENDS, Recorder, needs_monitoring, nobody_tracing, only_lines, oracle, watch


@pytest.fixture(params=BACKENDS)
def backend(request):
    with nobody_tracing():
        yield request.param


PROGRAMS = {
    "straight line": ("a = 1\nb = 2\n", "<module>+ <module>:1 <module>:2 <module>-"),
    "for on one line": ("for i in 'ab': x = i\n", "<module>+ <module>:1 <module>:1 <module>:1 <module>-"),
    "while on one line": (
        "i = 0\nwhile i < 2: i += 1\n",
        "<module>+ <module>:1 <module>:2 <module>:2 <module>-",
    ),
    "loop": (
        "for i in 'ab':\n    x = i\n",
        "<module>+ <module>:1 <module>:2 <module>:1 <module>:2 <module>:1 <module>-",
    ),
    "function": (
        "def f(x):\n    y = x\n    return y\nf(1)\n",
        "<module>+ <module>:1 <module>:4 f+ f:2 f:3 f- <module>-",
    ),
    "nested function": (
        "def f(x):\n    def g():\n        return x\n    return g()\nf(1)\n",
        "<module>+ <module>:1 <module>:5 f+ f:2 f:4 g+ g:3 g- f- <module>-",
    ),
    "recursion": (
        "def f(n):\n    if n:\n        f(n - 1)\nf(2)\n",
        "<module>+ <module>:1 <module>:4 f+ f:2 f:3 f+ f:2 f:3 f+ f:2 f- f- f- <module>-",
    ),
    "lambda": ("f = lambda x: x\nf(1)\n", "<module>+ <module>:1 <module>:2 <lambda>+ <lambda>:1 <lambda>- <module>-"),
    "class": (
        "class A:\n    x = 1\n    def m(self):\n        return self\nA().m()\n",
        "<module>+ <module>:1 A+ A:1 A:2 A:3 A- <module>:5 m+ m:4 m- <module>-",
    ),
    "caught": (
        "def f():\n    raise ValueError\ntry:\n    f()\nexcept ValueError:\n    x = 1\n",
        "<module>+ <module>:1 <module>:3 <module>:4 f+ f:2 f! <module>:5 <module>:6 <module>-",
    ),
    "uncaught": (
        "def f():\n    1 / 0\nf()\n",
        "<module>+ <module>:1 <module>:3 f+ f:2 f! <module>! ZeroDivisionError",
    ),
    "finally": (
        "def f():\n    try:\n        return 1\n    finally:\n        x = 2\nf()\n",
        "<module>+ <module>:1 <module>:6 f+ f:2 f:3 f:5 f- <module>-",
    ),
    "raised through finally": (
        "def f():\n    try:\n        1 / 0\n    finally:\n        x = 2\nf()\n",
        "<module>+ <module>:1 <module>:6 f+ f:2 f:3 f:5 f! <module>! ZeroDivisionError",
    ),
    "unwatched between": (
        "def f(x):\n    return -x\nsorted([2, 1], key=f)\nimport bisect, functools\nfunctools.reduce(max, [1])\n",
        "<module>+ <module>:1 <module>:3 f+ f:2 f- f+ f:2 f- <module>:4 <module>:5 <module>-",
    ),
    "generator": (
        "def g():\n    x = yield 1\n    yield\nfor v in g():\n    v\n",
        "<module>+ <module>:1 <module>:4 g+ g:2 g< <module>:5 <module>:4 "
        "g> g:3 g< <module>:5 <module>:4 g> g- <module>-",
    ),
    "thrown into": (
        """\
        def g():
            try:
                yield
            except ValueError:
                yield
        t = g()
        next(t)
        t.throw(ValueError)
        t.throw(KeyError)
        """,
        "<module>+ <module>:1 <module>:6 <module>:7 g+ g:2 g:3 g< "
        "<module>:8 g> g:4 g:5 g< <module>:9 g> g! <module>! KeyError",
    ),
    "thrown into before it began": (
        "def g():\n    yield\ng().throw(KeyError)\n",
        "<module>+ <module>:1 <module>:3 g+ g! <module>! KeyError",
    ),
    "thrown through finally, with None yielded": (
        "def g():\n    try:\n        yield\n    finally:\n        x = 1\nt = g()\nnext(t)\nt.throw(KeyError)\n",
        "<module>+ <module>:1 <module>:6 <module>:7 g+ g:2 g:3 g< <module>:8 g> g:5 g! <module>! KeyError",
    ),
    "closed": (
        "def g():\n    try:\n        yield\n    finally:\n        x = 1\nt = g()\nnext(t)\nt.close()\n",
        "<module>+ <module>:1 <module>:6 <module>:7 g+ g:2 g:3 g< <module>:8 g> g:5 g! <module>-",
    ),
    "await": (
        """\
        import asyncio
        async def f():
            await asyncio.sleep(0)
            return 1
        asyncio.run(f())
        """,
        "<module>+ <module>:1 <module>:2 <module>:5 f+ f:3 f< f> f:4 f- <module>-",
    ),
    "another thread": (
        """\
        import threading
        def f():
            x = 1
        t = threading.Thread(target=f)
        t.start()
        t.join()
        f()
        """,
        "<module>+ <module>:1 <module>:2 <module>:4 <module>:5 <module>:6 <module>:7 f+ f:3 f- <module>-",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_heard(name, backend):
    source, expected = PROGRAMS[name]
    assert " ".join(watch(source, backend)) == expected


def test_comprehension_is_a_frame_only_where_the_interpreter_makes_one(backend):
    heard = watch("x = [i for i in 'ab']\n", backend)
    inner = ["<listcomp>+", *["<listcomp>:1"] * 3, "<listcomp>-"] if sys.version_info < (3, 12) else ["<module>:1"] * 2
    assert heard == ["<module>+", "<module>:1", *inner, "<module>-"]


# Interpreters differ in the details of these (which lines of a `with` come again); the oracle knows what this one does.
INVOLVED = [
    """
    def d(f):
        return f
    @d
    @d
    def f():
        pass
    f()
    """,
    """
    from contextlib import nullcontext, suppress
    def g():
        with nullcontext(): yield
    def h():
        for _ in 'ab':
            with suppress(ValueError): yield
    t = g(); next(t)
    try: t.throw(ValueError)
    except ValueError: pass
    t = h(); next(t); t.throw(ValueError); t.close()
    """,
    """
    def inner():
        try:
            yield 1
        except KeyError:
            yield 2
        return 3
    def outer():
        x = yield from inner()
        yield x
    t = outer()
    next(t); t.throw(KeyError); next(t); list(t)
    t = outer()
    next(t)
    try: t.throw(ValueError)
    except ValueError: pass
    """,
    """
    import asyncio
    async def a(n):
        await asyncio.sleep(0)
        if n: raise ValueError
        return n
    async def agen():
        yield 1
        yield
    class Manager:
        async def __aenter__(self): await asyncio.sleep(0)
        async def __aexit__(self, *args): await asyncio.sleep(0); return True
    async def main():
        async for v in agen(): v
        try:
            await asyncio.gather(a(0), a(1))
        except ValueError:
            x = 2
        async with Manager() as m:
            await a(1)
        return [v async for v in agen() if v]
    asyncio.run(main())
    """,
    """
    with open(__file__) if 0 else __import__('contextlib').nullcontext() as a, \\
            __import__('contextlib').suppress(ValueError):
        raise ValueError
    x = [i * j for i in range(2)
         for j in range(2)]
    y = sum(i
            for i in x)
    match (1,
           x):
        case [0, _]: pass
        case [1, y] if (y and
                        x): z = 1
    while True:
        if x: break
    else: z = 2
    """,
    """
    def f(x,
          y=(1,
             2)):
        return (x +
                1)
    f(
      1,
    )
    for i in (1,
              2): f(i); f(
                  2)
    assert (f(1) and
            f(2))
    """,
]


@pytest.mark.parametrize("source", INVOLVED)
def test_same_lines_as_the_oracle(source, backend):
    expected = oracle(source)
    assert len(expected) > 5
    assert only_lines(watch(source, backend)) == expected


@needs_monitoring
@pytest.mark.parametrize("source", INVOLVED + [source for source, _ in PROGRAMS.values()])
def test_backends_agree(source):
    assert watch(source, "monitoring") == watch(source, "settrace")


def test_pauses_balance_and_ends_are_told_apart(backend):
    for source in INVOLVED:
        state = {}

        class Checker(Recorder):
            def moved(self, frame, event, before):
                assert state.get(frame, "new") == before, (event, source)

            def entered(self, frame):
                self.moved(frame, "entered", "new")
                state[frame] = "runs"

            def line(self, frame, line):
                self.moved(frame, "line", "runs")

            def left(self, frame, raised):
                self.moved(frame, "left", "runs")
                state[frame] = "ended"

            def paused(self, frame):
                self.moved(frame, "paused", "runs")
                state[frame] = "pauses"

            def resumed(self, frame):
                self.moved(frame, "resumed", "pauses")
                state[frame] = "runs"

        checker = Checker()
        watch(source, backend, checker)
        assert checker.failures == []
        assert set(state.values()) == {"ended"}
