"""The tabs that are lists: findings, calls, and what was not recorded."""

from __future__ import annotations

from tensormagic.analysis.findings.base import ERROR, WARNING
from tensormagic.recording.model import Output
from tensormagic.show.facts import Seen
from tensormagic.show.shape import CallRow, Finding

MOST_CALLS = 400
GLYPHS = {ERROR: "✖", WARNING: "▲", "note": "●"}


def findings(seen: Seen) -> list[Finding]:
    """The trace's findings with their lines and the step at which each can be seen."""
    found: list[Finding] = []
    for item in seen.trace.findings:
        lines = []
        for role, line in (item.lines or {"line": item.line}).items():
            if line > 0:
                lines.append([role, line, _step_of_line(seen, line)])
        found.append({
            "severity": item.severity, "glyph": GLYPHS[item.severity], "title": [[item.rule.replace("-", " "), ""]],
            "text": quoted(item.message), "fix": item.fix.replace("`", ""), "lines": lines, "rule": item.rule,
        })  # fmt: skip
    return found


def quoted(text: str) -> list[list[str]]:
    """A sentence with `code` in backquotes as runs. Names come from the program, so nothing is filled in here."""
    parts = text.split("`")
    return [[part, "code" if position % 2 else ""] for position, part in enumerate(parts) if part]


def _step_of_line(seen: Seen, line: int) -> int:
    for place, number in enumerate(seen.shown):
        if seen.recording.steps[number].line == line and seen.index.in_cell(number):
            return place
    return -1


def calls(seen: Seen) -> tuple[list[CallRow], int]:
    """The first calls of the cell, and how many there were."""
    rows: list[CallRow] = []
    total = len(seen.recording.calls)
    for number in range(min(total, MOST_CALLS)):
        call = seen.recording.calls[number]
        inputs = [seen.name(item.object, "·") for item in seen.index.inputs(number)]
        outputs = seen.index.outputs(number)
        names = [seen.name(item.object, "·") for item in outputs]
        node = ""
        if outputs:
            state = seen.flow.gave(outputs[0].object, number)
            node = seen.index.string(state.node_name) if state is not None and state.node >= 0 else ""
        text = f"{', '.join(inputs[:4])} → {', '.join(names[:4])}" if names else ", ".join(inputs[:4])
        rows.append({
            "step": seen.place(call.step) if call.step >= 0 else 0,
            "cells": [str(seen.index.line_of(call.step)), seen.call_text(number), text, _memory(seen, number, outputs), node],
        })  # fmt: skip
    return rows, total


def _memory(seen: Seen, number: int, outputs: list[Output]) -> str:
    taken = [seen.index.state_before_call(item.object, number) for item in seen.index.inputs(number)[:3]]
    given = [seen.flow.gave(item.object, number) for item in outputs[:3]]
    before = dict.fromkeys(seen.storage(state.storage) for state in taken if state is not None and state.storage >= 0)
    after = dict.fromkeys(seen.storage(state.storage) for state in given if state is not None and state.storage >= 0)
    return f"{', '.join(before)} → {', '.join(after)}" if before and after else ", ".join({**before, **after})


def notices(seen: Seen) -> list[str]:
    """What was not recorded, each once, in words."""
    told = []
    for notice in seen.recording.notices:
        template = seen.words.NOTICES.get(notice.code)
        facts = {
            key: value + 1 if key == "storage" and isinstance(value, int) else value
            for key, value in notice.facts.items()
        }
        text = template.format(**facts) if template else seen.words.UNKNOWN_NOTICE.format(code=notice.code)
        if text not in told:
            told.append(text)
    return told
