"""Gradients of an earlier step are still there when the next backward adds to them."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed
from tensormagic.recording.model import Accumulation, BackwardFlag, WriteKind


def find(facts: Facts) -> Iterator[Finding]:
    rows: dict[int, list[Accumulation]] = defaultdict(list)
    for row in facts.recording.accumulations:
        rows[row.object].append(row)
    by_line: dict[int, list[tuple[int, int]]] = defaultdict(list)
    light = [number for number, run in enumerate(facts.recording.backwards) if run.flags & BackwardFlag.LIGHT]
    for leaf, added in rows.items():
        for before, after in itertools.pairwise(added):
            if any(before.run < run < after.run for run in light):
                continue  # what cleared it between the two was not looked at
            if after.in_place and _stepped(facts, leaf, before, after) and not _cleared(facts, before, after):
                if not _used(facts, leaf, after, added):
                    continue
                step = facts.recording.backwards[after.run].step
                by_line[facts.line(step)].append((leaf, step))
                break
    for line, found in by_line.items():
        names = tuple(dict.fromkeys(facts.name(leaf) for leaf, _ in found))
        yield Finding(
            RULE.id, WARNING, line, names,
            f"Line {line} added the new gradient of {listed(names[:4])} to that of the step before: it was used for an "
            f"update and never cleared.",
            "Call `optimizer.zero_grad()` (or set `.grad = None`) once per step, before backward.",
            {"backward": line}, found[0][1],
        )  # fmt: skip


def _span(facts: Facts, before: Accumulation, after: Accumulation) -> tuple[int, int]:
    return facts.recording.backwards[before.run].call, facts.recording.backwards[after.run].call


def _stepped(facts: Facts, leaf: int, before: Accumulation, after: Accumulation) -> bool:
    """Was the leaf updated between the two runs? An update means that the gradient has had its turn.

    A step with learning rate 0 writes nothing new: that it took the leaf is what counts.
    """
    first, last = _span(facts, before, after)
    return any(first < call < last for call in _updates(facts, leaf))


def _used(facts: Facts, leaf: int, after: Accumulation, added: list[Accumulation]) -> bool:
    """Did an update take what the later run left? (A generator's backward also reaches the discriminator, whose gradients
    are then cleared before its own update: nothing is wrong with that.)"""
    run = facts.recording.backwards[after.run].call
    update = min((call for call in _updates(facts, leaf) if call > run), default=-1)
    if update < 0:
        return False
    later = [row for row in added if run < facts.recording.backwards[row.run].call < update]
    if any(not row.in_place for row in later):
        return False
    state = facts.index.state(after.grad)
    return state is None or not any(
        run < facts.recording.writes[row].call < update
        and facts.recording.writes[row].kind != WriteKind.ACCUMULATE
        and facts.described(facts.recording.writes[row].call) not in _SCALES
        for row in facts.index.writes_to(state.storage)
    )


def _updates(facts: Facts, leaf: int) -> list[int]:
    """The calls that updated a leaf: an optimizer's step that took it, or a write of the program's own."""
    spans = facts.flow.steps
    state = facts.index.state(leaf)
    taken = [start for start, end in spans if any(start <= call <= end for call in facts.index.calls_from(leaf))]
    written = [facts.recording.writes[row].call for row in facts.index.writes_to(state.storage)] if state else []
    return sorted({*taken, *(call for call in written if call >= 0)})


def _cleared(facts: Facts, before: Accumulation, after: Accumulation) -> bool:
    """Was the gradient itself written between the two runs (zero_, fill_, mul_ by 0, clipping is none of these)?"""
    first, last = _span(facts, before, after)
    state = facts.index.state(after.grad)
    if state is None or state.storage < 0:
        return False
    return any(
        first < facts.recording.writes[row].call < last
        and facts.recording.writes[row].kind != WriteKind.ACCUMULATE
        and facts.described(facts.recording.writes[row].call) not in _SCALES
        for row in facts.index.writes_to(state.storage)
    )


_SCALES = {"clamp_", "clip_", "_foreach_mul_", "mul_", "div_"}
RULE = Rule(
    id="gradient-carried-over",
    sees="A backward run that added into a `.grad` which an update had already used and nothing had cleared since.",
    matters="Every step follows the sum of all gradients so far: training runs, and runs wrong.",
    example="w = torch.nn.Parameter(torch.zeros(1))\nopt = torch.optim.SGD([w], lr=0.1)\nfor step in range(3):\n"
    "    (w * 2).sum().backward()\n    opt.step()\n",
    instead="for step in range(3):\n    opt.zero_grad()\n    (w * 2).sum().backward()\n    opt.step()\n",
    blind="Steps past the bound of detail, and updates that neither an optimizer nor an in-place write made.",
    find=find,
)
