"""A write through a tensor whose places share memory."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, WARNING, Facts, Finding, Rule
from tensormagic.recording.model import CallFlag, State

_TEXT = "more than one element of the written-to tensor refers to a single memory location"


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is not None and _TEXT in error.message:
        for number in range(len(facts.recording.calls) - 1, -1, -1):
            if facts.recording.calls[number].flags & CallFlag.RAISED and facts.index.inputs(number):
                yield _finding(facts, facts.index.inputs(number)[0].object, error.line, error.step, ERROR)
                break
    told: set[tuple[int, int]] = set()
    for write in facts.recording.writes:
        if write.state < 0 or write.object < 0 or not _overlapping(facts, facts.recording.states[write.state]):
            continue
        line = facts.index.line_of(write.step)
        if (line, write.object) not in told and write.elements >= 0 and facts.recording.elements[write.elements]:
            told.add((line, write.object))
            yield _finding(facts, write.object, line, write.step, WARNING)


def _overlapping(facts: Facts, state: State) -> bool:
    geometry = facts.index.geometry(state)
    return any(size > 1 and step == 0 for size, step in zip(geometry.shape, geometry.stride, strict=False))


def _finding(facts: Facts, object: int, line: int, step: int, severity: str) -> Finding:
    made = facts.line_of_call(facts.index.maker(object))
    name = facts.name(object)
    lines = {"written": line} | ({"expanded": made} if made > 0 else {})
    end = "was refused" if severity == ERROR else "changed them all"
    return Finding(
        RULE.id, severity, line, facts.all_names(object)[:3] or (name,),
        f"`{name}` has one piece of memory in several places" + (f" since line {made}" if made > 0 else "")
        + f": the write on line {line} {end}.",
        "Give it memory of its own first: `.clone()` (or `.repeat(...)` instead of `.expand(...)`).", lines, step,
    )  # fmt: skip


RULE = Rule(
    id="expanded-memory-written",
    sees="A write in place through a tensor in which a dimension has stride 0 (expand, broadcast_to).",
    matters="What was meant for one row is written into all; some operations refuse it, some only warn.",
    example="r = torch.arange(1, 5).expand(3, 4)\nr.masked_fill_(torch.tensor([False, False, True, True]), 0)\n",
    instead="r = torch.arange(1, 5).expand(3, 4).clone()\n",
    blind="Overlaps made with as_strided, and writes past the bound of detail.",
    find=find,
)
