"""Where data went and where gradients came back.

Two graphs lie over each other: the calls, through which data flows whether or not autograd follows, and autograd's own
nodes. Where a call takes a tensor that wants a gradient and gives one that does not, the gradient is cut.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

from tensormagic.analysis.index import Index
from tensormagic.analysis.switches import switch_line
from tensormagic.recording.model import CallFlag, State, StateFlag

# Calls that hand values to Python or NumPy: nothing comes back from there.
VALUES_OUT = {
    "Tensor.item", "Tensor.tolist", "Tensor.numpy", "Tensor.__array__", "Tensor.__float__", "Tensor.__int__",
    "Tensor.__bool__", "Tensor.__index__", "Tensor.__complex__",
}  # fmt: skip
REWRAP = {"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy", "Tensor.new_tensor"}
# Not a use of the values: what only asks, clears, copies the layout or runs the engine.
NO_USE = {
    "Tensor.backward", "torch.autograd.backward", "torch.autograd.grad", "Tensor.grad", "Tensor.grad =",
    "Tensor.requires_grad_", "Tensor.requires_grad =", "Tensor.retain_grad", "torch.zeros_like", "torch.ones_like",
    "torch.empty_like", "torch.rand_like", "torch.randn_like", "torch.full_like", "Tensor.register_hook",
}  # fmt: skip


@dataclass(frozen=True)
class Cut:
    """Where the way back ends.

    Attributes:
        call: the call at which data went on and the gradient does not come back.
        reason: "detach", "data", "no_grad", "inference", "values", "rewrap", "integer", "no_derivative", "custom".
        line: the line that decided it: of the call, or of what switched gradients off.
        step: the step of that line.
        source, target: the tensor that wants a gradient, and the one that does not (-1: a Python value).
    """

    call: int
    reason: str
    line: int
    step: int
    source: int
    target: int


class Flow:
    """Cached answers about one recording's data flow and graph."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.recording = index.recording

    # ---- nodes and calls -----------------------------------------------------------------------------------------

    @functools.cached_property
    def _numbers(self) -> tuple[list[int], list[int]]:
        """(sequence numbers after a call, the calls), in order: the call that made a node is the first past it."""
        pairs = sorted((call.seq, number) for number, call in enumerate(self.recording.calls) if call.seq >= 0)
        return [seq for seq, _ in pairs], [number for _, number in pairs]

    @functools.cached_property
    def _node_makers(self) -> dict[int, int]:
        """Sequence number of a grad_fn -> the call that gave the tensor, where that was seen."""
        makers: dict[int, int] = {}
        for state in self.recording.states:
            if state.node >= 0 and state.call >= 0:
                makers.setdefault(state.node, state.call)
        return makers

    def call_of_node(self, seq: int) -> int:
        """The call that made a node of the graph, -1 where none was seen."""
        if seq < 0:
            return -1
        known = self._node_makers.get(seq)
        if known is not None:
            return known
        seqs, calls = self._numbers
        place = bisect_right(seqs, seq)
        return calls[place] if place < len(calls) else -1

    def step_of_node(self, seq: int) -> int:
        call = self.call_of_node(seq)
        return self.recording.calls[call].step if call >= 0 else -1

    def line_of_node(self, seq: int) -> int:
        """The line of the cell at which the call that made a node was made, -1 where none was seen."""
        return self.index.cell_line(self.step_of_node(seq))

    @functools.cached_property
    def node_names(self) -> dict[int, str]:
        return {node.seq: self.index.string(node.name) for node in self.recording.nodes}

    @functools.cached_property
    def edges(self) -> dict[int, list[int]]:
        """node -> the nodes that it sends gradients to; leaves are -1 - object."""
        edges: dict[int, list[int]] = defaultdict(list)
        for edge in self.recording.edges:
            edges[edge.source].append(edge.target)
        return edges

    def reachable(self, seq: int) -> set[int]:
        """Every node on the way back from one, leaves included."""
        seen: set[int] = set()
        stack = [seq]
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack.extend(self.edges.get(node, ()))
        return seen

    # ---- states --------------------------------------------------------------------------------------------------

    def wants(self, object: int, call: int) -> bool:
        """Did the tensor want a gradient when `call` took it?"""
        state = self.index.state_before_call(object, call)
        return bool(state is not None and state.flags & StateFlag.REQUIRES_GRAD)

    def gave(self, object: int, call: int) -> State | None:
        """The state of a call's result as the call left it."""
        for row in self.index.state_rows(object):
            state = self.recording.states[row]
            if state.call == call:
                return state
        return self.index.state(object, self.recording.calls[call].step)

    # ---- cuts ----------------------------------------------------------------------------------------------------

    @functools.cached_property
    def cuts(self) -> dict[int, Cut]:
        """call -> the cut it made."""
        found = {}
        for number in range(len(self.recording.calls)):
            cut = self._cut(number)
            if cut is not None:
                found[number] = cut
        return found

    def _cut(self, number: int) -> Cut | None:
        index, row = self.index, self.recording.calls[number]
        function = index.function(number)
        if row.flags & CallFlag.RAISED or function in NO_USE or function.startswith("torch._C"):
            return None
        sources = [item.object for item in index.inputs(number) if self.wants(item.object, number)]
        if not sources:
            return None
        targets = [item.object for item in index.outputs(number)]
        states = [self.gave(target, number) for target in targets]
        if any(state is not None and state.flags & StateFlag.REQUIRES_GRAD for state in states):
            return None
        if not targets and function not in VALUES_OUT:
            return None
        return self._told(number, function, sources[0], targets[0] if targets else -1, states[0] if states else None)

    def _told(self, number: int, function: str, source: int, target: int, state: State | None) -> Cut:
        row = self.recording.calls[number]
        step, line = row.step, self.index.cell_line(row.step)
        dtype = self.index.geometry(state).dtype if state is not None else ""
        if function in VALUES_OUT:
            reason = "values"
        elif function in REWRAP:
            reason = "rewrap"
        elif function in ("Tensor.detach", "Tensor.detach_"):
            reason = "detach"
        elif function == "Tensor.data":
            reason = "data"
        elif dtype and not dtype.startswith(("float", "bfloat", "complex")):
            reason = "integer"
        elif row.flags & CallFlag.INFERENCE:
            reason = "inference"
            line = self._switch_around(row.step, ("inference_mode",)) or line
        elif not row.flags & CallFlag.GRAD_ENABLED:
            reason = "no_grad"
            off = self.switched_off(number)
            if off >= 0:
                step = self.recording.calls[off].step
                line = self._decorator(step, row.step) or self.index.cell_line(step)
        else:
            reason = "no_derivative"
        return Cut(number, reason, line, step, source, target)

    def _switch_around(self, step: int, modes: tuple[str, ...]) -> int:
        """The line of the cell that switched the mode on around a step or around what called it; 0 for none."""
        while step >= 0:
            if self.index.in_cell(step):
                line = switch_line(self.recording.sources[self.recording.cell], self.index.line_of(step), modes)
                if line > 0:
                    return line
            step = self.recording.steps[step].parent
        return 0

    def _decorator(self, off: int, step: int) -> int:
        """Gradients were switched off by the line `off`, which called what `step` ran in: the decorator that did it, or 0."""
        while step >= 0 and self.recording.steps[step].parent != off:
            step = self.recording.steps[step].parent
        if step < 0 or not self.index.in_cell(step):
            return 0
        source = self.recording.sources[self.recording.cell]
        return max(switch_line(source, self.index.line_of(step), decorators_only=True), 0)

    @functools.cached_property
    def _switches(self) -> list[tuple[int, bool]]:
        """(call, on) of every call that set the grad mode."""
        found = []
        for number in range(len(self.recording.calls)):
            if self.index.function(number).endswith("_set_grad_enabled"):
                found.append((number, "True" in self.index.args(number)))
        return found

    def switched_off(self, call: int) -> int:
        """The call that had switched gradients off when `call` ran; -1 where that was not seen.

        no_grad() sets the mode and sets back what it was: the one that counts is the first "off" of the latest run of
        "off" settings, since leaving an inner no_grad inside an outer one sets "off" again.
        """
        last = -1
        for number, on in self._switches:
            if number > call:
                break
            if on:
                last = -1
            elif last < 0:
                last = number
        return last

    # ---- following data ------------------------------------------------------------------------------------------

    def uses(self, object: int) -> list[int]:
        """The calls that used an object's values, in order."""
        return [
            call for call in self.index.calls_from(object)
            if self.index.function(call) not in NO_USE
            and not self.recording.calls[call].flags & CallFlag.RAISED
            and not self.is_bookkeeping(call)
        ]  # fmt: skip

    @functools.cached_property
    def _optimizer_spans(self) -> list[tuple[int, int]]:
        """(first, last) call of each optimizer step or zero_grad."""
        spans, stack = [], []
        for number in range(len(self.recording.calls)):
            function = self.index.function(number)
            if "_record_function_enter" in function:
                stack.append((number, self.index.args(number)))
            elif "_record_function_exit" in function and stack:
                start, text = stack.pop()
                if "Optimizer." in text:
                    spans.append((start, number))
        return sorted(spans)

    @functools.cached_property
    def steps(self) -> list[tuple[int, int]]:
        """(first, last) call of each optimizer step."""
        kinds = {call for call, kind in self.optimizer_calls if kind == "step"}
        return [span for span in self._optimizer_spans if span[0] in kinds]

    def is_bookkeeping(self, call: int) -> bool:
        """Does the call belong to an optimizer's step or zero_grad, or to the engine?"""
        if self.recording.calls[call].flags & CallFlag.IN_BACKWARD:
            return True
        place = bisect_right(self._optimizer_spans, (call, len(self.recording.calls))) - 1
        return place >= 0 and self._optimizer_spans[place][0] <= call <= self._optimizer_spans[place][1]

    @functools.cached_property
    def optimizer_calls(self) -> list[tuple[int, str]]:
        """(call, "step" or "zero_grad") of optimizers, in order."""
        found = []
        for number in range(len(self.recording.calls)):
            if "_record_function_enter" in self.index.function(number):
                text = self.index.args(number)
                for kind in ("step", "zero_grad"):
                    if f"Optimizer.{kind}#" in text:
                        found.append((number, kind))
        return found

    def forward(self, object: int) -> tuple[list[int], list[Cut]]:
        """Follow a tensor's data through the calls that autograd follows.

        Returns:
            the calls on the way, in order; the cuts at which the way ends.
        """
        calls: set[int] = set()
        cuts: dict[int, Cut] = {}
        seen = {object}
        stack = [object]
        while stack:
            current = stack.pop()
            for call in self.uses(current):
                if not self.wants(current, call):
                    continue
                calls.add(call)
                cut = self.cuts.get(call)
                if cut is not None:
                    cuts[call] = cut
                    continue
                for item in self.index.outputs(call):
                    if item.object not in seen:
                        seen.add(item.object)
                        stack.append(item.object)
        return sorted(calls), [cuts[call] for call in sorted(cuts)]

    def data_reaches(self, object: int) -> set[int]:
        """Every object that data of this one went into, cut or not."""
        seen = {object}
        stack = [object]
        while stack:
            for call in self.uses(stack.pop()):
                for item in self.index.outputs(call):
                    if item.object not in seen:
                        seen.add(item.object)
                        stack.append(item.object)
        return seen

    @functools.cached_property
    def reached_leaves(self) -> dict[int, list[int]]:
        """leaf object -> the backward runs whose graph held it."""
        found: dict[int, list[int]] = defaultdict(list)
        for accumulation in self.recording.accumulations:
            found[accumulation.object].append(accumulation.run)
        return found

    @functools.cached_property
    def roots(self) -> list[int]:
        return [row.root for row in self.recording.backwards]
