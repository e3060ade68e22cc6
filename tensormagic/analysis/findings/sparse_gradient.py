"""A sparse gradient met something that cannot take it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed
from tensormagic.analysis.source import parsed

# Parts of the texts of torch and its optimizers when an operation has no form for sparse tensors.
_TEXT = re.compile(
    r"Sparse(CPU|CUDA|TensorImpl)|sparse gradient|add\(sparse, dense\)|[Ss]parse (layout )?tensor|sparse_coo"
)


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or error.type == "ValueError" or not _TEXT.search(error.message):
        return
    grads = {
        named.object: text[: -len(".grad")] for text, named in facts.end.items()
        if text.endswith(".grad") and named.state is not None
        and facts.index.geometry(named.state).layout.startswith("sparse")
    }  # fmt: skip
    taken = {item.object for item in facts.index.inputs(facts.raised_call)} if facts.raised_call >= 0 else set()
    names = tuple(grads[object] for object in grads if object in taken) or tuple(grads.values())
    if not names:
        return
    line = _asked(facts, names[0])
    yield Finding(
        RULE.id, ERROR, line if line > 0 else error.line, names,
        f"The gradient of {listed(names[:3])} is sparse" + (f", as line {line} asked" if line > 0 else "")
        + f", and what line {error.line} calls cannot take a sparse tensor.",
        "Leave out `sparse=True`, or use an optimizer and helpers made for sparse gradients (SparseAdam).",
        {"raised": error.line} | ({"asked": line} if line > 0 else {}), error.step,
    )  # fmt: skip


def _asked(facts: Facts, name: str) -> int:
    """The line that asked for the sparse gradient: where the leaf was made, if that says so, else the only one that does."""
    lines = _lines(facts.recording.sources.get(facts.recording.cell, ""))
    made = facts.index.cell_line(facts.index.object(facts.end[name].object).step)
    if made in lines:
        return made
    return lines[0] if len(lines) == 1 else -1


def _lines(source: str) -> list[int]:
    """The lines of the cell that say `sparse=True`."""
    tree = parsed(source)
    return [
        node.value.lineno for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.keyword) and node.arg == "sparse" and getattr(node.value, "value", None) is True
    ]  # fmt: skip


RULE = Rule(
    id="sparse-gradient",
    sees="An error of torch's about sparse tensors when a leaf's gradient is sparse.",
    matters="The call that fails is far from the layer that asked for sparse gradients.",
    example="emb = torch.nn.Embedding(5, 2, sparse=True)\nemb(torch.tensor([1])).sum().backward()\n"
    "torch.nn.utils.clip_grad_value_(emb.parameters(), 0.1)\n",
    instead="emb = torch.nn.Embedding(5, 2)\n",
    blind="A `sparse=True` that came from another cell or a library.",
    find=find,
)
