"""detach_() on a view: torch refuses it."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule
from tensormagic.analysis.way import chain

_TEXT = "Can't detach views in-place"


def find(facts: Facts) -> Iterator[Finding]:
    error, call = facts.error, facts.raised_call
    if error is None or call < 0 or _TEXT not in error.message or not facts.index.inputs(call):
        return
    view = facts.index.inputs(call)[0].object
    names = facts.all_names(view)
    hops = chain(facts.index, view)
    lines = {"raised": error.line}
    what = f"`{names[0]}`" if names else "this tensor"
    of = ""
    if hops and hops[0].call >= 0:
        made = facts.line(hops[0].step)
        lines["viewed"] = made
        base = facts.names(hops[0].source)
        of = f" of `{base[0]}`" if base else ""
        of += f" (line {made}, `{facts.described(hops[0].call)}`)"
    name = names[0] if names else "v"
    yield Finding(
        RULE.id, ERROR, error.line, names[:3],
        f"Line {error.line} calls `detach_()` on {what}, which is a view{of}: a view cannot leave the graph of its base in place.",
        f"{name} = {name}.detach()", lines, error.step,
    )  # fmt: skip


RULE = Rule(
    id="detach-on-a-view",
    sees="The error that views cannot be detached in place: the view, and the line that made it.",
    matters="The error speaks of distributed training although none is used, and does not say what the tensor is a view of.",
    example="x = torch.ones(4, requires_grad=True) * 2\nv = x[:2]\nv.detach_()\n",
    instead="v = v.detach()\n",
    blind="Views made before the cell: their line is not known.",
    find=find,
)
