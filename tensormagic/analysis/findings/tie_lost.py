"""Two names of one parameter that became two parameters."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import WARNING, Facts, Finding, Rule
from tensormagic.recording.model import Binding, PathKind


def find(facts: Facts) -> Iterator[Finding]:
    recording, index = facts.recording, facts.index
    held: dict[int, list[tuple[str, Binding]]] = {}
    for text, named in facts.end.items():
        if recording.paths[named.path].kind != PathKind.PARAMETER or named.frame or named.object < 0:
            continue
        bindings = [binding for binding in index.bindings(0, named.path) if binding.object >= 0]
        if len(bindings) > 1 and not bindings[-1].late:
            held.setdefault(bindings[-2].object, []).append((text, bindings[-1]))
    told: set[tuple[int, int]] = set()
    for names in held.values():
        for position, (one, first) in enumerate(names):
            for other, second in names[position + 1 :]:
                pair = (min(first.object, second.object), max(first.object, second.object))
                if first.object == second.object or first.step != second.step or pair in told:
                    continue
                told.add(pair)
                line = facts.line(first.step)
                yield Finding(
                    RULE.id, WARNING, line, (one, other),
                    f"`{one}` and `{other}` were one parameter until line {line} gave each a tensor of its own: they are no "
                    f"longer tied.",
                    f"Tie them again after line {line}: `{other} = {one}`.", {"parted": line}, first.step,
                )  # fmt: skip


RULE = Rule(
    id="tie-lost",
    sees="Two names of one parameter which one and the same line gave two different tensors.",
    matters="Tied weights are one on purpose: two copies start apart, and each gets half of the gradient.",
    example="with torch.device('meta'):\n    emb = torch.nn.Embedding(5, 3)\n    head = torch.nn.Linear(3, 5, bias=False)\n"
    "head.weight = emb.weight\nnet = torch.nn.ModuleDict({'emb': emb, 'head': head})\nnet.to_empty(device='cpu')\n",
    instead="net.to_empty(device='cpu')\nhead.weight = emb.weight\n",
    blind="Ties that were lost before the cell, or by two different lines, where it may be meant.",
    find=find,
)
