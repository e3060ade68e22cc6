"""The picture of the last step: what a page without scripts shows, and what `save("x.png")` writes."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tensormagic.show import palette
from tensormagic.show.shape import View

_LINES, _STORAGES, _CELLS, _ROWS = 22, 8, 16, 5  # of each at most so many are drawn
_ROW = 0.26  # inches


def figure(view: View) -> Figure:
    """Code with marks on the left, memory strips with coverage rows on the right."""
    code, memory = _code(view), _memory(view)
    height = max(len(code), sum(3 + len(rows) for _, _, rows in memory), 6) * _ROW + 0.6
    drawn = Figure(figsize=(10.5, min(height, 12)), facecolor="white")
    ax = drawn.add_axes((0.01, 0.01, 0.98, 0.98))
    rows = min(height, 12) / _ROW
    ax.set_xlim(0, 100)
    ax.set_ylim(rows, 0)
    ax.axis("off")
    title = "".join(text for text, _ in view["summary"])
    ax.text(0.5, 0.9, f"{view['title']}   {title}", fontsize=11, weight="bold", parse_math=False)
    for at, (number, mark, text) in enumerate(code):
        y = at + 2.6
        ax.text(3, y, number, ha="right", color="#565f6d", fontsize=9, family="monospace", parse_math=False)
        ax.text(4, y, mark, color="#565f6d", fontsize=9, family="DejaVu Sans", parse_math=False)
        ax.text(6, y, text, fontsize=9, family="monospace", parse_math=False)
    y = 2.6
    for head, (colour, cells), names in memory:
        ax.text(62, y, head, fontsize=8.5, color=colour, weight="bold", parse_math=False)
        y += 0.5
        y = _strip(ax, y, colour, cells) + 0.9
        for name, cover, total in names:
            _name(ax, y, name, cover, total, colour)
            y += 1
        y += 0.8
    return drawn


def _code(view: View) -> list[tuple[str, str, str]]:
    words = view["labels"]["marks"]
    marks = {step["line"]: words[step["mark"]][0] for step in view["steps"] if step["file"] == 0}
    file = view["files"][0]
    lines = file["lines"][:_LINES]
    return [
        (str(file["first"] + at), marks.get(file["first"] + at, ""), text if len(text) < 58 else text[:57] + "…")
        for at, text in enumerate(lines)
    ]  # fmt: skip


def _memory(view: View) -> list[Any]:
    found = []
    for storage in view["storages"]:
        state = storage["states"][-1][1]
        if state.get("gone") or len(found) >= _STORAGES:
            continue
        colour = palette.HUES[storage["colour"] % palette.COUNT]
        cells = state.get("cells")
        shown = [cell[:7] for cell in cells] if cells and len(cells) <= _CELLS else None
        strip = len(cells) if cells and len(cells) <= 64 else 64 if state["total"] <= 64 else 240
        rows = [(row["name"], row["cover"], strip) for row in state["rows"][:_ROWS]]
        found.append((f"{storage['name']} · {state['head']}", (colour, shown), rows))
    return found


def _strip(ax: Any, y: float, colour: str, cells: list[str] | None) -> float:
    count = len(cells) if cells else 1
    width = 36 / count
    for at in range(count):
        ax.add_patch(Rectangle((62 + at * width, y), width * 0.94, 1.0, facecolor=colour + "22", edgecolor=colour))
        if cells:
            ax.text(62 + at * width + width * 0.47, y + 0.72, cells[at], ha="center", fontsize=7.5, parse_math=False)
    return y + 1.3


def _name(ax: Any, y: float, name: str, cover: list[list[int]], total: int, colour: str) -> None:
    ax.text(61.3, y, name[-16:], ha="right", fontsize=8.5, family="monospace", color=colour, parse_math=False)
    for first, count in cover[:64]:
        ax.add_patch(Rectangle((62 + 36 * first / total, y - 0.5), 36 * count / total * 0.98, 0.35, facecolor=colour))


def png(view: View) -> bytes:
    """The picture as PNG, with few colours so that it stays small."""
    from PIL import Image

    raw = io.BytesIO()
    figure(view).savefig(raw, format="png", dpi=72)
    small = io.BytesIO()
    Image.open(raw).convert("RGB").quantize(24).save(small, format="PNG", optimize=True)
    return small.getvalue()


def svg(view: View) -> bytes:
    """The picture as SVG."""
    out = io.BytesIO()
    figure(view).savefig(out, format="svg")
    return out.getvalue()
