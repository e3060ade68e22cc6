"""Where data went and where gradients came back.

Two graphs lie over each other: the calls, through which data flows whether or not autograd follows, and autograd's own
nodes. Where a call takes a tensor that wants a gradient and gives one that does not, the gradient is cut.
"""

from __future__ import annotations

import functools
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass

from tensormagic.analysis.custom import forward_frame
from tensormagic.analysis.index import Index
from tensormagic.analysis.switches import MODES, switch_line
from tensormagic.recording.model import CallFlag, State, StateFlag

# Calls that hand values to Python or NumPy: nothing comes back from there.
VALUES_OUT = {
    "Tensor.item", "Tensor.tolist", "Tensor.numpy", "Tensor.__array__", "Tensor.__float__", "Tensor.__int__",
    "Tensor.__bool__", "Tensor.__index__", "Tensor.__complex__",
}  # fmt: skip
REWRAP = {"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.from_numpy", "Tensor.new_tensor"}
# No use of the values.
NO_USE = {
    "Tensor.backward", "torch.autograd.backward", "torch.autograd.grad", "Tensor.grad", "Tensor.grad =",
    "Tensor.requires_grad_", "Tensor.requires_grad =", "Tensor.retain_grad", "torch.zeros_like", "torch.ones_like",
    "torch.empty_like", "torch.rand_like", "torch.randn_like", "torch.full_like", "Tensor.register_hook",
}  # fmt: skip
_REAL = ("float", "bfloat", "complex")  # what can have a derivative


