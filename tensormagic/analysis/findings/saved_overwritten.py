"""A tensor that backward needs was overwritten after it was saved."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.custom import forward_frame, saving_step
from tensormagic.analysis.findings import overwriting
from tensormagic.analysis.findings.base import ERROR, WARNING, Facts, Finding, Rule, listed
from tensormagic.analysis.regions import canonical, compare
from tensormagic.recording.model import SavedFlag, State, Write, WriteKind

_UNTOLD = (WriteKind.DATA, WriteKind.OUTSIDE, WriteKind.KERNEL)


def find(facts: Facts) -> Iterator[Finding]:
    yield from _raised(facts)
    yield from _silent(facts)


def _raised(facts: Facts) -> Iterator[Finding]:
    """torch's own check raised: the node is the one whose saved tensor cannot be read."""
    for saved in facts.recording.saved:
        if saved.stale != SavedFlag.OVERWRITTEN:
            continue
        call = facts.flow.call_of_node(saved.seq)
        write = _culprit(facts, call, saved.object)
        run = facts.recording.backwards[saved.run]
        if call < 0 or write is None:
            continue
        error = facts.error
        raised = error.line if error is not None else facts.line(run.step)
        yield _finding(facts, call, write, raised, ERROR, saved.seq)
        return  # torch stops at the first; further nodes may hold the same tensor
    yield from _hidden(facts)


def _hidden(facts: Facts) -> Iterator[Finding]:
    """The node that raised stands inside another (a write through a view makes one of two) and cannot be asked: torch's text
    tells the version that was kept, and the record which memory had it and what wrote next."""
    error, recording = facts.error, facts.recording
    told = (
        re.search(r"modified by an inplace operation.* is at version (\d+); expected version (\d+)", error.message)
        if error
        else None
    )
    if error is None or told is None:
        return
    now, kept = int(told[1]), int(told[2])
    found = []
    for storage in {write.storage for write in recording.writes}:
        rows = [
            recording.writes[row]
            for row in facts.index.writes_to(storage)
            if recording.writes[row].kind == WriteKind.CALL
        ]
        first = [write for write in rows if write.before == kept]
        if first and first[0].call >= 0 and any(write.after == now for write in rows):
            found.append((first[0], _keeper(facts, storage, kept, first[0].call)))
    if len(found) == 1 and found[0][1] >= 0:
        write, call = found[0]
        yield _finding(facts, call, write, error.line, ERROR, -1)


def _keeper(facts: Facts, storage: int, version: int, last: int) -> int:
    """The last call up to `last` that computed with memory as it was at a version; -1 for none."""
    for call in range(last, -1, -1):
        for item in facts.index.inputs(call):
            state = facts.index.state_before_call(item.object, call) if item.version == version else None
            if state is None or state.storage != storage:
                continue
            given = [facts.flow.gave(out.object, call) for out in facts.index.outputs(call)]
            if call == last or any(one is not None and one.storage != storage for one in given):
                return call
    return -1


def _culprit(facts: Facts, call: int, object: int) -> Write | None:
    """The first write, after `call`, to memory that the call took in or gave out (or to `object`, where it is known)."""
    if call < 0:
        return None
    index = facts.index
    first_told = None
    known = [_storage(facts, object)] if object >= 0 else []
    for storage in known or _storages(facts, call):
        for row in index.writes_to(storage):
            write = facts.recording.writes[row]
            if write.call > call and write.kind in (WriteKind.CALL, WriteKind.ACCUMULATE):
                if first_told is None or write.call < first_told.call:
                    first_told = write
                break
    return first_told


def _storages(facts: Facts, call: int) -> list[int]:
    index = facts.index
    found = []
    for one in _calls(facts, call):
        for item in index.outputs(one):
            state = facts.flow.gave(item.object, one)
            if state is not None and state.storage >= 0:
                found.append(state.storage)
        for taken in index.inputs(one):
            state = index.state_before_call(taken.object, one)
            if state is not None and state.storage >= 0:
                found.append(state.storage)
    return list(dict.fromkeys(found))


def _calls(facts: Facts, call: int) -> list[int]:
    """The call alone; of one inside a custom Function's forward all that this forward made: its node stands for them."""
    frame = forward_frame(facts.index, facts.recording.calls[call].step)
    if frame < 0:
        return [call]
    steps = facts.recording.steps
    return [
        number for number, one in enumerate(facts.recording.calls) if one.step >= 0 and steps[one.step].frame == frame
    ]


def _kept(facts: Facts, call: int) -> tuple[int, str]:
    """The line that kept the values, and what did so in words."""
    frame = forward_frame(facts.index, facts.recording.calls[call].step)
    step = saving_step(facts.index, frame) if frame >= 0 else -1
    if step < 0:
        return facts.line_of_call(call), f"`{facts.described(call)}`"
    name = facts.index.string(facts.recording.frames[frame].function).rsplit(".", 2)[-2]
    return facts.line(step), f"the forward of `{name}`"


