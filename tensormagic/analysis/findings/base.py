"""What a rule is, what it gives, and the facts that every rule may ask."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tensormagic.analysis.flow import Flow
from tensormagic.analysis.index import Index
from tensormagic.analysis.names import NamesAt
from tensormagic.analysis.source import parsed
from tensormagic.recording.model import (
    CallFlag,
    ErrorInfo,
    ObjectKind,
    PathKind,
    Recording,
    StateFlag,
    StepKind,
    WriteKind,
)

ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or about to be.

    Attributes:
        rule: id of the rule, as its page in docs/findings/ is called.
        severity: "error" (the cell raised because of it), "warning" (it is wrong), "note" (worth knowing).
        line: the line to change.
        names: the tensors (or modules, containers) it is about, as the user reaches them.
        lines: role -> line, for further lines ("saved", "modified", "raised", ...).
        message: one sentence.
        fix: what to write instead, as code where that is short.
        step: the step to show, -1 for none.
        phase, op: of `first-nan`: "forward" or "backward", and the operation.
    """

    rule: str
    severity: str
    line: int
    names: tuple[str, ...]
    message: str
    fix: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    step: int = -1
    phase: str = ""
    op: str = ""


@dataclass(frozen=True)
class Rule:
    """A rule and its page.

    Attributes:
        id: as in `Finding.rule`.
        sees, matters, example, instead, blind: the parts of its page: what it sees, why it matters, a minimal cell that
            it speaks on, what to write instead, what it cannot see.
        find: the rule itself.
    """

    id: str
    sees: str
    matters: str
    example: str
    instead: str
    blind: str
    find: Callable[[Facts], Iterator[Finding]]


class Facts:
    """What rules ask about one recording. Everything is worked out once and only when asked for."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.recording: Recording = index.recording
        self.flow = Flow(index)

    @property
    def error(self) -> ErrorInfo | None:
        return self.recording.error

    @functools.cached_property
    def raised_call(self) -> int:
        """The torch call that raised the exception which ended the cell, in its last line or in what that line called;
        -1 where no call there raised."""
        error, calls, steps = self.recording.error, self.recording.calls, self.recording.steps
        if error is None:
            return -1
        outermost = error.frames[0][2] if error.frames else error.line
        for number in range(len(calls) - 1, -1, -1):
            step = calls[number].step
            if not calls[number].flags & CallFlag.RAISED:
                continue
            while 0 <= step < error.step and steps[step].kind == StepKind.RAISED and steps[step].parent >= 0:
                step = steps[step].parent
            # After the line that raised, `finally` may still have run others: then the traceback's line tells.
            return number if step == error.step or self.index.line_of(step) == outermost else -1
        return -1

    @functools.cached_property
    def end(self) -> NamesAt:
        """Names at the end of the cell."""
        return NamesAt(self.index, None)

    @functools.cached_property
    def _ever(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for binding in self.recording.bindings:
            if binding.object >= 0:
                texts = found.setdefault(binding.object, [])
                text = self.index.path_text(binding.path)
                if text not in texts:
                    texts.append(text)
        return found

    @functools.cached_property
    def _now(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for text, named in self.end.items():
            found.setdefault(named.object, []).append(text)
        return found

    def names(self, object: int) -> tuple[str, ...]:
        """The names of an object at the end; those it had before where it has none then."""
        return tuple(self._now.get(object) or self._ever.get(object, ()))

    def all_names(self, object: int) -> tuple[str, ...]:
        """Every name that the object ever had, present ones first."""
        return tuple(dict.fromkeys((*self._now.get(object, ()), *self._ever.get(object, ()))))

    def name(self, object: int, otherwise: str = "a tensor without a name") -> str:
        """The shortest name of an object."""
        names = self.names(object)
        return min(names, key=lambda text: (len(text), text)) if names else otherwise

    def line(self, step: int) -> int:
        """The line of the cell that a step stands for, -1 for none.

        Of a step in a function that another cell defined it is the line that called it: every line of a finding is one
        of this cell, as the exception's is.
        """
        return self.index.cell_line(step)

    def line_of_call(self, call: int) -> int:
        return self.line(self.recording.calls[call].step) if call >= 0 else -1

    def spoken_of(self, step: int) -> list[str]:
        """The names of tensors that a step's line speaks of, for calls whose arguments were not seen; [] for step -1."""
        if step < 0:
            return []
        words = set(re.findall(r"[^\W\d]\w*", self.index.line_text(step)))
        frame = self.recording.steps[step].frame
        found = [
            name for row in self.recording.bindings
            if row.frame == frame and row.object >= 0 and self.index.object(row.object).kind == ObjectKind.TENSOR
            and (name := self.index.path_text(row.path)) in words
        ]  # fmt: skip
        return list(dict.fromkeys(found))

    def described(self, call: int) -> str:
        """A call in short, as people say it: `clone`, `pow`, `[...]`."""
        name = short(self.index.function(call)) if call >= 0 else ""
        return _SPOKEN.get(name) or (name.strip("_") if name.startswith("__") else name)

    @functools.cached_property
    def loops(self) -> list[tuple[str, int, int]]:
        """(file, first line, last line) of the bodies of all loops in the recorded sources."""
        return [
            (file, first, last) for file, text in self.recording.sources.items() for first, last in loop_bodies(text)
        ]

    def loop_of(self, step: int) -> tuple[str, int, int] | None:
        """The innermost loop body that a step's line stands in."""
        if step < 0:
            return None
        file, line = self.index.string(self.index.frame_of(step).file), self.index.line_of(step)
        inside = [loop for loop in self.loops if loop[0] == file and loop[1] <= line <= loop[2]]
        return max(inside, key=lambda loop: loop[1], default=None)

    def leaves(self) -> dict[int, str]:
        """Tensors with a name that are leaves and want a gradient at the end: object -> shortest name."""
        found: dict[int, str] = {}
        for named in self.end.values():
            state = named.state
            if state is None or named.object < 0 or named.object in found or self.index.object(named.object).kind:
                continue
            if state.flags & StateFlag.REQUIRES_GRAD and state.flags & StateFlag.LEAF:
                found[named.object] = self.name(named.object)
        return found

    def parameters(self) -> dict[int, str]:
        """Leaves that a module holds as parameters at the end: object -> shortest name."""
        found: dict[int, str] = {}
        for text, named in self.end.items():
            if self.recording.paths[named.path].kind == PathKind.PARAMETER and named.object >= 0:
                known = found.get(named.object)
                if known is None or len(text) < len(known):
                    found[named.object] = text
        return found


