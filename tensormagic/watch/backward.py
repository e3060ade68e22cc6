"""The autograd engine: what each run sent along which edge, what it added to which .grad, what it found overwritten.

`Engine` stands in for the name through which every way into the engine goes (see `private.ENGINE_ENTRY`) for the time
of the cell. Gradients are read in hooks of the nodes that send them, since AccumulateGrad only sees their sum.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from tensormagic.recording import values
from tensormagic.recording.model import NONE, BackwardFlag, Blob, Recording, SavedFlag
from tensormagic.watch import private, raw
from tensormagic.watch.calls import CallMode
from tensormagic.watch.clock import Clock
from tensormagic.watch.graph import NOWHERE, Graph
from tensormagic.watch.late_nan import LateNaN
from tensormagic.watch.memory import Memory
from tensormagic.watch.writes import Writes

# Plain numbers: an operator of IntFlag costs microseconds.
_RETAIN, _CREATE, _LIGHT = int(BackwardFlag.RETAIN), int(BackwardFlag.CREATE), int(BackwardFlag.LIGHT)


class Engine:
    """Records runs of the engine.

    Args:
        recording, clock, memory, writes, graph: what the watchers of one trace share.
        mode: re-entered while the engine runs, so that calls in hooks and custom Functions are seen.
        small: gradients of at most this many elements are kept value by value.
    """

    def __init__(
        self, recording: Recording, clock: Clock, memory: Memory, writes: Writes, graph: Graph, mode: CallMode,
        small: int,
    ) -> None:  # fmt: skip
        self.recording, self.clock, self.memory, self.writes = recording, clock, memory, writes
        self.graph, self.mode, self.small = graph, mode, small
        self.late: LateNaN | None = None  # looks at the losses of light runs
        self.original: Any = None
        self.standin: Any = None

    def start(self) -> None:
        if not private.has_engine_entry():
            self.clock.notice("no-engine-entry", torch=torch.__version__)
            return
        self.original = original = getattr(torch.autograd, private.ENGINE_ENTRY)

        def run_backward(t_outputs: Any, *args: Any, **kwargs: Any) -> Any:
            return self.run(original, t_outputs, args, kwargs)

        self.standin = run_backward
        setattr(torch.autograd, private.ENGINE_ENTRY, run_backward)

    def stop(self) -> None:
        if self.original is not None:
            if getattr(torch.autograd, private.ENGINE_ENTRY) is self.standin:
                setattr(torch.autograd, private.ENGINE_ENTRY, self.original)
            self.original = self.standin = None

    def run(self, original: Any, roots: Any, args: Any, kwargs: Any) -> Any:
        """Stands where the engine's entry stood: the same result, the same errors."""
        mode, clock = self.mode, self.clock
        if not mode.on:
            return original(roots, *args, **kwargs)
        # Our own code runs without the line tracer, see `Lines.hook`; settrace gives None.
        if (hook := mode.hook) is not None and (sys.gettrace() is not hook or sys.settrace(None)):
            hook = None
        run = self._begin(roots, args, kwargs)
        nested, entered = mode.nested > 0, False
        clock.engine += 1
        failed: BaseException | None = None
        try:
            if nested:
                mode.__enter__()
                entered = True
            if hook is not None:
                sys.settrace(hook)
            return original(roots, *args, **kwargs)
        except BaseException as error:
            failed = error
            raise
        finally:
            if hook is not None and (sys.gettrace() is not hook or sys.settrace(None)):
                hook = None
            if entered:
                mode.__exit__(None, None, None)
            clock.engine -= 1
            self._end(run, failed)
            del failed
            if hook is not None:
                sys.settrace(hook)

    def _begin(self, roots: Any, args: Any, kwargs: Any) -> _Run | None:
        try:
            with private.no_torch_function():
                return _Run(self, roots, args, kwargs)
        except Exception as error:
            self._fail(error)
            return None

    def _end(self, run: _Run | None, error: BaseException | None) -> None:
        if run is None:
            return
        try:
            with private.no_torch_function():
                try:
                    if error is not None:
                        run.raised(error)
                finally:
                    run.finish()
        except Exception as fault:
            self._fail(fault)

    def _fail(self, error: Exception) -> None:
        self.clock.fault("backward", error)


