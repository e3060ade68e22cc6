"""A small view that keeps a large storage alive."""

from __future__ import annotations

from collections.abc import Iterator

from tensormagic.analysis.findings.base import NOTE, Facts, Finding, Rule

_RATIO, _LARGE = 10, 1 << 14  # at least so many times the view, and at least 16 KiB


def find(facts: Facts) -> Iterator[Finding]:
    index = facts.index
    for text, named in facts.end.items():
        state = named.state
        if state is None or state.storage < 0 or not named.stride or named.object < 0:
            continue
        count = 1
        for size in named.shape:
            count *= size
        view, whole = count * named.itemsize, index.storage_nbytes(state.storage)
        if whole < _LARGE or view * _RATIO > whole or 0 in named.stride:
            continue
        call = index.maker(named.object)
        step = index.object(named.object).step
        line = facts.line_of_call(call) if call >= 0 else facts.line(step)
        if line < 0:
            continue  # made before this cell: no line here to change
        yield Finding(
            RULE.id, NOTE, line, (text,),
            f"`{text}` shows {_size(view)}, but keeps all {_size(whole)} of S{state.storage + 1} alive, and saving it "
            f"saves them all.",
            f"`{text} = {text}.clone()` keeps only what it shows.", {"made": line}, step,
        )  # fmt: skip


def _size(count: int) -> str:
    for unit, factor in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} B"


RULE = Rule(
    id="storage-kept-by-view",
    sees="A name whose tensor shows at most a tenth of a storage of 16 KiB or more.",
    matters="A slice refers to the whole storage: it cannot be freed, and `torch.save` writes all of it.",
    example="big = torch.zeros(1000, 1000)\nsmall = big[:2]\n",
    instead="small = big[:2].clone()\n",
    blind="Whether the large tensor is needed anyway; that is why this is a note.",
    find=find,
)
