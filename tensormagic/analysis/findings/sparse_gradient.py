"""A sparse gradient met something that cannot take it."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or not re.search(r"[Ss]parse", error.message):
        return
    layouts = [
        (facts.index.geometry(state).layout, object) for object in range(len(facts.recording.objects))
        if (state := facts.index.state(object)) is not None
    ]  # fmt: skip
    sparse = {object for layout, object in layouts if layout.startswith("sparse")}
    names = tuple(
        text[: -len(".grad")] for text, named in facts.end.items() if text.endswith(".grad") and named.object in sparse
    )
    if not names:
        return
    line = _asked(facts)
    yield Finding(
        RULE.id, ERROR, line if line > 0 else error.line, names,
        f"The gradient of {listed(names[:3])} is sparse, and what line {error.line} calls cannot take a sparse tensor.",
        "Leave out `sparse=True`, or use an optimizer and helpers made for sparse gradients (SparseAdam).",
        {"raised": error.line} | ({"asked": line} if line > 0 else {}), error.step,
    )  # fmt: skip


def _asked(facts: Facts) -> int:
    """The line that asked for sparse gradients, read off the source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(facts.recording.sources.get(facts.recording.cell, ""))
        except SyntaxError:
            return -1  # magics in the cell: not to be told from the source
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "sparse" and getattr(node.value, "value", None) is True:
            return node.value.lineno
    return -1


RULE = Rule(
    id="sparse-gradient",
    sees="An error about sparse tensors when a leaf's gradient is sparse.",
    matters="The call that fails is far from the layer that asked for sparse gradients.",
    example="emb = torch.nn.Embedding(5, 2, sparse=True)\nemb(torch.tensor([1])).sum().backward()\n"
    "torch.nn.utils.clip_grad_value_(emb.parameters(), 0.1)\n",
    instead="emb = torch.nn.Embedding(5, 2)\n",
    blind="A `sparse=True` that came from another cell or a library.",
    find=find,
)
