"""The .grad of a tensor that is no leaf was read: it is None, and stays so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, WARNING, Facts, Finding, Rule
from tensormagic.recording.model import State, StateFlag

_ASKS = re.compile(r"\.grad\s+is\s+(not\s+)?None")
_TEXT = "can't optimize a non-leaf Tensor"


def find(facts: Facts) -> Iterator[Finding]:
    index = facts.index
    told: set[int] = set()
    for number in range(len(facts.recording.calls)):
        if index.function(number) != "Tensor.grad" or facts.flow.is_bookkeeping(number):
            continue
        if _ASKS.search(index.line_text(facts.recording.calls[number].step)):
            continue  # the program knows that there may be none
        for item in index.inputs(number):
            state = index.state_before_call(item.object, number)
            if _mistaken(state) and item.object not in told and facts.all_names(item.object):
                told.add(item.object)
                yield _finding(facts, item.object, facts.line_of_call(number), _severity(facts, number))
    error = facts.error
    if error is not None and _TEXT in error.message:
        for named in facts.end.values():
            if _mistaken(named.state) and named.object not in told and named.object >= 0:
                line = facts.line_of_call(index.maker(named.object))
                if 0 < line <= error.line and _says(index.line_text(error.step), facts.name(named.object)):
                    told.add(named.object)
                    yield _finding(facts, named.object, error.line, ERROR)


def _severity(facts: Facts, read: int) -> str:
    """An error where the line that read the None fell over it."""
    error = facts.error
    fell = error is not None and "NoneType" in error.message and facts.line_of_call(read) == error.line
    return ERROR if fell else WARNING


def _says(text: str, name: str) -> bool:
    """Does a line of code speak of a name, or of what holds it?"""
    return re.search(rf"\b{re.escape(re.split(r'[.[]', name, maxsplit=1)[0])}\b", text) is not None


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
    blind="Reads inside libraries, and `.grad` read in another cell. A line that asks whether `.grad` is None is no mistake.",
    find=find,
)
