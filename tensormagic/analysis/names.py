"""What every name stood for after a step, and how a name that a user wrote is found among them.

A name is compared by its segments, not by its letters: `best["weight"]` is `best['weight']`, `layers.0.weight` is
`layers[0].weight`, and a registered part of a module is found as an attribute or as an item. What goes on past a
tensor's name (`J[0]`, `x[1:3]`, `x[..., None, 0]`, `x.T`) is worked out by arithmetic from the tensor's geometry; no
expression is ever run.
"""

from __future__ import annotations

import ast
import difflib
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from tensormagic.analysis import indexing
from tensormagic.analysis.index import Index, Segments
from tensormagic.recording.model import ObjectKind, PathKind, Recording, State

Parsed = tuple[tuple[str, str], ...]
"""A written name: ('.', name) or ('[', canonical source of the index), the variable first."""

_REGISTERED = (PathKind.PARAMETER, PathKind.BUFFER, PathKind.SUBMODULE)
_CELL = 0  # the frame of the cell
_GROUP = 4  # segments of `.param_groups[0]['params'][1]`


class UnknownName(KeyError):
    """No such name at that step. `close` lists names that look like it, `gone` is the step that ended it, or -1."""

    def __init__(self, message: str, name: str, close: list[str], gone: int = -1) -> None:
        super().__init__(message)
        self.message, self.name, self.close, self.gone = message, name, close, gone

    def __str__(self) -> str:  # KeyError would show the sentence in quotes
        return self.message


class Named(NamedTuple):
    """What a name stands for."""

    text: str  # as recorded, with what was written behind it
    object: int  # -1: a part of a tensor that no object of the cell stands for (`x[0]`)
    state_row: int  # row of `states`, -1 for what is no tensor or array
    path: int
    frame: int
    state: State | None  # of a part: the whole tensor's, with its own offset
    shape: tuple[int, ...]
    stride: tuple[int, ...]  # elements; () where the layout has no strides
    itemsize: int
    base: int  # the object that the name (or the tensor a part is taken of) stands for


