"""Gradients were clipped before backward had computed them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule

_CLIP = re.compile(r"\bclip_grad_(norm|value)_?\(")


def find(facts: Facts) -> Iterator[Finding]:
    steps = facts.recording.steps
    clips = [step for step in range(len(steps)) if steps[step].detail and _CLIP.search(facts.index.line_text(step))]
    if not clips:
        return
    calls = facts.recording.calls
    runs = [run.call for run in facts.recording.backwards if run.call >= 0]
    updates = [first for first, _ in facts.flow.steps]
    early = [clip for clip in clips if _early(steps[clip].first_call, runs, updates)]
    if len(early) != len(clips):
        return  # some came at the right time: two losses, or gradients of several backward runs
    line, after = facts.line(clips[0]), min(run for run in runs if run >= steps[clips[0]].first_call)
    backward = facts.line(calls[after].step)
    yield Finding(
        RULE.id, WARNING, line, (), f"Line {line} clips the gradients before the backward on line {backward} has computed them: what the "
        f"optimizer then takes is not clipped.",
        "Clip between backward and step: zero_grad, backward, clip, step.", {"clipped": line, "backward": backward}, clips[0],
    )  # fmt: skip


def _early(at: int, runs: list[int], updates: list[int]) -> bool:
    """Had no backward run since the last update when the clip came, and did one run before the next update?"""
    last, following = (
        max((call for call in updates if call < at), default=-1),
        min((call for call in updates if call >= at), default=-1),
    )
    return following >= 0 and not any(last < run < at for run in runs) and any(at <= run < following for run in runs)


RULE = Rule(
    id="clip-before-backward",
    sees="Every `clip_grad_norm_` or `clip_grad_value_` of a loop came before the backward whose gradients the step then used.",
    matters="Nothing is clipped: there is no gradient yet, or it is the one of the step before.",
    example="w = torch.nn.Parameter(torch.ones(2))\nopt = torch.optim.SGD([w], lr=0.1)\nfor i in range(2):\n    opt.zero_grad()\n"
    "    loss = (w * 100).sum()\n    torch.nn.utils.clip_grad_norm_([w], 1.0)\n    loss.backward()\n    opt.step()\n",
    instead="    loss.backward()\n    torch.nn.utils.clip_grad_norm_([w], 1.0)\n    opt.step()\n",
    blind="Clipping inside a library, updates by hand, and steps past the bound of detail.",
    find=find,
)
