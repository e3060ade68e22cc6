"""The panel in a real browser: keys, safety, sizes, themes, large views. DOM and geometry, no pixels."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import tensormagic
from tensormagic.show import handout
from tests.show.browser import Opened, eventually
from tests.show.samples import SAMPLE, Open, looping


def test_keys_do_not_reach_the_page_but_those_with_modifiers_do(opened: Open) -> None:
    panel = opened()
    panel.page.evaluate("window.got = []; document.addEventListener('keydown', (e) => got.push(e.key))")
    for target in (panel.root, panel.slider, panel.page.get_by_role("button", name="Next step")):
        target.focus()
        panel.press("b", "d", "d", "x", "Shift+M", "ArrowDown", "j", "0")
    assert panel.page.evaluate("got") == []
    assert panel.page.locator("[data-live]").get_attribute("data-lm-suppress-shortcuts") == "true"
    panel.press("Control+s", "Shift+Enter")
    assert {"s", "Enter"} <= set(panel.page.evaluate("got"))
    assert panel.page.locator("[data-live]").get_attribute("data-lm-suppress-shortcuts") is None


HOSTILE = "</script><img src=x onerror='window.hit=1'><script>window.hit=1</script><!--<b>&amp;{line}"


def test_nothing_from_the_cell_becomes_html(opened: Open) -> None:
    def poisoned(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            if key == "labels":
                return value
            return {k: poisoned(v, k) for k, v in value.items()}
        if isinstance(value, list):
            run = len(value) == 2 and value[1] in ("", "code", "strong", "warn", "soft") and isinstance(value[0], str)
            return [HOSTILE, value[1]] if run else [poisoned(v, key) for v in value]
        return (
            HOSTILE if isinstance(value, str) and key not in ("mark", "kind", "severity", "glyphs", "plot") else value
        )

    panel = opened(poisoned(SAMPLE))
    page = panel.page
    page.evaluate("document.querySelector('[data-live]').shadowRoot.querySelector('.tt').focus()")
    for tab in ("Sharing", "Gradients", "Findings", "Calls"):
        page.get_by_role("tab", name=tab, exact=True).click()
        panel.press("Home", *["ArrowRight"] * 6)
        assert page.locator(".tt img, .tt script").count() == 0
    assert page.evaluate("window.hit") is None
    assert page.locator(".ln .src").first.text_content() == HOSTILE
    assert panel.told() == HOSTILE * len(SAMPLE["steps"][6]["say"])
    assert page.title() == HOSTILE


@pytest.mark.parametrize("plus", [0, 5])
@pytest.mark.parametrize("width", [600, 420])
def test_narrow_outputs_stack_and_nothing_is_cut_off(opened: Open, width: int, plus: int) -> None:
    panel = opened(viewport={"width": width, "height": 900})
    for _ in range(plus):
        panel.page.get_by_role("button", name="A+").click()
    code, memory = (panel.page.locator(one).bounding_box() for one in (".code", ".mem"))
    assert memory["y"] >= code["y"] + code["height"] - 1
    assert panel.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for tab in ("Gradients", "Findings", "Calls"):
        panel.page.get_by_role("tab", name=tab).click()
        assert panel.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_wide_outputs_stand_side_by_side(opened: Open) -> None:
    panel = opened()
    code, memory = (panel.page.locator(one).bounding_box() for one in (".code", ".mem"))
    assert memory["y"] == code["y"]
    assert memory["x"] >= code["x"] + code["width"] - 1


def test_letters_grow_to_32_pixels_and_shrink_again(opened: Open) -> None:
    panel = opened()
    size = lambda: panel.root.evaluate("node => getComputedStyle(node).fontSize")
    assert size() == "15px"
    for _ in range(9):
        panel.page.get_by_role("button", name="A+", exact=True).click()
    assert size() == "32px"
    for control in ("Previous step", "Next step", "Play"):
        box = panel.page.get_by_role("button", name=control).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 1180
    for _ in range(9):
        panel.page.get_by_role("button", name="A-", exact=True).click()
    assert size() == "11px"


def test_dark_and_light_follow_the_page_and_texts_stay_legible(opened: Open) -> None:
    from tensormagic.show.palette import contrast

    def hexed(text: str) -> str:
        return "#" + "".join(f"{int(n):02x}" for n in text.removeprefix("rgb(").rstrip(")").split(", "))

    grounds = []
    for scheme in ("light", "dark"):
        panel = opened(color_scheme=scheme)
        assert panel.page.locator("[data-live]").get_attribute("data-theme") == scheme
        ground = hexed(panel.root.evaluate("node => getComputedStyle(node).backgroundColor"))
        grounds.append(ground)
        for texts in (".src", ".nm", ".why", ".hd", ".say", ".mark", ".sum0"):
            for i, ink in enumerate(
                panel.page.locator(texts).evaluate_all("all => all.map(n => getComputedStyle(n).color)")
            ):
                assert contrast(hexed(ink), ground) >= 4.5, (scheme, texts, i)
    assert grounds[0] != grounds[1]


def test_the_theme_of_a_notebook_is_followed_while_it_changes(opened: Open) -> None:
    panel = opened()
    panel.page.evaluate(
        "document.body.style.background = '#111'; document.body.setAttribute('data-jp-theme-light', 'false')"
    )
    eventually(panel.page.locator("[data-live]")).to_have_attribute("data-theme", "dark")


def test_focus_is_visible(opened: Open) -> None:
    panel = opened()
    panel.root.focus()
    seen = 0
    while style := panel.page.evaluate(
        "(() => { const n = document.querySelector('[data-live]').shadowRoot.activeElement; if (!n) return null;"
        " const s = getComputedStyle(n); return [s.outlineStyle, parseFloat(s.outlineWidth)]; })()"
    ):
        assert style[0] == "solid"
        assert style[1] >= 2
        seen += 1
        panel.press("Tab")
    assert seen >= 11  # the panel, A-, A+, three buttons, the slider, four tabs, the matrix


def test_reduced_motion_and_print(opened: Open) -> None:
    panel = opened(reduced_motion="reduce", color_scheme="dark")
    assert panel.page.locator(".val i.hit").first.evaluate("n => getComputedStyle(n).animationName") == "none"
    panel.page.emulate_media(media="print")
    assert panel.root.evaluate("n => getComputedStyle(n).backgroundColor") == "rgb(255, 255, 255)"
    assert panel.page.locator(".ln .src").first.evaluate("n => getComputedStyle(n).color") == "rgb(27, 31, 36)"
    assert panel.page.get_by_role("slider").count() == 0


def test_a_large_view_is_compressed_and_a_step_redraws_only_what_changed(opened: Open) -> None:
    view = looping(1000)
    html = handout.page(view)
    assert 'data-form="gzip"' in html
    panel = opened(view)
    panel.root.focus()
    panel.page.evaluate(
        "(() => { const mem = document.querySelector('[data-live]').shadowRoot.querySelector('.mem'); window.made = 0;"
        " const count = (all) => all.forEach((m) => made += m.addedNodes.length);"
        " new MutationObserver(count).observe(mem, {childList: true}); })()"
    )
    panel.press("ArrowRight")
    panel.page.evaluate("0")
    panel.page.evaluate("made = 0")
    panel.press("ArrowRight")  # one storage is written, the outline of the other goes: never more than these two
    assert panel.page.evaluate("made") <= 2


def test_an_empty_cell_and_an_exception(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    view.update(steps=[], storages=[], matrix=[], findings=[], calls=[], calls_total=0, gradients={}, start=0)
    empty = opened(view)
    assert empty.told() == "No line ran."
    view = copy.deepcopy(SAMPLE)
    view["steps"][6].update(mark="error", say=[["RuntimeError: ", "strong"], ["no", ""]])
    failed = opened(view)
    failed.root.focus()
    failed.press("End")
    assert failed.page.locator(".say.error").text_content() == "RuntimeError: no"
    assert failed.page.locator(".ln.now .mark").text_content() == "✖"


def test_long_code_and_much_memory_scroll_in_their_panes_never_the_page(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    view["files"][0]["lines"] = ["import torch"] * 60 + view["files"][0]["lines"]
    for step in view["steps"]:
        step["line"] += 60
    empty = {"head": "h", "cells": ["0"], "total": 1, "rows": []}
    view["storages"] = [
        {"name": f"Q{i}", "colour": i, "sign": "Q", "tip": "", "states": [[0, empty]]} for i in range(20)
    ] + view["storages"]
    panel = opened(view)
    panel.page.evaluate("scrollTo(0, 0)")
    panel.root.focus()
    panel.press("Home", "End", "ArrowLeft")
    inside = lambda outer, inner: (
        outer["y"] - 1 <= inner["y"] and inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1
    )
    assert inside(panel.page.locator(".lines").bounding_box(), panel.page.locator(".say").bounding_box())
    assert inside(panel.page.locator(".lines").bounding_box(), panel.page.locator(".ln.now").bounding_box())
    written = panel.page.locator(".st").filter(has_text="S3")
    assert inside(panel.page.locator(".mem").bounding_box(), written.bounding_box())


def test_values_of_many_elements_scroll_to_the_one_that_changed(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    state = {
        "head": "h",
        "cells": [str(i * 1000) for i in range(64)],
        "total": 64,
        "changed": [50],
        "rows": SAMPLE["storages"][0]["states"][0][1]["rows"],
    }
    view["storages"] = [
        {"name": "S1", "colour": 0, "sign": "A", "tip": "", "states": [[0, state | {"changed": []}], [4, state]]}
    ]
    panel = opened(view)
    strip, hit = panel.page.locator(".strip").bounding_box(), panel.page.locator(".hit").bounding_box()
    assert strip["x"] <= hit["x"] and hit["x"] + hit["width"] <= strip["x"] + strip["width"]


def test_a_large_storage_shows_where_names_lie(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    rows = [{"name": "half", "why": "", "cover": [[120, 120]]}, {"name": "one", "why": "", "cover": [[0, 1]]}]
    view["storages"] = [
        {
            "name": "S1",
            "colour": 0,
            "sign": "A",
            "tip": "",
            "states": [[0, {"head": "h", "total": 1_000_000, "rows": rows}]],
        }
    ]
    panel = opened(view)
    bars = [bar.bounding_box() for bar in panel.page.locator(".bar").all()]
    parts = [part.bounding_box() for part in panel.page.locator(".bar i").all()]
    assert abs(parts[0]["x"] - bars[0]["x"] - bars[0]["width"] / 2) < 1
    assert abs(parts[0]["width"] - bars[0]["width"] / 2) < 1
    assert parts[1]["width"] >= 1.9  # a single element is seen all the same


def test_a_function_shows_where_it_was_called(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    view["files"].append({"name": "In [3]", "first": 10, "lines": ["def scale(t):", "    t *= 2", "    return t"]})
    view["steps"][5] = {
        "file": 1,
        "line": 11,
        "mark": "write",
        "say": [["inside", ""]],
        "frame": "scale",
        "callers": [[0, 5]],
    }
    panel = opened(view)
    panel.root.focus()
    panel.press("ArrowRight")
    assert panel.page.locator(".ln.now .n").text_content() == "11"
    assert panel.page.locator(".head").text_content().startswith("In [3] · in scale")
    panel.page.get_by_role("button", name="called on line 5").click()
    assert panel.step == 4
    assert panel.page.locator(".ln.now .n").text_content() == "5"


def test_many_backward_runs_are_a_list_to_choose_from(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    run = view["gradients"]["runs"][0]
    view["gradients"]["runs"] = [{**run, "label": f"run {i}", "events": run["events"][: i % 4]} for i in range(8)]
    panel = opened(view)
    panel.page.get_by_role("tab", name="Gradients").click()
    panel.root.focus()
    panel.press("End")
    choice = panel.page.get_by_label("Backward call")
    assert choice.evaluate("node => node.selectedIndex") == 7
    choice.select_option("run 1")
    assert panel.page.locator("polyline.back.on").count() == 1


def test_a_storage_that_lost_its_names_says_what_holds_it_and_a_freed_one_goes(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    lost = {"head": "h", "cells": ["30"], "total": 1, "rows": [], "note": "held by the graph alone"}
    view["storages"][2]["states"] = [[0, lost], [3, {"gone": True}]]
    panel = opened(view)
    panel.root.focus()
    panel.press("Home")
    assert panel.page.locator(".held").text_content() == "held by the graph alone"
    panel.press("ArrowRight", "ArrowRight", "ArrowRight")
    assert panel.page.locator(".held").count() == 0


def test_a_real_trace_steps_in_a_handout(browser: Any, tmp_path: Path) -> None:
    source = (
        "import torch\nx = torch.ones(3, requires_grad=True)\ny = x.clone()\nz = y[:2]\nz *= 2\ny.sum().backward()\n"
    )
    path = tmp_path / "lesson.html"
    path.write_text(handout.html(tensormagic.run(source)), encoding="utf-8")
    panel = Opened(browser, path)
    panel.root.focus()
    panel.press("Home", *["ArrowRight"] * 4)
    assert panel.page.locator(".ln.now .src").text_content() == "z *= 2"
    assert panel.page.locator(".val i.hit").all_text_contents() == ["2", "2"]
    assert panel.told()
    panel.press("ArrowRight")
    assert panel.page.locator(".gradname").first.text_content() == "x.grad"
    for tab in ("Gradients", "Findings", "Calls"):
        panel.page.get_by_role("tab", name=tab).click()
    panel.close()
