"""A custom Function changed its input, declared it, and returned something else."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule
from tensormagic.recording.model import StateFlag, StepKind

_TEXT = "Some elements marked as dirty during the forward method were not returned as output"


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or _TEXT not in error.message:
        return
    step = _end_of_forward(facts, error.step)
    if step < 0:
        return
    recording, index = facts.recording, facts.index
    frame, line = recording.steps[step].frame, facts.line(step)
    written = [row for row in recording.writes if recording.steps[row.step].frame == frame]
    changed = facts.line(written[0].step) if written else -1
    names = [name for row in written for name in facts.all_names(row.object)[:1]]
    returns = index.line_text(step).startswith("return")
    yield Finding(
        RULE.id, ERROR, line, tuple(dict.fromkeys((*names, *_behind(facts, [row.object for row in written])))),
        f"Line {line} " + ("returns something else than" if returns else "ends `forward` without returning")
        + " the tensor that `forward` changed in place and marked as dirty.",
        "Return the marked tensor itself.",
        {"returned": line, "raised": error.line} | ({"changed": changed} if changed > 0 else {}), step,
    )  # fmt: skip


def _end_of_forward(facts: Facts, last: int) -> int:
    """The step at which the Function's forward ended: the last to end before the lines that the exception went through."""
    steps, raised = facts.recording.steps, set()
    for step in range(last, -1, -1):
        if steps[step].kind == StepKind.RAISED:
            raised.add(steps[step].frame)
        elif steps[step].frame in raised:
            return -1  # the forward was not watched: it is not defined in the notebook
        elif facts.index.string(facts.index.frame_of(step).function).rsplit(".", 1)[-1] == "forward":
            return step
    return -1


def _behind(facts: Facts, objects: list[int]) -> list[str]:
    """Names of the leaves that the changed tensors were computed from."""
    seen, stack = set(objects), list(objects)
    while stack:
        call = facts.index.maker(stack.pop())
        taken = [item.object for item in facts.index.inputs(call)] if call >= 0 else []
        stack += [one for one in taken if one not in seen]
        seen.update(taken)
    wanted = [
        one for one in sorted(seen) if (state := facts.index.state(one)) is not None
        and state.flags & StateFlag.LEAF and state.flags & StateFlag.REQUIRES_GRAD
    ]  # fmt: skip
    return [name for one in wanted for name in facts.names(one)[:1]]


RULE = Rule(
    id="dirty-input-not-returned",
    sees="The error that a tensor marked as dirty was not returned: the return of that Function's forward.",
    matters="The error points at the call of the Function.",
    example="class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        x.mul_(3)\n"
    "        ctx.mark_dirty(x)\n        return x.clone()\n    @staticmethod\n    def backward(ctx, g):\n        return g * 3\n"
    "w = torch.ones(2, requires_grad=True)\nScale.apply(w * 1).sum().backward()\n",
    instead="        return x\n",
    blind="Functions defined outside the notebook.",
    find=find,
)
