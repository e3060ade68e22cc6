"""An optimizer whose group holds no parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, WARNING, Facts, Finding, Rule
from tensormagic.analysis.source import parsed

_ONCE = {"filter", "map", "zip", "iter", "chain", "parameters", "named_parameters"}


def find(facts: Facts) -> Iterator[Finding]:
    recording = facts.recording
    if facts.error is not None and "optimizer got an empty parameter list" in facts.error.message:
        yield from _refused(facts)
    before: list[int] = []
    told = False
    for group in recording.optimizer_groups:
        members = [recording.members[i].object for i in range(group.first, group.first + group.size)]
        if members:
            before = members
            continue
        if told:
            continue
        told = True
        made = facts.line(group.step)
        name, line = _iterator(facts, group.step)
        line = line if line > 0 else made
        names = [facts.name(member) for member in before] + ([name] if name else [])
        why = f" The iterator `{name}` was used up by the optimizer before." if name and before else ""
        yield Finding(
            RULE.id, WARNING, line, tuple(names),
            f"The optimizer made on line {made} holds no parameter: nothing will be trained.{why}",
            f"`{name or 'params'} = list(...)`: a list can be read again.", {"made": made, "iterator": line}, group.step,
        )  # fmt: skip


def _refused(facts: Facts) -> Iterator[Finding]:
    """torch itself refused it: without a parameter group there is nothing to hold."""
    error = facts.error
    assert error is not None
    name, line = _iterator(facts, error.step)
    why = f": the iterator `{name}` of line {line} was read to its end before" if name else ""
    yield Finding(
        RULE.id, ERROR, line if line > 0 else error.line, (name,) if name else (),
        f"The optimizer on line {error.line} was given no parameter{why}.",
        f"`{name} = list(...)`: a list can be read again." if name else "Give it `list(model.parameters())` of a model that has some.",
        {"raised": error.line} | ({"iterator": line} if name else {}), error.step,
    )  # fmt: skip


def _iterator(facts: Facts, step: int) -> tuple[str, int]:
    """The name read on the optimizer's line that was bound to something which can be read only once, and its line."""
    if not facts.index.in_cell(step):
        return "", -1  # its line would be one of another cell
    line = facts.line(step)
    tree = parsed(facts.recording.sources.get(facts.recording.cell, ""))
    if tree is None:
        return "", -1
    read = {
        node.id for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.lineno <= line <= (node.end_lineno or 0)
    }  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in read:
            value = node.value
            called = value.func if isinstance(value, ast.Call) else None
            name = (
                called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
            )
            if isinstance(value, ast.GeneratorExp) or name in _ONCE:
                return node.targets[0].id, node.lineno
    return "", -1


RULE = Rule(
    id="optimizer-empty",
    sees="An optimizer with a parameter group that has no members, and the error that it was given none at all.",
    matters="`step()` does nothing for it, silently.",
    example="net = torch.nn.Linear(2, 1)\nparams = filter(lambda p: p.requires_grad, net.parameters())\n"
    "for epoch in range(2):\n    opt = torch.optim.SGD([{'params': params}], lr=0.1)\n",
    instead="params = list(filter(lambda p: p.requires_grad, net.parameters()))\n",
    blind="Optimizers that no name reaches. Which iterator it was is read off the source of the line alone.",
    find=find,
)
