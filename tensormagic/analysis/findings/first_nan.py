"""Where the first NaN was born, forward or backward."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, listed
from tensormagic.recording.model import CallFlag


def find(facts: Facts) -> Iterator[Finding]:
    yield from _forward(facts)
    yield from _backward(facts)


def _bad(facts: Facts, object: int, before: int) -> bool:
    """Did the newest call before `before` that gave this object give it with a NaN?"""
    given = [call for call in facts.index.calls_giving(object) if call < before]
    return bool(given) and bool(facts.recording.calls[given[-1]].flags & CallFlag.NAN_OUT)


def _forward(facts: Facts) -> Iterator[Finding]:
    for number, call in enumerate(facts.recording.calls):
        if not call.flags & CallFlag.NAN_OUT or call.flags & CallFlag.IN_BACKWARD:
            continue
        function = facts.index.function(number)
        if facts.flow.is_bookkeeping(number) or not facts.index.inputs(number) or function == "Tensor.grad":
            return  # made as NaN on purpose (torch.tensor(nan), full), or by an optimizer from a gradient told below
        if any(_bad(facts, item.object, number) for item in facts.index.inputs(number)):
            return  # a propagator whose producer was not looked at
        line = facts.line_of_call(number)
        outputs = [item.object for item in facts.index.outputs(number)]
        names = tuple(name for o in outputs for name in facts.all_names(o)[:1])
        sources = tuple(
            dict.fromkeys(name for i in facts.index.inputs(number) for name in facts.all_names(i.object)[:1])
        )
        op = facts.described(number)
        text = f"The first NaN is born on line {line}: `{op}`"
        text += f" of {listed(sources)} gives it although none of them holds a NaN." if sources else " gives it."
        yield Finding(RULE.id, WARNING, line, names or sources, text, _FIX, {"born": line}, call.step, "forward", op)
        return


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


_FIX = "Keep the input inside the operation's domain, e.g. add a small eps, clamp, or use the safe form (xlogy, logsumexp)."
_BACKWARD_FIX = "Choose the input before the operation (`sqrt(where(x > 0, x, 1))`), add a small eps, or use a form with a defined slope."
RULE = Rule(
    id="first-nan",
    sees="The first call whose result holds a NaN while no input did, or the first node of the graph that sends one back.",
    matters="A NaN spreads to everything after it; the line where it is noticed is hardly ever the line where it was born.",
    example="x = torch.zeros(3, requires_grad=True)\nlength = x.pow(2).sum().sqrt()\nlength.backward()\n",
    instead="length = torch.linalg.vector_norm(x)\n",
    blind="Results and gradients above the size that is looked at, other devices, inside compiled code and inside one "
    "library call (`cross_entropy` is one call).",
    find=find,
)
