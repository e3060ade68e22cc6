"""What every number of every table may be: the contract of `model.py` in a form that a loaded file is checked against.

A rule is a target (the numbers are indices into it; -1 is allowed where `none` says so) or a range. Whole columns are
checked at once with numpy, so that a large file costs little.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tensormagic.recording import model
from tensormagic.recording.model import TABLES, PathKind, Recording


class Rule(NamedTuple):
    """One field's rule: `low <= value`, and `value < len(target)` (or `<= high`) where one is named."""

    low: int | None = None
    target: str | None = None  # a table or side list of the Recording
    high: int | None = None
    one_past: bool = False  # the length itself is allowed: "the next one to come"


def to(target: str, none: bool = True) -> Rule:
    return Rule(-1 if none else 0, target)


def one_of(kinds: type[enum.IntEnum]) -> Rule:
    return Rule(0, high=max(kinds))


ANY = Rule()
COUNT = Rule(0)  # sizes, bit sets, positions
FROM_NONE = Rule(-1)
YES_NO = Rule(0, high=1)

# Rules of a field wherever it stands ...
COMMON: dict[str, Rule] = {
    "step": to("steps"), "call": to("calls"), "object": to("objects"), "storage": to("storages"),
    "flags": COUNT, "death": to("steps"), "blob": to("blobs"), "run": to("backwards", none=False),
    "version": FROM_NONE, "line": COUNT,
}  # fmt: skip
# ... and of those that mean something else in one table. `seq` numbers below 0 are -1 - object, so -1 is a leaf too.
RULES: dict[str, dict[str, Rule]] = {
    "steps": {
        "frame": to("frames", none=False), "kind": one_of(model.StepKind), "iteration": COUNT, "parent": to("steps"),
        "detail": YES_NO, "first_call": Rule(0, "calls", one_past=True),
    },
    "frames": {
        "function": to("strings", none=False), "file": to("strings"), "parent": to("frames"), "call_line": FROM_NONE,
    },
    "calls": {
        "function": to("strings", none=False), "args": to("strings"), "first_in": COUNT, "ins": COUNT,
        "first_out": COUNT, "outs": COUNT, "seq": FROM_NONE,
    },
    "inputs": {},
    "outputs": {"fresh": YES_NO},
    "objects": {"kind": one_of(model.ObjectKind), "type": to("strings", none=False)},
    "states": {
        "object": to("objects", none=False), "offset": ANY, "geometry": to("geometries", none=False),
        "node": ANY, "node_name": to("strings"),
    },
    "storages": {"nbytes": COUNT, "device": to("strings", none=False), "address": COUNT},
    "resizes": {"storage": to("storages", none=False), "nbytes": COUNT},
    "paths": {"parent": to("paths"), "kind": one_of(PathKind), "key": ANY},
    "bindings": {"frame": to("frames", none=False), "path": to("paths", none=False), "late": YES_NO},
    "writes": {
        "kind": one_of(model.WriteKind), "before": FROM_NONE, "after": FROM_NONE, "state": to("states"),
        "elements": to("elements"),
    },
    "snapshots": {"blob": to("blobs", none=False)},
    "nodes": {"seq": ANY, "name": to("strings", none=False), "saved": FROM_NONE},
    "edges": {"source": ANY, "slot": ANY, "target": ANY, "target_slot": ANY},
    "backwards": {"kind": to("strings", none=False), "root": to("objects"), "first_edge": COUNT, "edges": COUNT},
    "gradients": {"source": ANY, "slot": ANY, "target": ANY},
    "accumulations": {
        "before": to("blobs"), "added": to("blobs"), "after": to("blobs"), "grad": to("objects"), "in_place": YES_NO,
    },
    "walks": {"nodes": COUNT, "truncated": YES_NO},
    "optimizer_groups": {"group": COUNT, "first": COUNT, "size": COUNT},
    "members": {},
    "saved": {"seq": ANY, "attribute": to("strings"), "stale": one_of(model.SavedFlag)},
}  # fmt: skip
# (table, first, count, target): the row owns `count` rows of `target` from `first` on.
RANGES = [
    ("calls", "first_in", "ins", "inputs"), ("calls", "first_out", "outs", "outputs"),
    ("backwards", "first_edge", "edges", "gradients"), ("optimizer_groups", "first", "size", "members"),
]  # fmt: skip
# Fields that name a graph node by its sequence number, or a leaf as -1 - object.
LEAVES = [("nodes", "seq"), ("edges", "source"), ("edges", "target"), ("gradients", "source"), ("gradients", "target")]
# Chains that a reader follows upwards; a circle would never end.
CHAINS = ["steps", "frames", "paths"]
DEEPEST_PATH = 100


