"""Backward went through a piece of graph that an earlier backward had freed."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed
from tensormagic.recording.model import Backward, BackwardFlag, SavedFlag


def find(facts: Facts) -> Iterator[Finding]:
    error, recording = facts.error, facts.recording
    if error is None or "backward through the graph a second time" not in error.message:
        return
    freed = [saved for saved in recording.saved if saved.stale == SavedFlag.FREED]
    if not freed:
        return
    run = recording.backwards[freed[-1].run]
    nodes = [saved.seq for saved in freed if saved.run == freed[-1].run]
    first = _first(facts, nodes, freed[-1].run)
    shared_step = max(facts.flow.step_of_node(node) for node in nodes)
    shared = facts.index.line_of(shared_step)
    first_line = facts.index.line_of(first.step) if first is not None else -1
    held = [name for node in nodes for name in _named(facts, node)]
    roots = [facts.name(run.root, "")] + ([facts.name(first.root, "")] if first is not None else [])
    names = tuple(dict.fromkeys(name for name in (*roots, *held) if name))
    loop = facts.loop_of(run.step)
    outside = loop is not None and facts.loop_of(shared_step) != loop
    line = shared if outside else first_line if first_line > 0 else shared
    what = listed(held[:2]) or "that piece of the graph"
    if outside:
        text = (
            f"Every time round, backward goes through what line {shared} built once, before the loop ({what}); the first "
            f"backward freed it."
        )
        fix = f"If no gradient is wanted there: `.detach()` on line {shared}. Else build it inside the loop."
    else:
        text = (
            f"Line {error.line} goes back through what line {shared} built ({what}), but the backward on line {first_line} "
            f"had gone through it and freed it."
        )
        fix = f"Add the losses and call backward once, or `retain_graph=True` on line {first_line}."
    lines = {"first": first_line, "shared": shared, "raised": error.line}
    yield Finding(RULE.id, ERROR, line, names, text, fix, {k: v for k, v in lines.items() if v > 0}, run.step)


def _first(facts: Facts, nodes: list[int], failed: int) -> Backward | None:
    """The last run before the failed one that went through one of the nodes and did not keep the graph."""
    wanted = set(nodes)
    for number in range(failed - 1, -1, -1):
        run = facts.recording.backwards[number]
        if run.flags & BackwardFlag.RETAIN:
            continue
        state = facts.index.state(run.root, run.step)
        if state is not None and state.node >= 0 and wanted & facts.flow.reachable(state.node):
            return run
    return None


def _named(facts: Facts, node: int) -> list[str]:
    """Names of tensors that have this node as their grad_fn."""
    return [
        name for state in facts.recording.states if state.node == node for name in facts.all_names(state.object)[:1]
    ]  # fmt: skip


RULE = Rule(
    id="backward-second-time",
    sees="The error about going backward a second time: the shared piece of graph, its line, and the run that freed it.",
    matters="`retain_graph=True` silences the error and often keeps memory or gives gradients of stale values.",
    example="w = torch.ones(3, requires_grad=True)\nh = (w * w).sum()\nloss_a, loss_b = h * 2, h * 3\n"
    "loss_a.backward()\nloss_b.backward()\n",
    instead="(loss_a + loss_b).backward()\n",
    blind="Graphs built before the cell: their lines are not known.",
    find=find,
)
