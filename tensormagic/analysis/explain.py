"""Why the tensor of a name is as it is: what made it, its place on the graph, with whom it shares memory, what wrote to
it, and the reason for its gradient, each in a sentence with the program's own lines.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from tensormagic.analysis import gradient
from tensormagic.analysis.findings.base import Facts, listed
from tensormagic.analysis.index import Index
from tensormagic.analysis.missing import not_asked
from tensormagic.analysis.names import Named
from tensormagic.analysis.reasons import CUT_WORDS
from tensormagic.analysis.sharing import Sharing, relation_of
from tensormagic.analysis.writes import reaches
from tensormagic.recording.model import ObjectKind, StateFlag

_MANY = 6  # names and lines that one sentence lists


@dataclass(frozen=True)
class Explanation:
    """The answer for one name.

    Attributes:
        name: as asked.
        line: the line that decided it, -1 where it was there before the cell.
        text: the whole answer, sentences.
        made, graph, memory, writes, gradient: its parts; "" where there is nothing to say.
        lines: role -> line: "made", "bound", "cut", "cleared", ...
    """

    name: str
    line: int
    text: str
    made: str = ""
    graph: str = ""
    memory: str = ""
    writes: str = ""
    gradient: str = ""
    lines: dict[str, int] = field(default_factory=dict)


def explain(index: Index, name: str) -> Explanation:
    """Explain what a name stands for at the end of the cell.

    Args:
        index: of the recording.
        name: as the user writes it.

    Raises:
        UnknownName: nothing has that name at the end.
    """
    facts = Facts(index)
    named = facts.end[name]
    made, line, lines = _made(facts, named)
    if named.state is None:
        memory = _same_object(facts, named)
        if facts.index.object(named.base).kind == ObjectKind.ARRAY:
            memory = f"It shares no memory with a tensor. {memory}".strip()
        return Explanation(name, line, " ".join(filter(None, (made, memory))), made, memory=memory, lines=lines)
    graph, _why_line = _graph(facts, named)
    memory, writes = _memory(facts, named), _writes(facts, named)
    reason = gradient.reason(facts, named)
    if reason.line > 0:
        lines[reason.role] = reason.line
    if reason.decides and reason.line > 0:
        line = reason.line
    text = " ".join(filter(None, (made, graph, reason.text, memory, writes)))
    return Explanation(name, line, text, made, graph, memory, writes, reason.text, lines)


def _made(facts: Facts, named: Named) -> tuple[str, int, dict[str, int]]:
    """What made it, the line of that, and the line that gave it this name where that is another."""
    index = facts.index
    object = named.base
    call = index.maker(object)
    row = index.object(object)
    line = facts.line_of_call(call) if call >= 0 else index.cell_line(row.step)
    bound_step, bound = _bound(facts, named)
    lines = {"made": line} if line > 0 else {}
    text = _made_text(facts, named, call, line)
    moved = _moved(facts, named)
    if moved > 0:
        lines["moved"] = moved
        return text if moved == line else f"{text} Line {moved} made it look at other memory.", moved, lines
    if bound > 0 and bound_step > row.step >= -1 and bound != line:
        lines["bound"] = bound
        alone = facts.names(object) == (named.text,)
        if alone and _ran_inside(facts, row.step, bound_step):  # a function that the line called made it, for this name
            return f"{text} The name `{named.text}` got it on line {bound}.", line, lines
        now = [other for other in facts.names(object) if other != named.text]
        before = [other for other in facts.all_names(object) if other != named.text]
        same = f", the same object as {listed(now[:2])}" if now else ""
        if before and not now:  # the other names stand for something else by now, or were a function's
            same = f", the object that was `{before[0]}`"
        return f"{text} The name `{named.text}` got it on line {bound}{same}: no copy was made.", bound, lines
    return text, line, lines


def _ran_inside(facts: Facts, step: int, outer: int) -> bool:
    """Did a step run while `outer` did, in a function that its line called?"""
    steps = facts.recording.steps
    while 0 <= step < outer:
        step = steps[step].parent
    return step == outer >= 0


def _made_text(facts: Facts, named: Named, call: int, line: int) -> str:
    index = facts.index
    if call < 0:
        if line <= 0:
            return f"`{named.text}` was there before this cell."
        row = index.object(named.base)
        kind = "NumPy array" if row.kind == ObjectKind.ARRAY else index.string(row.type)
        article = "an" if kind[0] in "AEIOU" else "a"
        return f"`{named.text}` is {article} {kind}, first seen on line {line}{_on_memory_of(facts, named)}."
    sources = [_name_then(facts, item.object, call) for item in index.inputs(call)]
    sources = list(dict.fromkeys(filter(None, sources)))[:_MANY]
    function = facts.described(call)
    of = f" of {listed(sources)}" if sources else ""
    how = ""
    target = facts.flow.gave(named.base, call)
    if target is not None and index.inputs(call):
        first = index.state_before_call(index.inputs(call)[0].object, call)
        if first is not None and first.storage == target.storage:
            how = (
                ", without a copy: it looks at the same memory"
                if sources
                else ", without a copy of what it was made from"
            )
        elif sources:
            how = ", in memory of its own"
    return f"`{named.text}` was made on line {line} by `{function}`{of}{how}."


def _name_then(facts: Facts, object: int, call: int) -> str:
    """The shortest name that an object had when a call took it, "" for none: names it was given later say nothing."""
    index, found = facts.index, []
    for row in index.bindings_of_object.get(object, ()):
        binding = facts.recording.bindings[row]
        if index.happened_before_call(binding.step, -1, call):
            found.append(index.path_text(binding.path))
    there = [text for text in found if text in facts.names(object)]  # one that it has to this day says more
    return min(there or found, key=len, default="")


def _on_memory_of(facts: Facts, named: Named) -> str:
    """Of an object that no call is known to have made: whose memory it was put on (nn.Parameter(t), t.numpy())."""
    rows = facts.index.state_rows(named.base)
    if not rows:
        return ""
    storage = facts.recording.states[rows[0]].storage
    first = facts.index.object(named.base).step
    for object in facts.index.objects_on(storage) if storage >= 0 else ():
        there = facts.index.state(object, first) if object < named.base else None
        if there is not None and there.storage == storage and facts.index.object(object).step < first:
            if facts.names(object):
                return f", without a copy: it looks at the memory of `{facts.name(object)}`"
    return ""


def _bound(facts: Facts, named: Named) -> tuple[int, int]:
    """The step and line at which this name came to stand for this object; the last one counts.

    Of a name in something that a function filled (`net.mask`, when the class's `__init__` said `self.mask = mask`) it is
    the line in that function.
    """
    index, paths = facts.index, facts.recording.paths
    step = -1
    for binding in index.bindings(named.frame, named.path):
        if binding.object == named.base:
            step = max(step, binding.step)
    place = paths[named.path]
    if step >= 0 and place.parent >= 0:
        holder = _stood_for(index, named.frame, place.parent, step)
        for row in index.bindings_of_object.get(named.base, ()):
            other = facts.recording.bindings[row]
            where = paths[other.path]
            if where[1:] != place[1:] or where.parent < 0 or not _ran_inside(facts, other.step, step):
                continue
            if holder >= 0 and _stood_for(index, other.frame, where.parent, other.step) == holder:
                step = other.step
    return step, index.cell_line(step) if step >= 0 else -1


def _stood_for(index: Index, frame: int, path: int, step: int) -> int:
    """The object that a path stood for after a step, -1 for none."""
    found = -1
    for binding in index.bindings(frame, path):
        if binding.step <= step:
            found = binding.object
    return found


def _moved(facts: Facts, named: Named) -> int:
    """The line since which the same tensor looks at another storage (set_, .data =), -1 where it never moved."""
    rows = facts.index.state_rows(named.base)
    line = -1
    for before, after in itertools.pairwise(rows):
        old, new = facts.recording.states[before], facts.recording.states[after]
        if old.storage != new.storage and old.storage >= 0:
            line = facts.index.cell_line(new.step)
    return line


def _graph(facts: Facts, named: Named) -> tuple[str, int]:
    """Leaf or not, wanting a gradient or not, and why."""
    state = named.state
    assert state is not None
    index = facts.index
    if index.object(named.base).kind == ObjectKind.ARRAY:
        return "Autograd does not know it.", -1
    maker = index.maker(named.base)
    line = facts.line_of_call(maker)
    if state.flags & StateFlag.REQUIRES_GRAD:
        if state.flags & StateFlag.LEAF:
            return "It is a leaf that wants a gradient.", -1
        node = index.string(state.node_name)
        return f"It is no leaf: it was computed from tensors that want a gradient{f' ({node})' if node else ''}.", line
    cut = facts.flow.cuts.get(maker) if maker >= 0 else None
    if cut is not None and cut.target == named.base:
        return (
            f"It wants no gradient: {CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)}.",
            cut.line,
        )
    return not_asked(facts, named.base, not index.geometry(state).dtype.startswith(("float", "bfloat", "complex")))


def _memory(facts: Facts, named: Named) -> str:
    """Which names have bytes in common with it, and which only lie on the same storage."""
    state = named.state
    if state is None or state.storage < 0:
        return ""
    shared, apart = [], []
    for text, other in facts.end.items():
        if other.state is None or text == named.text:
            continue
        relation = relation_of(facts.index, named, other, facts.end.step).sharing
        if relation is Sharing.SAME_STORAGE:
            apart.append(text)
        elif relation is not Sharing.SEPARATE:
            shared.append(text)
    number = f"S{state.storage + 1}"
    if not shared and not apart:
        return f"No other name uses its memory, {number}."
    told = [f"It shares {number} with {_some(shared)}."] if shared else []
    if apart:
        lie = "lies" if len(apart) == 1 else "lie"
        told.append(f"{_some(apart)} {lie} on the same storage ({number}), without a byte in common.")
    return " ".join(told)


def _some(names: list[str]) -> str:
    more = len(names) - _MANY
    return ", ".join(f"`{name}`" for name in names[:_MANY]) + f" and {more} more" if more > 0 else listed(names)


def _same_object(facts: Facts, named: Named) -> str:
    others = [text for text in facts.names(named.base) if text != named.text]
    if not others:
        return ""
    return (
        f"{listed(others[:_MANY])} is the same object." if len(others) == 1 else f"{_some(others)} are the same object."
    )


def _writes(facts: Facts, named: Named) -> str:
    state = named.state
    if state is None or state.storage < 0:
        return ""
    found: set[int] = set()
    for row in facts.index.writes_to(state.storage):
        write = facts.recording.writes[row]
        line = facts.index.cell_line(write.step)
        if line > 0 and line not in found and reaches(facts.index, write, named):  # another part of it is another's
            found.add(line)
    lines = sorted(found)
    if not lines:
        return ""
    shown = ", ".join(map(str, lines[:_MANY])) + (", ..." if len(lines) > _MANY else "")
    return f"Its memory was written in place on line{'s' if len(lines) > 1 else ''} {shown}."
