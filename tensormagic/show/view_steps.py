"""The code pane: files, steps with their marks and sentences, loops with their iterations."""

from __future__ import annotations

from tensormagic.show.facts import Seen
from tensormagic.show.sentences import Sentence, runs
from tensormagic.show.shape import File, Loop, Step


def files(seen: Seen) -> tuple[list[File], dict[str, int]]:
    """The recorded sources, the cell first, and the place of each."""
    recording = seen.recording
    order = [recording.cell, *(name for name in recording.sources if name != recording.cell)]
    found: list[File] = []
    places: dict[str, int] = {}
    for name in order:
        places[name] = len(found)
        lines = recording.sources.get(name, "").expandtabs(4).split("\n")
        first = 1
        if name == recording.cell:
            while len(lines) > 1 and not lines[-1].strip():
                lines.pop()
            while len(lines) > 1 and not lines[0].strip():
                lines.pop(0)
                first += 1
        found.append({"name": "" if name == recording.cell else name, "lines": lines, "first": first})
    return found, places


def steps(seen: Seen, places: dict[str, int], loops: list[Loop]) -> list[Step]:
    """Every shown step with its sentence."""
    result: list[Step] = []
    before = -1
    inside = _iterations(loops)
    for place, number in enumerate(seen.shown):
        row = seen.recording.steps[number]
        frame = seen.index.frame_of(number)
        file = places.get(seen.index.string(frame.file), 0)
        step: Step = {"file": file, "line": row.line}
        sentence = Sentence(seen, number, before)
        step["say"] = sentence.build()
        step["mark"] = sentence.mark
        if sentence.warn:
            step["warn"] = True
        name = seen.index.string(frame.function)
        if name:
            step["frame"] = name
            step["callers"] = _callers(seen, row.parent, places)
        if not row.detail:
            step["light"] = True
        if place in inside:
            step["loop"] = list(inside[place])
        result.append(step)
        before = number
    _raised(seen, places, result)
    return result


def _raised(seen: Seen, places: dict[str, int], result: list[Step]) -> None:
    """The exception at the last step, and at the lines of functions that it came through."""
    error = seen.error
    if error is None or not result:
        return
    message = error.message if len(error.message) <= 300 else error.message[:300] + " …"
    inner = error.frames[-1] if error.frames else ("", "", 0)
    last = result[-1]
    here = (last["file"], last["line"]) == (places.get(inner[0], 0), inner[2]) or inner[0] not in places
    told = runs(seen.words.SAY["raised"], type=error.type, message=message)
    if not here:
        told = runs(seen.words.SAY["raised_in"], type=error.type, message=message, name=inner[1], line=inner[2])
    result[-1] = {**last, "mark": "error", "warn": True, "say": told}
    for file, _, line in error.frames:
        for at in range(len(result) - 2, -1, -1):
            step = result[at]
            if file in places and (step["file"], step["line"]) == (places[file], line) and "frame" in step:
                say = runs(seen.words.SAY["raised"], type=error.type, message=message)
                result[at] = {**step, "mark": "error", "warn": True, "say": say}
                break


def _callers(seen: Seen, parent: int, places: dict[str, int]) -> list[list[int]]:
    """The lines that are in progress while a function runs, innermost first."""
    found: list[list[int]] = []
    while parent >= 0 and len(found) < 20:
        frame = seen.index.frame_of(parent)
        found.append([places.get(seen.index.string(frame.file), 0), seen.recording.steps[parent].line])
        parent = seen.recording.steps[parent].parent
    return found


def loops(seen: Seen, places: dict[str, int]) -> list[Loop]:
    """The loops that went round more than once, with the steps at which their iterations begin."""
    found: list[Loop] = []
    steps_ = seen.recording.steps
    counts: dict[tuple[int, int], int] = {}
    for number in range(len(steps_)):
        row = steps_[number]
        counts[seen.index.frame_of(number).file, row.line] = row.iteration + 1
    for file, first, last in seen.loops:
        key = next((i for i, text in enumerate(seen.recording.strings) if text == file), -1)
        total = max((counts.get((key, line), 0) for line in range(first, last + 1)), default=0)
        if total < 2:
            continue
        starts: dict[int, int] = {}
        for place, number in enumerate(seen.shown):
            row = steps_[number]
            if seen.index.frame_of(number).file == key and first <= row.line <= last:
                starts.setdefault(row.iteration, place)
        found.append({
            "file": places.get(file, 0), "first": first, "last": last, "total": total,
            "starts": [[iteration, place] for iteration, place in sorted(starts.items(), key=lambda item: item[1])],
            "label": seen.say("iterations", first=first, last=last),
        })  # fmt: skip
    return found


def _iterations(loops_: list[Loop]) -> dict[int, tuple[int, int]]:
    """View step -> (loop, iteration) of the innermost loop."""
    found: dict[int, tuple[int, int]] = {}
    order = sorted(range(len(loops_)), key=lambda i: loops_[i]["first"])
    for number in order:
        starts = loops_[number]["starts"]
        for position, (iteration, place) in enumerate(starts):
            end = starts[position + 1][1] if position + 1 < len(starts) else place + 1
            for at in range(place, end):
                found[at] = (number, iteration)
    return found
