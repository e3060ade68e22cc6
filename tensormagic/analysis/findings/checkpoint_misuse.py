"""A checkpointed function did something else when backward ran it again."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule

# torch's text -> what happened, what to write instead. {line} is the line of the checkpoint, {raised} that of backward.
_KINDS = (
    (
        r"A different number of tensors was saved",
        "the function given to `checkpoint` on line {line} did not do the same when backward on line {raised} ran it again{where}",
        "What is checkpointed must do the same both times: no counter and no switch that changes between, and no dice of Python's own.",
    ),
    (
        r"have different metadata than during the forward pass",
        "the function given to `checkpoint` on line {line} gave tensors of another shape, type or device when backward on line {raised} "
        "ran it again{where}",
        "What is checkpointed must compute the same both times, under the same autocast, and from inputs that were not changed between.",
    ),
    (
        r"none of output has requires_grad=True, this checkpoint\(\) is not necessary",
        "nothing that the function given to `checkpoint` on line {line} computed wants a gradient",
        "Leave out `checkpoint` there, or `requires_grad_()` for what is to be trained.",
    ),
    (
        r"torch\.utils\.checkpoint is incompatible with \.grad\(\)|Checkpointing is not compatible with \.grad\(\)",
        "`checkpoint` on line {line} with `use_reentrant=True` knows only `.backward()`, and line {raised} asks for gradients another way",
        "`use_reentrant=False`.",
    ),
    (
        r"Unpack is being triggered for a tensor that was already unpacked once",
        "backward on line {raised} needs what `checkpoint` on line {line} computed twice, and it is computed again only once",
        "`retain_graph=True`, or one backward for both.",
    ),
)  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    for pattern, what, fix in _KINDS if error is not None else ():
        assert error is not None
        if not re.search(pattern, error.message):
            continue
        step = _checkpoint(facts, error.step)
        line = facts.line(step)
        if line < 1:
            return
        differs = _differs(facts, line, error.line)
        where = f": line {differs} is where they part" if differs > 0 else ""
        text = what.format(line=line, raised=error.line, where=where)
        lines = {"checkpoint": line, "raised": error.line} | ({"differs": differs} if differs > 0 else {})
        yield Finding(
            RULE.id, ERROR, line, tuple(facts.spoken_of(step)), f"{text[0].upper()}{text[1:]}." if text[0] != "`" else f"{text}.",
            fix, lines, step,
        )  # fmt: skip
        return


def _checkpoint(facts: Facts, last: int) -> int:
    """The last step before the error whose line calls checkpoint."""
    for step in range(last, -1, -1):
        if re.search(r"\bcheckpoint\w*\(", facts.index.line_text(step)):
            return step
    return -1


def _differs(facts: Facts, line: int, raised: int) -> int:
    """The line of the function at which its two runs part, -1 where both went over the same lines."""
    frames, steps = facts.recording.frames, facts.recording.steps
    first = [number for number, frame in enumerate(frames) if frame.call_line == line]
    for again in (number for number, frame in enumerate(frames) if frame.call_line == raised and first):
        before = [one for one in first if frames[one].function == frames[again].function and one < again]
        if not before:
            continue
        runs = [
            [facts.line(step) for step in range(len(steps)) if steps[step].frame == one] for one in (before[-1], again)
        ]
        for one, two in zip(*runs, strict=False):
            if one != two:
                return max(one, two)
    return -1


RULE = Rule(
    id="checkpoint-misuse",
    sees="The errors of `torch.utils.checkpoint`: what was run again in backward was not the same, nothing in it wants a gradient, or it "
    "was used in a way that it cannot.",
    matters="The error comes at backward and names no line of the function.",
    example="from torch.utils.checkpoint import checkpoint\ncalls = []\nw = torch.ones(2, requires_grad=True)\ndef block(x):\n"
    "    calls.append(1)\n    if len(calls) == 1:\n        x = x * x\n    return x.exp()\n"
    "checkpoint(block, w, use_reentrant=False).sum().backward()\n",
    instead="def block(x):\n    return (x * x).exp()\n",
    blind="A function that computes other values of the same shapes the second time: nothing raises then. A checkpoint that a library "
    "makes.",
    find=find,
)
