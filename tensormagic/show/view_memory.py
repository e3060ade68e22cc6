"""The memory pane: a strip per storage, its values, and which elements each name sees, step by step."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from tensormagic.analysis.names import Named
from tensormagic.analysis.tensors import value_of
from tensormagic.recording import values
from tensormagic.recording.model import ObjectKind
from tensormagic.show import numbers
from tensormagic.show.facts import Seen, leaf, wants
from tensormagic.show.palette import COUNT
from tensormagic.show.shape import Row, Storage, StorageState

_CELLS = 240  # cells of the strip of a large storage
_STRIP = 64  # elements that are shown one by one
_ROWS = 10  # names shown under one storage
_ENUMERATED = 1 << 18  # elements whose places are worked out one by one


def storages(seen: Seen) -> tuple[list[Storage], dict[int, int]]:
    """Every storage that a name reached, with its states over the view's steps; and storage -> its place among them.

    A gradient is drawn beside its tensor, so the storage of a `.grad` has no place unless another name reaches it too.
    """
    states: dict[int, list[Any]] = {}
    made: dict[Any, StorageState] = {}
    for place, step in enumerate(seen.shown):
        current = _at(seen, step, made)
        changed = _changed(seen, step)
        for number, state in current.items():
            hit = changed.get(number)
            if hit and "cells" in state:
                state = {**state, "changed": hit}
            _note(states.setdefault(number, []), place, state)
        for number, known in states.items():
            if number not in current:
                _note(known, place, _without_names(seen, number, step, known[-1][1]))
    result: list[Storage] = []
    for place, number in enumerate(sorted(states)):
        row = seen.recording.storages[number]
        tip = f"{seen.index.string(row.device)} · {hex(row.address)}" if row.address else seen.index.string(row.device)
        result.append(
            {"name": seen.storage(number), "colour": place % COUNT, "sign": seen.storage(number), "tip": tip,
             "states": states[number]}
        )  # fmt: skip
    return result, {number: place for place, number in enumerate(sorted(states))}


def _note(known: list[Any], place: int, state: StorageState) -> None:
    if not known or known[-1][1] != state:
        known.append([place, state])


def _at(seen: Seen, step: int, made: dict[Any, StorageState]) -> dict[int, StorageState]:
    """Storage -> how it looks after a step. `made` holds what was drawn before: most storages stay as they were."""
    grouped: dict[int, list[Named]] = {}
    grads: dict[str, Named] = {}
    names = seen.at(step)
    for text, named in names.items():
        assert named.state is not None
        if text.endswith(".grad") and text[:-5] in names:
            grads[text[:-5]] = named
        elif named.state.storage >= 0:
            grouped.setdefault(named.state.storage, []).append(named)
    result = {}
    for number, found in grouped.items():
        key = _key(seen, step, number, found, grads)
        state = made.get(key)
        if state is None:
            state = made[key] = _state(seen, step, number, found, grads)
        result[number] = state
    return result


def _key(seen: Seen, step: int, number: int, found: list[Named], grads: dict[str, Named]) -> Any:
    """Everything that the picture of a storage depends on."""
    index = seen.index
    held = [grads[named.text] for named in found if named.text in grads]
    return (
        number, index.snapshot(number, step), index.storage_nbytes(number, step),
        bisect_right(index.writes_to(number), step, key=lambda row: seen.recording.writes[row].step),
        tuple((named.text, named.base, named.state_row) for named in found),
        tuple((g.text, g.base, g.state_row, index.snapshot(g.state.storage, step), index.snapshot(g.state.storage, step, g.base))
              for g in held if g.state),
    )  # fmt: skip


def _state(seen: Seen, step: int, number: int, found: list[Named], grads: dict[str, Named]) -> StorageState:
    index = seen.index
    first = found[0]
    assert first.state is not None
    geometry = index.geometry(first.state)
    total = index.storage_nbytes(number, step) // max(1, geometry.itemsize)
    version = max((named.state.version for named in found if named.state), default=0)
    for row in index.writes_to(number):
        write = seen.recording.writes[row]
        if write.step > step:
            break
        version = max(version, write.after)
    head = f"{geometry.dtype} × {total} · {numbers.size(index.storage_nbytes(number, step))}"
    if version > 0:
        head += " · " + seen.say("version", n=version)
    state: StorageState = {"head": head, "total": total, "rows": []}
    snapshot = index.snapshot(number, step)
    if snapshot is not None and total <= _STRIP:
        blob = seen.recording.blobs[snapshot.blob]
        array = values.decode_slice(
            blob.data, geometry._replace(shape=(total,), stride=(1,)), 0
        ) if blob.data is not None else None  # fmt: skip
        if array is not None:
            state["cells"] = [numbers.short(item) for item in values.to_lists(array)]
    shown = sorted(found, key=lambda named: (named.text.count(".") + named.text.count("["), 0))[:_ROWS]
    state["rows"] = [_row(seen, step, named, total, geometry.itemsize, grads.get(named.text)) for named in shown]
    if len(found) > _ROWS:
        state["note"] = seen.say("more_names", n=len(found) - _ROWS)
    return state


def _row(seen: Seen, step: int, named: Named, total: int, itemsize: int, grad: Named | None) -> Row:
    assert named.state is not None
    row: Row = {"name": named.text, "why": why(seen, named), "cover": cover(named, total, itemsize)}
    if total <= _STRIP and named.stride and named.itemsize == itemsize:
        row["shape"], row["stride"], row["offset"] = list(named.shape), list(named.stride), named.state.offset
    if grad is not None and grad.state is not None:
        line = seen.index.line_of(seen.index.object(grad.base).step)
        row["grad_name"] = grad.text
        where = seen.storage(grad.state.storage)
        row["grad_why"] = (
            seen.say("from_line", storage=where, n=line) if line > 0 else f"{where} · {seen.say('before_cell')}"
        )
        _, listed = value_of(seen.index, grad, step)
        if listed is not None:
            flat = np.asarray(listed, dtype=object).ravel().tolist() if isinstance(listed, list) else [listed]
            if len(flat) <= _STRIP:
                row["grad"] = [numbers.short(item) for item in flat]
        if "grad" not in row:
            row["grad_why"] = summary(seen, grad, step) or row["grad_why"]
    return row


def summary(seen: Seen, named: Named, step: int) -> str:
    """What is known of a large tensor's values: its range and mean."""
    blob, _ = value_of(seen.index, named, step)
    if blob is None or blob.low is None:
        return ""
    low, high, mean = (numbers.short(number, 3) for number in (blob.low, blob.high, blob.mean))
    text = seen.say("range", low=low, high=high, mean=mean)
    bad = [f"{count} {word}" for count, word in ((blob.nans, "NaN"), (blob.infs, "inf")) if count]
    return ", ".join([text, *bad])


