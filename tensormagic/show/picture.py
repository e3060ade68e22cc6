"""The picture of the last step: what a page without scripts shows, and what `save("x.png")` writes.

It is drawn from a few shapes, by Pillow as PNG (a plotting library would take most of the time that a panel takes), or
written out as SVG.
"""

from __future__ import annotations

import functools
import html
import importlib.util
import io
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from tensormagic.show import palette
from tensormagic.show.shape import View

_LINES, _STORAGES, _CELLS, _ROWS = 22, 8, 16, 5  # of each at most so many are drawn
_WIDTH, _ROW, _TOP = 1000, 22, 58  # px
_CODE, _STRIP, _END = 56, 610, 985  # px from the left: source, strips, and where these end
_COLUMN = 57  # letters of a line of source
_LIGHT = palette.THEMES["light"]
_FONTS = {"mono": "DejaVuSansMono.ttf", "sans": "DejaVuSans.ttf", "bold": "DejaVuSans-Bold.ttf"}


class Text(NamedTuple):
    """A line of text; `anchor` says where (x, y) lies: "ls", "rs" or "ms", at its left, right or middle on the base line."""

    x: float
    y: float
    text: str
    size: int
    font: str
    colour: str
    anchor: str = "ls"


class Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float
    fill: str
    line: str = ""


def shapes(view: View) -> tuple[list[Text | Box], int]:
    """Code with marks on the left, memory strips with coverage rows on the right; and the height."""
    title = "".join(text for text, _ in view["summary"])
    drawn: list[Text | Box] = [
        Text(12, 28, view["title"], 16, "bold", _LIGHT.ink),
        Text(28 + _wide(view["title"], 16, "bold"), 28, title, 15, "sans", _LIGHT.soft),
    ]
    y = _TOP
    for number, mark, text in _code(view):
        drawn += [
            Text(34, y, number, 13, "mono", _LIGHT.soft, "rs"), Text(40, y, mark, 13, "sans", _LIGHT.soft),
            Text(_CODE, y, text, 13, "mono", _LIGHT.ink),
        ]  # fmt: skip
        y += _ROW
    bottom, y = y, _TOP
    for head, hue, cells, names in _memory(view):
        colour = palette.colour(hue, _LIGHT)
        drawn.append(Text(_STRIP, y, head, 13, "bold", colour.text))
        drawn += _strip(y + 7, hue, cells)
        y += 7 + _ROW + 16
        for name, cover, total in names:
            drawn.append(Text(_STRIP - 8, y, name, 13, "mono", colour.text, "rs"))
            scale = (_END - _STRIP) / max(1, total)
            drawn += [
                Box(_STRIP + first * scale, y - 9, max(2, count * scale - 2), 7, colour.line)
                for first, count in cover[:64]
            ]
            y += _ROW - 2
        y += 14
    return drawn, int(max(bottom, y, 120) + 8)


def _code(view: View) -> list[tuple[str, str, str]]:
    words = view["labels"]["marks"]
    marks = {step["line"]: words[step["mark"]][0] for step in view["steps"] if step["file"] == 0}
    file = view["files"][0]
    lines = file["lines"][:_LINES]
    return [
        (str(file["first"] + at), marks.get(file["first"] + at, ""), _short(text, _COLUMN))
        for at, text in enumerate(lines)
    ]


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _memory(view: View) -> list[tuple[str, str, list[str] | None, list[Any]]]:
    found: list[tuple[str, str, list[str] | None, list[Any]]] = []
    for storage in view["storages"]:
        state = storage["states"][-1][1]
        if state.get("gone") or len(found) >= _STORAGES:
            continue
        cells = state.get("cells")
        shown = [cell[:7] for cell in cells] if cells and len(cells) <= _CELLS else None
        total = len(cells) if cells and len(cells) <= 64 else 64 if state["total"] <= 64 else 240
        rows = [(row["name"][-16:], row["cover"], total) for row in state["rows"][:_ROWS]]
        hue = palette.HUES[storage["colour"] % palette.COUNT]
        found.append((f"{storage['name']} · {state['head']}", hue, shown, rows))
    return found


def _strip(y: float, hue: str, cells: list[str] | None) -> list[Text | Box]:
    count = len(cells) if cells else 1
    width = (_END - _STRIP) / count
    fill, line = palette.mix(hue, _LIGHT.ground, _LIGHT.tint), palette.colour(hue, _LIGHT).line
    drawn: list[Text | Box] = []
    for at in range(count):
        drawn.append(Box(_STRIP + at * width, y, width - 3, _ROW, fill, line))
        if cells:
            size = 12 if _wide(cells[at], 12, "mono") < width - 4 else 9
            drawn.append(
                Text(_STRIP + at * width + (width - 3) / 2, y + 15.5, cells[at], size, "mono", _LIGHT.ink, "ms")
            )
    return drawn


# ---- painting ----------------------------------------------------------------------------------------------------


@functools.cache
def _font(font: str, size: int) -> Any:
    """matplotlib brings the letters; it need not be imported for that."""
    found = importlib.util.find_spec("matplotlib")
    assert found is not None and found.submodule_search_locations is not None
    path = Path(found.submodule_search_locations[0]) / "mpl-data" / "fonts" / "ttf" / _FONTS[font]
    return ImageFont.truetype(str(path), size, layout_engine=ImageFont.Layout.BASIC)


def _wide(text: str, size: int, font: str) -> float:
    return float(_font(font, size).getlength(text))


def png(view: View) -> bytes:
    """The picture as PNG, with few colours so that it stays small."""
    drawn, height = shapes(view)
    image = Image.new("RGB", (_WIDTH, height), _LIGHT.ground)
    pen = ImageDraw.Draw(image)
    for shape in drawn:
        if isinstance(shape, Text):
            one_line = " ".join(shape.text.splitlines())
            pen.text((shape.x, shape.y), one_line, shape.colour, _font(shape.font, shape.size), shape.anchor)
        else:
            ends = (shape.x, shape.y, shape.x + shape.width, shape.y + shape.height)
            pen.rounded_rectangle(ends, 3, shape.fill, shape.line or None)
    out = io.BytesIO()
    image.quantize(32, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(out, format="PNG")
    return out.getvalue()


def svg(view: View) -> bytes:
    """The picture as SVG; whatever comes from the cell is escaped."""
    drawn, height = shapes(view)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{_xml(view['alt'])}</title>", f'<rect width="100%" height="100%" fill="{_LIGHT.ground}"/>',
    ]  # fmt: skip
    families = {
        "mono": 'font-family="DejaVu Sans Mono, monospace"', "sans": 'font-family="DejaVu Sans, sans-serif"',
        "bold": 'font-family="DejaVu Sans, sans-serif" font-weight="bold"',
    }  # fmt: skip
    anchors = {"ls": "start", "rs": "end", "ms": "middle"}
    for shape in drawn:
        if isinstance(shape, Text):
            lines.append(
                f'<text x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size}" {families[shape.font]} '
                f'fill="{shape.colour}" text-anchor="{anchors[shape.anchor]}" xml:space="preserve">{_xml(shape.text)}</text>'
            )
        else:
            stroke = f' stroke="{shape.line}"' if shape.line else ""
            lines.append(
                f'<rect x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}" rx="3" '
                f'fill="{shape.fill}"{stroke}/>'
            )
    return "\n".join([*lines, "</svg>\n"]).encode()


def _xml(text: str) -> str:
    """Escaped, without the control characters that XML has no place for."""
    return html.escape("".join(letter for letter in text if letter >= " " and letter not in "\ufffe\uffff"))
