"""TracePanel from Python: what it displays, how it packs, what its step takes."""

from __future__ import annotations

import base64
import copy
import gzip
import html.parser
import json
import re
from pathlib import Path
from typing import Any

import pytest
import traitlets

import tensormagic
from tensormagic.show import assets, handout, panel, picture, view, view_memory

SAMPLE = json.loads(Path(__file__).with_name("sample_view.json").read_text(encoding="utf-8"))
SHOW = Path(assets.__file__).parent
DATA = re.compile(r'<script type="application/json" data-form="(\w+)">(.*?)</script>', re.S)


def stored(fragment: str) -> Any:
    """The view that a fragment carries."""
    form, text = DATA.search(fragment).groups()
    return json.loads(text if form == "plain" else gzip.decompress(base64.b64decode(text)))


class Elements(html.parser.HTMLParser):
    """The tags of a page as a sanitizer meets them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_small_views_are_plain_and_large_ones_compressed() -> None:
    assert panel.packed(SAMPLE)[1] == "plain"
    assert stored(panel.fragment(SAMPLE, "a1")) == SAMPLE
    large = copy.deepcopy(SAMPLE)
    large["files"][0]["lines"] += ["z = 1  # ∇"] * 6000
    text, form = panel.packed(large)
    assert form == "gzip"
    assert len(text) < 20_000
    assert stored(panel.fragment(large, "a1")) == large


def test_the_table_tells_line_code_and_sentence_of_each_step() -> None:
    table = panel.table(SAMPLE)
    assert table.count("<tr>") == 1 + 7
    assert "<code>v *= 10</code>" in table
    assert "x changed too: 1 → 10" in table


def test_a_long_table_says_how_much_is_left_out() -> None:
    long = SAMPLE | {"steps": SAMPLE["steps"] * 10}
    assert f"{70 - panel.TABLE_ROWS} more steps" in panel.table(long)


def test_the_picture_is_described_in_words() -> None:
    text = panel.fragment(SAMPLE | {"alt": 'a "view" <b>'}, "a1", b"\x89PNG")
    assert '<img alt="a &quot;view&quot; &lt;b&gt;" src="data:image/png;base64,iVBORw=="' in text


HOSTILE = "</script><img src=x onerror=hit()><!--"


def test_hostile_text_makes_no_element() -> None:
    bad = copy.deepcopy(SAMPLE)
    bad["files"][0]["lines"] = [HOSTILE] * 7
    bad["title"], bad["summary"] = HOSTILE, [[HOSTILE, ""]]
    for step in bad["steps"]:
        step["say"] = [[HOSTILE, "strong"]]
    for text in (panel.fragment(bad, "a1"), handout.page(bad)):
        found = Elements(text)
        assert found.handlers == []
        assert "img" not in found.tags
        assert found.tags.count("script") == 2
    assert stored(panel.fragment(bad, "a1")) == bad


def test_a_handout_asks_for_nothing() -> None:
    page = handout.page(SAMPLE)
    assert "default-src 'none'" in page
    without_names = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?://|src=\"(?!data:)|url\((?!#)|@import", without_names)


def test_the_output_of_a_lecture_cell_is_small() -> None:
    assert len(panel.fragment(SAMPLE, "a" * 32).encode()) < 80_000  # a picture of 20 kB fits into 100 kB


def test_every_word_the_renderer_asks_for_is_in_the_catalogue() -> None:
    asked = set()
    for path in SHOW.glob("*.js"):
        source = path.read_text(encoding="utf-8")
        asked |= set(re.findall(r"\b(?:words|labels)\.(\w+)", source))
    for labels in (SAMPLE["labels"], view.build(tensormagic.run("a = 1"))["labels"]):
        assert asked <= set(labels), asked - set(labels)


def test_view_and_renderer_agree_on_the_strip() -> None:
    source = (SHOW / "memory.js").read_text(encoding="utf-8")
    assert f"const STRIP = {view_memory._STRIP};" in source
    assert f"const CELLS = {view_memory._CELLS};" in source


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> panel.TracePanel:
    monkeypatch.setattr(view, "build", lambda trace: SAMPLE)
    monkeypatch.setattr(picture, "png", lambda view: b"\x89PNG")
    return panel.TracePanel(None)


def test_a_panel_displays_html_and_text_and_no_widget_view(shown: panel.TracePanel) -> None:
    data, metadata = shown._repr_mimebundle_()
    assert set(data) == {"text/html", "text/plain"}
    assert metadata == {}
    assert f'data-tensortrace="{shown.link}"' in data["text/html"]
    assert f'mountAll("{shown.link}")' in data["text/html"]
    assert SAMPLE["alt"] in data["text/plain"]


def test_two_panels_are_told_apart(shown: panel.TracePanel) -> None:
    assert shown.link != panel.TracePanel(None).link


def test_step_is_read_and_set_and_kept_inside(shown: panel.TracePanel) -> None:
    assert shown.step == SAMPLE["start"]
    shown.step = 6
    assert shown.step == 6
    for wrong in (-1, 7):
        with pytest.raises(traitlets.TraitError, match=f"step {wrong} is outside this trace: it has steps 0 to 6"):
            shown.step = wrong
    assert shown.step == 6


def test_the_widget_carries_what_a_tab_needs(shown: panel.TracePanel) -> None:
    state = shown.get_state()
    assert json.loads(state["data"]) == SAMPLE
    assert state["form"] == "plain"
    assert state["_esm"].rstrip().endswith("export default $renderer;")


CELL = """
import torch
x = torch.tensor([1., 2., 3., 4.], requires_grad=True)
y = x.clone()
d = x.detach()
v = d[:2]
v *= 10
(y ** 2).sum().backward()
"""


def test_a_real_trace_is_shown_and_kept_within_its_budget() -> None:
    trace = tensormagic.run(CELL)
    data, _ = panel.TracePanel(trace)._repr_mimebundle_()
    assert len(data["text/html"].encode()) <= 100_000
    assert stored(data["text/html"])["steps"][-1]["mark"] == "backward"
    assert '<img alt="' in data["text/html"]
    assert "<img alt=" in handout.html(trace)


def test_a_thousand_steps_stay_under_a_megabyte() -> None:
    source = "import torch\nw = torch.zeros(8)\nfor i in range(500):\n    w += 1\n    v = w[:4]\n"
    trace = tensormagic.run(source)
    assert len(handout.html(trace).encode()) <= 1_000_000


def test_an_empty_cell_a_syntax_error_and_a_cell_without_torch_are_shown() -> None:
    for source in ("", "x = (", "a = 41\na + 1\n"):
        assert "data-tensortrace" in handout.html(tensormagic.run(source))
