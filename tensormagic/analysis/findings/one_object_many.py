"""One tensor that stands in a container several times, and is written in place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed
from tensormagic.recording.model import NONE, ObjectKind, PathKind


def find(facts: Facts) -> Iterator[Finding]:
    recording, index = facts.recording, facts.index
    places: dict[tuple[int, int], list[str]] = defaultdict(list)  # (container's path, object) -> names
    for text, named in facts.end.items():
        path = recording.paths[named.path]
        if named.object < 0 or named.frame or path.kind != PathKind.ITEM or path.parent == NONE:
            continue
        if index.object(named.object).kind == ObjectKind.TENSOR and _is_list(facts, path.parent):
            places[path.parent, named.object].append(text)
    for (container, object), names in places.items():
        if len(names) < 2:
            continue
        state = index.state(object)
        first = min(_since(facts, container, object), default=-1)
        late = [
            recording.writes[row] for row in index.writes_to(state.storage if state else NONE)
            if recording.writes[row].step >= first
        ]  # fmt: skip
        if not late:
            continue
        line, step = _line(facts, container, object)
        where = index.path_text(container)
        written = facts.line(late[-1].step)
        yield Finding(
            RULE.id, WARNING, line, (where, *names),
            f"{listed(names[:3])} are one tensor under several items: line {written} changed it in place, and with it "
            f"every item.",
            f"Put a copy into `{where}` on line {line}: `.clone()`, or make one tensor per item.",
            {"stored": line, "written": written}, step,
        )  # fmt: skip


def _is_list(facts: Facts, path: int) -> bool:
    bindings = facts.index.bindings(0, path)
    if not bindings or bindings[-1].object < 0:
        return False
    row = facts.index.object(bindings[-1].object)
    return row.kind == ObjectKind.CONTAINER and facts.index.string(row.type) in ("list", "deque")


def _since(facts: Facts, container: int, object: int) -> list[int]:
    return [
        binding.step for binding in facts.recording.bindings
        if binding.object == object and facts.recording.paths[binding.path].parent == container
    ]  # fmt: skip


def _line(facts: Facts, container: int, object: int) -> tuple[int, int]:
    steps = _since(facts, container, object)
    step = max(steps, default=-1)
    return facts.line(step), step


RULE = Rule(
    id="one-tensor-many-items",
    sees="A list or deque in which one tensor object stands several times, and which was written in place after that.",
    matters="What looks like many values is one: a replay memory, a history or a list of states all show the newest.",
    example="states = [torch.zeros(2)] * 3\nstates[0] += 1\n",
    instead="states = [torch.zeros(2) for _ in range(3)]\n",
    blind="Different tensor objects that share memory (views of one buffer), and items past the bound.",
    find=find,
)