_SPOKEN = {"__getitem__": "[...]", "__setitem__": "[...] ="}


_UNWRITTEN = {
    "empty", "empty_like", "empty_strided", "empty_permuted", "new", "new_empty", "new_empty_strided", "resize_", "resize_as_",
}  # fmt: skip


def is_unwritten(function: str) -> bool:
    """Does a call give memory that nobody has written yet? What is found in it is left from before, not computed."""
    return function.rpartition(".")[2] in _UNWRITTEN


def light_before(facts: Facts, step: int) -> bool:
    """Did a step before this one leave a light record, so that what its calls gave was not looked at?"""
    return 0 in facts.recording.steps.column("detail")[:step]


def stepped_by_hand(facts: Facts, leaf: int) -> bool:
    """Was a leaf that backward reached written in place from its first gradient on: an update without an optimizer?"""
    state = facts.index.state(leaf)
    first = facts.recording.backwards[facts.flow.reached_leaves[leaf][0]].step
    rows = facts.index.writes_to(state.storage) if state is not None and state.storage >= 0 else []
    writes = (facts.recording.writes[row] for row in rows)
    return any(write.step >= first and write.kind != WriteKind.ACCUMULATE for write in writes)


def short(function: str) -> str:
    """The last part of a function's name: "Tensor.add_" -> "add_"; attributes stay as they are."""
    return function.rsplit(".", 1)[-1].removesuffix(" =")


def loop_bodies(source: str) -> list[tuple[int, int]]:
    """(first, last) line of the body of every for and while loop, from the source alone."""
    tree = parsed(source)
    return [
        (node.body[0].lineno, max(child.end_lineno or child.lineno for child in node.body))
        for node in (ast.walk(tree) if tree is not None else ()) if isinstance(node, (ast.For, ast.While, ast.AsyncFor))
    ]  # fmt: skip


def listed(names: tuple[str, ...] | list[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}" if quoted else ""
