"""The picture of an output: what it draws, and that nothing of the cell becomes markup."""

from __future__ import annotations

import io
import xml.dom.minidom

from PIL import Image

import tensormagic
from tensormagic.show import picture, view

CELL = "import torch\nx = torch.tensor([1.5, 2.0, 3.0, 4.0], requires_grad=True)\nv = x.detach()[:2]\nbig = torch.zeros(1000)\n"


def drawn(source: str):
    return picture.shapes(view.build(tensormagic.run(source)))


def test_code_values_and_names_are_drawn():
    found, height = drawn(CELL)
    texts = [shape.text for shape in found if isinstance(shape, picture.Text)]
    assert {"v = x.detach()[:2]", "1.5", "x", "v", "big", "tensortrace"} <= set(texts)
    assert all(shape.y <= height for shape in found)


def test_a_view_covers_what_it_sees():
    found, _ = drawn(CELL)
    at = next(
        shape.y for shape in found if isinstance(shape, picture.Text) and shape.text == "v" and shape.anchor == "rs"
    )
    (cover,) = [shape for shape in found if isinstance(shape, picture.Box) and abs(shape.y + 9 - at) < 1]
    whole = picture._END - picture._STRIP
    assert abs(cover.width - whole / 2) < 3


def test_png_is_small_and_wide_enough_for_a_hall():
    data = picture.png(view.build(tensormagic.run(CELL)))
    assert len(data) < 20_000
    assert Image.open(io.BytesIO(data)).width == 1000


def test_svg_escapes_whatever_comes_from_the_cell():
    source = "import torch\nd = {'<script>&\"\\x1b': torch.ones(2)}  # </svg><script>hit()</script>\n"
    root = xml.dom.minidom.parseString(picture.svg(view.build(tensormagic.run(source))))
    assert not root.getElementsByTagName("script")
    assert "</svg><script>" in "".join(node.toxml() for node in root.getElementsByTagName("text")).replace(
        "&lt;", "<"
    ).replace("&gt;", ">")


def test_an_empty_cell_has_a_picture_too():
    assert picture.png(view.build(tensormagic.run(""))).startswith(b"\x89PNG")
