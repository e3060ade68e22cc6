"""A loss, or a gradient, that is infinite, and where the infinity came from."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule, light_before, listed
from tensormagic.analysis.findings.held import holds
from tensormagic.recording.model import CallFlag

_GROWS = {
    "exp",
    "expm1",
    "pow",
    "square",
    "mul",
    "cosh",
    "sinh",
    "cumprod",
    "prod",
    "matmul",
    "linear",
    "sum",
    "mean",
    "mse_loss",
}


def find(facts: Facts) -> Iterator[Finding]:
    if any("_amp_" in facts.index.function(number) for number in range(len(facts.recording.calls))):
        return  # a gradient scaler: an overflow now and then is how it finds its scale
    found = next(_forward(facts), None) or next(_backward(facts), None)
    if found is not None:
        yield found


def _infinite(facts: Facts, object: int, before: int) -> int:
    """The newest call before `before` that gave the object, where it holds an infinity and no NaN; else -1."""
    given = [call for call in facts.index.calls_giving(object) if call < before]
    flags = facts.recording.calls[given[-1]].flags if given else 0
    return given[-1] if flags & CallFlag.INF_OUT and not flags & CallFlag.NAN_OUT else -1


def _forward(facts: Facts) -> Iterator[Finding]:
    """What backward was called on is infinite: the call that first gave an infinity on the way to it."""
    for run in facts.recording.backwards:
        born = _infinite(facts, run.root, run.call) if run.call >= 0 else -1
        if born < 0:
            continue
        seen = {born}
        while True:
            earlier = [_infinite(facts, item.object, born) for item in facts.index.inputs(born)]
            earlier = [call for call in earlier if call >= 0 and call not in seen and facts.index.inputs(call)]
            if not earlier:
                break
            born = earlier[0]
            seen.add(born)
        step = facts.recording.calls[born].step
        if light_before(facts, step) and any(
            holds(facts, item.object, born, CallFlag.INF_OUT) is not False for item in facts.index.inputs(born)
        ):
            continue  # it may have come in from a round that was not looked at
        line, op = facts.line(step), facts.described(born)
        names = tuple(
            dict.fromkeys(name for item in facts.index.outputs(born) for name in facts.all_names(item.object)[:1])
        )
        root = facts.names(run.root)[:1]
        loss = f"`{root[0]}`" if root else "what backward is called on"
        text = f"{loss[0].upper()}{loss[1:]} is infinite on line {facts.line(run.step)}: `{op}` on line {line} gave the first infinity."
        yield Finding(
            RULE.id, WARNING, line, tuple(dict.fromkeys((*names, *root))), text, _fix(op, facts.recording.steps[step].iteration),
            {"born": line, "backward": facts.line(run.step)}, step, "forward", op,
        )  # fmt: skip


def _fix(op: str, round: int) -> str:
    if op in _GROWS and round:
        return "The values grew from round to round: a smaller learning rate, or `clip_grad_norm_` between backward and step."
    if op in _GROWS:
        return "Keep the numbers smaller: subtract the largest before `exp` (`logsumexp`, `log_softmax`), scale, or use float64."
    return "Keep the input inside the operation's domain, e.g. add a small eps or clamp, or use the form that takes the raw scores."


def _backward(facts: Facts) -> Iterator[Finding]:
    """A gradient became infinite on the way back, from a finite one, and reached a leaf so."""
    blobs, tainted = facts.recording.blobs, set()
    reached = {
        row.run
        for row in facts.recording.accumulations
        if row.after >= 0 and blobs[row.after].infs and not blobs[row.after].nans
    }
    for edge in facts.recording.gradients:
        if edge.run not in reached or edge.blob < 0 or not blobs[edge.blob].infs:
            continue
        if edge.source in tainted or edge.source < 0:
            tainted.add(edge.target)
            continue
        call = facts.flow.call_of_node(edge.source)
        line, step = facts.flow.line_of_node(edge.source), facts.recording.backwards[edge.run].step
        names = tuple(
            name for node in facts.flow.reachable(edge.source) if node < 0 for name in facts.all_names(-1 - node)[:1]
        )
        if line < 1 or call < 0:
            continue
        op = facts.flow.node_names.get(edge.source, "")
        yield Finding(
            RULE.id, WARNING, line, names,
            f"The gradient of {listed(names[:3]) or 'a leaf'} becomes infinite in the derivative of "
            f"`{facts.described(call)}` on line {line}.",
            "Keep away from that point: a small eps, a clamp, or a form with a finite slope.",
            {"born": line, "backward": facts.line(step)}, step, "backward", op,
        )  # fmt: skip


RULE = Rule(
    id="first-infinity",
    sees="A tensor that backward was called on, or the gradient of a leaf, that holds an infinity and no NaN yet: the call, or the "
    "derivative, that gave it.",
    matters="The next step makes NaN of it, and by then nothing tells where it came from.",
    example="p = torch.tensor([0.0, 1.0], requires_grad=True)\nloss = -torch.log(p).mean()\nloss.backward()\n",
    instead="loss = -torch.log(p.clamp(min=1e-8)).mean()\n",
    blind="Steps past the bound of detail, results and gradients above the size that is looked at, and programs with a gradient scaler.",
    find=find,
)
