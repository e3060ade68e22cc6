"""A hook wrote into the gradient that it was given, and another path had been sent the same tensor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed
from tensormagic.recording import values
from tensormagic.recording.model import Accumulation, CallFlag, Write


def find(facts: Facts) -> Iterator[Finding]:
    hooked = _hooked(facts)
    changed: dict[int, list[int]] = {}
    for row in facts.recording.accumulations:
        if row.object not in hooked and _differs(facts, row):
            changed.setdefault(row.run, []).append(row.object)
    for run, leaves in changed.items():
        write = _written(facts, run)
        if write is None:
            continue
        line = facts.line(write.step)
        names = tuple(dict.fromkeys(name for leaf in leaves for name in facts.names(leaf)[:1]))
        if line < 1 or not names:
            continue
        yield Finding(
            RULE.id, WARNING, line, names,
            f"The hook on line {line} (`{facts.described(write.call)}`) writes into the gradient it was given, and {listed(names[:3])} "
            f"had been sent the same memory: the `.grad` there is not what backward computed.",
            "Return a new tensor from the hook (`return g * 0.5`), and leave what it was given as it is.",
            {"written": line, "backward": facts.line(facts.recording.backwards[run].step)}, write.step,
        )  # fmt: skip
        return


def _hooked(facts: Facts) -> set[int]:
    """The tensors that the program put hooks on: these change their own gradient on purpose."""
    calls = range(len(facts.recording.calls))
    hooks = ("Tensor.register_hook", "Tensor.register_post_accumulate_grad_hook")
    return {
        item.object for call in calls if facts.index.function(call) in hooks for item in facts.index.inputs(call)[:1]
    }


def _differs(facts: Facts, row: Accumulation) -> bool:
    """Is the fresh .grad of a leaf another one than what was sent into it?"""
    if row.before >= 0 or row.added < 0 or row.after < 0:
        return False
    sent, kept = (values.decode(facts.recording.blobs[blob]) for blob in (row.added, row.after))
    if sent is None or kept is None or sent.shape != kept.shape:
        return False
    return not np.allclose(sent, kept, rtol=1e-3, atol=1e-6, equal_nan=True)


def _written(facts: Facts, run: int) -> Write | None:
    """A write of the program's own, during a run, into a tensor that no call of the program made: into what a hook was given."""
    first = facts.recording.backwards[run].call
    for write in facts.recording.writes:
        if (
            write.call <= first
            or write.object < 0
            or not facts.recording.calls[write.call].flags & CallFlag.IN_BACKWARD
        ):
            continue
        if facts.index.maker(write.object) < 0 and facts.recording.steps[write.step].frame > 0:
            return write
    return None


RULE = Rule(
    id="hook-writes-shared-gradient",
    sees="A hook that writes in place into the gradient it was given, when the `.grad` of another leaf then differs from what was sent.",
    matters="One tensor is sent along several ways (both sides of a sum): what the hook does for one happens to the others too.",
    example="a = torch.ones(2, requires_grad=True)\nb = torch.ones(2, requires_grad=True)\na.register_hook(lambda g: g.mul_(0))\n"
    "((a + b) * 2).sum().backward()\n",
    instead="a.register_hook(lambda g: g * 0)\n",
    blind="Gradients that are too large to be kept value by value, steps past the bound of detail, and hooks outside the notebook.",
    find=find,
)