class NamesAt(Mapping[str, Named]):
    """All names after one step: a mapping from the text of a name to what it stood for.

    Inside a function its locals come first, then the cell's names; a local hides a cell's name of the same text. The
    order is that in which names were first bound. Look-up takes any spelling; iteration gives the recorded one.

    Args:
        index: of the recording.
        step: None is the end, -1 before the cell.
        frames: whose names, the innermost first; None takes the step's own frame and the cell's.
    """

    def __init__(self, index: Index, step: int | None = None, frames: Sequence[int] | None = None) -> None:
        self.index = index
        self.step = index.check_step(step)
        if frames is None:
            inner = _CELL if step is None or self.step < 0 else index.recording.steps[self.step].frame
            frames = [inner] if inner == _CELL else [inner, _CELL]
        self.frames = list(frames)
        self._entries = self._collect()

    def _collect(self) -> dict[str, tuple[int, int, int]]:
        """text -> (object, path, frame)"""
        found: dict[str, tuple[int, int, int]] = {}
        for frame in self.frames:
            current = _current(self.index, frame, self.step)
            ended = {path: step for path, (step, object) in current.items() if object < 0}
            for path, (step, object) in current.items():
                if object >= 0 and not (ended and self._cut_off(ended, path, step)):
                    found.setdefault(self.index.path_text(path), (object, path, frame))
        return found

    def _cut_off(self, ended: dict[int, int], path: int, step: int) -> bool:
        """Did something that the path leads through stop standing for an object after the path was bound?"""
        parents = self.index.parents
        parent = parents[path]
        while parent >= 0:
            if ended.get(parent, -1) > step:
                return True
            parent = parents[parent]
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> Named:
        """What a name stands for.

        Raises:
            UnknownName: nothing has that name now; lists close ones, and the step that ended it if there was one.
            ValueError: the text is no name, or the tensor cannot be indexed so.
        """
        if name in self._entries:
            return self._named(name, name, (), self._entries[name][0])
        parsed = parse(name)
        for length in range(len(parsed), 0, -1):
            text = self._spelled(parsed[:length])
            if text is None:
                continue
            object, rest = self._entries[text][0], parsed[length:]
            if rest and (member := self._member(object, rest)) >= 0:
                return self._named(text, name, rest[_GROUP:], member)._replace(text=text + _written(rest))
            if rest and not self.index.has_memory(object):
                break  # `net.nothing`: a shorter name would answer another question
            return self._named(text, name, rest, object)
        raise self._unknown(name, parsed)

    def tensors(self) -> list[str]:
        """The names of tensors, and of arrays that share memory with one."""
        return [name for name, (object, _, _) in self._entries.items() if self._has_state(object)]

    def _has_state(self, object: int) -> bool:
        kind = self.index.kinds[object]
        return kind == ObjectKind.TENSOR or (kind == ObjectKind.ARRAY and self.index.state_row(object, self.step) >= 0)

    def names_of(self, object: int) -> list[str]:
        """Every name of an object."""
        return [name for name, entry in self._entries.items() if entry[0] == object]

    def _member(self, optimizer: int, rest: Parsed) -> int:
        """The tensor of an optimizer that `.param_groups[0]['params'][1]` behind its name stands for, -1 for none."""
        keys = [key for _kind, key in rest[:_GROUP]]
        if self.index.kinds[optimizer] != ObjectKind.OPTIMIZER or len(keys) < _GROUP:
            return -1
        if keys[0] != "param_groups" or keys[2] != "'params'" or not (keys[1].isdigit() and keys[3].isdigit()):
            return -1
        found, recording = -1, self.index.recording
        for group in recording.optimizer_groups:
            if group.object == optimizer and group.group == int(keys[1]) and group.step <= self.step:
                place = int(keys[3])
                found = recording.members[group.first + place].object if place < group.size else -1
        return found

    def _named(self, text: str, written: str, rest: Parsed, object: int) -> Named:
        """What is written as a recorded name, its `object` (or one that it holds) and the `rest` behind that."""
        _, path, frame = self._entries[text]
        row = self.index.state_row(object, self.step) if self.index.has_memory(object) else -1
        if row < 0:
            if rest:
                raise ValueError(f"{written!r}: what {text} was at step {self.step} is not known")
            return Named(text, object, -1, path, frame, None, (), (), 0, object)
        state = self.index.recording.states[row]
        geometry = self.index.geometry(state)
        if not rest:
            return Named(
                text, object, row, path, frame, state, geometry.shape, geometry.stride, geometry.itemsize, object
            )
        if len(geometry.stride) != len(geometry.shape):
            raise ValueError(f"{written!r}: {text} has the layout {geometry.layout}, which has no strides to index")
        offset, shape, stride = state.offset, geometry.shape, geometry.stride
        for kind, key in rest:
            try:
                step = indexing.attribute if kind == "." else indexing.item
                offset, shape, stride = step(key, offset, shape, stride)
            except indexing.NotBasic as error:
                raise ValueError(f"{written!r}: {error}") from None
        whole = text + _written(rest)
        state = state._replace(object=-1, offset=offset)
        return Named(whole, -1, row, path, frame, state, shape, stride, geometry.itemsize, object)

    def _spelled(self, parsed: Parsed) -> str | None:
        """The recorded text of a written name."""
        for text, (_, path, _) in self._entries.items():
            if _fits(self.index.segments(path), parsed):
                return text
        return None

    def _unknown(self, name: str, parsed: Parsed) -> UnknownName:
        close = difflib.get_close_matches(name, list(self._entries), n=3, cutoff=0.5)
        bound = self._when(parsed)
        gone = next((at for at, object in reversed(bound) if at <= self.step and object < 0), -1)
        lasted = [at for at, object in bound if at <= self.step and object >= 0]
        later = [at for at, object in bound if at > self.step and object >= 0]
        where = "at the end" if self.step == len(self.index.recording.steps) - 1 else f"after step {self.step}"
        message = f"no name {name!r} {where}"
        if lasted:
            line = self.index.line_of(lasted[-1])
            message += f": it was last bound at step {lasted[-1]}, line {line}, and is gone"
            gone = max(gone, lasted[-1])
        elif later:
            message += f": it is first bound at step {later[0]}, line {self.index.line_of(later[0])}"
        if close:
            message += "; close to it: " + ", ".join(close)
        return UnknownName(message, name, close, gone)

    def _when(self, parsed: Parsed) -> list[tuple[int, int]]:
        """(step, object) of every binding of a name, in whatever frame, in order."""
        found = []
        for frame, path in self.index.bindings_by_path:
            if _fits(self.index.segments(path), parsed):
                found += [(binding.step, binding.object) for binding in self.index.bindings(frame, path)]
        return sorted(found, key=lambda pair: pair[0])


