"""What the view says of real cells."""

from __future__ import annotations

import json

import pytest

import tensormagic
from tensormagic.show import view
from tensormagic.show.sentences import runs

LESSON = (
    "import torch\nx = torch.tensor([1., 2., 3., 4.], requires_grad=True)\ny = x.clone()\nd = x.detach()\nv = d[:2]\n"
    "v *= 10\nloss = (y ** 2).sum()\nloss.backward()\n"
)


def made(cell, **options):
    trace = tensormagic.run(cell, **options)
    return view.build(trace), trace


def said(shown):
    return ["".join(text for text, _ in step["say"]) for step in shown["steps"]]


def test_the_lesson_in_words():
    shown, _ = made(LESSON)
    sentences = said(shown)
    assert [step["mark"] for step in shown["steps"]] == [
        "none", "create", "create", "share", "share", "write", "compute", "backward",
    ]  # fmt: skip
    assert "leaf that wants a gradient" in sentences[1]
    assert "copied x into new memory, S2" in sentences[2]
    assert "made no copy" in sentences[3]
    assert "off the graph" in sentences[3]
    assert "elements 0, 1 of S1" in sentences[4]
    assert "x, d changed too: 1 → 10, 2 → 20" in sentences[5]
    assert "y, a copy, did not" in sentences[5]
    assert "(y ** 2).sum()" in sentences[6]
    assert "sum, pow and clone" in sentences[7]
    assert "stored in x.grad" in sentences[7]


def test_memory_over_time():
    shown, _ = made(LESSON)
    first = shown["storages"][0]
    at = dict(first["states"])
    assert at[1]["cells"] == ["1", "2", "3", "4"]
    assert at[5]["cells"] == ["10", "20", "3", "4"]
    assert at[5]["changed"] == [0, 1]
    rows = {row["name"]: row for row in at[7]["rows"]}
    assert rows["v"]["cover"] == [[0, 2]]
    assert rows["x"]["grad"] == ["2", "4", "6", "8"]


def test_colours_lead_to_the_storage_of_the_name():
    shown, trace = made(LESSON)
    matrix = shown["matrix"][-1][1]
    for name, place in zip(matrix["names"], matrix["storages"], strict=True):
        number = trace.at()[name].state.storage
        if place >= 0:
            assert shown["storages"][place]["name"] == f"S{number + 1}"


def test_gradients_have_edges_and_parts():
    shown, _ = made(LESSON)
    gradients = shown["gradients"]
    (graph,) = gradients["graphs"]
    labels = {node["label"]: node["kind"] for node in graph["nodes"]}
    assert labels["x"] == "leaf"
    assert labels["y"] == "result"
    assert any(edge["cut"] for edge in graph["edges"])
    (run,) = gradients["runs"]
    assert run["leaves"][0]["after"] == "[2, 4, 6, 8]"


def test_an_error_is_the_last_step():
    shown, _ = made("import torch\nx = torch.ones(2)\nx @ torch.ones(3)\n")
    assert shown["steps"][-1]["mark"] == "error"
    assert "RuntimeError" in said(shown)[-1]


def test_a_function_s_steps_name_the_function_and_its_caller():
    shown, _ = made("import torch\ndef f(a):\n    return a + 1\nx = f(torch.ones(1))\n")
    inside = shown["steps"][2]
    assert inside["frame"] == "f"
    assert inside["callers"] == [[0, 4]]


def test_loops_can_be_walked():
    shown, _ = made("import torch\nx = torch.zeros(1)\nfor i in range(50):\n    x += 1\n")
    (loop,) = shown["loops"]
    assert loop["total"] == 50
    assert loop["starts"][0][0] == 0
    assert loop["starts"][-1][0] == 49


@pytest.mark.parametrize("cell", ["", "a = 1", "import torch\nx = torch.empty(3, device='meta')"])
def test_cells_with_little_in_them(cell):
    shown, trace = made(cell)
    assert trace.summary()
    assert json.dumps(shown)


def test_large_tensors_are_strips():
    shown, _ = made("import torch\nbig = torch.zeros(1000, 1000)\npart = big[250:500]\n")
    state = shown["storages"][0]["states"][-1][1]
    assert "cells" not in state
    rows = {row["name"]: row["cover"] for row in state["rows"]}
    assert rows["big"] == [[0, 240]]
    assert rows["part"] == [[60, 60]]


def test_size_of_a_thousand_steps():
    shown, _ = made("import torch\nx = torch.zeros(4)\n" + "x = x + 1\n" * 998)
    assert len(shown["steps"]) == 1000
    assert len(json.dumps(shown, ensure_ascii=False)) < 1_000_000


def test_notices_are_said_in_words():
    shown, _ = made("import torch\nxs = [torch.ones(1) for _ in range(300)]\n")
    assert any("300 items" in text for text in shown["notices"])


def test_what_is_filled_in_is_never_read_for_marks():
    assert runs("`{a}` and **{b}**", a="**x**", b="`y`") == [["**x**", "code"], [" and ", ""], ["`y`", "strong"]]


def test_every_notice_code_has_words():
    import re
    from pathlib import Path

    from tensormagic.show.words import en

    source = "".join(path.read_text() for path in (Path(tensormagic.__file__).parent / "watch").glob("*.py"))
    codes = set(re.findall(r'(?:\.notice|\bNotice)\(\s*"([\w-]+)"', source))
    assert codes
    assert codes <= set(en.NOTICES)


def test_names_of_earlier_cells_that_the_cell_does_not_touch_are_left_out():
    import torch

    namespace = {"torch": torch, "old": torch.ones(3), "used": torch.ones(2), "read": torch.ones(1)}
    trace = tensormagic.run("new = used + 1\nn = read\n", namespace)
    names = view.build(trace)["matrix"][-1][1]["names"]
    assert "old" not in names
    assert {"used", "new", "read", "n"} <= set(names)


def test_an_exception_in_a_function_is_told_where_it_was_raised_and_where_the_cell_stood():
    shown, _ = made("import torch\ndef f(t):\n    u = t * 2\n    return u @ torch.ones(3)\nf(torch.ones(2))\n")
    assert [step["line"] for step in shown["steps"] if step["mark"] == "error"] == [4, 5]
    assert said(shown)[-2].startswith("This line raised RuntimeError")
    assert said(shown)[-1].startswith("f raised RuntimeError on line 4")


def test_what_a_later_look_found_is_not_said_to_be_made_by_that_line():
    shown, _ = made("import torch\nx = torch.zeros(2)\nfor i in range(500):\n    x += 1\n    y = x * 2\n")
    light = [text for step, text in zip(shown["steps"], said(shown), strict=True) if step.get("light")]
    assert light
    assert all("not recorded in detail" in text for text in light)
    assert not any("is new" in text for text in light)
