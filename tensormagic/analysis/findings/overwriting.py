"""How memory that backward needed was overwritten, in words, and what to write instead."""

from __future__ import annotations

import re

from tensormagic.analysis.findings.base import Facts, short
from tensormagic.recording.model import Write, WriteKind

_AUGMENTED = re.compile(r"[-+*/@%&|^]=")
_LAYERS = ("batch_norm", "instance_norm")


def told(facts: Facts, write: Write, what: str) -> str:
    """The beginning of the sentence: who changed what, and where.

    Args:
        facts: of the recording.
        write: the change.
        what: the tensor's name, quoted.
    """
    line = facts.line(write.step)
    if _by_optimizer(facts, write):
        return f"The optimizer's step on line {line} changed {what} in place"
    name = short(facts.index.function(write.call)) if write.call >= 0 else ""
    operator = name.startswith("__") or _AUGMENTED.search(facts.index.line_text(write.step))
    if not name or operator:  # the line says it already
        return f"Line {line} changed {what} in place"
    return f"Line {line} (`{name}`) changed {what} in place"


def fix(facts: Facts, write: Write) -> str:
    """What to write instead."""
    line, index = facts.line(write.step), facts.index
    if _by_optimizer(facts, write):
        return (
            "Call every backward before the optimizer's `step()`; what the next round takes over, give it without its graph: "
            "`.detach()`."
        )
    function = short(index.function(write.call)) if write.call >= 0 else ""
    if function in _LAYERS:
        return f"Call backward before the layer is used again on line {line}, or use a layer of its own there."
    if function.startswith("embedding"):
        return (
            f"With `max_norm` the lookup on line {line} rewrites the rows that it takes: use `.clone()` of the weight where it is "
            f"used otherwise, or look up first."
        )
    if write.kind == WriteKind.OUTSIDE:
        return f"Write into a copy on line {line}: `.numpy().copy()`, or `.clone()` before `.numpy()`."
    if write.kind == WriteKind.DATA:
        return (
            f"Call backward before line {line}, or make a new tensor there; a write through `.data` is never checked."
        )
    if write.call >= 0 and "inplace=True" in index.args(write.call):
        return f"`inplace=False` for the `{function}` on line {line}."
    if function == "__setitem__" and facts.loop_of(write.step) is not None:
        return "Collect the pieces in a list and `torch.stack` them after the loop, or write into a copy: `.clone()` first."
    return f"Make a new tensor on line {line} instead of writing in place, or write into a copy: `.clone()` first."


def _by_optimizer(facts: Facts, write: Write) -> bool:
    return any(first <= write.call <= last for first, last in facts.flow.steps)
