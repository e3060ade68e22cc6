"""The panel in a real browser: what each pane and tab does. DOM and geometry, no pixels."""

from __future__ import annotations

import copy

import tensormagic
from tensormagic.show import view
from tests.show.browser import eventually
from tests.show.samples import SAMPLE, Open, looping


def test_roles_and_names(opened: Open) -> None:
    page = opened().page
    for name in ("Previous step", "Next step", "Play"):
        assert page.get_by_role("button", name=name, exact=True).count() == 1
    for name in ("Sharing", "Gradients", "Findings", "Calls"):
        assert page.get_by_role("tab", name=name, exact=True).count() == 1
    assert page.get_by_role("slider", name="Step", exact=True).count() == 1
    assert page.get_by_role("table", name="Sharing matrix", exact=True).count() == 1


def test_keys_and_buttons_step(opened: Open) -> None:
    panel = opened()
    panel.root.focus()
    assert panel.step == SAMPLE["start"]
    panel.press("ArrowRight")
    assert panel.step == 5
    panel.press("ArrowLeft", "ArrowLeft")
    assert panel.step == 3
    panel.press("Home")
    assert panel.step == 0
    panel.press("ArrowLeft")
    assert panel.step == 0
    panel.press("End", "ArrowRight")
    assert panel.step == 6
    panel.page.get_by_role("button", name="Previous step").click()
    assert panel.step == 5
    panel.page.get_by_role("button", name="Next step").click()
    panel.press("ArrowLeft")  # the button has the focus, the arrows still step
    assert panel.step == 5
    panel.slider.focus()
    panel.press("ArrowLeft")
    assert panel.step == 4


def test_every_step_shows_its_line_its_sentence_and_says_it_politely(opened: Open) -> None:
    panel = opened()
    panel.root.focus()
    panel.press("Home")
    for k, step in enumerate(SAMPLE["steps"]):
        assert panel.page.locator(".ln.now .n").text_content() == str(step["line"])
        sentence = "".join(text for text, _ in step["say"])
        assert panel.page.locator(".say").text_content() == sentence
        assert panel.told() == sentence
        assert panel.page.locator(".ln.now + .say").count() == 1
        assert panel.page.locator(".ln.todo").count() == len(SAMPLE["steps"]) - k - 1
        panel.press("ArrowRight")


def test_space_plays_and_stops(opened: Open) -> None:
    panel = opened()
    panel.root.focus()
    panel.press("Home", " ")
    eventually(panel.slider).not_to_have_value("0")
    panel.press(" ")
    play = panel.page.get_by_role("button", name="Play")
    assert play.get_attribute("aria-pressed") == "false"
    play.focus()
    panel.press(" ")  # on the button: it plays once, not twice
    assert play.get_attribute("aria-pressed") == "true"
    panel.press("End", " ")


def test_memory_at_each_step_and_the_outline_of_what_changed(opened: Open) -> None:
    panel = opened()
    panel.root.focus()
    cells = panel.page.locator(".st").first.locator(".val i")
    assert cells.all_text_contents() == ["10", "20", "3", "4"]
    assert panel.page.locator(".val i.hit").all_text_contents() == ["10", "20"]
    panel.press("ArrowRight")
    assert panel.page.locator(".val i.hit").count() == 0
    assert panel.page.locator(".st").count() == 3
    panel.press("ArrowRight")
    assert panel.page.locator(".grad i.hit").all_text_contents() == ["2", "4", "6", "8"]
    panel.press("Home")
    assert panel.page.locator(".st").count() == 1
    assert cells.all_text_contents() == ["1", "2", "3", "4"]
    panel.press("End")
    assert panel.page.locator(".st .hd b").all_text_contents() == ["S1", "S2", "S3"]


def test_the_coverage_of_a_view_lies_under_its_elements(opened: Open) -> None:
    panel = opened()
    values = panel.page.locator(".st").first.locator(".val i")
    cover = panel.page.locator(".cov i[data-name=v]")
    assert cover.count() == 2
    for i in range(2):
        over, under = values.nth(i).bounding_box(), cover.nth(i).bounding_box()
        assert abs(over["x"] - under["x"]) < 2
        assert abs(over["width"] - under["width"]) < 2


