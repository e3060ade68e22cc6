"""A gradient that never arrives because the way back is cut between a parameter and what backward was called on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tensormagic.analysis.findings.base import NOTE, WARNING, Facts, Finding, Rule, listed
from tensormagic.analysis.flow import Cut
from tensormagic.analysis.reasons import CUT_WORDS
from tensormagic.recording.model import BackwardFlag

# Cuts that are hardly ever meant. The others (detach, no_grad, .data) are how a program says that it means one.
_UNMEANT = {"rewrap", "integer", "indices", "values", "grad_off", "checkpoint"}


def find(facts: Facts) -> Iterator[Finding]:
    roots = {run.root for run in facts.recording.backwards if not run.flags & BackwardFlag.RAISED}
    if not roots:
        return  # no backward went through: what was refused is another rule's
    by_cut: dict[int, list[str]] = defaultdict(list)
    cuts: dict[int, Cut] = {}
    for object, name in facts.leaves().items():
        if facts.flow.reached_leaves.get(object) or f"{name}.grad" in set(facts.end):
            continue
        _, found = facts.flow.forward(object)
        for cut in found:
            if cut.target >= 0 and facts.flow.data_reaches(cut.target) & roots:
                cuts[cut.call] = cut
                by_cut[cut.call].append(name)
                break
    for call, names in by_cut.items():
        cut = cuts[call]
        words = CUT_WORDS[cut.reason].format(call=facts.described(call), line=cut.line)
        verb = "gets" if len(names) == 1 else "get"
        yield Finding(
            RULE.id, WARNING if cut.reason in _UNMEANT else NOTE, cut.line, tuple(names),
            f"{listed(names[:4])} {verb} no gradient: {words}.", _FIX[cut.reason],
            {"cut": cut.line, "used": facts.line_of_call(call)}, cut.step,
        )  # fmt: skip


_FIX = {
    "detach": "If the gradient is wanted, leave out `.detach()`.",
    "data": "If the gradient is wanted, leave out `.data`.",
    "no_grad": "If the gradient is wanted, compute it outside `no_grad`; to freeze weights only, `requires_grad_(False)`.",
    "inference": "If the gradient is wanted, compute it outside `inference_mode`.",
    "values": "Stay with tensors: no `.item()`, `float()` or `.numpy()` on the way to the loss.",
    "rewrap": "Use the tensor itself, or `torch.stack` for several: `torch.tensor(...)` reads the numbers only.",
    "integer": "Use a form with a derivative (softmax, interpolation) or a straight-through estimator.",
    "no_derivative": "Use a form that has a derivative.",
    "indices": "Use the values (softmax, `gather`), or a straight-through estimator.",
    "grad_off": "Switch them on again: `torch.set_grad_enabled(True)`.",
    "checkpoint": "`use_reentrant=False`, which has no such limit.",
}
RULE = Rule(
    id="gradient-cut",
    sees="A leaf that wants a gradient and got none, although its values went on into what backward was called on: the "
    "call at which the graph ends.",
    matters="Nothing raises and nothing trains: the parameter stays as it was made.",
    example="w = torch.ones(3, requires_grad=True)\nb = torch.zeros(3, requires_grad=True)\n"
    "h = torch.tensor(w * 2)\n(h + b).sum().backward()\n",
    instead="h = w * 2\n",
    blind="Values that went through Python numbers or NumPy and came back as new tensors. A cut by detach, .data or "
    "no_grad is told as a note, since programs cut on purpose.",
    find=find,
)
