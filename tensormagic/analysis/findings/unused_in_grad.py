"""torch.autograd.grad was asked for the derivative by a tensor that the result does not depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule
from tensormagic.analysis.reasons import CUT_WORDS

_TEXT = re.compile(r"differentiated Tensor(?: at index (\d+)|s) appears to not have been used in the graph")


def find(facts: Facts) -> Iterator[Finding]:
    error, call = facts.error, facts.raised_call
    told = _TEXT.search(error.message) if error is not None else None
    if error is None or told is None or call < 0 or told[1] is None:
        return
    taken, place = facts.index.inputs(call), 1 + int(told[1])
    if place >= len(taken):
        return
    root, asked = taken[0].object, taken[place].object
    state = facts.index.state_before_call(root, call)
    if state is None or -1 - asked in facts.flow.reachable(state.node) or not facts.names(asked):
        return  # several results were differentiated at once: which tensor is meant is not sure
    cuts = [
        cut for cut in facts.flow.forward(asked)[1] if cut.target >= 0 and root in facts.flow.data_reaches(cut.target)
    ]
    line, why = error.line, "it did not go into it"
    if cuts:
        line = cuts[0].line
        why = CUT_WORDS[cuts[0].reason].format(call=facts.described(cuts[0].call), line=line)
    name, result = facts.name(asked), f"`{facts.name(root)}`" if facts.names(root) else "the result"
    yield Finding(
        RULE.id, ERROR, line, (name, *facts.names(root)[:1]),
        f"Line {error.line} asks for the derivative of {result} by `{name}`, but there is none: {why}.",
        f"Compute {result} from `{name}`; or `allow_unused=True`, which gives None for it.",
        {"raised": error.line} | ({"cut": line} if cuts else {}), error.step,
    )  # fmt: skip


RULE = Rule(
    id="unused-in-grad",
    sees="The error that a tensor given to `torch.autograd.grad` was not used in the graph, and the call that cut it off.",
    matters="torch gives the place in the list, and not the name or the reason.",
    example="w = torch.ones(2, requires_grad=True)\nb = torch.ones(2, requires_grad=True)\nloss = (w * b.detach()).sum()\n"
    "torch.autograd.grad(loss, [w, b])\n",
    instead="loss = (w * b).sum()\n",
    blind="Derivatives of several results in one call.",
    find=find,
)