def _silent(facts: Facts) -> Iterator[Finding]:
    """The write was not told to autograd: the gradient is wrong and nothing raised."""
    told: set[tuple[int, int]] = set()
    for saved in facts.recording.saved:
        if saved.stale != SavedFlag.READ or saved.object < 0:
            continue
        run = facts.recording.backwards[saved.run]
        call = facts.flow.call_of_node(saved.seq)
        state = facts.index.state(saved.object, run.step)
        if call < 0 or state is None or state.storage < 0:
            continue
        for row in facts.index.writes_to(state.storage):
            write = facts.recording.writes[row]
            if write.kind not in _UNTOLD or not _after(facts, write, call) or not _before(write, run.step, run.call):
                continue
            if not _overlaps(facts, write, state) or _used_in_training(facts, call, saved.object):
                continue
            if (write.step, write.storage) not in told:
                told.add((write.step, write.storage))
                yield _finding(facts, call, write, -1, WARNING, saved.seq)


def _used_in_training(facts: Facts, call: int, object: int) -> bool:
    """Batch norm in training saves its running statistics beside what it uses: backward does not read them."""
    if not facts.index.function(call).endswith("batch_norm"):
        return False
    return any(facts.recording.writes[row].call == call for row in facts.index.writes_to(_storage(facts, object)))


def _storage(facts: Facts, object: int) -> int:
    state = facts.index.state(object)
    return state.storage if state is not None else -1


def _after(facts: Facts, write: Write, call: int) -> bool:
    """Did the write come after the call? A write without a call is dated by its step."""
    if write.call >= 0:
        return write.call > call
    return write.step > facts.recording.calls[call].step


def _before(write: Write, step: int, call: int) -> bool:
    return write.call < call if write.call >= 0 and call >= 0 else write.step < step


def _overlaps(facts: Facts, write: Write, state: State) -> bool:
    if write.state < 0:
        return True
    forms = []
    for one in (facts.recording.states[write.state], state):
        geometry = facts.index.geometry(one)
        size = geometry.itemsize
        if len(geometry.stride) != len(geometry.shape):
            return False
        forms.append(canonical(one.offset * size, geometry.shape, tuple(s * size for s in geometry.stride), size))
    if forms[0] is None or forms[1] is None:
        return False
    return compare(forms[0], forms[1]).overlap is True


def _finding(facts: Facts, call: int, write: Write, raised: int, severity: str, seq: int) -> Finding:
    index = facts.index
    (saved, keeper), modified = _kept(facts, call), facts.line(write.step)
    objects = [item.object for one in _calls(facts, call) for item in (*index.outputs(one), *index.inputs(one))]
    on = [o for o in objects if (s := index.state(o)) is not None and s.storage == write.storage]
    names = tuple(dict.fromkeys(name for o in (write.object, *on) for name in facts.all_names(o)[:2]))
    if not names:  # written through a piece that has no name: the names of the whole
        names = tuple(name for o in index.objects_on(write.storage) for name in facts.all_names(o)[:1])[:2]
    leaves = tuple(name for node in facts.flow.reachable(seq) if node < 0 for name in facts.all_names(-1 - node)[:1])
    what = listed(names[:1]) or "memory"
    lines = {"saved": saved, "modified": modified}
    begun = overwriting.told(facts, write, what)
    if severity == ERROR:
        lines["raised"] = raised
        text = f"{begun}, but {keeper} on line {saved} had kept those values for backward; that is why line {raised} raised."
    else:
        text = (
            f"{begun} without telling autograd, after {keeper} on line {saved} had kept those values for backward: the "
            f"gradient is computed from the new values and is wrong."
        )
    names = tuple(dict.fromkeys((*names, *leaves)))
    return Finding(RULE.id, severity, modified, names, text, overwriting.fix(facts, write), lines, write.step)


RULE = Rule(
    id="saved-tensor-overwritten",
    sees="A write in place, after an operation had kept that memory for backward and before backward read it.",
    matters="Either backward raises, far from the line at fault, or, where the write was not told to autograd (`.data`, "
    "NumPy, batch norm's running statistics), the gradient is wrong without a word.",
    example="a = torch.ones(3, requires_grad=True)\nb = a.sigmoid()\nb[1] = 2.0\nb.sum().backward()\n",
    instead="b = b.clone()\nb[1] = 2.0\n",
    blind="Writes by other threads, and by kernels that neither tell the version counter nor change a tensor that a "
    "name or a call reached. Which of two operations that kept the same memory torch met first.",
    find=find,
)
