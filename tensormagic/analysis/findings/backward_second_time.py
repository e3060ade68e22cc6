"""Backward went through a piece of graph that an earlier backward had freed."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed
from tensormagic.recording.model import Backward, BackwardFlag, SavedFlag


def find(facts: Facts) -> Iterator[Finding]:
    error, recording, line_of = facts.error, facts.recording, facts.line
    if error is None or "backward through the graph a second time" not in error.message:
        return
    freed = [saved for saved in recording.saved if saved.stale == SavedFlag.FREED]
    if not freed:
        return
    number = freed[-1].run
    found = _first(facts, {saved.seq for saved in freed if saved.run == number}, number)
    if found is None:
        return
    run, (first, nodes) = recording.backwards[number], found
    node = max(nodes, key=facts.flow.call_of_node)
    step = facts.flow.step_of_node(node)
    shared, first_line = line_of(step), line_of(first.step)
    if shared < 1 or first_line < 1:
        return
    held = list(dict.fromkeys(name for one in sorted(nodes, reverse=True) for name in _named(facts, one)))
    root, earlier = facts.names(run.root)[:1], facts.names(first.root)[:1]
    names = tuple(dict.fromkeys((*root, *earlier, *held)))
    what = f" ({listed(held[:2])})" if held else ""
    line, fix = first_line, f"Add the losses and call backward once, or `retain_graph=True` on line {first_line}."
    if _outside(facts, step, run.step):
        line = shared
        text = (
            f"Every time round, backward goes through what line {shared} built once, before the loop{what}; the first backward "
            f"freed it."
        )
        fix = f"Compute it inside the loop; or, if no gradient is wanted there, `.detach()` on line {shared}."
    elif run.root == first.root:
        text = (
            f"Line {error.line} calls backward on {listed(root) or 'the same loss'} again, but the backward on line {first_line} "
            f"had gone through its graph and freed it."
        )
        fix = f"Call backward once; if both are meant, `retain_graph=True` on line {first_line}."
    elif facts.index.line_of(first.step) == facts.index.line_of(run.step):
        line = shared
        text = (
            f"Backward on line {error.line} goes on into what line {shared} built the time before{what}, whose graph the backward "
            f"then had freed: the value was carried over with its graph."
        )
        fix = "Carry the value without its graph: `.detach()` it before the next round."
    else:
        text = (
            f"Line {error.line} goes back through what line {shared} built{what}, but the backward on line {first_line} had "
            f"gone through it and freed it."
        )
    lines = {"first": first_line, "shared": shared, "raised": error.line}
    yield Finding(RULE.id, ERROR, line, names, text, fix, lines, run.step)


def _first(facts: Facts, freed: set[int], failed: int) -> tuple[Backward, set[int]] | None:
    """The last run before the failed one that went through freed nodes and did not keep the graph, and the nodes of both.

    The failed run itself freed what it had gone through before it came to them: those are not shared.
    """
    runs = facts.recording.backwards
    mine = _graph(facts, runs[failed])
    for number in range(failed - 1, -1, -1):
        both = mine & _graph(facts, runs[number])
        if not runs[number].flags & BackwardFlag.RETAIN and freed & both:
            return runs[number], both
    return None


def _graph(facts: Facts, run: Backward) -> set[int]:
    """The nodes on the way back from a run's root of which the call is known."""
    state = facts.index.state(run.root, run.step)
    if state is None or state.node < 0:
        return set()
    return {node for node in facts.flow.reachable(state.node) if facts.flow.call_of_node(node) >= 0}


def _outside(facts: Facts, built: int, called: int) -> bool:
    """Was the piece built before the loop in which backward is called began? The loop may stand in a calling function."""
    loops = [loop for step in _callers(facts, called) if (loop := facts.loop_of(step)) is not None]
    around = {loop for step in _callers(facts, built) if (loop := facts.loop_of(step)) is not None}
    return any(loop not in around for loop in loops)


def _callers(facts: Facts, step: int) -> Iterator[int]:
    """A step and the steps that called it, from within."""
    while step >= 0:
        yield step
        step = facts.recording.steps[step].parent


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
    blind="Graphs built before the cell, or freed by a backward before it: their lines are not known. Saved tensors that the "
    "program asks a freed node for itself.",
    find=find,
)
