"""A custom Function changed its input, declared it, and returned something else."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule

_TEXT = "Some elements marked as dirty during the forward method were not returned as output"


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or _TEXT not in error.message:
        return
    recording, index = facts.recording, facts.index
    for step in range(len(recording.steps) - 1, -1, -1):
        frame = index.frame_of(step)
        if index.string(frame.function).rsplit(".", 1)[-1] != "forward" or not _returns(index.line_text(step)):
            continue
        written = [row for row in recording.writes if recording.steps[row.step].frame == recording.steps[step].frame]
        line = index.line_of(step)
        names = tuple(dict.fromkeys(name for row in written for name in facts.all_names(row.object)[:1]))
        changed = index.line_of(written[0].step) if written else -1
        yield Finding(
            RULE.id, ERROR, line, (*names, *facts.parameters().values()),
            f"Line {line} returns another tensor than the one that `forward` changed in place and marked as dirty.",
            "Return the marked tensor itself.",
            {"returned": line, "raised": error.line} | ({"changed": changed} if changed > 0 else {}), step,
        )  # fmt: skip
        return


def _returns(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(f"def f():\n {text}")
        except SyntaxError:
            return False  # a line of a longer statement
    return isinstance(tree.body[0], ast.FunctionDef) and isinstance(tree.body[0].body[0], ast.Return)


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
