"""Backward was called on something that has no graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule, listed, short
from tensormagic.analysis.flow import VALUES_OUT, Cut
from tensormagic.analysis.reasons import CUT_WORDS

_TEXT = "does not require grad and does not have a grad_fn"
_NUMBER = re.compile(r"^'(float|int|bool|list|numpy\.\w+)' object has no attribute 'backward'")


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is not None and _NUMBER.search(error.message):
        yield from _number(facts)
    if error is None or _TEXT not in error.message:
        return
    root = _root(facts)
    if root < 0:
        return
    name = f"`{facts.name(root)}`" if facts.names(root) else "What backward was called on"
    why = (
        _cut(facts, root)
        or _numbers(facts, root)
        or _gradient(facts, root)
        or _frozen(facts, root)
        or _never(facts, root)
    )
    text = f"{name} has no graph, so line {error.line} raised: {why.text}."
    line = why.line if why.line > 0 else error.line
    lines = {why.role: why.line, "raised": error.line} if why.line > 0 else {"raised": error.line}
    names = tuple(dict.fromkeys((*facts.names(root)[:1], *why.names)))
    yield Finding(RULE.id, ERROR, line, names, text, why.fix, lines, why.step)


def _number(facts: Facts) -> Iterator[Finding]:
    """backward was called on a plain number that came out of a graph: on the last line that gave the name one."""
    error = facts.error
    assert error is not None
    name = re.search(r"([^\W\d]\w*)\.backward\(", facts.index.line_text(error.step))
    if name is None:
        return
    sets = re.compile(rf"\s*{name[1]}\s*[-+*/]?=(?!=)")
    taken = [
        cut for cut in facts.flow.cuts.values()
        if cut.reason == "values" and cut.step < error.step and sets.match(facts.index.line_text(cut.step))
    ]  # fmt: skip
    if not taken:
        return
    cut = max(taken, key=lambda cut: cut.call)
    call = facts.described(cut.call)
    leaves = [name for leaf, name in facts.leaves().items() if cut in facts.flow.forward(leaf)[1]]
    yield Finding(
        RULE.id, ERROR, cut.line, (*facts.names(cut.source)[:1], *leaves),
        f"`{name[1]}` is a plain number, so line {error.line} raised: `{call}` on line {cut.line} took it out of the graph.",
        f"Call backward on the tensor, and take `.{call.strip('_')}()` only for printing.",
        {"cut": cut.line, "raised": error.line}, cut.step,
    )  # fmt: skip


class _Why(NamedTuple):
    role: str
    line: int
    names: tuple[str, ...]
    text: str
    fix: str
    step: int


def _root(facts: Facts) -> int:
    """What the backward that raised was called on: torch says which of several."""
    call = facts.raised_call
    if facts.error is None or call < 0 or short(facts.index.function(call)) not in ("backward", "grad"):
        return -1
    told = re.search(r"element (\d+) of tensors", facts.error.message)
    taken = facts.index.inputs(call)
    place = int(told.group(1)) if told is not None else 0
    return taken[place].object if place < len(taken) else -1


def _cut(facts: Facts, root: int) -> _Why | None:
    """A call between the leaves and the root took the values and left the graph behind."""
    found = _cuts(facts, root)
    if found is None:
        return None
    cut, leaves = found
    text = CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)
    if leaves:
        text += f", and {listed(leaves[:3])} {'is' if len(leaves) == 1 else 'are'} cut off"
    fix = f"Compute it with the graph: change line {cut.line}."
    if cut.reason == "checkpoint":
        fix = "`use_reentrant=False`, which also works where only the parameters want a gradient."
    return _Why("cut", cut.line, leaves, text, fix, cut.step)


def _numbers(facts: Facts, root: int) -> _Why | None:
    """A tensor that the root was computed from was made from plain numbers, on the line that took them out of a graph.

    Numbers that were taken out on an earlier line may have gone anywhere: nothing is said then.
    """
    calls = facts.recording.calls
    taken = {calls[cut.call].step: cut for cut in facts.flow.cuts.values() if cut.reason == "values"}
    for object in _origins(facts, root):
        call = facts.index.maker(object)
        cut = taken.get(calls[call].step) if call >= 0 else None
        if cut is not None and cut.call < call:
            text = CUT_WORDS["values"].format(call=facts.described(cut.call), line=cut.line)
            fix = f"Stay with tensors on line {cut.line}: no numbers on the way to the loss."
            return _Why("cut", cut.line, facts.names(cut.source)[:1], text, fix, cut.step)
    return None


def _gradient(facts: Facts, root: int) -> _Why | None:
    """It was computed from a gradient, and the run that brought that kept no graph of it."""
    brought = {row.grad: row.run for row in facts.recording.accumulations}
    for object in _way(facts, root):
        call = facts.index.maker(object)
        run = brought.get(object, -1)
        if run < 0 and (call < 0 or short(facts.index.function(call)) != "grad"):
            continue
        step = facts.recording.backwards[run].step if run >= 0 else facts.recording.calls[call].step
        line, names = facts.line(step), facts.names(object)[:1]
        what = f"`{names[0]}`" if names and object != root else "it"
        asked = "backward" if run >= 0 else "torch.autograd.grad"
        text = f"{what} is a gradient, and `{asked}` on line {line} kept no graph of how it was computed"
        return _Why("gradient", line, names, text, f"`create_graph=True` on line {line}.", step)
    return None


def _way(facts: Facts, root: int) -> list[int]:
    """The root and everything that it was computed from."""
    seen, stack = [root], [root]
    while stack:
        call = facts.index.maker(stack.pop())
        for item in facts.index.inputs(call) if call >= 0 else ():
            if item.object not in seen:
                seen.append(item.object)
                stack.append(item.object)
    return seen


def _frozen(facts: Facts, root: int) -> _Why | None:
    """Tensors that the root was computed from had their requires_grad switched off in this cell."""
    index = facts.index
    origins = _origins(facts, root)
    off: dict[int, list[int]] = {}
    for object in origins:
        switched = [
            call for call in index.calls_from(object)
            if index.function(call) in ("Tensor.requires_grad_", "Tensor.requires_grad =") and call < facts.raised_call
        ]  # fmt: skip
        if switched and "False" in index.args(switched[-1]):
            off.setdefault(facts.line_of_call(switched[-1]), []).append(object)
    if not off:
        return None
    line = max(off)
    names = tuple(name for object in off[line] for name in facts.names(object)[:1])
    step = index.recording.calls[[c for c in index.calls_from(off[line][0]) if facts.line_of_call(c) == line][-1]].step
    what = listed(names[:3]) or "what it is computed from"
    text = f"line {line} switched requires_grad off for {what}, and nothing else in it wants a gradient"
    return _Why("switched off", line, names, text, "Leave it on for what is to be trained.", step)


def _never(facts: Facts, root: int) -> _Why:
    """Nothing was cut that was seen: nobody asked for a gradient."""
    call = facts.index.maker(root)
    origins = [name for object in _origins(facts, root) if object != root for name in facts.names(object)[:1]]
    text = "no tensor that it was computed from wants a gradient" + (
        f" (it comes from {listed(origins[:3])})" if origins else ""
    )
    fix = "Ask for one where the parameters are made: `requires_grad=True`."
    left = _left_out(facts, root)
    if left:
        text += f"; {listed(left[:2])}, which {'has' if len(left) == 1 else 'have'} a graph, did not go into it"
        fix = f"Compute it from {listed(left[:2])}."
    elif any(facts.index.function(number) in VALUES_OUT for number in range(max(call, 0))):
        text += "; what went through plain numbers or NumPy has left its graph behind"
        fix += " Stay with tensors on the way to the loss."
    step = facts.recording.calls[call].step if call >= 0 else -1
    return _Why("made", facts.line_of_call(call), tuple(origins), text, fix, step)


def _left_out(facts: Facts, root: int) -> list[str]:
    """Names of computed tensors that hang on a graph and that no call used."""
    return [
        text for text, named in facts.end.items()
        if named.state is not None and named.state.node >= 0 and named.object >= 0 and not facts.flow.uses(named.object)
        and facts.name(named.object) == text and named.object != root
    ]  # fmt: skip


def _origins(facts: Facts, root: int) -> list[int]:
    """What the root was computed from: the tensors on the way back that no call computed from others, oldest first."""
    found, seen, stack = [], {root}, [root]
    while stack:
        object = stack.pop()
        call = facts.index.maker(object)
        taken = [item.object for item in facts.index.inputs(call) if item.object != object] if call >= 0 else []
        if not taken:
            found.append(object)
        stack += [one for one in taken if one not in seen]
        seen.update(taken)
    return sorted(found)


def _cuts(facts: Facts, root: int) -> tuple[Cut, tuple[str, ...]] | None:
    """The last cut on the way to the root, and the leaves behind it."""
    behind: dict[int, list[str]] = {}
    for leaf in facts.leaves():
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
    sees="The error that backward was called on a tensor without a graph: the call or the mode that cut it, what switched "
    "requires_grad off, or that nobody asked for a gradient.",
    matters="The error names backward's line; setting requires_grad on the loss silences it and trains nothing.",
    example="w = torch.ones(2, requires_grad=True)\nloss = (w * 2).sum().detach()\nloss.backward()\n",
    instead="loss = (w * 2).sum()\n",
    blind="Cuts made before this cell. Numbers that were taken out of a graph on one line and made a tensor on another: the "
    "finding then says what the tensor comes from.",
    find=find,
)
