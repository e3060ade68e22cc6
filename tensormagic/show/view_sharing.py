"""The sharing matrix over the steps, with the sentence and the way of each pair that has something to say."""

from __future__ import annotations

from typing import Any

from tensormagic.analysis import sharing, way
from tensormagic.analysis.names import NamesAt
from tensormagic.analysis.sharing import Relation, Sharing
from tensormagic.show.facts import ATTRIBUTES, Seen, short
from tensormagic.show.sentences import runs
from tensormagic.show.shape import Matrix, Run

MOST_NAMES = 60  # names of the matrix of one step: as many as the renderer draws at once
_ANSWERED_STEPS = 60  # steps whose matrices are drawn; in between the last one holds


def matrices(seen: Seen, places: dict[int, int]) -> list[Any]:
    """[step, Matrix] wherever the matrix differs from the one before."""
    found: list[Any] = []
    every = max(1, len(seen.shown) // _ANSWERED_STEPS)
    last: Any = None
    for place, step in enumerate(seen.shown):
        if place % every and place != len(seen.shown) - 1:
            continue
        names = chosen(seen, step)
        at = seen.at(step)
        key = [(name, at[name].base, at[name].state_row) for name in names]
        if key == last:
            continue
        last = key
        matrix = _matrix(seen, step, places)
        if not found or found[-1][1] != matrix:
            found.append([place, matrix])
    return found


def chosen(seen: Seen, step: int) -> list[str]:
    """The names of a matrix: the cell's own first, .grad last, grouped by storage."""
    names = [text for text, named in seen.at(step).items() if named.state and named.state.storage >= 0]
    order = sorted(names, key=lambda text: (text.endswith(".grad"), text.count(".") + text.count("[")))[:MOST_NAMES]
    position = {text: names.index(text) for text in order}
    at = seen.at(step)
    first: dict[int, int] = {}
    for text in sorted(order, key=position.__getitem__):
        state = at[text].state
        assert state is not None
        first.setdefault(state.storage, position[text])
    return sorted(order, key=lambda text: (first[at[text].state.storage], position[text]))  # type: ignore[union-attr]


def _matrix(seen: Seen, step: int, places: dict[int, int]) -> Matrix:
    names = chosen(seen, step)
    at = NamesAt(seen.index, step)
    named = [at[name] for name in names]
    codes, _ = sharing.codes(seen.index, named, at.step)
    members = list(Sharing)
    matrix: Matrix = {
        "names": names,
        "storages": [places.get(item.state.storage, -1 - item.state.storage) if item.state else -1 for item in named],
        "glyphs": "".join(members[code].glyph for row in codes for code in row),
        "answers": {}, "way": {},
    }  # fmt: skip
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            if members[codes[i][j]] is Sharing.SEPARATE:
                continue
            key = f"{i},{j}"
            relation = sharing.relation_of(seen.index, named[i], named[j], at.step)
            matrix["answers"][key] = answer(seen, names[i], names[j], relation, named[i].state.storage)  # type: ignore[union-attr]
            told = way_runs(seen, names[i], names[j], at.step)
            if told:
                matrix["way"][key] = told
    return matrix


_KEYS = {
    Sharing.SAME_OBJECT: "rel_same_object", Sharing.SAME_BYTES: "rel_same_bytes", Sharing.CONTAINS: "rel_contains",
    Sharing.INSIDE: "rel_contains", Sharing.OVERLAP: "rel_overlap", Sharing.SAME_STORAGE: "rel_same_storage",
    Sharing.SEPARATE: "rel_separate",
}  # fmt: skip


def answer(seen: Seen, a: str, b: str, relation: Relation, storage: int) -> list[Run]:
    """The relation of two names as a sentence."""
    if relation.sharing is Sharing.INSIDE:
        a, b = b, a
    whole = relation.bytes_b if relation.sharing is Sharing.INSIDE else relation.bytes_a
    facts = {"a": a, "b": b, "n": relation.bytes_common, "of": whole, "storage": seen.storage(storage)}
    told = runs(seen.words.SAY[_KEYS[relation.sharing]], **facts)
    if not relation.exact and relation.bound is not None:
        told += runs(seen.words.SAY["rel_unsure"], why=seen.words.BOUNDS[relation.bound.value])
    return told


def way_runs(seen: Seen, a: str, b: str, step: int) -> list[Run]:
    """The calls by which the memory of one came to the other; [] where there is none to tell."""
    hops = way.way(seen.index, a, b, step)
    if not hops:
        return []
    told = [["", ""]]
    head, tail = seen.words.SAY["way"].split("{hops}")
    told = runs(head, a=a, b=b)
    for position, hop in enumerate(hops):
        if position:
            told += runs(seen.words.SAY["hop_then"])
        function = short(hop.function) if hop.function else "NumPy"
        text = f"[{hop.args}]" if function == "__getitem__" else f"{function}({hop.args})"
        if function in ATTRIBUTES:
            text = f".{function}"
        told += runs(seen.words.SAY["hop"], call=text, line=hop.line)
    return told + runs(tail)
