"""Why the gradient of a tensor is what it is: none, zero, or a sum of contributions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tensormagic.analysis.findings.base import Facts, short
from tensormagic.analysis.flow import Cut
from tensormagic.analysis.names import Named
from tensormagic.recording import values
from tensormagic.recording.model import BackwardFlag, Blob, ObjectKind, StateFlag

CUT_WORDS = {
    "detach": "`{call}` on line {line} gave the values without the graph",
    "data": "`.data` on line {line} gave the values without the graph",
    "no_grad": "line {line} had switched gradients off when `{call}` computed it",
    "inference": "`{call}` ran in inference mode (line {line})",
    "values": "`{call}` on line {line} gave plain numbers, which carry no graph",
    "rewrap": "`{call}` on line {line} copied the values and left the graph behind",
    "integer": "`{call}` on line {line} gives whole numbers or truth values, which have no derivative",
    "no_derivative": "`{call}` on line {line} has no derivative here",
    "custom": "`{call}` on line {line} does not pass a gradient on",
}


@dataclass(frozen=True)
class Reason:
    """Why a gradient is as it is. `decides`: its line is what a person has to look at for this name."""

    text: str = ""
    line: int = -1
    role: str = "gradient"
    decides: bool = False


def reason(facts: Facts, named: Named) -> Reason:
    """The reason for the gradient of what a name stands for at the end."""
    state = named.state
    if state is None or facts.index.object(named.base).kind != ObjectKind.TENSOR:
        return Reason()
    grad = facts.end.get(f"{named.text}.grad") if f"{named.text}.grad" in set(facts.end) else None
    if grad is not None:
        return _present(facts, named, grad)
    if not state.flags & StateFlag.REQUIRES_GRAD:
        return _rebound(facts, named)
    if not state.flags & StateFlag.LEAF:
        line = facts.line_of_call(facts.index.maker(named.base))
        return Reason(f"Its `.grad` stays None because it is no leaf: line {line} computed it.", line, "made")
    return _missing(facts, named.base)


def _rebound(facts: Facts, named: Named) -> Reason:
    """A name that stood for a leaf and now stands for a tensor that wants nothing."""
    if not facts.recording.backwards:
        return Reason()
    return Reason("Its `.grad` is None: a tensor that wants no gradient gets none.")


def _missing(facts: Facts, object: int) -> Reason:
    """A leaf that wants a gradient and has none."""
    flow, index = facts.flow, facts.index
    cleared = _cleared(facts, object)
    if cleared is not None:
        return cleared
    runs = facts.recording.backwards
    calls, cuts = flow.forward(object)
    if not calls:
        where = " No backward ran in this cell." if not runs else ""
        return Reason(f"Its `.grad` is None: no operation of this cell used it.{where}", -1, "unused")
    lost = [cut for cut in cuts if _matters(facts, cut)]
    if lost:
        cut = lost[0]
        words = CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)
        return Reason(f"Its `.grad` is None because the way back is cut: {words}.", cut.line, "cut", True)
    if not runs:
        return Reason("Its `.grad` is None: no backward ran in this cell.", -1, "unused")
    if all(run.flags & BackwardFlag.RAISED for run in runs):
        line = index.cell_line(runs[len(runs) - 1].step)
        return Reason(f"Its `.grad` is None because backward on line {line} raised before it arrived.", line, "raised")
    numbers = [cut for cut in cuts if cut.reason in ("values", "detach", "data")]
    if numbers:
        cut = numbers[0]
        words = CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)
        return Reason(f"Its `.grad` is None, most likely because the way back is cut: {words}.", cut.line, "cut", True)
    line = facts.line_of_call(calls[0])
    text = f"Its `.grad` is None: line {line} used it (`{facts.described(calls[0])}`), but the result never reaches the loss."
    return Reason(text, line, "used", True)


def _matters(facts: Facts, cut: Cut) -> bool:
    """Did the data behind the cut go on into what backward was (or was to be) called on? A value that is only printed
    or logged explains no missing gradient, unless nothing else does."""
    if cut.target < 0:
        return False
    reached = facts.flow.data_reaches(cut.target)
    roots = set(facts.flow.roots) | _failed_roots(facts)
    return not roots or bool(reached & roots)


def _failed_roots(facts: Facts) -> set[int]:
    """What a backward that was refused at once was called on."""
    return {
        item.object
        for number in range(len(facts.recording.calls))
        if short(facts.index.function(number)) == "backward"
        for item in facts.index.inputs(number)[:1]
    }


def _cleared(facts: Facts, object: int) -> Reason | None:
    """Was there a gradient that something took away?"""
    index = facts.index
    line = -1
    for binding in facts.recording.bindings:
        if binding.object < 0 and index.path_text(binding.path).endswith(".grad"):
            path = facts.recording.paths[binding.path].parent
            owner = [b for b in index.bindings(binding.frame, path) if b.step <= binding.step]
            if owner and owner[-1].object == object:
                line = index.cell_line(binding.step)
    if line < 0:
        return None
    return Reason(f"Its `.grad` is None because line {line} cleared it.", line, "cleared", True)


def _present(facts: Facts, named: Named, grad: Named) -> Reason:
    """What the gradient that is there is made of, or why it is zero."""
    index = facts.index
    rows = [row for row in facts.recording.accumulations if row.object == named.base]
    lines = [index.cell_line(facts.recording.backwards[row.run].step) for row in rows]
    if not rows:
        return Reason("Its `.grad` was there before this cell or was put there by hand.")
    last = facts.recording.blobs[rows[-1].after] if rows[-1].after >= 0 else None
    if last is not None and _zero(last):
        zero = _first_zero(facts, named.base, rows[-1].run)
        if zero is not None:
            return zero
    shown = ", ".join(map(str, dict.fromkeys(lines)))
    many = f"{len(rows)} backward runs added up" if len(rows) > 1 else "one backward run brought it"
    return Reason(
        f"Its `.grad` comes from line{'s' if len(set(lines)) > 1 else ''} {shown}: {many}.", lines[-1], "backward"
    )


def _zero(blob: Blob) -> bool:
    array = values.decode(blob)
    if array is None:
        return blob.low == blob.high == 0 and not blob.nans and not blob.infs
    return not np.any(array)


def _first_zero(facts: Facts, leaf: int, run: int) -> Reason | None:
    """The operation at which the gradient became zero on its way to a leaf."""
    way = {node for node in facts.flow.node_names if -1 - leaf in facts.flow.reachable(node)}
    received: dict[int, bool] = {}
    for edge in facts.recording.gradients:
        if edge.run != run or edge.blob < 0:
            continue
        zero = _zero(facts.recording.blobs[edge.blob])
        on_way = edge.target == -1 - leaf or edge.target in way
        if zero and on_way and edge.source >= 0 and not received.get(edge.source, False):
            call = facts.flow.call_of_node(edge.source)
            line = facts.flow.line_of_node(edge.source)
            text = f"Its `.grad` is zero: the derivative of `{facts.described(call)}` on line {line} is zero there."
            return Reason(text, line, "zero", True)
        if on_way:
            received[edge.target] = received.get(edge.target, True) and zero
    return None
