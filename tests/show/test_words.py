"""Every word that a person sees comes from the catalogue: in a made-up language no English is left."""

from __future__ import annotations

import re
import sys
import types
from typing import Any

import pytest

import tensormagic
from tensormagic.show import panel, picture, plots, view
from tensormagic.show.words import catalogue, en

CELL = """
import torch
q1 = torch.tensor([1.0, 2.0], requires_grad=True)
q2 = q1.clone()
q3 = q1.detach()
q4 = q3[:1]
q4 += 1
q5 = q1
q6 = q1.t()
q7 = torch.zeros(300)
q8 = q7[::2]
q9 = (q2 * q1).sum()
q9.backward()
q9 = q1.sum()
q9.backward()
q1.grad = None
with torch.no_grad():
    qa = q1 * 2
qb = q2.detach().numpy()
del q4
qc = torch.nn.Linear(2, 2)
for qi in range(40):
    q7 += 1
def qf(qt):
    return qt * 2
qd = qf(q2)
qe = [q1, q2, q3]
raise ValueError("qq")
"""
# Keys of the view that are no words: kinds, styles, and what comes from the program or is a finding's own text.
CODES = {"mark", "kind", "severity", "rule", "findings", "lines", "tip", "calls"}
STYLES = {"", "code", "strong", "warn", "soft", "grad"}
PROGRAM = set(re.findall(r"[A-Za-z_]+", CELL)) | {
    "tensortrace",
    "float",
    "Backward",
    "ValueError",
    "S",
    "B",
    "kB",
    "NumPy",
    "weight",
    "bias",
}


def strange(value: Any) -> Any:
    """The same templates, the letters of their own words replaced."""
    if isinstance(value, str):
        return re.sub(
            r"\{\w*\}|[A-Za-z]+", lambda found: found[0] if found[0][0] == "{" else "ж" * len(found[0]), value
        )
    if isinstance(value, dict):
        return {key: strange(one) for key, one in value.items()}
    return [strange(one) for one in value]


@pytest.fixture
def language(monkeypatch: pytest.MonkeyPatch) -> str:
    module = types.ModuleType("tensormagic.show.words.xx")
    for name in en.__all__:
        setattr(module, name, strange(getattr(en, name)))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return "xx"


def english(value: Any, key: str = "") -> list[str]:
    """The words of a view that neither the catalogue nor the program gave."""
    if isinstance(value, dict):
        return [word for name, one in value.items() if name not in CODES for word in english(one, name)]
    if isinstance(value, list):
        run = len(value) == 2 and isinstance(value[0], str) and value[1] in STYLES
        return [word for one in (value[:1] if run else value) for word in english(one, key)]
    if not isinstance(value, str) or key in ("name", "language"):
        return []
    return [
        word
        for word in re.findall(r"[A-Za-z]{2,}", re.sub(r"\{\w*\}|\w+Backward\d*", "", value))
        if not any(word in known for known in PROGRAM)
    ]


def operations(shown: Any) -> set[str]:
    """Names of torch's operations, which are the same in every language."""
    names = {node["label"] for graph in shown["gradients"]["graphs"] for node in graph["nodes"]}
    return names | {"mul", "Mul", "Sum", "Clone", "TBackward", "iadd", "add"}


def test_no_english_is_left_in_a_view(language: str) -> None:
    shown = view.build(tensormagic.run(CELL), language)
    assert "ж" in shown["summary"][0][0]
    known = operations(shown)
    left = {word for word in english(shown) if word not in known}
    assert left == set()


def test_no_english_is_left_where_scripts_do_not_run(language: str) -> None:
    shown = view.build(tensormagic.run(CELL), language)
    texts = [shape.text for shape in picture.shapes(shown)[0] if isinstance(shape, picture.Text)]
    assert any("ж" in text for text in texts)
    table = re.sub(r"<[^>]*>", " ", panel.table(shown))
    known = operations(shown) | {"amp", "quot"}
    assert [word for word in english([*texts, table]) if word not in known] == []


def test_plots_speak_the_language(language: str) -> None:
    trace = tensormagic.run(CELL)
    ax = plots.plot_gradients(trace, language=language)
    assert "ж" in ax.get_title()
    assert "ж" in ax.get_ylabel()
    assert "ж" in plots.plot_sharing(trace, language=language).get_title()


def test_an_unknown_language_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"add tensormagic/show/words/yy\.py"):
        catalogue("yy")
