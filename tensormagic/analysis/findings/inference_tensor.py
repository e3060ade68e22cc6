"""A tensor made in inference mode met autograd."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed
from tensormagic.recording.model import StateFlag

_TEXT = ("Inference tensors cannot be saved for backward", "Inplace update to inference tensor",
         "Setting requires_grad=True on inference tensor")  # fmt: skip


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or not any(text in error.message for text in _TEXT):
        return
    text = facts.index.line_text(error.step)
    made: dict[int, list[str]] = {}
    for name, named in facts.end.items():
        if named.state is not None and named.state.flags & StateFlag.INFERENCE and named.object >= 0:
            if name.split(".", 1)[0].split("[", 1)[0] in text:
                line = facts.line_of_call(facts.index.maker(named.object))
                made.setdefault(line, []).append(name)
    for line, names in list(made.items())[:1]:
        at = line if line > 0 else error.line
        yield Finding(
            RULE.id, ERROR, at, tuple(names),
            f"{listed(names[:3])} was made in inference mode (line {at}): autograd cannot keep such a tensor, so line "
            f"{error.line} raised.",
            "Make it under `torch.no_grad()` instead, or `.clone()` it outside inference mode.",
            {"made": at, "raised": error.line}, error.step,
        )  # fmt: skip


RULE = Rule(
    id="inference-tensor-used",
    sees="The errors about inference tensors: the tensors of that line that were made in inference mode.",
    matters="The error does not say which tensor it is or where it was made.",
    example="with torch.inference_mode():\n    x = torch.ones(3)\nw = torch.ones(3, requires_grad=True)\ny = (x * w).sum()\n",
    instead="with torch.no_grad():\n    x = torch.ones(3)\n",
    blind="Tensors that the raising line reaches only through a function.",
    find=find,
)
