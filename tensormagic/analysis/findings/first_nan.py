"""Where the first NaN was born, forward or backward."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, is_unwritten, light_before, listed
from tensormagic.analysis.findings.held import holds
from tensormagic.recording.model import CallFlag, StateFlag


def find(facts: Facts) -> Iterator[Finding]:
    yield from _forward(facts)
    yield from _backward(facts)


def _bad(facts: Facts, object: int, before: int) -> bool:
    """Did the newest call before `before` that gave this object give it with a NaN?"""
    given = [call for call in facts.index.calls_giving(object) if call < before]
    return bool(given) and bool(facts.recording.calls[given[-1]].flags & CallFlag.NAN_OUT)


def _written(facts: Facts, number: int, objects: list[int]) -> Iterator[Finding]:
    """A leaf holds it already, since a round that was not looked at: what wrote into the leaf last put it there."""
    for object in objects:
        state = facts.index.state_before_call(object, number)
        rows = facts.index.writes_to(state.storage) if state is not None and state.flags & StateFlag.LEAF else []
        writes = [facts.recording.writes[row] for row in rows if facts.recording.writes[row].call < number]
        names = facts.names(object)[:1]
        if not writes or facts.recording.steps[writes[-1].step].detail or not names:
            continue
        line = facts.line(writes[-1].step)
        yield Finding(
            RULE.id, WARNING, line, names,
            f"`{names[0]}` holds a NaN before line {facts.line_of_call(number)} computes with it: line {line} wrote it there, in a round "
            f"of a loop that left a light record.",
            "Look at the rounds before it: an infinite loss or gradient, a learning rate that is too large, a slope that is infinite.",
            {"written": line, "used": facts.line_of_call(number)}, writes[-1].step, "backward", facts.described(writes[-1].call),
        )  # fmt: skip
        return


def _forward(facts: Facts) -> Iterator[Finding]:
    for number, call in enumerate(facts.recording.calls):
        if not call.flags & CallFlag.NAN_OUT or call.flags & CallFlag.IN_BACKWARD:
            continue
        function = facts.index.function(number)
        if is_unwritten(function):
            continue
        if not facts.recording.steps[call.step].detail:
            yield _late(facts, number)
            return
        if facts.flow.is_bookkeeping(number) or not facts.index.inputs(number) or function == "Tensor.grad":
            return  # made as NaN on purpose (torch.tensor(nan), full), or by an optimizer from a gradient told below
        if any(_bad(facts, item.object, number) for item in facts.index.inputs(number)):
            return  # a propagator whose producer was not looked at
        unseen = light_before(facts, call.step)
        held = {item.object: holds(facts, item.object, number, CallFlag.NAN_OUT) for item in facts.index.inputs(number)}
        if any(held.values()):
            yield from _written(facts, number, [object for object, bad in held.items() if bad])
            return
        if unseen and None in held.values():
            return  # what it was given is not known: it may be a propagator
        line = facts.line_of_call(number)
        outputs = [item.object for item in facts.index.outputs(number)]
        names = tuple(name for o in outputs for name in facts.all_names(o)[:1])
        sources = tuple(
            dict.fromkeys(name for i in facts.index.inputs(number) for name in facts.all_names(i.object)[:1])
        )
        op = facts.described(number)
        text = f"{'A' if unseen else 'The first'} NaN is born on line {line}: `{op}`"
        text += f" of {listed(sources)} gives it" if sources else " gives it"
        text += f"{_infinity(facts, number)}."
        if unseen:
            text += " Before it were rounds of a loop whose results were not looked at one by one."
        yield Finding(
            RULE.id,
            WARNING,
            line,
            names or sources,
            text,
            _fix(facts, number, op),
            {"born": line},
            call.step,
            "forward",
            op,
        )
        return


def _infinity(facts: Facts, number: int) -> str:
    """Where an infinity that the call took in came from; else that what it took in held no NaN."""
    for item in facts.index.inputs(number):
        given = [call for call in facts.index.calls_giving(item.object) if call < number]
        if given and facts.recording.calls[given[-1]].flags & CallFlag.INF_OUT:
            return f" out of an infinity, which `{facts.described(given[-1])}` on line {facts.line_of_call(given[-1])} gave"
    return ", and what it was given holds none"


def _fix(facts: Facts, number: int, op: str) -> str:
    """What to write instead, by what gave it."""
    if op in _COUNTED:
        return (
            "See that there are enough elements: one for a mean (or one target that is not ignored), two for a spread."
        )
    if "infinity" in _infinity(facts, number):
        return "Keep the infinity away: `softmax`, `log_softmax` or `logsumexp` instead of `exp` by hand, `xlogy` instead of `x * log(x)`."
    return _FIX


def _late(facts: Facts, number: int) -> Finding:
    """A light call: found from the loss that held the NaN, by what was known of the values on the way."""
    step = facts.recording.calls[number].step
    line, op = facts.line(step), facts.described(number)
    text = f"The first NaN is most likely born on line {line}, the {_times(facts, step)} time that it runs: `{op}` gives it."
    return Finding(
        RULE.id, WARNING, line, tuple(facts.spoken_of(step)), text, _FIX, {"born": line}, step, "forward", op
    )


def _times(facts: Facts, step: int) -> str:
    """How often the line of a step had run by then, as an ordinal."""
    line, frame = facts.index.line_of(step), facts.index.frame_of(step)
    rows = facts.recording.steps
    files = [one.file for one in facts.recording.frames]
    count = sum(rows[one].line == line and files[rows[one].frame] == frame.file for one in range(step + 1))
    ending = "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    return f"{count:,}{ending}"


def _backward(facts: Facts) -> Iterator[Finding]:
    """The node that sent a NaN on although none had come to it."""
    blobs = facts.recording.blobs
    tainted: set[int] = set()
    if any(call.flags & CallFlag.NAN_OUT and not call.flags & CallFlag.IN_BACKWARD for call in facts.recording.calls):
        return  # a NaN was there before the engine ran: it is told as born forward
    for edge in facts.recording.gradients:
        if edge.blob < 0 or not blobs[edge.blob].nans:
            continue
        if edge.source in tainted or edge.source < 0:
            tainted.add(edge.target)
            continue
        line = facts.flow.line_of_node(edge.source)
        step = facts.recording.backwards[edge.run].step
        op = facts.flow.node_names.get(edge.source, "")
        leaves = [node for node in facts.flow.reachable(edge.source) if node < 0]
        names = tuple(name for node in leaves for name in facts.all_names(-1 - node)[:1])
        call = facts.flow.call_of_node(edge.source)
        what = f"`{facts.described(call)}` on line {line}" if call >= 0 else f"`{op}`"
        text = (
            f"The first NaN is born in backward, in the derivative of {what}: the values going forward are fine there."
        )
        yield Finding(
            RULE.id, WARNING, line, names, text, _BACKWARD_FIX,
            {"born": line, "backward": facts.line(step)}, step, "backward", op,
        )  # fmt: skip
        return


_COUNTED = {"mean", "std", "var", "std_mean", "var_mean", "cross_entropy", "nll_loss", "mse_loss", "l1_loss"}
_FIX = "Keep the input inside the operation's domain, e.g. add a small eps, clamp, or use the safe form (xlogy, logsumexp)."
_BACKWARD_FIX = "Choose the input before the operation (`sqrt(where(x > 0, x, 1))`), add a small eps, or use a form with a defined slope."
RULE = Rule(
    id="first-nan",
    sees="The first call whose result holds a NaN while no input did, or the first node of the graph that sends one back.",
    matters="A NaN spreads to everything after it; the line where it is noticed is hardly ever the line where it was born.",
    example="x = torch.zeros(3, requires_grad=True)\nlength = x.pow(2).sum().sqrt()\nlength.backward()\n",
    instead="length = torch.linalg.vector_norm(x)\n",
    blind="Results and gradients above the size that is looked at, other devices, inside compiled code and inside one "
    "library call (`cross_entropy` is one call). Past the bound of detail only losses are looked at, and the call is told where just one "
    "of those on the way can have given the NaN; a NaN born in backward is not told there.",
    find=find,
)
