"""Folds a large graph so that it can be looked at: what belongs to one module, then what repeats.

The nodes are put in an order in which data flows forward. Only neighbours in that order are folded together, so the
folded graph has no circle either. Nothing is guessed: a node belongs to a module if it takes a parameter of that module
and of no other, and a piece repeats if its nodes do the same and are joined in the same way.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

_FAR = 1 << 20  # an input before the piece: where exactly does not matter for whether the piece repeats
_LONGEST = 400  # boxes of the longest piece that is looked for


class Box(NamedTuple):
    """A node, or several that are folded."""

    nodes: tuple[int, ...]  # in the order in which data flows
    parts: tuple[Box, ...] = ()  # what it opens to; () for a single node
    module: str = ""  # what it is folded by: the module's name ...
    times: int = 1  # ... or how often its piece repeats
    key: int = 0  # boxes of one piece's place have one key


def ordered(nodes: Collection[int], inputs: Mapping[int, Sequence[int]]) -> list[int]:
    """The nodes so that each comes after what it takes.

    A leaf (a negative number) that one node takes stands right before it, one that several take at the front.

    Args:
        nodes: numbers that grow as the nodes were made, negative ones for leaves.
        inputs: node -> the nodes it takes; others than `nodes` are ignored.
    """
    known = set(nodes)
    takers: dict[int, list[int]] = {node: [] for node in known}
    missing: dict[int, int] = {}
    for node in known:
        taken = {one for one in inputs.get(node, ()) if one in known and one != node}
        missing[node] = len(taken)
        for one in taken:
            takers[one].append(node)
    single = {node for node in known if node < 0 and len(takers[node]) == 1}
    found: list[int] = []
    ready = [node for node in known if not missing[node] and node not in single]
    for node in single:
        for taker in takers[node]:
            missing[taker] -= 1
            if not missing[taker]:
                ready.append(taker)
    heapq.heapify(ready)
    while ready:
        node = heapq.heappop(ready)
        found += sorted({one for one in inputs.get(node, ()) if one in single}, reverse=True)
        found.append(node)
        for taker in takers[node]:
            if node in single:
                continue
            missing[taker] -= 1
            if not missing[taker]:
                heapq.heappush(ready, taker)
    return found


def modules(
    order: Iterable[int], inputs: Mapping[int, Sequence[int]], owners: Mapping[int, str], passing: Collection[int] = (),
) -> dict[int, str]:  # fmt: skip
    """node -> the module that it belongs to: one that takes parameters of a single module.

    Args:
        order: as `ordered` gives it.
        inputs: node -> the nodes it takes.
        owners: leaf -> the name of the module that holds it.
        passing: nodes that only give what they take another shape, as `t` does: what takes theirs takes the parameter.
    """
    found: dict[int, str] = {}
    alone: dict[int, str] = {}  # parameters, and what only gives one another shape
    for node in order:
        if node < 0:
            if node in owners:
                found[node] = alone[node] = owners[node]
            continue
        taken = inputs.get(node, ())
        names = {alone[one] for one in taken if one in alone}
        if len(names) == 1:
            found[node] = names.pop()
            if node in passing and len(taken) == 1:
                alone[node] = found[node]
    return found


def fold(
    order: Sequence[int], inputs: Mapping[int, Sequence[int]], labels: Mapping[int, str], belongs: Mapping[int, str], most: int,
) -> list[Box]:  # fmt: skip
    """The graph as at most `most` boxes.

    Args:
        order: as `ordered` gives it.
        inputs: node -> the nodes it takes.
        labels: node -> what it does; nodes that do the same have one label.
        belongs: as `modules` gives it.
        most: fewer nodes are not folded; at least 3.
    """
    boxes = [Box((node,)) for node in order]
    if len(boxes) <= most:
        return boxes
    times = Counter(one for node in order for one in set(inputs.get(node, ())))
    shared = {node for node in order if node < 0 and times[node] > 1}
    return folded(_by_module(boxes, belongs, shared), inputs, labels, most, shared)


def folded(
    boxes: list[Box], inputs: Mapping[int, Sequence[int]], labels: Mapping[int, str], most: int, shared: Collection[int] = (),
) -> list[Box]:  # fmt: skip
    """At most `most` boxes in the place of these, which follow each other: what repeats is one, and what is too much.

    Args:
        shared: leaves that several nodes take; how far they are does not matter.
    """
    return boxes if len(boxes) <= most else shortened(repeated(_keyed(boxes, inputs, labels, shared)), most)


def shortened(boxes: list[Box], most: int) -> list[Box]:
    """At most `most` boxes: what is in the middle of more becomes one."""
    if len(boxes) <= most:
        return boxes
    first, last = (most - 1) // 2, most - 1 - (most - 1) // 2
    return [*boxes[:first], _joined(boxes[first:-last]), *boxes[-last:]]


def _joined(parts: Sequence[Box], module: str = "", times: int = 1) -> Box:
    return Box(tuple(node for part in parts for node in part.nodes), tuple(parts), module, times)


def _by_module(boxes: list[Box], belongs: Mapping[int, str], shared: Collection[int]) -> list[Box]:
    found: list[Box] = []
    start = 0
    names = ["" if box.nodes[0] in shared else belongs.get(box.nodes[0], "") for box in boxes]
    for at in range(1, len(boxes) + 1):
        if at < len(boxes) and names[at] == names[start] and names[at]:
            continue
        piece = boxes[start:at]
        found.append(piece[0] if len(piece) == 1 else _joined(piece, names[start]))
        start = at
    return found


def _keyed(
    boxes: list[Box], inputs: Mapping[int, Sequence[int]], labels: Mapping[int, str], shared: Collection[int]
) -> list[Box]:
    """The boxes with keys: one key for what does the same to inputs at the same distance."""
    place = {node: at for at, box in enumerate(boxes) for node in box.nodes}
    keys: dict[object, int] = {}
    found = []
    for at, box in enumerate(boxes):
        taken = [
            _FAR if one in shared else at - place[one]
            for node in box.nodes
            for one in inputs.get(node, ())
            if one in place
        ]
        shape = (
            tuple("" if node < 0 else labels.get(node, "") for node in box.nodes), bool(box.module),
            tuple(sorted(far if far <= _LONGEST else _FAR for far in taken)),
        )  # fmt: skip
        found.append(box._replace(key=keys.setdefault(shape, len(keys))))
    return found


def repeated(boxes: list[Box]) -> list[Box]:
    """Pieces that follow each other with the same keys as one box each, the ones that save most first."""
    keys = np.asarray([box.key for box in boxes])
    best = (0, 0, 0, 0)  # saved, -length, start, times
    for length in range(1, min(_LONGEST, len(boxes) // 2) + 1):
        same = keys[:-length] == keys[length:]
        edges = np.flatnonzero(np.diff(np.concatenate(([0], same.view(np.int8), [0]))))
        for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            times = (end - start) // length + 1
            saved = times * length - length
            if times > 1 and length * times > 2 and (saved, -length) > best[:2]:
                spare = range(start, end + length - times * length + 1)
                begin = next((at for at in spare if boxes[at].module), start)  # a layer begins with its module
                best = (saved, -length, begin, times)
    saved, length, start, times = best[0], -best[1], best[2], best[3]
    if not saved:
        return boxes
    end = start + times * length
    pieces = [
        boxes[at] if length == 1 else _joined(boxes[at : at + length]) for at in range(start, end, length)
    ]  # fmt: skip
    before, after = repeated(boxes[:start]) if start > 1 else boxes[:start], repeated(boxes[end:])
    return [*before, _joined(pieces, times=times), *after]