@dataclass(frozen=True)
class Cut:
    """Where the way back ends.

    Attributes:
        call: the call at which data went on and the gradient does not come back.
        reason: a key of `reasons.CUT_WORDS`.
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
        return bool(state is not None and state.flags & StateFlag.REQUIRES_GRAD) or object in self._of_custom_forward

    @functools.cached_property
    def _of_custom_forward(self) -> set[int]:
        """What custom forwards computed from tensors that want a gradient: the one that is returned gets the Function's
        node only after the last call was recorded."""
        found: set[int] = set()
        for number, call in enumerate(self.recording.calls):
            if call.flags & CallFlag.GRAD_ENABLED or not self.in_custom_forward(number):
                continue
            for item in self.index.inputs(number):
                state = self.index.state_before_call(item.object, number)
                if item.object in found or (state is not None and state.flags & StateFlag.REQUIRES_GRAD):
                    found.update(out.object for out in self.index.outputs(number))
                    break
        return found

    def in_custom_forward(self, call: int) -> bool:
        """Was the call made inside the forward of a custom Function?"""
        step = self.recording.calls[call].step
        known = self._custom_steps.get(step)
        if known is None:
            known = self._custom_steps[step] = forward_frame(self.index, step) >= 0
        return known

    @functools.cached_property
    def _custom_steps(self) -> dict[int, bool]:
        return {}

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

    @functools.cached_property
    def indices(self) -> dict[int, Cut]:
        """call -> the cut at its whole numbers, of calls that give values with a gradient beside them (topk, max, sort)."""
        found = {}
        for number, call in enumerate(self.recording.calls):
            if call.outs < 2 or number in self.cuts or call.flags & CallFlag.RAISED:
                continue
            sources = [item.object for item in self.index.inputs(number) if self.wants(item.object, number)]
            for item in self.index.outputs(number) if sources else ():
                state = self.gave(item.object, number)
                if state is not None and not self.index.geometry(state).dtype.startswith(_REAL):
                    line = self.index.cell_line(call.step)
                    found[number] = Cut(number, "indices", line, call.step, sources[0], item.object)
        return found

    def _cut(self, number: int) -> Cut | None:
        index, row = self.index, self.recording.calls[number]
        function = index.function(number)
        if row.flags & CallFlag.RAISED or function in NO_USE or function.startswith("torch._C"):
            return None
        targets = self.given(number)
        sources = [
            item.object for item in index.inputs(number) if item.object not in targets and self.wants(item.object, number)
        ]  # fmt: skip
        if not sources or self.in_custom_forward(number):
            return None
        states = [self.gave(target, number) for target in targets]
        wanting = any(state is not None and state.flags & StateFlag.REQUIRES_GRAD for state in states)
        if wanting and (row.flags & CallFlag.GRAD_ENABLED) and function != "Tensor.data =":
            return None  # where gradients are off, a leaf that is written into wants one all the same
        if not targets and function not in VALUES_OUT:
            return None
        return self._told(number, function, sources[0], targets[0] if targets else -1, states[0] if states else None)

    def given(self, number: int) -> list[int]:
        """What data of a call went into: its results, and what it wrote into (`x[i] = y` gives nothing back)."""
        written = self._written.get(number, ())
        if self.index.function(number) == "Tensor.data =":
            written = [item.object for item in self.index.inputs(number)[:1]]
        return list(dict.fromkeys([*(item.object for item in self.index.outputs(number)), *written]))

    @functools.cached_property
    def _written(self) -> dict[int, list[int]]:
        """call -> the tensors that it wrote into, and what else stood on their memory before: that changed with them."""
        found: dict[int, list[int]] = defaultdict(list)
        for write in self.recording.writes:
            if write.call < 0 or write.object < 0:
                continue
            found[write.call].append(write.object)
            found[write.call] += [
                other for other in self.index.objects_on(write.storage) if self.index.maker(other) < write.call
            ]
        return found

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
        elif function in ("Tensor.data", "Tensor.data ="):
            reason = "data"
        elif dtype and not dtype.startswith(_REAL):
            reason = "integer"
        elif row.flags & CallFlag.INFERENCE:
            reason = "inference"
            line = self.switch_around(row.step, ("inference_mode",)) or line
        elif not row.flags & CallFlag.GRAD_ENABLED:
            reason, step, line = self._grad_off(number, line)
        else:
            reason = "no_derivative"
        return Cut(number, reason, line, step, source, target)

    def _grad_off(self, number: int, line: int) -> tuple[str, int, int]:
        """What had switched gradients off when a call on `line` ran: the reason, its step and its line."""
        step, off = self.recording.calls[number].step, self.switched_off(number)
        if off < 0:
            return "grad_off", step, line
        at = self.recording.calls[off].step
        decorator, own = self._decorator(at, step), self.index.cell_line(at)
        if not decorator and "checkpoint" in self.index.line_text(at) and not self.switch_around(at, MODES):
            return "checkpoint", at, own
        return "no_grad", at, decorator or own

    def switch_around(self, step: int, modes: tuple[str, ...]) -> int:
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
    def _off(self) -> list[int]:
        """For every call, the call that had switched gradients off when it ran; -1 where they were on or that was not seen.

        no_grad() sets the mode and sets back what it was: the one that counts is the first "off" of the latest run of
        "off" settings, since leaving an inner no_grad inside an outer one sets "off" again.
        """
        found, last = [], -1
        for number, call in enumerate(self.recording.calls):
            if self.index.function(number).endswith("_set_grad_enabled"):
                last = -1 if "True" in self.index.args(number) else number if last < 0 else last
            elif call.flags & CallFlag.GRAD_ENABLED:
                last = -1  # a custom forward has ended: its switch is set back unseen
            found.append(last)
        return found

    def switched_off(self, call: int) -> int:
        """The call that had switched gradients off when `call` ran; -1 where that was not seen."""
        return self._off[call]

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

    def only_sets(self, object: int, call: int) -> bool:
        """Is the call a write into the tensor itself outside the graph (its initialisation, a step by hand)?"""
        state = self.gave(object, call) if object in self.given(call) else None
        return state is not None and bool(state.flags & StateFlag.LEAF)

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
                if not self.wants(current, call) or self.only_sets(current, call):
                    continue
                calls.add(call)
                cut = self.cuts.get(call) or self.indices.get(call)
                if cut is not None:
                    cuts[call] = cut
                if call not in self.cuts:
                    given = [one for one in self.given(call) if one not in seen]
                    seen.update(given)
                    stack += given
        return sorted(calls), [cuts[call] for call in sorted(cuts)]

    def data_reaches(self, object: int) -> set[int]:
        """Every object that data of this one went into, cut or not."""
        seen = {object}
        stack = [object]
        while stack:
            for call in self.uses(stack.pop()):
                given = [one for one in self.given(call) if one not in seen]
                seen.update(given)
                stack += given
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
