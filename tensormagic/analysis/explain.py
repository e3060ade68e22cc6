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
        return f"{text} Line {moved} made it look at other memory.", moved, lines
    if bound > 0 and bound_step > row.step >= -1 and bound != line:
        lines["bound"] = bound
        others = [other for other in facts.all_names(object) if other != named.text]
        same = f", the object that {listed(others[:2])} is" if others else ""
        return f"{text} The name `{named.text}` got it on line {bound}{same}: no copy was made.", bound, lines
    return text, line, lines


def _made_text(facts: Facts, named: Named, call: int, line: int) -> str:
    index = facts.index
    kind = index.string(index.object(named.base).type)
    if call < 0:
        if line <= 0:
            return f"`{named.text}` was there before this cell."
        return f"`{named.text}` is a {kind}, first seen on line {line}."
    sources = [facts.name(item.object, "") for item in index.inputs(call)]
    sources = list(dict.fromkeys(filter(None, sources)))[:_MANY]
    function = facts.described(call)
    of = f" of {listed(sources)}" if sources else ""
    how = ""
    target = facts.flow.gave(named.base, call)
    if target is not None and index.inputs(call):
        first = index.state_before_call(index.inputs(call)[0].object, call)
        if first is not None and first.storage == target.storage:
            how = ", without a copy: it looks at the same memory"
        elif sources:
            how = ", in memory of its own"
    return f"`{named.text}` was made on line {line} by `{function}`{of}{how}."


def _bound(facts: Facts, named: Named) -> tuple[int, int]:
    """The step and line at which this name came to stand for this object; the last one counts."""
    step = -1
    for binding in facts.index.bindings(named.frame, named.path):
        if binding.object == named.base:
            step = max(step, binding.step)
    return step, facts.index.cell_line(step) if step >= 0 else -1


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
        return "It is a NumPy array: autograd does not know it.", -1
    maker = index.maker(named.base)
    line = facts.line_of_call(maker)
    if state.flags & StateFlag.REQUIRES_GRAD:
        if state.flags & StateFlag.LEAF:
            return "It is a leaf that wants a gradient.", -1
        node = index.string(state.node_name)
        return f"It is no leaf: it was computed from tensors that want a gradient ({node}).", line
    cut = facts.flow.cuts.get(maker) if maker >= 0 else None
    if cut is not None and cut.target == named.base:
        return (
            f"It wants no gradient: {CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)}.",
            cut.line,
        )
    return not_asked(facts, named.base, not index.geometry(state).dtype.startswith(("float", "bfloat", "complex")))


def _memory(facts: Facts, named: Named) -> str:
    state = named.state
    if state is None or state.storage < 0:
        return ""
    others = [
        text for text, other in facts.end.items()
        if other.state is not None and other.state.storage == state.storage and text != named.text
    ]  # fmt: skip
    if not others:
        return f"No other name uses its memory, S{state.storage + 1}."
    more = f" and {len(others) - _MANY} more" if len(others) > _MANY else ""
    return f"It shares S{state.storage + 1} with {listed(others[:_MANY])}{more}."


def _same_object(facts: Facts, named: Named) -> str:
    others = [text for text in facts.names(named.base) if text != named.text]
    return f"{listed(others[:_MANY])} is the same object." if others else ""


def _writes(facts: Facts, named: Named) -> str:
    state = named.state
    if state is None or state.storage < 0:
        return ""
    lines = sorted(
        {facts.index.cell_line(facts.recording.writes[row].step) for row in facts.index.writes_to(state.storage)}
    )
    lines = [line for line in lines if line > 0]
    if not lines:
        return ""
    shown = ", ".join(map(str, lines[:_MANY])) + (", ..." if len(lines) > _MANY else "")
    return f"Its memory was written in place on line{'s' if len(lines) > 1 else ''} {shown}."
