"""Look-ups over a Recording, built when they are first asked for and kept: what all of `analysis/` stands on.

A Recording is rows in the order of time. An Index answers "which rows belong to this?" and "what was true after step
k?" without a walk over a whole table each time. It changes nothing, and a Recording must not change under it.

Time. Steps are numbered by their end, so a step that called a function has a larger number than the lines inside it.
What its earlier calls did is there all the same while the inner lines run: `happened` takes that into account.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

from tensormagic.analysis.source import code_of
from tensormagic.recording.model import (
    Binding,
    Frame,
    Geometry,
    Input,
    Object,
    ObjectKind,
    Output,
    PathKind,
    Recording,
    Snapshot,
    State,
)

Segments = tuple[tuple[int, "str | int"], ...]
"""A path as (PathKind, key) pairs: a name, or a position for ITEM, or the key's repr for KEY."""


class Index:
    """Cached look-ups over one Recording.

    Args:
        recording: it must not change as long as the Index is used.

    Every method that takes `step` means "after that step had run"; None is the end and -1 before the cell.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording

    @classmethod
    def of(cls, source: Recording | Index) -> Index:
        """The Index itself, or a new one of a Recording: for functions that take either."""
        return source if isinstance(source, Index) else cls(source)

    # -- time

    def check_step(self, step: int | None) -> int:
        """The number of a step, None taken as the last one (-1 where there is none).

        Raises:
            IndexError: there is no such step.
        """
        count = len(self.recording.steps)
        if step is None:
            return count - 1
        if not -1 <= step < count:
            raise IndexError(f"no step {step}: the trace has steps 0 to {count - 1}, and -1 for before the cell")
        return step

    def happened(self, step: int, call: int, by: int | None) -> bool:
        """Was what a row tells, noted during `step` by `call` (-1: by a look), there after step `by`?

        It was if its step had ended; or if its step was still running (it had called the function that `by` is a
        line of) and its call came before `by` began.
        """
        if by is None or step <= by:
            return True
        return by >= 0 and 0 <= call < self._first_calls[by]

    def happened_before_call(self, step: int, call: int, before: int) -> bool:
        """Was what a row tells there before call number `before` was made?"""
        if call >= 0:
            return call < before
        if step < 0:
            return True
        return step < self._call_steps[before] and self._first_calls[step] <= before

    @cached_property
    def _first_calls(self) -> list[int]:
        return list(self.recording.steps.column("first_call"))

    @cached_property
    def _call_steps(self) -> list[int]:
        return list(self.recording.calls.column("step"))

    # -- lines and steps

    def frame_of(self, step: int) -> Frame:
        """The frame in which a step ran."""
        return self.recording.frames[self.recording.steps[step].frame]

    def line_of(self, step: int) -> int:
        """The line of a step, in its frame's file; -1 for step -1."""
        return self.recording.steps[step].line if step >= 0 else -1

    def line_text(self, step: int) -> str:
        """The code of a step's line, without its indentation and its comment; "" where the source is not kept."""
        file = self.frame_of(step).file
        lines = self._lines.get(self.string(file), [])
        line = self.line_of(step)
        return code_of(lines[line - 1]) if 0 < line <= len(lines) else ""

    def in_cell(self, step: int) -> bool:
        """Does the step's line stand in the cell's own source?"""
        return self.string(self.frame_of(step).file) == self.recording.cell

    def cell_line(self, step: int) -> int:
        """The line of the cell that a step stands for: its own, or that which called it; -1 if none."""
        if step < 0:
            return -1
        line, frame = self.line_of(step), self.frame_of(step)
        while self.string(frame.file) != self.recording.cell:
            if frame.parent < 0:
                return -1
            line, frame = frame.call_line, self.recording.frames[frame.parent]
        return line

    def string(self, index: int) -> str:
        """A string of the recording; "" for -1."""
        return self.recording.strings[index] if index >= 0 else ""

    @cached_property
    def _lines(self) -> dict[str, list[str]]:
        return {file: text.splitlines() for file, text in self.recording.sources.items()}

    # -- calls

    def calls_of_step(self, step: int) -> list[int]:
        """The calls that a step made itself, in order."""
        return self._calls_by_step.get(step, [])

    def function(self, call: int) -> str:
        """A call's function: "Tensor.clone"."""
        return self.string(self._functions[call])

    @cached_property
    def _functions(self) -> array[int]:
        return self.recording.calls.column("function")

    def args(self, call: int) -> str:
        """A call's plain arguments as source text, "" where there are none."""
        return self.string(self.recording.calls[call].args)

    def inputs(self, call: int) -> list[Input]:
        """The tensors that went into a call."""
        row = self.recording.calls[call]
        return [self.recording.inputs[i] for i in range(row.first_in, row.first_in + row.ins)]

    def outputs(self, call: int) -> list[Output]:
        """The tensors that came out of a call."""
        row = self.recording.calls[call]
        return [self.recording.outputs[i] for i in range(row.first_out, row.first_out + row.outs)]

    def calls_from(self, object: int) -> list[int]:
        """The calls that an object went into, in order."""
        return self._calls_by_input.get(object, [])

    def calls_giving(self, object: int) -> list[int]:
        """The calls that returned an object, its making first."""
        return self._calls_by_output.get(object, [])

    def maker(self, object: int) -> int:
        """The call that made an object, -1 where none was seen."""
        return self.recording.objects[object].call

    @cached_property
    def _calls_by_step(self) -> dict[int, list[int]]:
        return _group(self.recording.calls.column("step"))

    @cached_property
    def _calls_by_input(self) -> dict[int, list[int]]:
        return self._calls_by_operand("first_in", "ins", self.recording.inputs.column("object"))

    @cached_property
    def _calls_by_output(self) -> dict[int, list[int]]:
        return self._calls_by_operand("first_out", "outs", self.recording.outputs.column("object"))

    def _calls_by_operand(self, first: str, count: str, objects: Sequence[int]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        calls = self.recording.calls
        for call, (start, n) in enumerate(zip(calls.column(first), calls.column(count), strict=True)):
            for object in dict.fromkeys(objects[start : start + n]):
                found[object].append(call)
        return dict(found)

    # -- objects and their states

    def object(self, object: int) -> Object:
        """An object's row."""
        return self.recording.objects[object]

    def has_memory(self, object: int) -> bool:
        """Is it a tensor or an array?"""
        return self.kinds[object] in (ObjectKind.TENSOR, ObjectKind.ARRAY)

    @cached_property
    def kinds(self) -> array[int]:
        """What each object is, an ObjectKind."""
        return self.recording.objects.column("kind")

    def state_rows(self, object: int) -> list[int]:
        """The rows of `states` that tell of an object, in order."""
        return self._states_by_object.get(object, [])

    def state_row(self, object: int, step: int | None = None) -> int:
        """The row of `states` that told of an object after `step`, -1 where nothing was known of it yet."""
        rows = self.state_rows(object)
        count = bisect_left(
            rows, True, key=lambda row: not self.happened(self._state_steps[row], self._state_calls[row], step)
        )
        return rows[count - 1] if count else -1

    def state(self, object: int, step: int | None = None) -> State | None:
        """What a tensor or array was after `step`; None where nothing was known of it yet."""
        row = self.state_row(object, step)
        return self.recording.states[row] if row >= 0 else None

    def state_before_call(self, object: int, call: int) -> State | None:
        """What a tensor or array was when a call took it; None where nothing was known of it yet."""
        rows = self.state_rows(object)
        count = bisect_left(
            rows,
            True,
            key=lambda row: not self.happened_before_call(self._state_steps[row], self._state_calls[row], call),
        )
        if not count and rows and self._state_calls[rows[0]] < 0 and call in self.calls_from(object):
            count = 1  # no call gave it: it was first seen when this call, or one before in the same line, took it
        return self.recording.states[rows[count - 1]] if count else None

    def geometry(self, state: State) -> Geometry:
        """Shape, stride and dtype of a state."""
        return self.recording.geometries[state.geometry]

    @cached_property
    def _states_by_object(self) -> dict[int, list[int]]:
        return _group(self.recording.states.column("object"))

    @cached_property
    def _state_steps(self) -> list[int]:
        return list(self.recording.states.column("step"))

    @cached_property
    def _state_calls(self) -> list[int]:
        return list(self.recording.states.column("call"))

    # -- storages

    def objects_on(self, storage: int) -> list[int]:
        """Every object that was ever on a storage, in the order in which they came to it."""
        return self._objects_by_storage.get(storage, [])

    def storage_nbytes(self, storage: int, step: int | None = None) -> int:
        """Bytes of a storage after `step`, changes of its size followed."""
        nbytes = self.recording.storages[storage].nbytes
        for row in self._resizes_by_storage.get(storage, []):
            resize = self.recording.resizes[row]
            if step is None or resize.step <= step:
                nbytes = resize.nbytes
        return nbytes

    def resized(self, storage: int) -> bool:
        """Was the storage's size ever changed? Then its memory may have moved away from the recorded address."""
        return storage in self._resizes_by_storage

    def alive(self, storage: int, step: int) -> bool:
        """Was a storage's memory still there after `step`?"""
        death = self.recording.storages[storage].death
        return death < 0 or death > step

    def writes_to(self, storage: int) -> list[int]:
        """The rows of `writes` that changed a storage, in order."""
        return self._writes_by_storage.get(storage, [])

    def writes_of_step(self, step: int) -> list[int]:
        """The rows of `writes` of a step."""
        return self._writes_by_step.get(step, [])

    def snapshot(self, storage: int, step: int | None = None, object: int = -1) -> Snapshot | None:
        """The newest values of a storage (or of one object) that were taken by the end of `step`, or None."""
        rows = self._snapshots.get((storage, object), [])
        count = len(rows) if step is None else bisect_right(rows, step, key=lambda r: self.recording.snapshots[r].step)
        return self.recording.snapshots[rows[count - 1]] if count else None

    @cached_property
    def _objects_by_storage(self) -> dict[int, list[int]]:
        states = self.recording.states
        found: dict[int, dict[int, None]] = defaultdict(dict)
        for storage, object in zip(states.column("storage"), states.column("object"), strict=True):
            found[storage][object] = None
        return {storage: list(objects) for storage, objects in found.items() if storage >= 0}

    @cached_property
    def _resizes_by_storage(self) -> dict[int, list[int]]:
        return _group(self.recording.resizes.column("storage"))

    @cached_property
    def _writes_by_storage(self) -> dict[int, list[int]]:
        return _group(self.recording.writes.column("storage"))

    @cached_property
    def _writes_by_step(self) -> dict[int, list[int]]:
        return _group(self.recording.writes.column("step"))

    @cached_property
    def _snapshots(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        for row, snapshot in enumerate(self.recording.snapshots):
            found[snapshot.storage, snapshot.object].append(row)
        steps = self.recording.snapshots.column("step")
        for rows in found.values():
            rows.sort(key=steps.__getitem__)
        return dict(found)

    # -- names

    def segments(self, path: int) -> Segments:
        """A path from its variable on."""
        return self._segments[path]

    def path_text(self, path: int) -> str:
        """A path as the user writes it: `net.fc.weight`, `memory[0]`, `best['weight']`."""
        return self._path_texts[path]

    def bindings(self, frame: int, path: int) -> list[Binding]:
        """What a path of a frame stood for, in order."""
        return [self.recording.bindings[row] for row in self.bindings_by_path.get((frame, path), [])]

    @cached_property
    def bindings_by_path(self) -> dict[tuple[int, int], list[int]]:
        """(frame, path) -> rows of `bindings`, in order; the keys in the order in which they were first bound."""
        found: dict[tuple[int, int], list[int]] = defaultdict(list)
        bindings = self.recording.bindings
        for row, key in enumerate(zip(bindings.column("frame"), bindings.column("path"), strict=True)):
            found[key].append(row)
        steps = bindings.column("step")
        for rows in found.values():
            rows.sort(key=steps.__getitem__)  # a binding counts from the end of its step, whenever it was written down
        return dict(found)

    @cached_property
    def timelines(self) -> dict[int, list[tuple[int, list[int], list[int]]]]:
        """frame -> (path, steps of its bindings, what they bound) of every name it had, the first bound first."""
        steps, objects = self.recording.bindings.column("step"), self.recording.bindings.column("object")
        found: dict[int, list[tuple[int, list[int], list[int]]]] = defaultdict(list)
        for (frame, path), rows in self.bindings_by_path.items():
            found[frame].append((path, [steps[row] for row in rows], [objects[row] for row in rows]))
        return dict(found)

    def named_before(self, frame: int, step: int) -> bool:
        """Was any name of a frame noted before `step`?"""
        return any(steps[0] < step for _path, steps, _objects in self.timelines.get(frame, []))

    @cached_property
    def parents(self) -> array[int]:
        """path -> the one it leads through, -1 of a variable."""
        return self.recording.paths.column("parent")

    @cached_property
    def bindings_of_object(self) -> dict[int, list[int]]:
        """object -> rows of `bindings` that bound a name to it, in order."""
        return _group(self.recording.bindings.column("object"))

    @cached_property
    def _segments(self) -> list[Segments]:
        rows = self.recording.paths
        kept: dict[int, Segments] = {-1: ()}
        for start in range(len(rows)):
            chain, path = [], start
            while path not in kept:  # a parent may come later in the table
                chain.append(path)
                path = rows[path].parent
            for path in reversed(chain):
                kept[path] = kept[rows[path].parent] + (self._segment(path),)
        return [kept[path] for path in range(len(rows))]

    def _segment(self, path: int) -> tuple[int, str | int]:
        _, kind, key = self.recording.paths[path]
        if kind == PathKind.ITEM:
            return kind, key
        return kind, "grad" if kind == PathKind.GRAD else self.string(key)

    @cached_property
    def _path_texts(self) -> list[str]:
        return ["".join(map(segment_text, segments)) for segments in self._segments]


@lru_cache(maxsize=65536)
def segment_text(segment: tuple[int, str | int]) -> str:
    """One segment of a name as the user writes it."""
    kind, key = segment
    if kind == PathKind.VARIABLE:
        return str(key)
    return f"[{key}]" if kind in (PathKind.ITEM, PathKind.KEY) else f".{key}"


def _group(column: Iterable[int]) -> dict[int, list[int]]:
    """value -> the rows that have it, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for row, value in enumerate(column):
        found[value].append(row)
    return dict(found)
