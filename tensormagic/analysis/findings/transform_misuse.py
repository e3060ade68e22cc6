"""A function given to vmap or grad did what such a transform cannot follow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import ERROR, Facts, Finding, Rule

# torch's text -> what the function did, what to write instead. {name} is the tensor written to, {call} the call.
_KINDS = (
    (
        r"calling \.item\(\)",
        "`{call}` asks for one plain number, but inside the transform the tensor stands for many at once",
        "Return the tensor and take `.item()` or `.tolist()` of the result, outside.",
    ),
    (
        r"data-dependent control flow",
        "`{call}` asks whether a tensor is true, but inside the transform it stands for many values at once",
        "Use `torch.where(condition, a, b)` instead of `if`.",
    ),
    (
        r"random operation while in randomness error mode",
        "`{call}` draws random numbers, and vmap was not told whether all share them",
        'Say so: `torch.vmap(f, randomness="different")` or `"same"`.',
    ),
    (
        r"support dynamic shape",
        "the shape of what `{call}` gives depends on the values, which differ from one to the next",
        "Keep the shape: `torch.where(mask, x, 0)`.",
    ),
    (
        r"vmap: .* is not possible because there exists a Tensor",
        "`{call}` writes values of every element into {name}, which exists only once",
        "Make a new tensor instead of writing in place (`torch.stack`, `new_zeros` of a mapped argument).",
    ),
    (
        r"output with shape .* doesn't match the broadcast shape",
        "`{call}` writes values of every element into {name}, which exists only once",
        "Make a new tensor instead of writing in place (`torch.stack`, `new_zeros` of a mapped argument).",
    ),
    (
        r"transform, the function provided attempted to call in-place operation",
        "`{call}` writes into {name}, which was made outside the function: the transform cannot undo or follow that",
        "Return the new value from the function instead of writing it outside.",
    ),
    (
        r"backward\(\) called inside a functorch transform",
        "the transform computes the derivative itself, and the function calls `backward()`",
        "Return the loss; the transform takes its gradient.",
    ),
    (
        r"must only return Tensors|Expected f\(\*args\) to return a Tensor",
        "the function returned something that is no tensor",
        "Return a tensor from the function: no `.item()` and no plain number at its end.",
    ),
    (
        r"Expected f\(\*args\) to return a scalar",
        "the function returned a tensor of more than one value, and a gradient is that of one number",
        "Return one number (`.sum()`, `.mean()`), or use `torch.func.jacrev`.",
    ),
)


def find(facts: Facts) -> Iterator[Finding]:
    error = facts.error
    if error is None:
        return
    for pattern, what, fix in _KINDS:
        if not re.search(pattern, error.message):
            continue
        call = facts.raised_call
        if call < 0 and "{call}" in what:
            return
        if "broadcast shape" in pattern and not _mapped(facts, call):
            return  # the same error outside a transform: two shapes that do not fit
        taken = [item.object for item in facts.index.inputs(call)] if call >= 0 else []
        named = [name for object in taken[:1] for name in facts.all_names(object)[:2]]
        told = {"call": facts.described(call), "name": f"`{named[0]}`" if named else "a tensor"}
        steps = [facts.recording.calls[call].step, error.step] if call >= 0 else [error.step]
        names = tuple(dict.fromkeys((*named, *(name for step in steps for name in facts.spoken_of(step)))))
        applied = error.frames[0][2] if error.frames else error.line
        inside = error.frames[0][0] == facts.recording.cell and applied != error.line if error.frames else False
        place = f", called by the transform on line {applied}" if inside else ""
        yield Finding(
            RULE.id, ERROR, error.line, names, f"Line {error.line}{place}: {what.format(**told)}.", fix,
            {"raised": error.line} | ({"applied": applied} if inside else {}), error.step,
        )  # fmt: skip
        return


def _mapped(facts: Facts, call: int) -> bool:
    """Was a tensor with memory written with one that stands for many and has none?"""
    states = [facts.index.state_before_call(item.object, call) for item in facts.index.inputs(call)]
    return len(states) > 1 and all(states) and states[0].storage >= 0 > states[1].storage  # type: ignore[union-attr]


RULE = Rule(
    id="transform-misuse",
    sees="The errors of `torch.vmap` and `torch.func.grad` about what the function did: a value read, an `if`, random "
    "numbers, a shape that depends on values, a write into a tensor from outside, `backward()`, a result that is no tensor.",
    matters="The error comes from inside the transform and names no tensor of the program's.",
    example="def f(x):\n    return x.sum().item()\nout = torch.vmap(f)(torch.ones(3, 2))\n",
    instead="def f(x):\n    return x.sum()\nout = torch.vmap(f)(torch.ones(3, 2)).tolist()\n",
    blind="Errors inside a transform that would be the same without it, such as shapes that do not match.",
    find=find,
)
