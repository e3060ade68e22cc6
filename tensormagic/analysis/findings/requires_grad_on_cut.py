"""requires_grad was set on a tensor whose way back was cut, and backward then called on it."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed
from tensormagic.analysis.flow import REWRAP, Cut
from tensormagic.analysis.reasons import CUT_WORDS
from tensormagic.recording.model import StateFlag

_SET = ("Tensor.requires_grad =", "Tensor.requires_grad_")


def find(facts: Facts) -> Iterator[Finding]:
    roots = {run.root for run in facts.recording.backwards}
    for number in range(len(facts.recording.calls)):
        object = _asked_for(facts, number)
        if object < 0 or not facts.flow.data_reaches(object) & roots:
            continue
        cut = _cut_before(facts, number, object)
        if cut is not None and (object in roots or _rewrapped_result(facts, cut)):
            yield _finding(facts, number, object, cut)


def _asked_for(facts: Facts, number: int) -> int:
    """The tensor that the call made a leaf that wants a gradient; -1 for none."""
    function, args = facts.index.function(number), facts.index.args(number)
    if function in _SET and "False" not in args:
        taken = facts.index.inputs(number)
        return taken[0].object if taken and facts.index.maker(taken[0].object) >= 0 else -1
    if function in REWRAP and "requires_grad=True" in args:
        given = facts.index.outputs(number)
        return given[0].object if given else -1
    return -1


def _cut_before(facts: Facts, number: int, object: int) -> Cut | None:
    """What had cut the tensor off: on the way to it, or on the line that made it from numbers of the graph."""
    flow, calls, made = facts.flow, facts.recording.calls, facts.index.maker(object)
    for cut in flow.cuts.values():
        if cut.target >= 0 and cut.call < number and object in flow.data_reaches(cut.target):
            return cut
    if facts.index.function(number) in REWRAP:
        for item in facts.index.inputs(number):  # torch.tensor(loss, requires_grad=True): the call is the cut
            if flow.wants(item.object, number):
                step = calls[number].step
                return Cut(number, "rewrap", facts.line(step), step, item.object, object)
    for cut in flow.cuts.values():
        if cut.reason == "values" and cut.call < made and calls[cut.call].step == calls[made].step:
            return cut
    return None


def _leaves(facts: Facts, cut: Cut) -> dict[int, str]:
    """The parameters that the cut took the way back from."""
    stack = [item.object for item in facts.index.inputs(cut.call)]
    seen = set(stack)
    while stack:
        call = facts.index.maker(stack.pop())
        taken = [item.object for item in facts.index.inputs(call)] if call >= 0 else []
        stack += [one for one in taken if one not in seen]
        seen.update(taken)
    return {leaf: name for leaf, name in facts.parameters().items() if leaf in seen}


def _rewrapped_result(facts: Facts, cut: Cut) -> bool:
    """Was a result put into a new tensor, so that no parameter behind it is trained in this cell?

    A copy that goes on into a loss may be meant: an adversarial input was detached, a start value copied from a leaf.
    """
    source = facts.index.state_before_call(cut.source, cut.call)
    computed = source is not None and not source.flags & StateFlag.LEAF
    leaves = _leaves(facts, cut)
    return (
        cut.reason == "rewrap"
        and computed
        and bool(leaves)
        and not any(leaf in facts.flow.reached_leaves for leaf in leaves)
    )


def _finding(facts: Facts, number: int, object: int, cut: Cut) -> Finding:
    line = facts.line_of_call(number)
    words = CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)
    leaves = [name for leaf, name in _leaves(facts, cut).items() if leaf not in facts.flow.reached_leaves]
    names = facts.names(object)[:1]
    name = f"`{names[0]}`" if names else "a tensor"
    behind = f" {listed(leaves[:3])} got none." if leaves else ""
    return Finding(
        RULE.id, WARNING, cut.line, (*names, *leaves),
        f"Line {line} asks for a gradient of {name}, but the way back is cut: {words}. Backward now ends in {name} "
        f"itself.{behind}",
        f"Remove the cut on line {cut.line}; never set requires_grad on a loss.", {"cut": cut.line, "set": line}, cut.step,
    )  # fmt: skip


RULE = Rule(
    id="requires-grad-on-cut",
    sees="requires_grad set on a computed tensor that lies behind a cut, when backward was then called on what came of it.",
    matters="The error is gone and so is the training: the tensor is a leaf of its own now.",
    example="net = torch.nn.Linear(2, 1)\nloss = net(torch.ones(4, 2)).detach().pow(2).mean()\n"
    "loss.requires_grad = True\nloss.backward()\n",
    instead="loss = net(torch.ones(4, 2)).pow(2).mean()\n",
    blind="Cuts made before this cell, and numbers that were taken out of the graph on another line. A detached copy that is "
    "trained on purpose (an adversarial input) looks the same when backward is called on it directly.",
    find=find,
)
