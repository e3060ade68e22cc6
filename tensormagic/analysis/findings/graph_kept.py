"""A name that keeps the graph of many iterations alive."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule
from tensormagic.recording.model import ObjectKind, StateFlag

_FEW = 3  # iterations: fewer may be a window that the program wants


def find(facts: Facts) -> Iterator[Finding]:
    told: set[str] = set()
    for text, named in facts.end.items():
        state = named.state
        root = text.split("[", 1)[0].split(".", 1)[0]
        if state is None or state.node < 0 or root in told or not state.flags & StateFlag.REQUIRES_GRAD:
            continue
        held = _held(facts, root)
        for loop, iterations in held.items():
            if len(iterations) < _FEW:
                continue
            line, step = _line(facts, root, loop)
            if line < 0 or not _lives_outside(facts, root, loop):
                continue
            told.add(root)
            nodes = sum(len(found) for found in iterations.values())
            yield Finding(
                RULE.id, WARNING, line, tuple(dict.fromkeys((root, text))),
                f"`{root}` keeps the graphs of {len(iterations)} iterations alive ({nodes} nodes so far): line {line} "
                f"adds one more each time round, and none can be freed.",
                f"On line {line} keep the number, not the graph: `.item()` or `.detach()`.",
                {"kept": line}, step,
            )  # fmt: skip
            break


def _held(facts: Facts, root: str) -> dict[tuple[str, int, int], dict[int, set[int]]]:
    """loop -> iteration -> nodes of that iteration that the name's tensors hold."""
    nodes: set[int] = set()
    for text, named in facts.end.items():
        if text.split("[", 1)[0].split(".", 1)[0] == root and named.state is not None and named.state.node >= 0:
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


def _iteration(facts: Facts, step: int, loop: tuple[str, int, int]) -> int:
    """Which time round a step of a loop's body belongs to: executions of its line so far."""
    return facts.recording.steps[step].iteration


def _line(facts: Facts, root: str, loop: tuple[str, int, int]) -> tuple[int, int]:
    """The line of the loop that adds to the name: the last one that bound it, wrote to it, or put something in."""
    index = facts.index
    best = (-1, -1)
    for binding in facts.recording.bindings:
        if binding.frame or binding.object < 0 or facts.loop_of(binding.step) != loop:
            continue
        text = index.path_text(binding.path)
        if text.split("[", 1)[0].split(".", 1)[0] == root and binding.step > best[1] and not text.endswith(".grad"):
            if index.object(binding.object).kind in (ObjectKind.TENSOR, ObjectKind.CONTAINER):
                best = (index.line_of(binding.step), binding.step)
    for row in range(len(facts.recording.writes)):
        write = facts.recording.writes[row]
        if write.step > best[1] and facts.loop_of(write.step) == loop and root in facts.all_names(write.object):
            best = (index.line_of(write.step), write.step)
    return best


def _lives_outside(facts: Facts, root: str, loop: tuple[str, int, int]) -> bool:
    """Was there something under the name before the loop? A name that each iteration makes anew keeps one graph only,
    unless the graph itself goes back through the iterations, which then holds what the program computes."""
    for binding in facts.recording.bindings:
        if binding.object >= 0 and not binding.frame and facts.index.path_text(binding.path) == root:
            return facts.loop_of(binding.step) != loop
    return True


RULE = Rule(
    id="graph-kept-alive",
    sees="A name that was there before a loop and whose tensors hold the graphs of several of its iterations at the end.",
    matters="Nothing of those graphs can be freed: memory grows with every iteration until the process dies.",
    example="w = torch.ones(2, requires_grad=True)\ntotal = 0.0\nfor step in range(5):\n    loss = (w * 2).sum()\n"
    "    loss.backward()\n    total += loss\n",
    instead="    total += loss.item()\n",
    blind="Graphs held only by objects that no name reaches within the depth that is followed, and loops inside libraries.",
    find=find,
)
