"""Backward was called on many values at once, or was given a gradient of another shape."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, short

_MANY = "grad can be implicitly created only for scalar outputs"
_SHAPES = re.compile(
    r"Mismatch in shape: grad_output\[(\d+)\] has a shape of torch\.Size\((\[.*?\])\) and output\[\d+\] has a shape of "
    r"torch\.Size\((\[.*?\])\)"
)


def find(facts: Facts) -> Iterator[Finding]:
    error, call = facts.error, facts.raised_call
    if error is None or call < 0 or short(facts.index.function(call)) not in ("backward", "grad"):
        return
    if _MANY in error.message:
        yield from _many(facts, call, error.line)
    shapes = _SHAPES.search(error.message)
    if shapes is not None:
        place, given, wanted = int(shapes[1]), shapes[2], shapes[3]
        name, names, _ = _root(facts, call, place)
        yield Finding(
            RULE.id, ERROR, error.line, names,
            f"The gradient that line {error.line} gives to backward has the shape {given}, but {name} has the shape {wanted}: one "
            f"number is wanted for each of its values.",
            "Give one of the same shape, e.g. `torch.ones_like(...)` of the tensor that backward is called on.",
            {"raised": error.line}, error.step,
        )  # fmt: skip


def _many(facts: Facts, call: int, raised: int) -> Iterator[Finding]:
    name, names, root = _root(facts, call, 0)
    state = facts.index.state_before_call(root, call) if root >= 0 else None
    if state is None:
        return
    maker = facts.index.maker(root)
    made = facts.line_of_call(maker)
    shape = list(facts.index.geometry(state).shape)
    where = f", made on line {made}," if made > 0 else ""
    fix = f"`{names[0] if names else 'loss'}.mean().backward()`, or `.sum()`."
    if maker >= 0 and re.search(r"reduction='none'", facts.index.args(maker)):
        fix = f"Leave out `reduction='none'`, or take the mean yourself: {fix}"
    yield Finding(
        RULE.id, ERROR, made if made > 0 else raised, names,
        f"{name}{where} holds many values (shape {shape}), and a gradient is that of one number: line {raised} raised.",
        fix, {"raised": raised} | ({"made": made} if made > 0 else {}), facts.recording.calls[maker].step if maker >= 0 else -1,
    )  # fmt: skip


def _root(facts: Facts, call: int, place: int) -> tuple[str, tuple[str, ...], int]:
    """What backward was called on: its name quoted, its names, the object; -1 where it cannot be told."""
    taken = facts.index.inputs(call)
    if place >= len(taken):
        return "what it was called on", (), -1
    names = facts.names(taken[place].object)[:1]
    return (f"`{names[0]}`" if names else "What backward was called on"), names, taken[place].object


RULE = Rule(
    id="backward-of-many-values",
    sees="The errors that backward can start by itself only from one number, and that a gradient given to it has another shape.",
    matters="The error comes at backward; the line to change is the one that made the loss.",
    example="w = torch.ones(3, requires_grad=True)\nloss = (w * 2 - 1) ** 2\nloss.backward()\n",
    instead="loss = ((w * 2 - 1) ** 2).mean()\nloss.backward()\n",
    blind="Tensors that stand for many at once (vmap).",
    find=find,
)
