"""Turns executed lines into steps: which frame, which statement, which call they belong to, and what to look at after.

A step ends when the next line of its frame begins or the frame is left; only then is looked at what names stand for.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

from tensormagic.recording.model import NONE, Recording, Step, StepKind
from tensormagic.watch import private
from tensormagic.watch.clock import Clock
from tensormagic.watch.loops import Loop, Loops, Rounds
from tensormagic.watch.names import Names, hidden
from tensormagic.watch.options import Options
from tensormagic.watch.writes import Writes

_FUNCTION = 0x1  # co_flags: locals are fast, so the code is a function's
_STEP = len(Step._fields)
_LINE = int(StepKind.LINE)  # a plain number: finding it in the enum costs more than the rest of `line`


class Activation:
    """A frame that runs."""

    __slots__ = (
        "called", "counts", "ending", "file", "frame", "line", "near", "parent", "raised", "root", "rounds", "step",
        "stored",
    )  # fmt: skip

    def __init__(self, frame: int, file: int, parent: Activation | None, root: bool) -> None:
        self.frame = frame  # index into frames
        self.file = file
        self.parent = parent
        self.root = root  # its locals are the cell's namespace
        self.step = NONE
        self.line = NONE
        self.counts: dict[int, int] = {}  # line -> executions in this activation
        self.stored: dict[int, tuple[str, ...]] | None = None  # line -> names that it stores
        self.rounds: Rounds | None = None  # of its loops, once it came to one
        # Of the line that runs: is every loop around it, in the functions that called this one too, in its last round?
        self.ending = self.called = root or parent is None or parent.ending
        self.near = self.called  # it may be: ask


class Steps:
    """The listener of the line watcher (see `lines.Listener`).

    Args:
        recording, clock, names, writes: what the watchers of one trace share.
        options: bounds.
        variables: gives the cell's names.
        cell: file name of the cell's code.
        statements: file name -> {line -> first line of its statement}, asked once a file.
        loops: file name -> its loops, asked once a file.
    """

    def __init__(
        self, recording: Recording, clock: Clock, names: Names, writes: Writes, options: Options,
        variables: Callable[[], dict[str, Any]], cell: str, statements: Callable[[str], dict[int, int]],
        loops: Callable[[str], Loops],
    ) -> None:  # fmt: skip
        self.recording, self.clock, self.names, self.writes, self.options = recording, clock, names, writes, options
        self.variables, self.cell, self.statements, self.loops_of = variables, cell, statements, loops
        self.active: dict[int, Activation] = {}  # id of a running or paused frame
        self.top: Activation | None = None
        self.order: list[int] = []  # steps as they ended
        self.totals: dict[tuple[int, int], int] = {}  # (file, line) -> executions
        self.starts: dict[int, dict[int, int]] = {}  # file -> statements
        self.loops: dict[int, Loops] = {}
        self.ends: dict[tuple[int, int], int] = {}  # (file, line) -> executions in full because a loop was ending
        self.stored: dict[CodeType, dict[int, tuple[str, ...]]] = {}
        self.stored_at: dict[str, int] = {}  # name -> the light step that stored it last
        self.stale = False  # light steps have run since the last full look
        self.over = 0
        self.last_met = (0, 0, 0)  # frame, line and instruction, see `met`
        recording.frames.add(clock.string(""), clock.string(cell), NONE, NONE)

    # ---- what the line watcher tells -----------------------------------------------------------------------------

    def entered(self, frame: FrameType) -> None:
        code = frame.f_code
        file = self.clock.string(code.co_filename)
        parent = self.top
        root = parent is None or not code.co_flags & _FUNCTION  # the cell's own code, in one piece or in several
        if root:
            number = 0
        else:
            number = len(self.recording.frames)
            name = getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")
            self.recording.frames.add(self.clock.string(name), file, parent.frame, parent.line)  # type: ignore[union-attr]
        if file not in self.starts:
            self.learn(code.co_filename)
        self.top = self.active[id(frame)] = Activation(number, file, parent, root)

    def learn(self, filename: str) -> None:
        """Read a file's statements and loops. The cell's are read before it runs: parsing silences warnings for a
        moment, and a Ctrl-C at that moment would leave them silent."""
        file = self.clock.string(filename)
        self.starts[file] = self.statements(filename)
        self.loops[file] = self.loops_of(filename)

    def line(self, frame: FrameType, line: int) -> None:
        active = self.active.get(id(frame))
        if active is None:
            self.entered(frame)
            active = self.top
            assert active is not None
        starts = self.starts[active.file]
        first = starts.get(line)
        if first is not None:
            if active.line == first and active.step >= 0:
                return  # still the same statement, on another of its lines
            line = first
        if active.step >= 0:
            self._end(active, frame, _LINE)
        self._begin(active, frame, line)

    def left(self, frame: FrameType, raised: bool) -> None:
        active = self.active.pop(id(frame), None)
        if active is None:
            return
        if active.step >= 0:
            self._end(active, frame, StepKind.RAISED if raised else StepKind.RETURN)
        if not active.root:
            self.names.forget(active.frame)
        self._back_to(active.parent)

    def paused(self, frame: FrameType) -> None:
        active = self.active.get(id(frame))
        if active is not None:
            self._back_to(active.parent)

    def resumed(self, frame: FrameType) -> None:
        active = self.active.get(id(frame))
        if active is None:
            self.entered(frame)
            return
        if active is not self.top:
            active.parent = self.top
        self.top = active
        self._running(active.step)

    def met(self, frame: FrameType) -> None:
        """A watched frame is met at a line that nobody told, and frames may have ended without a word."""
        running = set()
        above: FrameType | None = frame
        while above is not None:
            running.add(id(above))
            above = above.f_back
        for key, active in reversed(list(self.active.items())):
            if key not in running:
                del self.active[key]
                if active.step >= 0:
                    self.order.append(active.step)
                    active.step = NONE
        while self.top is not None and not any(active is self.top for active in self.active.values()):
            self._back_to(self.top.parent)
        before, at = self.last_met, (id(frame), frame.f_lineno, frame.f_lasti)
        self.last_met = at
        if before[:2] != at[:2] or at[2] <= before[2] or id(frame) not in self.active:  # else a later call of the line
            self.line(frame, frame.f_lineno)

    def failed(self, error: BaseException) -> None:
        self.clock.fault("lines", error)

    # ---- steps ---------------------------------------------------------------------------------------------------

    def _begin(self, active: Activation, frame: FrameType, line: int) -> None:
        recording, clock = self.recording, self.clock
        loop = self.loops[active.file].heads.get(line)
        if loop is not None:
            self._head(active, frame, loop)
        active.line = line
        key = (active.file, line)
        total = self.totals[key] = self.totals.get(key, 0) + 1
        steps, calls = recording.steps, recording.calls
        number = len(steps.flat) // _STEP
        if number >= self.options.max_steps:
            self.over += 1
            active.step = NONE
            clock.detail = False
            return
        detail = total <= self.options.first
        if active.near:
            active.ending = self._is_ending(active, line)
            if active.ending and not detail:
                count = self.ends[key] = self.ends.get(key, 0) + 1
                detail = count <= self.options.first
        if self.writes.memory.freed:
            self.writes.memory.note_freed()  # in the line that called this one
        if detail and self.stale:
            self.stale = False
            self._look(active, frame, late=1)
        iteration = active.counts[line] = active.counts.get(line, -1) + 1
        active.step = clock.step = number
        parent = active.parent.step if active.parent is not None else NONE
        steps.flat.frombytes(
            steps.pack(active.frame, line, 0, iteration, parent, detail, len(calls.flat) // calls.width)
        )
        clock.detail = detail

    def _head(self, active: Activation, frame: FrameType, loop: Loop) -> None:
        """The header of a loop is about to run: does the last round begin?"""
        rounds = active.rounds
        if rounds is None:
            rounds = active.rounds = Rounds()
        if not loop.first <= active.line <= loop.last:  # it comes from outside the loop's body
            names = self.variables() if active.root else frame.f_locals
            rounds.begin(loop, lambda name: names.get(name, frame.f_globals.get(name)))
        rounds.head(loop)
        active.near = active.called and (bool(rounds.ending) or rounds.left[loop.line] < 0)
        active.ending = False

    def _is_ending(self, active: Activation, line: int) -> bool:
        """Are all loops around the line in their last round?"""
        around = self.loops[active.file].around.get(line, ())
        ending = active.rounds.ending if active.rounds is not None else ()
        return all(head in ending for head in around)

    def _end(self, active: Activation, frame: FrameType, kind: int) -> None:
        recording, step = self.recording, active.step
        self.order.append(step)
        if kind:
            recording.steps.flat[step * _STEP + 2] = kind
        self.clock.step = step
        if self.writes.memory.freed:
            self.writes.memory.note_freed()
        if recording.steps.flat[step * _STEP + 5]:
            self._look(active, frame, late=0)
        else:  # a light step: note which names its line stored, and nothing of what they stand for
            self.stale = True
            if active.root:
                stored = active.stored
                if stored is None:
                    stored = active.stored = self._stored_by(active, frame.f_code)
                for name in stored.get(active.line, ()):
                    self.stored_at[name] = step
            if self.writes.written:
                self.writes.written.clear()
        active.step = NONE

    def _look(self, active: Activation, frame: FrameType, late: int) -> None:
        with private.no_torch_function():
            self.writes.begin_look()
            self.names.look(0, self.variables(), late, self.stored_at)
            self.stored_at.clear()
            if not active.root:
                self.names.look(active.frame, frame.f_locals, late=late)
            self.writes.end_look()

    def _stored_by(self, active: Activation, code: CodeType) -> dict[int, tuple[str, ...]]:
        """Line -> names that it stores; of several activations of one code worked out once."""
        by_line = self.stored.get(code)
        if by_line is None:
            by_line = self.stored[code] = _stored(code, self.starts[active.file])
        return by_line

    def _back_to(self, parent: Activation | None) -> None:
        self.top = parent
        self._running(parent.step if parent is not None else NONE)

    def _running(self, step: int) -> None:
        self.clock.step = step
        if step >= 0:
            steps = self.recording.steps
            self.clock.detail = bool(steps.flat[step * steps.width + 5])

    def finish(self) -> None:
        """End what has not ended (the trace stopped inside frames) and number the steps by their end."""
        for active in reversed(list(self.active.values())):
            if active.step >= 0:
                self.order.append(active.step)
        self.active.clear()
        self.top = None
        self.stored.clear()
        if self.over:
            self.clock.notice("steps-bound", steps=self.options.max_steps, more=self.over)
        renumber(self.recording, self.order)


_STORES = {"STORE_NAME", "STORE_GLOBAL", "STORE_FAST", "STORE_DEREF", "DELETE_NAME", "DELETE_GLOBAL", "DELETE_FAST"}


def _stored(code: CodeType, starts: dict[int, int]) -> dict[int, tuple[str, ...]]:
    """Line -> names that its instructions store."""
    result: dict[int, dict[str, None]] = {}
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        if instruction.starts_line is not None and instruction.starts_line is not False:
            number = getattr(instruction, "line_number", None) or instruction.starts_line
            line = starts.get(int(number), int(number))
        if instruction.opname in _STORES and not hidden(str(instruction.argval)):
            result.setdefault(line, {})[str(instruction.argval)] = None
    return {line: tuple(names) for line, names in result.items()}


_STEP_FIELDS = (
    ("steps", "parent"), ("calls", "step"), ("objects", "step"), ("objects", "death"), ("states", "step"),
    ("storages", "step"), ("storages", "death"), ("resizes", "step"), ("bindings", "step"), ("writes", "step"),
    ("snapshots", "step"), ("backwards", "step"), ("walks", "step"), ("optimizer_groups", "step"),
)  # fmt: skip


def renumber(recording: Recording, order: list[int]) -> None:
    """Number steps in the order in which they ended, everywhere."""
    if order == list(range(len(order))) and len(order) == len(recording.steps):
        return
    ended = set(order)
    order = order + [step for step in range(len(recording.steps)) if step not in ended]
    new = [0] * len(order)
    for position, step in enumerate(order):
        new[step] = position
    steps, width = recording.steps, recording.steps.width
    flat = steps.flat
    rows = [flat[step * width : (step + 1) * width] for step in order]
    for position, row in enumerate(rows):
        flat[position * width : (position + 1) * width] = row
    for table, field in _STEP_FIELDS:
        column = getattr(recording, table).column(field)
        getattr(recording, table).set_column(field, [new[step] if step >= 0 else step for step in column])
    for notice in recording.notices:
        if notice.step >= 0:
            notice.step = new[notice.step]
