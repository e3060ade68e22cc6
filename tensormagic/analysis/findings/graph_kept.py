"""A name that keeps the graph of many iterations alive."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule
from tensormagic.recording.model import BackwardFlag, ObjectKind

Loop = tuple[str, int, int]
_FEW = 3  # iterations: fewer may be a window that the program wants


def find(facts: Facts) -> Iterator[Finding]:
    roots = dict.fromkeys(_root(text) for text, named in facts.end.items() if named.state and named.state.node >= 0)
    for root in roots:
        for loop, iterations in _held(facts, root).items():
            line, step = _line(facts, root, loop)
            if len(iterations) < _FEW or line < 0 or not _unwanted(facts, root, loop, iterations):
                continue
            if len(roots) > 1 and _only_computed(facts, root, step):
                continue  # it holds what another name holds, and is new each time round
            count = sum(len(found) for found in iterations.values())
            yield Finding(
                RULE.id, WARNING, line, (root, *_held_names(facts, root)),
                f"`{_holder(facts, root)}` keeps the graphs of {len(iterations)} iterations alive ({count} nodes so far): line {line} "
                f"adds one more each time round, and none can be freed.",
                f"On line {line} keep the {_values(facts, root)}.",
                {"kept": line}, step,
            )  # fmt: skip
            break


def _root(text: str) -> str:
    return text.split("[", 1)[0].split(".", 1)[0]


def _tensors(facts: Facts, root: str) -> list[tuple[str, int, int]]:
    """(name, object, node) of the tensors under a root name that hang on a graph at the end."""
    return [
        (text, named.object, named.state.node) for text, named in facts.end.items()
        if named.state is not None and named.state.node >= 0 and _root(text) == root
    ]  # fmt: skip


def _held_names(facts: Facts, root: str) -> list[str]:
    return [text for text, _, _ in _tensors(facts, root) if text != root][:3]


def _only_computed(facts: Facts, root: str, step: int) -> bool:
    """Does the line just give the name a new tensor, computed from others alone?"""
    text = facts.index.line_text(step)
    target, equals, value = text.partition("=")
    return (
        bool(equals)
        and target.strip() == root
        and not value.startswith("=")
        and not re.search(rf"\b{re.escape(root)}\b", value)
    )


def _values(facts: Facts, root: str) -> str:
    """What to keep instead: a number where it is one."""
    for _, object, _ in _tensors(facts, root):
        state = facts.index.state(object)
        if state is not None and math.prod(facts.index.geometry(state).shape) > 1:
            return "values, not the graph: `.detach()`"
    return "number, not the graph: `.item()` or `.detach()`"


def _holder(facts: Facts, root: str) -> str:
    """The longest beginning that the names of all tensors which hold a graph have in common: `meter.total`, `logs['loss']`."""
    parts = [re.findall(r"[^.\[]+|\.[^.\[]+|\[[^\]]*\]", text) for text, _, _ in _tensors(facts, root)]
    common = [one for one, *others in zip(*parts, strict=False) if all(one == other for other in others)]
    return "".join(common) or root


def _unwanted(facts: Facts, root: str, loop: Loop, iterations: dict[int, set[int]]) -> bool:
    """Is the graph of earlier iterations of no use?

    Where backward is called inside the loop, time after time, what an earlier iteration left has had its turn. Where it
    is not, the graphs may be meant for one backward at the end: then something uses the tensors, or a run reaches them.
    A name that the loop computes from itself (a recurrent state) is left alone there: it may be used in another cell.
    """
    runs = [
        run for run in facts.recording.backwards if not run.flags & BackwardFlag.CREATE
    ]  # those are gone through again
    if sum(_inside(facts, run.step, loop) for run in runs) >= _FEW:
        return True
    held = set().union(*iterations.values())
    for run in runs:
        state = facts.index.state(run.root, run.step)
        if state is not None and held & facts.flow.reachable(state.node):
            return False
    last = max((step for step in range(len(facts.recording.steps)) if facts.loop_of(step) == loop), default=-1)
    tensors = _tensors(facts, root)
    for _, object, _ in tensors:
        if any(facts.recording.calls[call].step > last for call in facts.flow.uses(object)):
            return False
    collected = any(text != root for text, _, _ in tensors)
    written = any(facts.index.writes_to(_storage(facts, object)) for _, object, _ in tensors)
    return collected or written


def _storage(facts: Facts, object: int) -> int:
    state = facts.index.state(object)
    return state.storage if state is not None else -1


def _held(facts: Facts, root: str) -> dict[tuple[str, int, int], dict[int, set[int]]]:
    """loop -> iteration -> nodes of that iteration that the name's tensors hold."""
    nodes: set[int] = set()
    for text, named in facts.end.items():
        if _root(text) == root and named.state is not None and named.state.node >= 0:
            nodes |= facts.flow.reachable(named.state.node)
    held: dict[tuple[str, int, int], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for node in nodes:
        step = facts.flow.step_of_node(node)
        while step >= 0:
            loop = facts.loop_of(step)
            if loop is not None:
                held[loop][_iteration(facts, step, loop)].add(node)
                break
            step = facts.recording.steps[step].parent
    return held


def _inside(facts: Facts, step: int, loop: Loop) -> bool:
    """Does a step stand in a loop's body, itself or through a function that the body called?"""
    while step >= 0:
        if facts.loop_of(step) == loop:
            return True
        step = facts.recording.steps[step].parent
    return False


def _iteration(facts: Facts, step: int, loop: tuple[str, int, int]) -> int:
    """Which time round a step of a loop's body belongs to: executions of its line so far."""
    return facts.recording.steps[step].iteration


def _line(facts: Facts, root: str, loop: tuple[str, int, int]) -> tuple[int, int]:
    """The line of the loop, or of what it called, that adds to the name: the last that bound it, wrote to it, or put
    something in."""
    index = facts.index
    best = (-1, -1)
    for binding in facts.recording.bindings:
        if binding.frame or binding.object < 0 or not _inside(facts, binding.step, loop):
            continue
        text = index.path_text(binding.path)
        if _root(text) == root and binding.step > best[1] and not text.endswith(".grad"):
            if index.object(binding.object).kind in (ObjectKind.TENSOR, ObjectKind.CONTAINER):
                best = (facts.line(binding.step), binding.step)
    for row in range(len(facts.recording.writes)):
        write = facts.recording.writes[row]
        if write.step > best[1] and _inside(facts, write.step, loop) and root in facts.all_names(write.object):
            best = (facts.line(write.step), write.step)
    return best


RULE = Rule(
    id="graph-kept-alive",
    sees="A name whose tensors hold, at the end, the graphs of three or more iterations of a loop, although backward was "
    "called in each, or nothing after the loop uses them.",
    matters="Nothing of those graphs can be freed: memory grows with every iteration until the process dies.",
    example="w = torch.ones(2, requires_grad=True)\ntotal = 0.0\nfor step in range(5):\n    loss = (w * 2).sum()\n"
    "    loss.backward()\n    total += loss\n",
    instead="    total += loss.item()\n",
    blind="Graphs held only by objects that no name reaches within the depth that is followed, and loops inside libraries.",
    find=find,
)
