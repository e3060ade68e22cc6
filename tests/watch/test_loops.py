"""The last round of a loop is recorded in full, like the first ones."""

from __future__ import annotations

import ast

import pytest
import torch

import tensormagic
from tensormagic.watch.loops import Loops, length

NAMES = {
    "n": 7, "items": [1, 2, 3], "pairs": {"a": 1, "b": 2}, "x": torch.ones(4, 2), "scalar": torch.ones(()),
    "text": "abc", "gen": (i for i in range(3)), "flag": True,
    "loader": torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(10, 2)), batch_size=4),
    "dropping": torch.utils.data.DataLoader(list(range(10)), batch_size=4, drop_last=True),
}  # fmt: skip


class Mine(list):
    def __len__(self):
        raise AssertionError("nothing of the user's is called")


@pytest.mark.parametrize(
    ("source", "right"),
    [
        ("range(5)", 5), ("range(2, n)", 5), ("range(n, 0, -2)", 4), ("range(0)", 0), ("range(n * 2 - 1)", 13),
        ("range(len(items))", 3), ("range(len(x) // 2)", 2), ("items", 3), ("pairs", 2), ("pairs.items()", 2),
        ("enumerate(items)", 3), ("zip(items, x)", 3), ("zip(gen, x)", 4), ("reversed(items)", 3), ("tqdm(range(9))", 9),
        ("tqdm.tqdm(items)", 3), ("[1, 2]", 2), ("(n, n, n)", 3), ("x", 4), ("text", 3), ("loader", 3), ("dropping", 2),
        ("enumerate(tqdm(loader))", 3),
        ("gen", 0), ("scalar", 0), ("unknown", 0), ("range(flag)", 0), ("range(1, 5, 0)", 0), ("[*items, 1]", 0),
        ("mine", 0), ("range(len(mine))", 0), ("f()", 0), ("items[1:]", 0), ("range(n // 0)", 0),
    ],
)  # fmt: skip
def test_lengths(source, right):
    names = NAMES | {"mine": Mine()}
    assert length(ast.parse(source, mode="eval").body, names.get) == right


def full(cell, namespace=None, **options):
    """(line, iteration) of the steps in full past the first ones."""
    trace = tensormagic.run(cell, {"torch": torch, **(namespace or {})}, first=3, **options)
    assert trace.error is None, trace.error
    seen, result = {}, []
    for step in trace.recording.steps:
        seen[step.line] = seen.get(step.line, 0) + 1
        if step.detail and seen[step.line] > 3:
            result.append((step.line, seen[step.line]))
    return result


def test_the_last_round_of_a_loop():
    assert full("x = torch.zeros(2)\nfor i in range(10):\n    x = x + 1\n    y = x * 2\nz = 1\n") == [
        (2, 10),
        (3, 10),
        (4, 10),
    ]


def test_of_nested_loops_the_last_of_the_last():
    cell = "for i in range(5):\n    a = i\n    for j in range(6):\n        b = j\n    c = i\n"
    assert full(cell) == [(1, 5), (2, 5), (3, 34), (4, 30), (5, 5)]


def test_a_loop_that_begins_again_begins_anew():
    cell = "for i in [0, 1]:\n    for j in range(5):\n        b = j\n    c = 1\n"
    assert full(cell) == [(2, 11), (3, 10)]


def test_functions_called_in_the_last_round():
    cell = "def f(x):\n    y = x + 1\n    return y\nfor i in range(8):\n    z = f(torch.ones(1))\n"
    assert (2, 8) in full(cell)
    assert (3, 8) in full(cell)


def test_a_function_called_a_thousand_times_in_the_last_round_stays_bounded():
    cell = "def f(x):\n    return x + 1\nfor i in range(5):\n    z = [f(1) for _ in range(100)]\n"
    assert len([line for line, _ in full(cell) if line == 2]) <= 3


def test_loops_in_a_function():
    cell = "def f(n):\n    for i in range(n):\n        x = torch.ones(1)\n    return x\ny = f(9)\n"
    assert full(cell) == [(2, 9), (3, 9)]
    cell = (
        "def f(n):\n    for i in range(n):\n        x = torch.ones(1)\n    return x\nfor k in range(5):\n    y = f(9)\n"
    )
    assert (3, 45) in full(cell)
    assert (3, 36) not in full(cell)


def test_a_while_and_a_generator_have_no_known_end():
    assert full("i = 0\nwhile i < 9:\n    i += 1\n") == []
    assert full("for i in (k for k in range(9)):\n    x = i\n") == []


def test_a_break_leaves_the_last_round_out():
    assert full("for i in range(10):\n    x = i\n    if i == 6:\n        break\n") == []


def test_the_values_of_the_last_round_are_there():
    trace = tensormagic.run("x = torch.zeros(2)\nfor i in range(100):\n    x += 1\n", {"torch": torch})
    last = [write for write in trace.writes if write.line == 3][-1]
    assert trace.recording.steps[last.step].detail
    assert trace["x"].values == [100.0, 100.0]


def test_what_does_not_parse_has_no_loops():
    assert Loops("for i in (").heads == {}
    assert Loops("for i in range(3): f(i)\n").heads == {}  # body and header are one line: one step
