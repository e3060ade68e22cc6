"""Gradients that were cleared between backward and the step that should have used them."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule


def find(facts: Facts) -> Iterator[Finding]:
    recording = facts.recording
    optimizers = {group.object for group in recording.optimizer_groups}
    if len(optimizers) != 1:
        return  # which optimizer a step belongs to is not recorded
    calls = facts.flow.optimizer_calls
    runs = [run for run in recording.backwards if run.call >= 0]
    for position, (step, kind) in enumerate(calls):
        if kind != "step" or not position or calls[position - 1][1] != "zero_grad":
            continue
        cleared = calls[position - 1][0]
        before = [run for run in runs if run.call < cleared]
        since = calls[position - 2][0] if position > 1 else -1
        if any(cleared < run.call < step for run in runs) or not any(run.call > since for run in before):
            continue
        if _writes(facts, step):
            continue  # it updated something all the same: other gradients were there
        line = facts.line_of_call(cleared)
        yield Finding(
            RULE.id, WARNING, line, tuple(facts.name(member.object) for member in recording.members)[:4],
            f"Line {line} cleared the gradients before line {facts.line_of_call(step)} could use them: the step changed "
            f"nothing.",
            "Clear before backward (or after the step): zero_grad, backward, step.",
            {"cleared": line, "step": facts.line_of_call(step), "backward": facts.line(before[-1].step)},
            recording.calls[cleared].step,
        )  # fmt: skip
        return


def _writes(facts: Facts, step: int) -> bool:
    """Did an optimizer's step write to anything?"""
    end = next((last for first, last in facts.flow.steps if first == step), step)
    return any(step <= write.call <= end for write in facts.recording.writes)


RULE = Rule(
    id="gradient-thrown-away",
    sees="zero_grad between backward and step, when the step then wrote nothing.",
    matters="Training runs without an error and changes nothing.",
    example="w = torch.nn.Parameter(torch.ones(2))\nopt = torch.optim.SGD([w], lr=0.1)\nfor i in range(3):\n"
    "    (w * 2).sum().backward()\n    opt.zero_grad()\n    opt.step()\n",
    instead="for i in range(3):\n    opt.zero_grad()\n    (w * 2).sum().backward()\n    opt.step()\n",
    blind="Cells with several optimizers.",
    find=find,
)
