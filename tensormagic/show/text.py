"""The trace as text, for a terminal: the same as the panel says at its last step."""

from __future__ import annotations

from typing import Any

from tensormagic.show import view, view_sharing
from tensormagic.show.facts import Seen
from tensormagic.show.shape import Run

_MOST_STEPS = 60


def plain(runs: list[Run]) -> str:
    """Runs of text without their styles."""
    return "".join(text for text, _ in runs)


def summary(trace: Any) -> str:
    """Lines with their sentences, memory and sharing at the end, gradients, findings, and what was not recorded."""
    seen = Seen(trace)
    made = view.build(trace)
    labels = made["labels"]
    parts = [f"{made['title']}: {plain(made['summary'])}", ""]
    parts += _steps(made, labels)
    parts += _memory(made, labels)
    parts += _matrix(seen, labels)
    parts += _gradients(made, labels)
    parts += _findings(made, labels)
    if made["notices"]:
        parts += ["", f"{labels['notices']}:", *(f"  {text}" for text in made["notices"])]
    return "\n".join(parts)


def _steps(made: Any, labels: Any) -> list[str]:
    lines = []
    for step in made["steps"][:_MOST_STEPS]:
        file = made["files"][step["file"]]
        at = step["line"] - file["first"]
        code = file["lines"][at].strip() if 0 <= at < len(file["lines"]) else ""
        lines.append(f"{step['line']:>4} {labels['marks'][step['mark']][0] or ' '} {code}")
        lines.append(f"       {plain(step['say'])}")
    more = len(made["steps"]) - _MOST_STEPS
    return [*lines, f"     {labels['table_more'].format(count=more)}"] if more > 0 else lines


def _memory(made: Any, labels: Any) -> list[str]:
    lines = ["", f"{labels['memory']}:"]
    for storage in made["storages"]:
        state = storage["states"][-1][1]
        if state.get("gone"):
            continue
        values = f"  [{', '.join(state['cells'])}]" if "cells" in state else ""
        lines.append(f"  {storage['name']} · {state['head']}{values}")
        for row in state["rows"]:
            lines.append(f"      {row['name']}: {row['why']}")
            if "grad" in row:
                lines.append(f"      {row['grad_name']}: [{', '.join(row['grad'])}]")
    return lines if len(lines) > 2 else [*lines, f"  {labels['no_tensors']}"]


def _matrix(seen: Seen, labels: Any) -> list[str]:
    if not seen.shown:
        return []
    matrix = view_sharing._matrix(seen, seen.shown[-1], {})
    names = matrix["names"]
    if len(names) < 2:
        return []
    width = max(map(len, names))
    lines = ["", f"{labels['matrix']}:"]
    for row, name in enumerate(names):
        glyphs = " ".join(matrix["glyphs"][row * len(names) : (row + 1) * len(names)])
        lines.append(f"  {name:>{width}}  {glyphs}")
    used = set(matrix["glyphs"])
    lines.append("  " + " · ".join(f"{glyph} {words}" for glyph, words in labels["glyphs"] if glyph in used))
    return lines


def _gradients(made: Any, labels: Any) -> list[str]:
    lines = []
    for run in made["gradients"]["runs"]:
        lines.append(f"  {run['label']}")
        lines += [f"      {plain(leaf['say'])}" for leaf in run["leaves"]]
    return ["", f"{labels['gradients']}:", *lines] if lines else []


def _findings(made: Any, labels: Any) -> list[str]:
    lines = []
    for item in made["findings"]:
        lines.append(f"  {item['glyph']} {plain(item['title'])}: {plain(item['text'])}")
        if item["fix"]:
            lines.append(f"      {labels['fix']} {item['fix']}")
    return ["", f"{labels['findings']}:", *lines] if lines else []
