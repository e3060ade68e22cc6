"""Backward was called on something that has no graph."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed, short
from tensormagic.analysis.flow import Cut
from tensormagic.analysis.gradient import CUT_WORDS
from tensormagic.recording.model import ObjectKind, StateFlag


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None or "does not require grad and does not have a grad_fn" not in error.message:
        return
    root = _root(facts)
    if root < 0:
        return
    found = _cuts(facts, root)
    name = facts.name(root, "the loss")
    if not found:
        line = facts.line_of_call(facts.index.maker(root))
        yield Finding(
            RULE.id, ERROR, max(line, error.line if line < 0 else line), (name,),
            f"`{name}` has no graph: nothing that it was computed from wants a gradient.",
            "Ask for one where the parameters are made: `requires_grad=True`.", {"raised": error.line}, error.step,
        )  # fmt: skip
        return
    cut, leaves = found
    words = CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)
    yield Finding(
        RULE.id, ERROR, cut.line, tuple(dict.fromkeys((name, *leaves))),
        f"`{name}` has no graph, so line {error.line} raised: {words}" + (f", and {listed(leaves[:3])} is cut off." if leaves else "."),
        f"Compute it with the graph: change line {cut.line}.", {"cut": cut.line, "raised": error.line}, cut.step,
    )  # fmt: skip


def _root(facts: Facts) -> int:
    """What the backward that raised was called on."""
    for number in range(len(facts.recording.calls) - 1, -1, -1):
        if short(facts.index.function(number)) in ("backward", "grad") and facts.index.inputs(number):
            return facts.index.inputs(number)[0].object
    return -1


def _cuts(facts: Facts, root: int) -> tuple[Cut, tuple[str, ...]] | None:
    """The last cut on the way to the root, and the leaves behind it."""
    leaves = [
        named.object for named in facts.end.values()
        if named.state is not None and named.object >= 0 and facts.index.object(named.object).kind == ObjectKind.TENSOR
        and named.state.flags & StateFlag.REQUIRES_GRAD and named.state.flags & StateFlag.LEAF
    ]  # fmt: skip
    behind: dict[int, list[str]] = {}
    for leaf in dict.fromkeys(leaves):
        for cut in facts.flow.forward(leaf)[1]:
            if cut.target >= 0 and root in facts.flow.data_reaches(cut.target):
                behind.setdefault(cut.call, []).append(facts.name(leaf))
    if behind:
        last = max(behind)
        return facts.flow.cuts[last], tuple(behind[last])
    for call, cut in sorted(facts.flow.cuts.items(), reverse=True):
        if cut.target >= 0 and root in facts.flow.data_reaches(cut.target):
            return facts.flow.cuts[call], facts.all_names(cut.source)[:1]
    return None


RULE = Rule(
    id="no-graph-at-backward",
    sees="The error that backward was called on a tensor without a graph: the call or the mode that cut it.",
    matters="The error names backward's line; setting requires_grad on the loss silences it and trains nothing.",
    example="w = torch.ones(2, requires_grad=True)\nloss = (w * 2).sum().detach()\nloss.backward()\n",
    instead="loss = (w * 2).sum()\n",
    blind="Cuts made before this cell.",
    find=find,
)
