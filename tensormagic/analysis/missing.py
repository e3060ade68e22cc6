"""Why a leaf that wants a gradient has none."""

from __future__ import annotations

from tensormagic.analysis.custom import forward_frame
from tensormagic.analysis.findings.base import Facts, short
from tensormagic.analysis.flow import Cut
from tensormagic.analysis.reasons import CUT_WORDS, Reason
from tensormagic.recording.model import BackwardFlag, ObjectKind, StateFlag

# From behind these the data may go on as plain numbers, indices or choices, which are not followed.
_TO_NUMBERS = {"values", "detach", "data", "integer", "indices", "rewrap"}
_SETS = ("Tensor.requires_grad_", "Tensor.requires_grad =")


def missing(facts: Facts, object: int) -> Reason:
    """The reason why the `.grad` of a leaf is None at the end."""
    cleared = _cleared(facts, object)
    if cleared is not None:
        return cleared
    runs = facts.recording.backwards
    calls, cuts = facts.flow.forward(object)
    if not calls:
        return _unused(facts, object)
    returned = _returned(facts, object)
    if returned is not None:
        return returned
    if not runs and not _failed_roots(facts):
        return Reason("Its `.grad` is None: no backward ran in this cell.", -1, "unused")
    lost = [cut for cut in cuts if _matters(facts, cut)]
    if lost:
        return Reason(
            f"Its `.grad` is None because the way back is cut: {_words(facts, lost[0])}.", lost[0].line, "cut", True
        )
    adopted = _adopted(facts, object)
    if adopted is not None:
        return adopted
    if all(run.flags & BackwardFlag.RAISED for run in runs):
        return _raised(facts, object, calls[0])
    numbers = [cut for cut in cuts if cut.reason in _TO_NUMBERS]
    if numbers:
        text = f"Its `.grad` is None, most likely because the way back is cut: {_words(facts, numbers[0])}."
        return Reason(text, numbers[0].line, "cut", True)
    line, what = _use(facts, calls[0])
    text = f"Its `.grad` is None: line {line} used it (`{what}`), but the result never reaches the loss."
    return Reason(text, line, "used", True)


def switched(facts: Facts, object: int) -> tuple[int, bool]:
    """The last call that changed requires_grad of a tensor, and what to; (-1, False) where none was seen."""
    for call in reversed(facts.index.calls_from(object)):
        if facts.index.function(call) in _SETS:
            on = "False" not in facts.index.args(call)
            if facts.flow.wants(object, call) != on:
                return call, on
    return -1, False


def _words(facts: Facts, cut: Cut) -> str:
    return CUT_WORDS[cut.reason].format(call=facts.described(cut.call), line=cut.line)


def _unused(facts: Facts, object: int) -> Reason:
    """No call took it while it wanted a gradient: it never was used, or it was asked too late."""
    call, on = switched(facts, object)
    uses = (use for use in facts.flow.uses(object) if use < call and object not in facts.flow.given(use))
    early = [use for use in uses if not facts.flow.wants(object, use)]
    if on and early:
        line = facts.line_of_call(call)
        text = (
            f"Its `.grad` is None: line {facts.line_of_call(early[0])} used it (`{facts.described(early[0])}`) while it did "
            f"not want a gradient yet; line {line} asked for one only after that."
        )
        return Reason(text, line, "asked", True)
    if any("Wrapper" in str(notice.facts.get("why")) for notice in facts.recording.notices):
        return Reason(
            "Its `.grad` is None: the transforms of `torch.func` return gradients and put none into `.grad`, and no other "
            "operation of this cell used it.", -1, "unused",
        )  # fmt: skip
    if not facts.recording.backwards and not _failed_roots(facts):
        return Reason("Its `.grad` is None: no backward ran in this cell.", -1, "unused")
    return Reason("Its `.grad` is None: no operation of this cell used it.", -1, "unused")


def _use(facts: Facts, call: int) -> tuple[int, str]:
    """The line of a use and what it was; of one inside a custom Function's forward, the line that called the Function."""
    step = facts.recording.calls[call].step
    frame = forward_frame(facts.index, step)
    while step >= 0 and frame >= 0 and facts.recording.steps[step].frame != facts.recording.frames[frame].parent:
        step = facts.recording.steps[step].parent
    if frame < 0 or step < 0:
        return facts.line_of_call(call), facts.described(call)
    return facts.line(step), facts.index.string(facts.recording.frames[frame].function).rsplit(".", 2)[-2]


def _returned(facts: Facts, object: int) -> Reason | None:
    """Did torch.autograd.grad go through it? It returns gradients and puts none into .grad."""
    for run in facts.recording.backwards:
        if facts.index.string(run.kind) != "grad" or run.flags & BackwardFlag.RAISED:
            continue
        state = facts.index.state(run.root, run.step)
        if state is not None and state.node >= 0 and -1 - object in facts.flow.reachable(state.node):
            line = facts.line(run.step)
            text = f"Its `.grad` is None: `torch.autograd.grad` on line {line} returns gradients and puts none into `.grad`."
            return Reason(text, line, "returned", True)
    return None


def _adopted(facts: Facts, object: int) -> Reason | None:
    """A leaf that was made around the result (nn.Parameter(...) shares its memory) took the gradient instead."""
    index = facts.index
    for leaf in facts.flow.reached_leaves:
        state, row = index.state(leaf), index.object(leaf)
        if (
            leaf == object
            or row.call >= 0
            or state is None
            or state.storage < 0
            or index.string(row.type) != "Parameter"
        ):
            continue
        computed = [one for one in index.objects_on(state.storage) if one < leaf and index.maker(one) >= 0]
        if any(one in facts.flow.data_reaches(object) for one in computed):
            line = facts.line(row.step)
            text = (
                f"Its `.grad` is None: line {line} made {_called(facts, leaf)} a Parameter, a leaf of its own, out of what was "
                f"computed from it; backward ends there."
            )
            return Reason(text, line, "cut", True)
    return None


def _called(facts: Facts, object: int) -> str:
    return f"`{facts.name(object)}`" if facts.names(object) else "the result"


def _raised(facts: Facts, object: int, use: int) -> Reason:
    """Every backward raised: before it arrived, or called on what does not come from the leaf at all."""
    runs, error = facts.recording.backwards, facts.error
    roots = _failed_roots(facts)
    if roots and not any(root in facts.flow.data_reaches(object) for root in roots):
        line, what = _use(facts, use)
        text = (
            f"Its `.grad` is None: line {line} used it (`{what}`), but what backward was called on was not "
            f"computed from that."
        )
        return Reason(text, line, "used", True)
    line = facts.line(runs[len(runs) - 1].step) if runs else error.line if error is not None else -1
    return Reason(f"Its `.grad` is None because backward on line {line} raised before it arrived.", line, "raised")


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


def not_asked(facts: Facts, object: int, whole_numbers: bool) -> tuple[str, int]:
    """Why a tensor wants no gradient, where nothing cut it: the sentence, and the line that decided it or -1."""
    if whole_numbers:
        return "It wants no gradient: whole numbers and truth values cannot have one.", -1
    call, on = switched(facts, object)
    state = facts.index.state(object)
    leaf = state is not None and state.flags & StateFlag.LEAF
    if call >= 0 and not on and leaf and facts.index.object(object).kind == ObjectKind.TENSOR:
        line = facts.line_of_call(call)
        return f"It wants no gradient: line {line} switched that off.", line
    return "It wants no gradient: nobody asked for one.", -1
