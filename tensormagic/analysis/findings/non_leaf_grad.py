"""The .grad of a tensor that is no leaf was read: it is None, and stays so."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, WARNING, Facts, Finding, Rule
from tensormagic.recording.model import State, StateFlag

_TEXT = "can't optimize a non-leaf Tensor"


def find(facts: Facts) -> Iterator[Finding]:
    index = facts.index
    told: set[int] = set()
    for number in range(len(facts.recording.calls)):
        if index.function(number) != "Tensor.grad" or facts.flow.is_bookkeeping(number):
            continue
        for item in index.inputs(number):
            state = index.state_before_call(item.object, number)
            if _mistaken(state) and item.object not in told and facts.all_names(item.object):
                told.add(item.object)
                yield _finding(facts, item.object, facts.line_of_call(number), WARNING)
    error = facts.error
    if error is not None and _TEXT in error.message:
        for named in facts.end.values():
            if _mistaken(named.state) and named.object not in told and named.object >= 0:
                line = facts.line_of_call(index.maker(named.object))
                if 0 < line <= error.line and facts.name(named.object) in index.line_text(error.step):
                    told.add(named.object)
                    yield _finding(facts, named.object, error.line, ERROR)


def _mistaken(state: State | None) -> bool:
    return bool(
        state is not None
        and state.flags & StateFlag.REQUIRES_GRAD
        and not state.flags & (StateFlag.LEAF | StateFlag.RETAINS_GRAD)
    )


def _finding(facts: Facts, object: int, read: int, severity: str) -> Finding:
    call = facts.index.maker(object)
    made = facts.line_of_call(call)
    name = facts.name(object)
    return Finding(
        RULE.id, severity, made if made > 0 else read, facts.all_names(object)[:3],
        f"`{name}` is no leaf: line {made} computed it (`{facts.described(call)}`), so backward does not keep a gradient in "
        f"it, and line {read} takes it for a leaf.",
        f"Compute first, then `.requires_grad_()`; or `{name}.retain_grad()` to look at the gradient.",
        {"made": made, "read": read}, facts.recording.calls[call].step if call >= 0 else -1,
    )  # fmt: skip


RULE = Rule(
    id="non-leaf-taken-for-leaf",
    sees="The program's own code reads `.grad` of a tensor that was computed and does not retain its gradient, or gives it to "
    "an optimizer.",
    matters="The name holds a result, not the parameter: its gradient is None and nothing trains it.",
    example="a = torch.tensor(5.0, requires_grad=True) * 0.1\n(a * 2).backward()\nseen = a.grad\n",
    instead="a = (torch.tensor(5.0) * 0.1).requires_grad_()\n",
    blind="Reads inside libraries, and `.grad` read in another cell.",
    find=find,
)
