"""A tensor made in inference mode met autograd."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed
from tensormagic.recording.model import StateFlag

_TEXT = ("Inference tensors cannot be saved for backward", "Inplace update to inference tensor",
         "Setting requires_grad=True on inference tensor")  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    error, call = facts.error, facts.raised_call
    if error is None or call < 0 or not any(text in error.message for text in _TEXT):
        return
    for item in facts.index.inputs(call):
        state = facts.index.state_before_call(item.object, call)
        if state is None or not state.flags & StateFlag.INFERENCE:
            continue
        names = facts.all_names(item.object)[:3]
        made = facts.line_of_call(facts.index.maker(item.object))
        known = made > 0
        what = listed(names[:1]) or "A tensor of this line"
        yield Finding(
            RULE.id, ERROR, made if known else error.line, names,
            f"{what} was made in inference mode" + (f" on line {made}" if known else "") + ": autograd may neither keep nor change "
            f"such a tensor, so line {error.line} raised.",
            "Make it under `torch.no_grad()` instead, or `.clone()` it outside inference mode.",
            {"raised": error.line} | ({"made": made} if known else {}), error.step,
        )  # fmt: skip
        return


RULE = Rule(
    id="inference-tensor-used",
    sees="The errors about inference tensors: the tensor of that call that was made in inference mode.",
    matters="The error does not say which tensor it is or where it was made.",
    example="with torch.inference_mode():\n    x = torch.ones(3)\nw = torch.ones(3, requires_grad=True)\ny = (x * w).sum()\n",
    instead="with torch.no_grad():\n    x = torch.ones(3)\n",
    blind="Where the tensor was made, if that was before the cell. Of several in one call the first is told.",
    find=find,
)
