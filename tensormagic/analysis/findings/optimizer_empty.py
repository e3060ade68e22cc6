"""An optimizer whose group holds no parameter."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule

_ONCE = {"filter", "map", "zip", "iter", "chain", "parameters", "named_parameters"}


def find(facts: Facts) -> Iterator[Finding]:
    recording = facts.recording
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


def _iterator(facts: Facts, step: int) -> tuple[str, int]:
    """The name read on the optimizer's line that was bound to something which can be read only once, and its line."""
    if not facts.index.in_cell(step):
        return "", -1  # its line would be one of another cell
    line = facts.line(step)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(facts.recording.sources.get(facts.recording.cell, ""))
        except SyntaxError:
            return "", -1  # magics in the cell: its names cannot be told from the source
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
    sees="An optimizer with a parameter group that has no members.",
    matters="`step()` does nothing for it, silently.",
    example="net = torch.nn.Linear(2, 1)\nparams = filter(lambda p: p.requires_grad, net.parameters())\n"
    "for epoch in range(2):\n    opt = torch.optim.SGD([{'params': params}], lr=0.1)\n",
    instead="params = list(filter(lambda p: p.requires_grad, net.parameters()))\n",
    blind="Optimizers that no name reaches. Which iterator it was is read off the source of the line alone.",
    find=find,
)
