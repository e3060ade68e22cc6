"""An optimizer that still holds a parameter which the module has replaced."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule
from tensormagic.recording.model import PathKind


def find(facts: Facts) -> Iterator[Finding]:
    recording, index = facts.recording, facts.index
    held = {member.object for member in recording.members}
    if not held:
        return
    for text, named in facts.end.items():
        if recording.paths[named.path].kind != PathKind.PARAMETER or named.object in held or named.object < 0:
            continue
        bindings = index.bindings(named.frame, named.path)
        before = [binding.object for binding in bindings if binding.object in held]
        if not before or not facts.flow.reached_leaves.get(named.object) or facts.name(named.object) != text:
            continue
        bound = [binding for binding in bindings if binding.object == named.object]
        step = bound[-1].step
        made = min((group.step for group in recording.optimizer_groups), default=-1)
        if step < made or bound[-1].late:
            continue  # replaced before the optimizer was made, which then took another parameter on purpose
        line = facts.line(step)
        yield Finding(
            RULE.id, WARNING, line, (text,),
            f"Line {line} gave `{text}` a new tensor, but the optimizer of line {facts.line(made)} still holds the old "
            f"one: the new one gets gradients and is never updated.",
            "Make the optimizer after the parameters are in place, or write into the parameter under no_grad.",
            {"replaced": line, "optimizer": facts.line(made)}, step,
        )  # fmt: skip


RULE = Rule(
    id="optimizer-holds-old-parameter",
    sees="A module's parameter that got a gradient and is in no optimizer, while an optimizer holds the tensor that had "
    "its name before.",
    matters="The optimizer goes on updating a tensor that the model no longer uses.",
    example="net = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    "net.weight = torch.nn.Parameter(torch.ones(1, 2))\nnet(torch.ones(3, 2)).sum().backward()\nopt.step()\n",
    instead="net.weight = torch.nn.Parameter(torch.ones(1, 2))\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n",
    blind="Optimizers that no name reaches, and parameters replaced in another cell.",
    find=find,
)