def test_pointing_at_an_element_of_a_transposed_tensor_tells_index_and_offset(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    for _, state in view["storages"][0]["states"]:
        state["rows"][0].update(shape=[2, 2], stride=[1, 2])
    panel = opened(view)
    panel.page.locator(".st").first.locator(".val i").nth(2).hover()
    tip = panel.page.locator(".tip").inner_text()
    assert "element 2 of S1" in tip
    assert "x[0, 1]" in tip
    assert "0 + 0·1 + 1·2 = 2" in tip
    panel.page.mouse.move(5, 5)
    assert panel.page.locator(".tip").is_hidden()


def test_a_line_leads_to_its_next_step_and_round(opened: Open) -> None:
    panel = opened(looping(20))
    line = panel.page.locator(".ln").nth(2)
    for expected in (1, 3, 5):
        line.click()
        assert panel.step == expected


def test_brackets_go_through_iterations(opened: Open) -> None:
    panel = opened(looping(20))
    panel.root.focus()
    panel.press("]", "]")
    assert panel.step == 4
    assert "iteration 3 of 10" in panel.page.locator(".loop").text_content()
    panel.press("[")
    assert panel.step == 2
    panel.press("End", "]")
    assert panel.step == 19


def test_a_cell_of_the_matrix_answers(opened: Open) -> None:
    panel = opened()
    page = panel.page
    page.get_by_role("button", name="x and d: same elements").click()
    assert "same 16 bytes" in page.locator(".answer").first.text_content()
    assert page.locator(".way").text_content() == "The way from x to d: detach(), line 3."
    page.get_by_role("button", name="y and v: separate memory").click()
    assert page.locator(".answer").first.text_content() == "v and y are separate memory: no byte in common."
    panel.press("Shift+ArrowLeft")
    assert page.locator("button.sel:focus").get_attribute("aria-label") == "y and d: separate memory"
    panel.press("ArrowRight")  # without shift the arrows step, and the pair stays chosen
    assert panel.step == 5
    assert page.locator(".answer").first.text_content() == "d and y are separate memory: no byte in common."


def test_many_names_can_be_filtered_and_typing_does_not_step(opened: Open) -> None:
    view = copy.deepcopy(SAMPLE)
    names = [f"net.layer{i}.weight" for i in range(70)]
    glyphs = "".join("=" if i == j else "·" for i in range(70) for j in range(70))
    view["matrix"] = [
        [0, {"names": names, "storages": [i % 3 for i in range(70)], "glyphs": glyphs, "answers": {}, "way": {}}]
    ]
    panel = opened(view)
    assert panel.page.locator(".mx tbody tr").count() == 60
    panel.page.get_by_label("Filter names").click()
    panel.page.keyboard.type("layer6 ")
    panel.press("Backspace", "ArrowLeft", "Home")
    assert panel.page.locator(".mx tbody th").count() == 11
    assert panel.step == SAMPLE["start"]


def test_gradients_come_back_node_by_node_and_add_up(opened: Open) -> None:
    panel = opened()
    page = panel.page
    page.get_by_role("tab", name="Gradients").click()
    assert page.locator("polyline.back.on").count() == 0
    assert page.get_by_role("button", name="loss.backward(), line 7").is_disabled()
    panel.press("End")
    assert page.locator("polyline.back.on").count() == 3
    assert page.locator("text.back").all_text_contents() == ["[2, 4, 6, 8]", "[2, 4, 6, 8]", "[1, 1, 1, 1]", "", ""]
    assert page.locator("polyline.cut").count() == 2
    assert page.locator(".sum .term").all_inner_texts()[1].split("\n") == ["[2, 4, 6, 8]", "clone, line 2"]
    page.get_by_role("button", name="Previous node").click()
    assert page.locator("polyline.back.on").count() == 2
    assert page.locator("polyline.back.told").count() == 1
    assert page.locator(".event").text_content() == "pow multiplies by 2y: the values of y are 1, 2, 3, 4."
    panel.press("Home")
    assert page.locator("polyline.back.on").count() == 0


DEEP = """
import torch
torch.manual_seed(0)
net = torch.nn.Sequential(*[m for _ in range(12) for m in (torch.nn.Linear(4, 4), torch.nn.ReLU())])
net(torch.ones(2, 4)).sum().backward()
"""


def test_a_deep_net_is_folded_and_opened_with_the_keyboard(opened: Open) -> None:
    panel = opened(view.build(tensormagic.run(DEEP)))
    page = panel.page
    page.get_by_role("tab", name="Gradients").click()
    assert page.locator("g.node").count() <= 6
    layers = page.get_by_role("button", name="Open net[2] … net[22] × 11")
    layers.focus()
    panel.press("Enter")
    assert page.get_by_role("button", name="Open net[4]").count() == 1
    assert page.locator(".crumbs").text_content() == "Whole graph › net[2] … net[22] × 11"
    page.get_by_role("button", name="Open net[4]").click()
    assert page.get_by_role("button", name="Open net[4] ").count() == 1  # the module apart from its ReLU
    page.get_by_role("button", name="Open net[4] ").click()
    assert "net[4].weight" in page.locator("g.node.leaf text").all_text_contents()
    assert page.locator("polyline.back.on").count() >= 4
    page.get_by_role("button", name="Whole graph").click()
    assert layers.count() == 1


def test_five_thousand_nodes_do_not_hang_the_page(opened: Open) -> None:
    source = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x\nfor i in range(2500):\n    y = torch.sin(y * x)\ny.sum().backward()\n"
    shown = view.build(tensormagic.run(source))
    assert len(shown["gradients"]["graphs"][0]["nodes"]) <= 19
    page = opened(shown).page
    took = page.evaluate(
        "(() => { const tab = [...document.querySelector('[data-live]').shadowRoot.querySelectorAll('[role=tab]')][1];"
        " const begin = performance.now(); tab.click(); tab.getBoundingClientRect(); return performance.now() - begin; })()"
    )
    assert took < 1000
    assert page.locator("g.node").count() <= 19


def test_a_finding_leads_to_its_lines_and_a_call_to_its_step(opened: Open) -> None:
    panel = opened()
    page = panel.page
    page.get_by_role("tab", name="Findings").click()
    page.get_by_role("button", name="line 3").click()
    assert panel.step == 2
    page.locator(".finding h4").click()
    assert panel.step == 4
    page.get_by_role("tab", name="Calls").click()
    page.get_by_role("cell", name="clone", exact=True).click()
    assert panel.step == 1
    assert page.locator(".list tr.now").count() == 1