def why(seen: Seen, named: Named) -> str:
    """What a row says of a name: what made it and its place on the graph."""
    assert named.state is not None
    index = seen.index
    parts = []
    call = index.maker(named.base)
    first = index.object(named.base)
    if call >= 0 and index.inputs(call) and seen.name(named.base) == named.text:
        parts.append(seen.say("by_call", call=seen.call_text(call), n=seen.line_of_call(call)))
    elif first.step < 0:
        parts.append(seen.say("before_cell"))
    else:
        parts.append(seen.say("line", n=index.line_of(first.step)))
    if first.kind == ObjectKind.ARRAY:
        return " · ".join([*parts, "NumPy"])
    if leaf(named) and wants(named):
        parts = ([] if len(parts) == 1 and call < 0 else parts) + [seen.say("leaf"), seen.say("wants")]
    elif wants(named):
        parts.append(index.string(named.state.node_name))
    else:
        parts.append(seen.say("no_graph"))
    return " · ".join(filter(None, parts))


def cover(named: Named, total: int, itemsize: int) -> list[list[int]]:
    """Which cells of the strip a tensor sees, as [first, count] runs."""
    assert named.state is not None
    count = int(np.prod(named.shape, dtype=np.int64)) if named.shape else 1
    if not count or len(named.stride) != len(named.shape):
        return []
    cells = total if total <= _STRIP else _CELLS
    low = high = named.state.offset
    if count > _ENUMERATED:
        for size, step in zip(named.shape, named.stride, strict=True):
            low, high = low + min(0, step * (size - 1)), high + max(0, step * (size - 1))
        places = np.arange(low, high + 1, max(1, (high - low) // (4 * _CELLS)))
    else:
        places = np.asarray(named.state.offset, dtype=np.int64)
        for size, step in zip(named.shape, named.stride, strict=True):
            places = places[..., None] + np.arange(size) * step
        places = places.ravel()
    scaled = places * named.itemsize // max(1, itemsize)
    if total > _STRIP:
        scaled = scaled * cells // max(1, total)
    marked = np.unique(np.clip(scaled, 0, max(0, cells - 1)))
    breaks = np.flatnonzero(np.diff(marked) > 1)
    starts = np.concatenate(([marked[0]], marked[breaks + 1]))
    ends = np.concatenate((marked[breaks], [marked[-1]]))
    return [[int(a), int(b - a + 1)] for a, b in zip(starts, ends, strict=True)]


def _changed(seen: Seen, step: int) -> dict[int, list[int]]:
    """Storage -> the elements that writes of this step changed."""
    found: dict[int, list[int]] = {}
    for row in seen.index.writes_of_step(step):
        write = seen.recording.writes[row]
        if write.elements >= 0:
            found[write.storage] = sorted({*found.get(write.storage, ()), *seen.recording.elements[write.elements]})
    return found


def _without_names(seen: Seen, number: int, step: int, before: StorageState) -> StorageState:
    """A storage that no name reaches any more: freed, or held by something else."""
    if not seen.index.alive(number, step):
        return {"gone": True}
    state: StorageState = {"head": before.get("head", ""), "total": before.get("total", 0), "rows": []}
    if "cells" in before:
        state["cells"] = before["cells"]
    end = seen.recording.storages[number].death
    state["note"] = seen.say("graph_holds") if _on_graph(seen, number) else seen.say("held")
    return {"gone": True} if before.get("gone") or (end < 0 and not _on_graph(seen, number)) else state


def _on_graph(seen: Seen, number: int) -> bool:
    """Does a tensor on this storage hang on the graph? Then what keeps it, with no name left, is a saved tensor."""
    for object in seen.index.objects_on(number):
        state = seen.index.state(object)
        if state is not None and state.node >= 0:
            return True
    return False
