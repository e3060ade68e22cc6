"""Random programs: the lines of a plain tracer, and both backends alike."""

from __future__ import annotations

import random
from textwrap import dedent, indent

import pytest

from tests.watch.lines_alone import BACKENDS, HAS_MONITORING, nobody_tracing, only_lines, oracle, watch


@pytest.fixture(params=BACKENDS)
def backend(request):
    with nobody_tracing():
        yield request.param


class Maker:
    """Makes small programs that end: nested statements, functions, generators, exceptions."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.fuel = 25

    def block(self, depth, where):
        self.fuel -= 1
        count = self.random.randint(1, 3)
        return "".join(self.statement(depth, where) for _ in range(count))

    def statement(self, depth, where):
        simple = [
            "x += 1\n",
            "x = (x +\n    1)\n",
            "x += 1; x += 2\n",
            "x = [i for i in range(2)\n    if i][0]\n",
            "pass\n",
        ]
        if where["loop"]:
            simple += ["if x % 3 == 0: break\n", "if x % 2: continue\n"]
        if where["yields"]:
            simple += ["yield x\n", "x = (yield) or 1\n", "yield from (1, None)\n"]
        if where["function"]:
            simple += ["if x % 5 == 0: return x\n"]
        simple += ["if x % 7 == 0: raise ValueError(x)\n"]
        if depth > 3 or self.fuel < 0 or self.random.random() < 0.45:
            return self.random.choice(simple)
        inside = lambda **changes: indent(self.block(depth + 1, {**where, **changes}), "    ")
        kind = self.random.choice(
            ["if", "for", "line for", "try", "finally", "with", "def", "gen", "while", "with line"]
        )
        if kind == "if":
            return f"if x % 2:\n{inside()}else:\n{inside()}"
        if kind == "for":
            return f"for _ in range({self.random.randint(0, 3)}):\n{inside(loop=True)}"
        if kind == "line for":
            return "for _ in range(3): x += 1\n"
        if kind == "while":
            return f"n{depth} = 0\nwhile (n{depth} < 3\n       and True):\n    n{depth} += 1\n{inside(loop=True)}"
        if kind == "try":
            return f"try:\n{inside()}except ValueError as e:\n{inside()}else:\n    x += 1\n"
        if kind == "finally":
            return f"try:\n{inside()}finally:\n    x += 1\n"
        if kind == "with":
            return f"with suppress(ValueError):\n{inside()}"
        if kind == "with line":
            return f"with suppress(ValueError): {'yield x' if where['yields'] else 'raise ValueError'}\n"
        name = f"f{self.random.randint(0, 999)}"
        if kind == "def":
            body = inside(loop=False, yields=False, function=True)
            return f"def {name}(x):\n{body}    return x\nx = {name}(x)\n"
        body = inside(loop=False, yields=True, function=True)
        use = self.random.choice(["sum(v or 0 for v in {0}(x))", "drive({0}(x), {1})"]).format(
            name, self.random.randint(0, 3)
        )
        return f"def {name}(x):\n{body}    yield x\nx = {use}\n"

    def program(self):
        head = dedent("""\
            from contextlib import suppress
            def drive(g, n):
                try:
                    for _ in range(n): next(g)
                    g.throw(ValueError)
                    next(g)
                except (ValueError, StopIteration):
                    g.close()
                return 1
            x = 1
            """)
        return head + "".join(self.block(0, {"loop": False, "yields": False, "function": False}) for _ in range(3))


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed, backend):
    source = Maker(seed).program()
    heard = watch(source, backend)
    assert only_lines(heard) == [word for word in oracle(source) if word != "raised"], source
    if HAS_MONITORING:
        assert heard == watch(source, "settrace"), source
