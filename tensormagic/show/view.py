"""Recording -> what is drawn, as JSON. All words and positions are decided here and in the `view_*` files beside it."""

from __future__ import annotations

from typing import Any

from tensormagic.show import numbers, view_gradients, view_lists, view_memory, view_sharing, view_steps
from tensormagic.show.facts import Seen
from tensormagic.show.shape import Run, View

VERSION = 1


def build(trace: Any, language: str = "en") -> View:
    """The whole view of a trace.

    Args:
        trace: a `Trace`.
        language: of the words; see `words.catalogue`.
    """
    seen = Seen(trace, language)
    files, places = view_steps.files(seen)
    loops = view_steps.loops(seen, places)
    steps = view_steps.steps(seen, places, loops)
    storages, numbering = view_memory.storages(seen)
    findings = view_lists.findings(seen)
    calls, total = view_lists.calls(seen)
    return {
        "version": VERSION, "title": _title(seen), "summary": summary(seen, findings), "alt": alt(seen),
        "labels": seen.words.LABELS, "files": files, "steps": steps, "loops": loops, "storages": storages,
        "matrix": view_sharing.matrices(seen, numbering), "gradients": view_gradients.build(seen, numbering),
        "findings": findings, "calls": calls, "calls_total": total, "notices": view_lists.notices(seen),
        "start": max(0, len(steps) - 1),
    }  # fmt: skip


def _title(seen: Seen) -> str:
    name = seen.recording.about.get("name")
    title = seen.say("title")
    return f"{title} · {name}" if name else title


def _count(seen: Seen, word: str, n: int) -> str:
    exact = seen.words.SAY.get(f"{word}_{n}")
    return exact if exact is not None else seen.say(f"{word}s", n=n)


def summary(seen: Seen, findings: list[Any]) -> list[Run]:
    """The line at the top: lines, tensors, storages, backward runs, findings."""
    recording = seen.recording
    lines = {(recording.steps[n].frame == 0, recording.steps[n].line) for n in range(len(recording.steps))}
    tensors = {named.base for step in seen.shown[-1:] for named in seen.at(step).values()}
    storages = {named.state.storage for step in seen.shown[-1:] for named in seen.at(step).values()
                if named.state and named.state.storage >= 0}  # fmt: skip
    held = sum(seen.index.storage_nbytes(storage) for storage in storages)
    text = seen.say(
        "summary", lines=_count(seen, "line", len(lines)), tensors=_count(seen, "tensor", len(tensors)),
        storages=_count(seen, "storage", len(storages)), bytes=numbers.size(held),
        backwards=_count(seen, "backward", len(recording.backwards)),
    )  # fmt: skip
    runs: list[Run] = [[text, ""]]
    told = findings
    if told:
        runs += [[" · ", ""], [f"{told[0]['glyph']} {_count(seen, 'finding', len(told))}", "warn"]]
    return runs


def alt(seen: Seen) -> str:
    """The picture in words."""
    names: dict[int, list[str]] = {}
    for step in seen.shown[-1:]:
        for text, named in seen.at(step).items():
            if named.state and named.state.storage >= 0:
                names.setdefault(named.state.storage, []).append(text)
    memory = "; ".join(
        seen.say("alt_storage", names=", ".join(found[:5]), storage=seen.storage(storage))
        for storage, found in list(names.items())[:6]
    )  # fmt: skip
    told = "".join(text for text, _ in summary(seen, []))
    return seen.say("alt", summary=told, memory=memory or seen.say("no_tensor_yet"))