def rule_of(table: str, field: str) -> Rule:
    """The rule of a field; every field of every table has one (a test holds us to it)."""
    own = RULES[table]
    return own[field] if field in own else COMMON[field]


def problems(recording: Recording) -> Iterator[str]:
    """Sentences that say where a Recording breaks its contract: the first bad row of each field."""
    for name, row in TABLES.items():
        table = getattr(recording, name)
        for field in row._fields:  # type: ignore[attr-defined]
            values = np.asarray(table.column(field), np.int64)
            found = _broken(recording, rule_of(name, field), values)
            if found is not None:
                index, why = found
                yield f"table '{name}' row {index}: field '{field}' is {values[index]}, {why}"
    yield from _ranges(recording)
    yield from _leaves(recording)
    yield from _path_keys(recording)
    for name in CHAINS:
        circle = _circle(getattr(recording, name).column("parent"))
        if circle is not None:
            yield f"table '{name}' row {circle}: its parents go round in a circle"
        elif name == "paths":
            yield from _path_depths(recording)


def _broken(recording: Recording, rule: Rule, values: Any) -> tuple[int, str] | None:
    """The first row whose value breaks the rule, and what is wrong with it."""
    limits = []
    if rule.low is not None:
        limits.append((values < rule.low, f"but the smallest allowed is {rule.low}"))
    if rule.target is not None:
        length = len(getattr(recording, rule.target))
        limits.append((values >= length + rule.one_past, f"but there are {length} {rule.target}"))
    if rule.high is not None:
        limits.append((values > rule.high, f"but allowed are {rule.low} to {rule.high}"))
    for bad, why in limits:
        if bad.any():
            return int(np.argmax(bad)), why
    return None


def _ranges(recording: Recording) -> Iterator[str]:
    for name, first, count, target in RANGES:
        table = getattr(recording, name)
        length = len(getattr(recording, target))
        starts, counts = np.asarray(table.column(first)), np.asarray(table.column(count))
        bad = (counts > length) | (starts > length - np.minimum(counts, length))
        if bad.any():
            row = int(np.argmax(bad))
            yield (
                f"table '{name}' row {row}: '{first}' {starts[row]} and '{count}' {counts[row]} reach past the "
                f"{length} rows of '{target}'"
            )


def _leaves(recording: Recording) -> Iterator[str]:
    objects = len(recording.objects)
    for name, field in LEAVES:
        values = np.asarray(getattr(recording, name).column(field))
        bad = values < min(-objects, -1)
        if bad.any():
            row = int(np.argmax(bad))
            yield f"table '{name}' row {row}: field '{field}' is {values[row]}, but there are {objects} objects"


def _path_keys(recording: Recording) -> Iterator[str]:
    """The key of a path is a string, except that of an ITEM (a position) and of a GRAD (always `grad`)."""
    kinds, keys = (np.asarray(recording.paths.column(field)) for field in ("kind", "key"))
    strings = len(recording.strings)
    bad = (kinds != PathKind.ITEM) & ((keys >= strings) | (keys < 0)) & ~((kinds == PathKind.GRAD) & (keys == -1))
    if bad.any():
        row = int(np.argmax(bad))
        yield f"table 'paths' row {row}: field 'key' is {keys[row]}, but there are {strings} strings"


def _path_depths(recording: Recording) -> Iterator[str]:
    """A name has few segments; a chain of thousands would make every text that is built from it huge."""
    parents = np.append(np.asarray(recording.paths.column("parent"), np.int64), -1)  # the last stands for "none"
    ends = np.arange(len(parents) - 1)
    for _ in range(DEEPEST_PATH):
        ends = parents[ends]
    if (ends >= 0).any():
        yield f"table 'paths' row {int(np.argmax(ends >= 0))}: a name of more than {DEEPEST_PATH} segments"


def _circle(parents: Any) -> int | None:
    """A row whose chain of parents comes back to itself, or None. Every row is visited once."""
    ended = bytearray(len(parents))  # 1: the chain from here on is known to end
    for start in range(len(parents)):
        chain = []
        row = start
        while 0 <= row < len(parents) and not ended[row]:
            ended[row] = 2  # on the chain that is being followed
            chain.append(row)
            row = parents[row]
            if 0 <= row < len(parents) and ended[row] == 2:
                return int(row)
        for row in chain:
            ended[row] = 1
    return None
