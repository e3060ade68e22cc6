"""Which lines belong to one statement."""

from __future__ import annotations

import warnings
from textwrap import dedent

import pytest

from tests.watch.lines_alone import statements


def of(source):
    return statements(dedent(source))


CASES = {
    "one line each": ("x = 1\nif x: y = 2\nfor i in x:\n    pass\n", {}),
    "simple": ("x = [1,\n     2]\ny = 1\nf(\n  x\n)\n", {1: 1, 2: 1, 4: 4, 5: 4, 6: 4}),
    "backslash": ("x = 1 + \\\n    2\n", {1: 1, 2: 1}),
    "string": ('x = """a\n\nb"""\n', {1: 1, 2: 1, 3: 1}),
    "inside a function": ("def f():\n    return (1,\n            2)\n", {2: 2, 3: 2}),
    "with": ("with (open(a) as f,\n      open(b) as g):\n    pass\n", {1: 1, 2: 1}),
    "for": ("for i in (1,\n          2):\n    x = 1\nelse:\n    y = 1\n", {1: 1, 2: 1}),
    "if and elif": ("if (a and\n    b):\n    x = 1\nelif (c or\n      d):\n    y = 1\n", {1: 1, 2: 1, 4: 4, 5: 4}),
    "while": ("while (a\n       and b):\n    pass\n", {1: 1, 2: 1}),
    "header that shares its last line with its body": ("if (a and\n    b): x = 1\ny = 1\n", {1: 1, 2: 1}),
    "body that starts on the header's line": ("while a: f(\n  1)\n", {1: 1, 2: 1}),
    "def": (
        "def f(\n    a: int = 1,\n    b={1: lambda: 2},\n) -> int:\n    # a comment\n\n    return a\n",
        dict.fromkeys(range(1, 5), 1),
    ),
    "def without arguments": ("def f(\n):\n    pass\n", {1: 1, 2: 1}),
    "decorators": ("@a\n@b(\n  1)\ndef f():\n    x = 1\n", dict.fromkeys(range(1, 5), 1)),
    "lambda in a header": ("if lambda: (\n    1):\n    pass\n", {1: 1, 2: 1}),
    "class": ("@d\nclass A(\n    B,\n):\n    x = 1\n", dict.fromkeys(range(1, 5), 1)),
    "async": ("async def f():\n    async with (a,\n                b):\n        pass\n", {2: 2, 3: 2}),
    "except": ("try:\n    pass\nexcept (A,\n        B):\n    pass\nfinally:\n    pass\n", {3: 3, 4: 3}),
    "match": (
        "match (a,\n       b):\n    case [1,\n          2] if (a and\n                 b):\n        pass\n",
        {1: 1, 2: 1, 3: 3, 4: 3, 5: 3},
    ),
    "lambda over lines": ("f = lambda x: (\n    x)\n", {1: 1, 2: 1}),
    "semicolon": ("x = 1; y = (2,\n            3); z = (4,\n    5)\n", {1: 1, 2: 1, 3: 1}),
    "not ascii before the colon": (
        "for é, b in zip('é',\n                'é'): x = {1:\n                  2}\n",
        {1: 1, 2: 1, 3: 1},
    ),
    "windows line ends": ("x = (1,\r\n     2)\r\ny = 1\r\n", {1: 1, 2: 1}),
    "empty": ("", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_lines_of_one_statement(name):
    source, expected = CASES[name]
    assert of(source) == expected


@pytest.mark.parametrize("source", ["x = (", "%pwd\n", "x = 1\n  y", "\0", "f" * 3 + "(" * 5000])
def test_source_that_does_not_parse(source):
    assert of(source) == {}


def test_no_warning_comes_from_reading():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of("x = (1 is\n  1)\ny = '\\d'\n") == {1: 1, 2: 1}


def test_it_holds_together_on_its_own_source():
    source = open(__file__, encoding="utf-8").read()
    found = statements(source)
    assert len(found) > 20
    for line, first in found.items():
        assert first <= line
        assert found[first] == first
