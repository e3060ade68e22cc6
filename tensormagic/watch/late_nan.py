"""A NaN past the bound of detail: found at a loss, traced back to the call that most likely gave it.

Light calls are not looked at one by one. A loss costs little to look at, when backward begins or `.item()` takes it;
only when it holds a NaN, once or twice in a trace, is its graph walked. What is known then of the values on the way are
the leaves, and the tensors that the running frames have names for. Nothing that nodes saved is read: where the program
packs what is saved (checkpoint, save_on_cpu), reading runs its code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import torch

from tensormagic.recording.model import CallFlag, Recording
from tensormagic.watch import private, raw
from tensormagic.watch.graph import NOWHERE, Graph

_TIMES = 3  # searches in one trace
_ELEMENTS = 1 << 20  # of a tensor that is looked at
_ITEMS = 32  # of a container
# Nodes of operations that can give a NaN from numbers: all others only hand one on.
_CAPABLE = re.compile(
    r"(Log|Sqrt|Rsqrt|Pow|Div|Reciprocal|A(cos|sin|tanh|cosh)h?B|Lgamma|Digamma|Softmax|Std|Var|.*Norm|CosineSimilarity"
    r"|NllLoss|Fmod|Remainder|Xlogy|BinaryCrossEntropy)"
)
_BAD, _FINE, _UNSURE = 2, 0, 1


class LateNaN:
    """Looks at losses of light steps; marks the call that most likely gave the first NaN.

    Args:
        recording, graph: what the watchers of one trace share.
        is_user_code: is this code the user's?
    """

    def __init__(self, recording: Recording, graph: Graph, is_user_code: Callable[[CodeType], bool]) -> None:
        self.recording, self.graph, self.is_user_code = recording, graph, is_user_code
        self.left = _TIMES

    def loss(self, tensor: Any) -> None:
        """Look at what a light backward begins with."""
        if self.left and raw.is_nan(tensor):
            self.search(tensor)

    def search(self, tensor: Any) -> None:
        """Mark the call that most likely gave the first NaN of those on the way to a tensor that holds one."""
        node = private.get_grad_fn(tensor) if self.left else None
        if node is None:
            return
        self.left -= 1
        nodes, edges, truncated = self.graph.walk([node])
        if truncated or any(_holds_nan(one.variable) for number, one in nodes.items() if number < 0):
            return  # a leaf has it already: the step or the backward of an earlier round made it
        known = self._known()
        if known is None:
            return
        known[self.graph.number(node)] = _BAD
        born = _born(nodes, edges, known)
        if born is not None:
            self._mark(born)
            self.left = 0

    def _known(self) -> dict[int, int] | None:
        """Node -> does its result hold a NaN, of the tensors with a name; None where one from outside the graph does."""
        known: dict[int, int] = {}
        for value in self._named():
            node = private.get_grad_fn(value) if private.get_requires_grad(value) else None
            bad = _holds_nan(value)
            if node is not None:
                known[self.graph.number(node)] = _BAD if bad else _FINE
            elif bad and not private.get_requires_grad(value):
                return None  # data with a NaN in it: no operation of the graph need have made it
        return known

    def _named(self) -> Iterator[Any]:
        """The plain tensors that the user's running frames have names for, in containers too."""
        frame = sys._getframe(1)
        while frame is not None:
            if self.is_user_code(frame.f_code):
                for value in list(frame.f_locals.values()):
                    kind = type(value)
                    items = value if kind in (list, tuple) else value.values() if kind is dict else (value,)
                    for _, item in zip(range(_ITEMS), list(items) if kind is dict else items, strict=False):
                        if type(item) is torch.Tensor or type(item) is torch.nn.Parameter:
                            yield item
            frame = frame.f_back  # type: ignore[assignment]

    def _mark(self, node: int) -> None:
        calls = self.recording.calls
        for call, seq in enumerate(calls.column("seq")):
            if seq > node:
                flags = calls.column("flags")
                flags[call] |= int(CallFlag.NAN_OUT)
                calls.set_column("flags", flags)
                return


def _holds_nan(tensor: Any) -> bool:
    if not raw.is_inexact(tensor) or private.numel(tensor) > _ELEMENTS:
        return False
    array = raw.view(tensor)
    return array is not None and raw.non_finite(array, private.get_dtype(tensor) is torch.bfloat16)[0] > 0


def _born(nodes: dict[int, Any], edges: dict[int, list[tuple[int, int]]], known: dict[int, int]) -> int | None:
    """The one node that can have given the first NaN, None where there are several.

    Args:
        nodes, edges: of a walk; a node's number is larger than those of the nodes that it hands gradients to.
        known: node -> _BAD or _FINE, where its result was looked at.
    """
    state: dict[int, int] = {}
    capable: dict[int, set[int]] = {}  # node -> the nodes at or before it that may have given a NaN
    for number in sorted(nodes):
        before = [target for target, _ in edges[number] if target != NOWHERE]
        suspects = set().union(*(capable.get(one, ()) for one in before if state.get(one) == _UNSURE))
        if number >= 0 and _CAPABLE.match(type(nodes[number]).__name__):
            suspects.add(number)
        told = known.get(number)
        if told == _BAD:
            return suspects.pop() if len(suspects) == 1 else None
        state[number] = _FINE if told == _FINE or not suspects else _UNSURE
        capable[number] = suspects
    return None
