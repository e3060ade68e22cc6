"""Why the gradient of a tensor is what it is: none, zero, or a sum of contributions."""

from __future__ import annotations

import numpy as np

from tensormagic.analysis.findings.base import Facts, listed
from tensormagic.analysis.missing import missing, switched
from tensormagic.analysis.names import Named
from tensormagic.analysis.reasons import Reason
from tensormagic.recording import values
from tensormagic.recording.model import Accumulation, BackwardFlag, Blob, CallFlag, ObjectKind, StateFlag, WriteKind

# Their slope is zero nowhere, but for a factor that is itself zero.
_NEVER_FLAT = {
    "add",
    "sub",
    "mul",
    "div",
    "neg",
    "sum",
    "mean",
    "matmul",
    "linear",
    "view",
    "reshape",
    "exp",
    "sigmoid",
    "tanh",
}


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
    return missing(facts, named.base)


def _rebound(facts: Facts, named: Named) -> Reason:
    """A tensor that wants no gradient: it was switched off, or the name stands for a computed one now."""
    call, on = switched(facts, named.base)
    if call >= 0 and not on:
        line = facts.line_of_call(call)
        return Reason(f"Its `.grad` is None: line {line} switched requires_grad off.", line, "switched off", True)
    state, maker = named.state, facts.index.maker(named.base)
    if state is not None and state.flags & StateFlag.INFERENCE and maker >= 0:
        line = facts.flow.switch_around(facts.recording.calls[maker].step, ("inference_mode",))
        if line > 0:
            return Reason(
                f"It was made in the inference mode of line {line}: autograd has no part in it.", line, "mode", True
            )
    if not facts.recording.backwards:
        return Reason()
    return Reason("Its `.grad` is None: a tensor that wants no gradient gets none.")


def _present(facts: Facts, named: Named, grad: Named) -> Reason:
    """What the gradient that is there is made of, or why it is zero."""
    index = facts.index
    rows = _since_cleared([row for row in facts.recording.accumulations if row.object == named.base])
    if not rows:
        return _put_there(facts, named, grad)
    after = _written_after(facts, named, grad, rows[-1])
    if after is not None:
        return after
    lines = [index.cell_line(facts.recording.backwards[row.run].step) for row in rows]
    last = facts.recording.blobs[rows[-1].after] if rows[-1].after >= 0 else None
    if last is not None and _zero(last):
        zero = _hooked(facts, named.base, rows[-1]) or _first_zero(facts, named.base, rows[-1].run)
        if zero is not None:
            return zero
    many = f"{len(rows)} backward runs added up" if len(rows) > 1 else "one backward run brought it"
    light = [number for number, run in enumerate(facts.recording.backwards) if run.flags & BackwardFlag.LIGHT]
    if light and light[-1] > rows[-1].run:
        line = facts.line(facts.recording.backwards[light[-1]].step)
        return Reason(f"Its `.grad` comes from line {line}, whose later runs left a light record.", line, "backward")
    if any(rows[0].run < number < rows[-1].run for number in light):
        line = lines[-1]
        text = f"Its `.grad` comes from line {line}: the last backward added to what earlier runs had brought, which left a light record."
        return Reason(text, line, "backward")
    shown = ", ".join(map(str, dict.fromkeys(lines)))
    return Reason(
        f"Its `.grad` comes from line{'s' if len(set(lines)) > 1 else ''} {shown}: {many}.", lines[-1], "backward"
    )


def _since_cleared(rows: list[Accumulation]) -> list[Accumulation]:
    """The runs that are in the gradient as it is: from the last one that found none there."""
    fresh = [place for place, row in enumerate(rows) if not row.in_place]
    return rows[fresh[-1] :] if fresh else rows


def _written_after(facts: Facts, named: Named, grad: Named, last: Accumulation) -> Reason | None:
    """The program wrote into the gradient since the last run: it was cleared to zero, clipped, scaled."""
    run = facts.recording.backwards[last.run]
    rows = facts.index.writes_to(grad.state.storage) if grad.state is not None and grad.state.storage >= 0 else []
    written = [
        write for row in rows
        if (write := facts.recording.writes[row]).kind != WriteKind.ACCUMULATE and write.step >= run.step and write.call > run.call
        and not facts.recording.calls[write.call].flags & CallFlag.IN_BACKWARD
    ]  # fmt: skip
    if not written:
        return None
    line, op = facts.line(written[-1].step), facts.described(written[-1].call)
    if "zero" in op:
        return Reason(f"Its `.grad` is zero: line {line} (`{op}`) cleared it.", line, "cleared", True)
    brought = facts.line(run.step)
    text = f"Its `.grad` comes from line {brought}, and line {line} (`{op}`) changed it in place after that."
    return Reason(text, line, "written", True)


def _put_there(facts: Facts, named: Named, grad: Named) -> Reason:
    """A gradient that no run put into a leaf."""
    index = facts.index
    state, line = named.state, facts.line(index.object(grad.base).step)
    if state is not None and state.flags & StateFlag.RETAINS_GRAD and facts.recording.backwards:
        asked = [call for call in index.calls_from(named.base) if index.function(call) == "Tensor.retain_grad"]
        by = f" (line {facts.line_of_call(asked[-1])})" if asked else ""
        return Reason(
            f"Its `.grad` was kept, as `retain_grad()`{by} asks, by the backward on line {line}.", line, "backward"
        )
    return Reason("Its `.grad` was there before this cell or was put there by hand.")


def _hooks(facts: Facts, object: int, before: int) -> int:
    """The line that put a hook on a tensor before a call, -1 for none."""
    set_by = [
        call for call in facts.index.calls_from(object)
        if facts.index.function(call) == "Tensor.register_hook" and call < before
    ]  # fmt: skip
    return facts.line_of_call(set_by[-1]) if set_by else -1


def _hooked(facts: Facts, leaf: int, row: Accumulation) -> Reason | None:
    """Something other than zero was sent into the leaf and zero arrived: a hook on the leaf made it so."""
    run = facts.recording.backwards[row.run]
    line = _hooks(facts, leaf, run.call)
    if line < 0 or row.added < 0 or _zero(facts.recording.blobs[row.added]):
        return None
    return Reason(f"Its `.grad` is zero: the hook that line {line} put on it gave zeros.", line, "hook", True)


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
            hook, on = _hooked_result(facts, edge.source, run)
            if hook > 0 and facts.described(call).strip("_") in _NEVER_FLAT:
                text = f"Its `.grad` is zero, most likely because the hook that line {hook} put on {on} gave zeros."
                return Reason(text, hook, "hook", True)
            text = f"Its `.grad` is zero: the derivative of `{facts.described(call)}` on line {line} is zero there"
            text += f", or the hook that line {hook} put on {on} gave zeros." if hook > 0 else "."
            return Reason(text, line, "zero", True)
        if on_way:
            received[edge.target] = received.get(edge.target, True) and zero
    return None


def _hooked_result(facts: Facts, node: int, run: int) -> tuple[int, str]:
    """The line that put a hook on what the node's call gave, -1 for none, and its name.

    What the hook was sent is known, what it made of that is not.
    """
    for object in {state.object for state in facts.recording.states if state.node == node}:
        line = _hooks(facts, object, facts.recording.backwards[run].call)
        if line > 0:
            return line, listed(facts.names(object)[:1]) or "a result"
    return -1, ""
