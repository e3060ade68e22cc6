"""requires_grad was set on a tensor whose way back was cut, and backward then called on it."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed
from tensormagic.analysis.gradient import CUT_WORDS

_UNMEANT = ("rewrap", "values", "integer")


def find(facts: Facts) -> Iterator[Finding]:
    roots = {run.root for run in facts.recording.backwards}
    for number in range(len(facts.recording.calls)):
        function = facts.index.function(number)
        if function not in ("Tensor.requires_grad =", "Tensor.requires_grad_") or "False" in facts.index.args(number):
            continue
        for taken in facts.index.inputs(number)[:1]:
            reached = facts.flow.data_reaches(taken.object)
            if not reached & roots or facts.index.maker(taken.object) < 0:
                continue
            for cut in facts.flow.cuts.values():
                if cut.target < 0 or cut.call >= number or taken.object not in facts.flow.data_reaches(cut.target):
                    continue
                # A detached copy that is trained on purpose (an adversarial input) is cut by detach and goes on into a loss.
                if taken.object in roots or cut.reason in _UNMEANT:
                    yield _finding(facts, number, taken.object, cut)
                    break


def _finding(facts: Facts, number: int, object: int, cut: object) -> Finding:
    from tensormagic.analysis.flow import Cut

    assert isinstance(cut, Cut)
    line = facts.line_of_call(number)
    words = CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)
    leaves = [
        name
        for leaf, name in facts.parameters().items()
        if any(c.call == cut.call for c in facts.flow.forward(leaf)[1])
    ]
    name = facts.name(object)
    behind = f" {listed(leaves[:3])} got none." if leaves else ""
    return Finding(
        RULE.id, WARNING, cut.line, tuple(dict.fromkeys((name, *leaves))),
        f"Line {line} asks for a gradient of `{name}`, but the way back is cut: {words}. Backward now ends in `{name}` "
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
    blind="Cuts made before this cell. A detached copy that is trained on purpose (an adversarial input) looks the same "
    "when backward is called on it directly.",
    find=find,
)
