"""Parameters that get gradients and that no optimizer of the cell holds."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import NOTE, WARNING, Facts, Finding, Rule, listed, stepped_by_hand
from tensormagic.analysis.findings.not_registered import plain_container
from tensormagic.recording.model import OptimizerGroup, PathKind


def find(facts: Facts) -> Iterator[Finding]:
    recording = facts.recording
    held = {member.object for member in recording.members}
    if not held or not facts.flow.steps:
        return
    forgotten = [(object, name) for object, name in _parameters(facts).items() if object not in held]
    forgotten = [one for one in forgotten if one[0] in facts.flow.reached_leaves and not stepped_by_hand(facts, one[0])]
    if not forgotten:
        return
    names = tuple(name for _, name in forgotten)
    shown = listed(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    for group in _first_groups(facts):
        members = [recording.members[place].object for place in range(group.first, group.first + group.size)]
        if not members or any(_has_gradient(facts, member) for member in members):
            continue
        line = facts.line(group.step)
        yield Finding(
            RULE.id, WARNING, line, names,
            f"The optimizer of line {line} trains nothing: none of its tensors got a gradient, and {shown}, which did, "
            f"{'is' if len(names) == 1 else 'are'} not in it.",
            "Give it the parameters of the model that the loss is computed with.", {"optimizer": line}, group.step,
        )  # fmt: skip
        return
    step = recording.optimizer_groups[0].step
    yield Finding(
        RULE.id, NOTE, facts.line(step), names,
        f"No optimizer of this cell holds {shown}: they get gradients and are never updated.",
        "If they are to be trained, give them to the optimizer too; if not, `requires_grad_(False)` saves their gradients.",
        {"optimizer": facts.line(step)}, step,
    )  # fmt: skip


def _first_groups(facts: Facts) -> list[OptimizerGroup]:
    """The one group of each optimizer that was only ever seen with one."""
    seen: dict[int, list[OptimizerGroup]] = {}
    for group in facts.recording.optimizer_groups:
        seen.setdefault(group.object, []).append(group)
    return [groups[0] for groups in seen.values() if len(groups) == 1]


def _parameters(facts: Facts) -> dict[int, str]:
    """Registered parameters that had no other tensor before them under their name: object -> shortest name."""
    found: dict[int, str] = {}
    for text, named in facts.end.items():
        path = facts.recording.paths[named.path]
        if path.kind != PathKind.PARAMETER or named.object < 0 or plain_container(facts, named.path, named.frame) >= 0:
            continue
        before = {binding.object for binding in facts.index.bindings(named.frame, named.path) if binding.object >= 0}
        if len(before) == 1 and len(text) < len(found.get(named.object, text + " ")):
            found[named.object] = text
    return found


def _has_gradient(facts: Facts, object: int) -> bool:
    return object in facts.flow.reached_leaves or any(f"{name}.grad" in set(facts.end) for name in facts.names(object))


RULE = Rule(
    id="optimizer-forgets-parameter",
    sees="An optimizer that steps although none of its tensors ever got a gradient, while parameters that no optimizer holds did; "
    "as a note, parameters with gradients that no optimizer of the cell holds.",
    matters="Training runs without an error and leaves them as they were made.",
    example="teacher, student = torch.nn.Linear(2, 1), torch.nn.Linear(2, 1)\n"
    "opt = torch.optim.SGD(teacher.parameters(), lr=0.1)\nfor i in range(2):\n    opt.zero_grad()\n"
    "    student(torch.ones(1, 2)).sum().backward()\n    opt.step()\n",
    instead="opt = torch.optim.SGD(student.parameters(), lr=0.1)\n",
    blind="Optimizers that no name reaches, and which optimizer a step belongs to. Some parameters are left out on purpose: that is "
    "only a note.",
    find=find,
)
