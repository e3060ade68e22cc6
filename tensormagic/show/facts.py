"""What all parts of the view ask: one look-up a question, made once a view."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from tensormagic.analysis.findings.base import Facts, short
from tensormagic.analysis.names import Named, NamesAt
from tensormagic.recording.model import Accumulation, Binding, StateFlag
from tensormagic.show import numbers
from tensormagic.show.words import catalogue

MOST_STEPS = 1000  # steps that a view holds; loops are thinned beyond it


class Seen(Facts):
    """Facts with the words of a language and the steps that the view shows.

    Attributes:
        shown: the recording's step numbers that are steps of the view, in order.
    """

    def __init__(self, trace: Any, language: str = "en") -> None:
        super().__init__(trace.index)
        self.trace = trace
        self.words = catalogue(language)
        self.shown = _shown(self)
        self._dicts: dict[int, dict[str, Named]] = {}

    def at(self, step: int) -> dict[str, Named]:
        """Text -> what it stood for after a step, tensors and arrays alone."""
        found = self._dicts.get(step)
        if found is None:
            names = NamesAt(self.index, step)
            tensors = ((text, names[text]) for text in names.tensors())
            found = {text: named for text, named in tensors if named.state is not None and self.concerns(text, named)}
            if len(self._dicts) > 4:
                self._dicts.clear()
            self._dicts[step] = found
        return found

    @functools.cached_property
    def _backwards(self) -> dict[int, list[int]]:
        return _grouped(self.recording.backwards.column("step"))

    def backwards_of(self, step: int) -> list[int]:
        """The backward runs of a step."""
        return self._backwards.get(step, [])

    @functools.cached_property
    def _accumulations(self) -> dict[int, list[int]]:
        return _grouped(self.recording.accumulations.column("run"))

    def accumulations_of(self, run: int) -> list[Accumulation]:
        """What a backward run did to each leaf that it reached."""
        return [self.recording.accumulations[row] for row in self._accumulations.get(run, [])]

    @functools.cached_property
    def _bindings(self) -> dict[int, list[int]]:
        return _grouped(self.recording.bindings.column("step"))

    def bindings_of(self, step: int) -> list[Binding]:
        """The names that were bound or unbound by a step."""
        return [self.recording.bindings[row] for row in self._bindings.get(step, [])]

    @functools.cached_property
    def node_tensors(self) -> dict[int, tuple[str, int]]:
        """Node of the graph -> (name, storage) of the tensor that it is the grad_fn of, where that has a name."""
        found: dict[int, tuple[str, int]] = {}
        for state in self.recording.states:
            if state.node >= 0 and state.node not in found and self.names(state.object):
                found[state.node] = (self.name(state.object), state.storage)
        return found

    @functools.cached_property
    def concerned(self) -> set[int]:
        """Storages that the cell had to do with: a call took or gave them, a name was bound to them, or they changed."""
        recording = self.recording
        objects = {row.object for row in recording.inputs} | {row.object for row in recording.outputs}
        objects |= {row.object for row in recording.bindings if row.step >= 0 and row.object >= 0}
        found = {state.storage for state in recording.states if state.object in objects}
        return found | {write.storage for write in recording.writes}

    def concerns(self, text: str, named: Named) -> bool:
        """Is the name shown? One of an earlier cell that this cell did not touch would only be in the way."""
        if named.state is None or named.state.storage in self.concerned:
            return True
        variable = text.split(".", 1)[0].split("[", 1)[0]
        return variable in self.mentioned

    @functools.cached_property
    def mentioned(self) -> set[str]:
        """Words of the cell's source: a name that is read without a torch call is one of them."""
        return set(re.findall(r"[^\W\d]\w*", self.recording.sources.get(self.recording.cell, "")))

    def place(self, step: int) -> int:
        """The view's step at which a step of the recording is over: the first shown one that is not before it."""
        return min(bisect_right(self.shown, step - 1), len(self.shown) - 1) if self.shown else -1

    def say(self, key: str, **facts: Any) -> str:
        return str(self.words.SAY[key]).format(**facts)

    def name(self, object: int, otherwise: str | None = None) -> str:
        """The shortest name of an object; `otherwise`, or words for it, where it has none."""
        return super().name(object, self.say("unnamed") if otherwise is None else otherwise)

    def shape(self, dimensions: tuple[int, ...]) -> str:
        return numbers.shape(dimensions) if dimensions else self.say("scalar")

    def storage(self, number: int) -> str:
        return f"S{number + 1}"

    def operand(self, object: int, depth: int = 0) -> str:
        """What stands for a tensor in the text of a call: its name, or the call that made it on the way."""
        name = self.name(object, "")
        maker = self.index.maker(object)
        if name or maker < 0 or depth > 1:
            return name or "…"
        text = self.call_text(maker, depth + 1)
        return f"({text})" if " " in text else text

    def call_text(self, call: int, depth: int = 0) -> str:
        """A call as a person writes it: `x.detach()`, `d[:2]`, `(y ** 2).sum()`."""
        function, args = self.index.function(call), self.index.args(call)
        names = [self.operand(item.object, depth) for item in self.index.inputs(call)[:6]]
        last = short(function)
        if function.startswith("Tensor.") and names:
            if last == "__getitem__":
                inner = args[1:-1].rstrip(",") if args.startswith("(") and args.endswith(")") else args
                return f"{names[0]}[{inner or '…'}]"
            if last in ATTRIBUTES:
                return f"{names[0]}.{last}"
            operator = _OPERATORS.get(last)
            if operator and (len(names) > 1 or args):
                return f"{names[0]} {operator} {names[1] if len(names) > 1 else args}"
            return f"{names[0]}.{last}({args.replace('tensor', names[1], 1) if len(names) > 1 else args})"
        return f"{last}({', '.join(names) or args})"


ATTRIBUTES = ("data", "grad", "T", "mT", "real", "imag", "H", "mH")  # of a tensor, that are calls of torch
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "matmul": "@", "__matmul__": "@", "__add__": "+",
    "__mul__": "*", "__sub__": "-", "__truediv__": "/", "__pow__": "**", "__iadd__": "+=", "__imul__": "*=",
    "__isub__": "-=", "__itruediv__": "/=",
}  # fmt: skip


def _grouped(column: Iterable[int]) -> dict[int, list[int]]:
    """value -> the rows that have it."""
    found: dict[int, list[int]] = {}
    for row, value in enumerate(column):
        found.setdefault(value, []).append(row)
    return found


def _shown(facts: Facts) -> list[int]:
    """Steps in detail, the last time round of each loop, and the last step; thinned to MOST_STEPS."""
    steps = facts.recording.steps
    total = len(steps)
    keep = [number for number, detail in enumerate(steps.column("detail")) if detail]
    if len(keep) < total:
        last: dict[tuple[int, int], int] = {}
        for number in range(total):
            row = steps[number]
            last[row.frame if row.frame == 0 else -1, row.line] = number
        keep = sorted(set(keep) | set(last.values()) | {total - 1})
    if len(keep) > MOST_STEPS:
        keep = keep[: MOST_STEPS // 2] + keep[-MOST_STEPS // 2 :]
    return keep


def wants(named: Named) -> bool:
    return bool(named.state is not None and named.state.flags & StateFlag.REQUIRES_GRAD)


def leaf(named: Named) -> bool:
    return bool(named.state is not None and named.state.flags & StateFlag.LEAF)