def at(source: Recording | Index, step: int | None = None) -> NamesAt:
    """What every name stood for after a step.

    Args:
        source: the recording, or an Index of it.
        step: None is the end, -1 before the cell.

    Raises:
        IndexError: there is no such step.
    """
    return NamesAt(Index.of(source), step)


def calling_frames(index: Index, step: int) -> list[int]:
    """The frame of a step, those that had called it, innermost first, and the cell's."""
    frames = [index.recording.steps[step].frame] if step >= 0 else []
    while frames and (parent := index.recording.frames[frames[-1]].parent) >= 0 and parent not in frames:
        frames.append(parent)
    return frames if _CELL in frames else [*frames, _CELL]


def _current(index: Index, frame: int, step: int) -> dict[int, tuple[int, int]]:
    """path -> (step, object) of its newest binding in a frame by the end of `step`."""
    found = {}
    for path, steps, objects in index.timelines.get(frame, ()):
        count = bisect_right(steps, step)
        if count:
            found[path] = (steps[count - 1], objects[count - 1])
    return found


# -- spelling


def _written(rest: Parsed) -> str:
    return "".join(f".{key}" if kind == "." else f"[{key}]" for kind, key in rest)


# Text in quotes and in brackets is passed over; `.0` outside them is an item.
_DOTTED = re.compile(r"""\[(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^\]'"])*\]|\.(\d+)(?![\w])""")


def parse(name: str) -> Parsed:
    """A written name in segments, the variable first.

    Raises:
        ValueError: the text is not a variable with attributes and indices behind it.
    """
    try:
        text = _DOTTED.sub(lambda m: m[0] if m[1] is None else f"[{int(m[1])}]", name.strip())
        node = _expression(text)
        segments = []
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            segments.append((".", node.attr) if isinstance(node, ast.Attribute) else ("[", _canonical(node.slice)))
            node = node.value
        variable = node.id if isinstance(node, ast.Name) else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: what ast raises for deep nesting
        variable = None
    if variable is None:
        raise ValueError(
            f"{name!r} is no name: expected a variable, then attributes and items, such as w, net.fc.weight, memory[0]"
        )
    segments.append((".", variable))
    return tuple(reversed(segments))


def _expression(text: str) -> ast.expr:
    """The syntax tree of an expression; a warning about its spelling (an unknown escape) is not the user's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text, mode="eval").body


def _canonical(node: ast.expr) -> str:
    """The source of an index in one spelling: quotes and spaces as `repr` has them, no brackets around a tuple."""
    if isinstance(node, ast.Tuple) and node.elts:
        parts = [ast.unparse(part) for part in node.elts]  # one by one: a slice may not stand in a bracketed tuple
        return ", ".join(parts) if len(parts) > 1 else f"{parts[0]},"
    return ast.unparse(node)


def _fits(segments: Segments, parsed: Parsed) -> bool:
    """Is the written name a spelling of the recorded path?"""
    return len(segments) == len(parsed) and all(map(_segment_fits, segments, parsed))


def _segment_fits(segment: tuple[int, str | int], written: tuple[str, str]) -> bool:
    kind, key = segment[0], str(segment[1])
    if kind == PathKind.ITEM:
        return written == ("[", key)
    if kind == PathKind.KEY:
        return written == ("[", _key_source(key))
    if written == (".", key):
        return True
    # A ModuleDict's part is `net['head']` and `net.head`, a Sequential's `net[0]` and `net.0`.
    return kind in _REGISTERED and written in (("[", repr(key)), ("[", key if key.isdigit() else repr(key)))


@lru_cache(maxsize=65536)
def _key_source(key: str) -> str:
    try:
        return _canonical(_expression(key))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the repr of some object: `<Color.RED: 1>`
        return key