class _Run:
    """One run of the engine, from before it starts until its hooks are removed."""

    def __init__(self, engine: Engine, roots: Any, args: Any, kwargs: Any) -> None:
        self.engine = engine
        recording, clock = engine.recording, engine.clock
        tensors = [root for root in roots if isinstance(root, torch.Tensor)]
        given, retain, create = (*args, None, None, None)[:3]  # grad_tensors, retain_graph, create_graph
        accumulate = kwargs.get("accumulate_grad", len(args) > 5 and args[5])
        self.detail = clock.detail
        flags = (_RETAIN if retain else 0) | (_CREATE if create else 0) | (0 if self.detail else _LIGHT)
        self.number = len(recording.backwards)
        self.accumulate = bool(accumulate)
        root = engine.memory.tensor(tensors[0]).object if tensors else NONE
        kind = clock.string("backward" if accumulate else "grad")
        recording.backwards.add(clock.step, clock.call, kind, root, flags, len(recording.gradients), 0)
        self.handles: list[Any] = []
        self.leaves: list[tuple[Any, int, Any, int, int]] = []
        self.roots = [private.get_grad_fn(tensor) for tensor in tensors]
        nodes: dict[int, Any] = {}
        if not self.detail and tensors and engine.late is not None:
            engine.late.loss(tensors[0])
        if self.detail or engine.writes.untold:
            nodes, edges, truncated = engine.graph.walk(self.roots)
            if truncated:
                clock.notice("graph-bound", nodes=engine.graph.max_nodes)
            recording.walks.add(clock.step, root, len(nodes), int(truncated))
            if engine.writes.untold:
                self._saved(nodes, only_readable=True)
            if self.detail:
                self._start(tensors, given or ())
                self._hook(nodes, edges)
        self._leaves([node.variable for number, node in nodes.items() if number < 0])
        self._leaves(
            [t for t, root in zip(tensors, self.roots, strict=True) if root is None and private.get_requires_grad(t)]
        )

    # ---- before --------------------------------------------------------------------------------------------------

    def _start(self, tensors: list[Any], given: Any) -> None:
        """What the run begins with: ones, or the gradients that were given."""
        for slot, (tensor, grad) in enumerate(zip(tensors, given, strict=False)):
            target = self.engine.graph.number(tensor.grad_fn) if tensor.grad_fn is not None else (
                -1 - self.engine.memory.tensor(tensor).object
            )  # fmt: skip
            self._edge(NONE, slot, target, grad)

    def _hook(self, nodes: dict[int, Any], edges: dict[int, list[tuple[int, int]]]) -> None:
        for number, node in nodes.items():
            if number < 0 or not edges[number]:
                continue
            self.handles.append(private.register_hook(node, self._sender(number, edges[number])))

    def _sender(self, number: int, targets: list[tuple[int, int]]) -> Any:
        def sent(grad_inputs: Any, _grad_outputs: Any) -> None:
            try:
                with private.no_torch_function():
                    for slot, (target, _) in enumerate(targets):
                        if target != NOWHERE and slot < len(grad_inputs):
                            self._edge(number, slot, target, grad_inputs[slot])
            except Exception as error:
                self.engine._fail(error)

        return sent

    def _edge(self, source: int, slot: int, target: int, grad: Any) -> None:
        self.engine.recording.gradients.add(self.number, source, slot, target, self._blob(grad))

    def _blob(self, grad: Any) -> int:
        if grad is None:
            return NONE
        kept = raw.blob(grad, self.engine.small, raw.SUMMARY)
        if kept is None:
            kept = Blob(raw.shape_of(grad), raw.dtype_name(grad.dtype))
        self.engine.recording.blobs.append(kept)
        return len(self.engine.recording.blobs) - 1

    def _leaves(self, leaves: list[Any]) -> None:
        """What .grad is before the run, of each leaf that the graph reaches (a root may be one itself)."""
        if not self.accumulate:
            return
        memory = self.engine.memory
        for leaf in leaves:
            grad = leaf.grad
            live = memory.tensor(grad) if grad is not None else None
            version = memory.version(grad) if grad is not None else NONE
            before = self._blob(grad) if self.detail else NONE
            self.leaves.append((leaf, memory.tensor(leaf).object, live, version, before))

    # ---- after ---------------------------------------------------------------------------------------------------

    def raised(self, error: BaseException) -> None:
        """Ask every node for what it saved: the one whose tensor was overwritten or freed raises again."""
        recording = self.engine.recording
        row = recording.backwards
        row.flat[self.number * row.width + 4] |= BackwardFlag.RAISED
        if isinstance(error, RuntimeError):
            nodes, _, _ = self.engine.graph.walk(self.roots)
            self._saved(nodes, only_readable=False)

    def _saved(self, nodes: dict[int, Any], only_readable: bool) -> None:
        clock, recording = self.engine.clock, self.engine.recording
        for number, node in nodes.items():
            for name in dir(type(node)) if number >= 0 else ():
                if not name.startswith("_saved_") and name != "saved_tensors":
                    continue
                stale, items = _read(node, name)
                if stale is not SavedFlag.READ:
                    if not only_readable:
                        recording.saved.add(self.number, number, clock.string(name), self._written(number), stale)
                    continue
                for item in items if only_readable else ():
                    live = self.engine.memory.tensor(item)
                    recording.saved.add(self.number, number, clock.string(name), live.object, stale)

    def _written(self, node: int) -> int:
        """The object overwritten after a light call made this node, -1 where the call's own record tells."""
        calls = self.engine.recording.calls
        for call in range(len(calls) - 1, -1, -1):
            row = calls[call]
            if 0 <= row.seq <= node:
                return self.engine.mode.light.overwritten(call + 1)
        return NONE

    def finish(self) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles.clear()
        recording = self.engine.recording
        row = recording.backwards
        first = row.flat[self.number * row.width + 5]
        row.flat[self.number * row.width + 6] = len(recording.gradients) - first
        parts = self._parts() if self.leaves else {}
        for leaf, number, live, version, before in self.leaves:
            self._accumulated(leaf, number, live, version, before, parts.get(number, []))
        self.leaves.clear()
        self.roots.clear()

    def _accumulated(self, leaf: Any, number: int, live: Any, version: int, before: int, parts: list[int]) -> None:
        """Note what the run did to one leaf's .grad; nothing where it was not reached."""
        recording, memory = self.engine.recording, self.engine.memory
        grad = leaf.grad
        if grad is None:
            return
        now = memory.tensor(grad)
        in_place = live is not None and now.object == live.object
        if in_place and memory.version(grad) == version:
            return
        added = self._sum(parts)
        after = self._blob(grad) if self.detail else NONE
        recording.accumulations.add(self.number, number, before, added, after, now.object, int(in_place))
        if in_place:
            after_version = memory.version(grad)
            self.engine.writes.accumulated(self.engine.clock.call, now, grad, version, after_version)

    def _parts(self) -> dict[int, list[int]]:
        """Leaf -> the blobs that this run sent into it; all of a run read once."""
        recording = self.engine.recording
        parts: dict[int, list[int]] = {}
        for index in range(recording.backwards[self.number].first_edge, len(recording.gradients)):
            edge = recording.gradients[index]
            if edge.target < 0 and edge.run == self.number and edge.blob >= 0:
                parts.setdefault(-1 - edge.target, []).append(edge.blob)
        return parts

    def _sum(self, blobs: list[int]) -> int:
        """The sum of what this run sent into one leaf, where every part was kept value by value."""
        recording = self.engine.recording
        if not blobs:
            return NONE
        if len(blobs) == 1:
            return blobs[0] if recording.blobs[blobs[0]].data is not None else NONE
        total: Any = None
        for blob in blobs:
            part = values.decode(recording.blobs[blob])
            if part is None:
                return NONE
            total = part if total is None else total + part
        total = np.ascontiguousarray(total)
        recording.blobs.append(Blob(recording.blobs[blobs[-1]].shape, str(total.dtype), total.tobytes()))
        return len(recording.blobs) - 1


def _read(node: Any, name: str) -> tuple[SavedFlag, list[Any]]:
    """Read a saved attribute: the tensors in it, or why torch refuses."""
    try:
        value = getattr(node, name)
    except RuntimeError as error:
        text = str(error)
        if "modified by an inplace operation" in text:
            return SavedFlag.OVERWRITTEN, []
        if "second time" in text or "already been freed" in text:
            return SavedFlag.FREED, []
        return SavedFlag.READ, []
    items = value if isinstance(value, (tuple, list)) else [value]
    return SavedFlag.READ, [item for item in items if isinstance(item, torch.Tensor)]
