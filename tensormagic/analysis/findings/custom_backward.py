"""The backward of a custom Function returned too few gradients, too many, or one of another shape."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule

_COUNT = re.compile(r"function (\w+)Backward returned an incorrect number of gradients \(expected (\d+), got (\d+)\)")
_SHAPE = re.compile(
    r"Function (\w+)Backward returned an invalid gradient at index (\d+) - got (\[.*?\]) but expected .*?(\[.*?\])"
)


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None:
        return
    count, shape = _COUNT.search(error.message), _SHAPE.search(error.message)
    told = count or shape
    if told is None:
        return
    name = told[1]
    returned, forward = _last(facts, f"{name}.backward"), _last(facts, f"{name}.forward")
    line = facts.line(returned)
    if returned < 0 or line < 1:
        return  # the Function is not defined in the notebook
    if count is not None:
        text = (
            f"Line {line} ends `{name}.backward` with {_gradients(int(count[3]))}, but `{name}.forward` takes {count[2]} beside "
            f"`ctx`: backward returns one for each of them."
        )
        fix = "Return one value for each argument of forward, in their order, and `None` for what wants no gradient."
    else:
        text = (
            f"The gradient that `{name}.backward` returns on line {line} for argument {int(told[2]) + 1} of its forward has the shape "
            f"{told[3]}, but that argument has the shape {told[4]}."
        )
        fix = "Return a gradient of the argument's own shape: `expand` what forward summed, sum what it broadcast."
    called = facts.recording.steps[forward].parent if forward >= 0 else -1
    lines = {"returned": line, "raised": error.line} | ({"applied": facts.line(called)} if called >= 0 else {})
    yield Finding(RULE.id, ERROR, line, tuple(facts.spoken_of(called)), text, fix, lines, returned)


def _last(facts: Facts, function: str) -> int:
    """The last step of the last frame of a function, -1 where it was not seen."""
    frames, steps = facts.recording.frames, facts.recording.steps
    for step in range(len(steps) - 1, -1, -1):
        told = facts.index.string(frames[steps[step].frame].function)
        if told == function or told.endswith(f".{function}"):
            return step
    return -1


def _gradients(count: int) -> str:
    return "one gradient" if count == 1 else f"{count} gradients"


RULE = Rule(
    id="custom-backward-returns",
    sees="The errors that a custom Function's backward returned a wrong number of gradients, or one of a wrong shape: its return.",
    matters="The error comes at the call of backward, which may be far from the Function.",
    example="class Scale(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, factor):\n        ctx.factor = factor\n"
    "        return x * factor\n    @staticmethod\n    def backward(ctx, g):\n        return g * ctx.factor\n"
    "w = torch.ones(2, requires_grad=True)\nScale.apply(w, 3.0).sum().backward()\n",
    instead="        return g * ctx.factor, None\n",
    blind="Functions defined outside the notebook. A gradient of the right shape and a wrong value.",
    find=find,
)
