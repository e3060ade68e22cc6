"""A default argument that was written in place: every later call begins with what the earlier ones left."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule


def find(facts: Facts) -> Iterator[Finding]:
    index = facts.index
    for text, named in facts.end.items():
        if ".__defaults__[" not in text or named.state is None:
            continue
        since = index.bindings(named.frame, named.path)[0].step
        late = [facts.recording.writes[row] for row in index.writes_to(named.state.storage)]
        late = [write for write in late if write.step > since >= 0]
        if not late:
            continue
        made, written = facts.line(since), facts.line(late[0].step)
        function = text.split(".__defaults__", 1)[0]
        yield Finding(
            RULE.id, WARNING, made, (text, *[name for name in facts.names(named.object) if name != text][:3]),
            f"The default argument made on line {made} is one tensor for all calls of `{function}`: line {written} wrote "
            f"into it, and the next call begins with that.",
            "Take `None` as the default and make the tensor inside the function.", {"made": made, "written": written},
            since,
        )  # fmt: skip


RULE = Rule(
    id="default-argument-written",
    sees="A tensor that is a function's default argument and was written in place after the function was defined.",
    matters="Default arguments are made once: what looks like a fresh value carries over from call to call.",
    example="def f(x, total=torch.zeros(2)):\n    total += x\n    return total\na = f(torch.ones(2))\nb = f(torch.ones(2))\n",
    instead="def f(x, total=None):\n    total = torch.zeros(2) if total is None else total\n    return total + x\n",
    blind="Functions of other cells and of packages, keyword-only defaults.",
    find=find,
)
