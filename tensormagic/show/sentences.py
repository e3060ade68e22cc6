"""The sentence of a step: what the line did, for someone who sees it for the first time."""

from __future__ import annotations

import re
from typing import Any

from tensormagic.analysis.names import Named
from tensormagic.recording.model import ObjectKind, Write, WriteKind
from tensormagic.show import numbers
from tensormagic.show.facts import Seen, leaf, short, wants
from tensormagic.show.shape import Run

_FEW = 4  # names or values that one sentence lists
_RANK = ("none", "share", "create", "compute", "write", "backward")  # marks, the least first
_MARKS = re.compile("\x01(.*?)\x01|\x02(.*?)\x02", re.DOTALL)


def runs(template: str, **facts: Any) -> list[Run]:
    """A filled template as runs: `...` becomes code, **...** strong. What is filled in is never read for marks."""
    marked = re.sub(r"`([^`]*)`", "\x01\\1\x01", template)
    marked = re.sub(r"\*\*(.*?)\*\*", "\x02\\1\x02", marked)
    text = marked.format(**{key: str(value).replace("\x01", "").replace("\x02", "") for key, value in facts.items()})
    result: list[Run] = []
    at = 0
    for match in _MARKS.finditer(text):
        if match.start() > at:
            result.append([text[at : match.start()], ""])
        result.append([match.group(1), "code"] if match.group(1) is not None else [match.group(2) or "", "strong"])
        at = match.end()
    if at < len(text):
        result.append([text[at:], ""])
    return result


class Sentence:
    """Builds the runs of one step and says what mark and tone it has."""

    def __init__(self, seen: Seen, step: int, before: int) -> None:
        self.seen, self.step, self.index = seen, step, seen.index
        self.now, self.then = seen.at(step), seen.at(before)
        self.parts: list[Run] = []
        self.mark = "none"
        self.warn = False

    def add(self, key: str, **facts: Any) -> None:
        self.parts += runs(self.seen.words.SAY[key], **facts)

    def build(self) -> list[Run]:
        backward = self.seen.backwards_of(self.step)
        writes = [
            self.seen.recording.writes[row] for row in self.index.writes_of_step(self.step)
            if self.seen.recording.writes[row].kind != WriteKind.ACCUMULATE
        ]  # fmt: skip
        visible = [write for write in writes if self._reached(write)]
        fresh = self._fresh()
        if not self.index.recording.steps[self.step].detail:  # a later look found them: who made them is not this line
            fresh = [named for named in fresh if self._maker_step(named) == self.step]
        if backward:
            self._backward(backward)
        if visible:
            self._writes(visible)
        if fresh:
            self._names(fresh)
        if not self.index.recording.steps[self.step].detail:
            self.parts += [[" ", ""]] if self.parts else []
            self.add("light")  # what is not seen is not said to be nothing
        elif not self.parts:
            self._other()
        return self.parts

    # ---- names ---------------------------------------------------------------------------------------------------

    def _fresh(self) -> list[Named]:
        """Names of this step's frame that are new or stand for another object; parts of modules and grads aside."""
        found = []
        for text, named in self.now.items():
            old = self.then.get(text)
            if (old is None or old.base != named.base) and not text.endswith(".grad"):
                found.append(named)
        plain = [named for named in found if "." not in named.text and "[" not in named.text]
        return plain or found

    def _maker_step(self, named: Named) -> int:
        call = self.index.maker(named.base)
        return self.seen.recording.calls[call].step if call >= 0 else -1

    def _names(self, fresh: list[Named]) -> None:
        if len(fresh) > 2:
            listed = ", ".join(named.text for named in fresh[:_FEW]) + (", …" if len(fresh) > _FEW else "")
            self.add("many", n=len(fresh), names=listed)
            self._set_mark("create")
            return
        for position, named in enumerate(fresh):
            if position or self.parts:
                self.parts.append([" ", ""])
            self._one(named)

    def _set_mark(self, mark: str) -> None:
        """A line that does several things has the mark of what says most."""
        if _RANK.index(mark) > _RANK.index(self.mark):
            self.mark = mark

    def _one(self, named: Named) -> None:
        seen, index = self.seen, self.index
        assert named.state is not None
        call = index.maker(named.base)
        storage = seen.storage(named.state.storage) if named.state.storage >= 0 else "?"
        others = [
            t for t, n in self.now.items() if n.base == named.base and t != named.text and not t.endswith(".grad")
        ]
        older = index.object(named.base).step < self.step
        if older and others:
            self.add("same", name=named.text, others=self._is(others))
            self._set_mark("share")
        elif index.object(named.base).kind == ObjectKind.ARRAY:
            self.add("array", name=named.text, storage=storage, others=self._sharers(named) or storage)
            self._set_mark("share")
        elif call >= 0 and index.inputs(call):
            self._made(named, call, storage)
        else:
            what = self._what(named)
            self.add(
                "new_leaf" if wants(named) and leaf(named) else "new_plain", name=named.text, what=what, storage=storage
            )
            self._set_mark("create")
        if named.text in self.then:
            self.add("rebound")

    def _is(self, names: list[str]) -> str:
        shown = ", ".join(names[:_FEW])
        return self.seen.say("is" if len(names) == 1 else "are", names=shown)

    def _sharers(self, named: Named) -> str:
        assert named.state is not None
        found = [
            text for text, other in self.now.items()
            if other.state and other.state.storage == named.state.storage and text != named.text and not text.endswith(".grad")
        ]  # fmt: skip
        return ", ".join(found[:_FEW]) + (", …" if len(found) > _FEW else "")

    def _what(self, named: Named) -> str:
        assert named.state is not None
        geometry = self.index.geometry(named.state)
        return f"{geometry.dtype}, {self.seen.shape(named.shape)}"

    def _made(self, named: Named, call: int, storage: str) -> None:
        """A result: a view of its input, a copy, or computed."""
        seen, index = self.seen, self.index
        assert named.state is not None
        source = index.inputs(call)[0].object
        state = index.state_before_call(source, call)
        function = short(index.function(call))
        shown = f"[{index.args(call)}]" if function == "__getitem__" else function + "()"
        if index.function(call) == "Tensor.data":
            shown = ".data"
        source_name = seen.operand(source)
        if state is not None and state.storage == named.state.storage:
            self.add(
                "shared",
                function=shown,
                name=named.text,
                storage=storage,
                source=source_name,
                elements=self._elements(named),
            )
            if not wants(named) and seen.flow.wants(source, call):
                self.add("shared_off")
            using = {n.base for t, n in self.now.items() if n.state and n.state.storage == named.state.storage}
            if len(using) > 2:
                self.add("shared_names", n=len(using), storage=storage)
            self._set_mark("share")
            return
        if function in ("clone", "copy", "contiguous", "reshape", "to", "deepcopy", "tensor", "as_tensor") or not state:
            self.add("copied", function=shown, source=source_name, storage=storage)
            if seen.flow.wants(source, call):
                self.add("copied_graph" if wants(named) else "copied_off", name=named.text, source=source_name)
            self._set_mark("create")
            return
        self.add("computed", name=named.text, call=seen.call_text(call), storage=storage)
        cut = seen.flow.cuts.get(call)
        if cut is not None and not wants(named):
            words = seen.words.CUTS[cut.reason].format(call=function, line=cut.line)
            self.add("computed_off", why=words.replace("`", ""))
        self._set_mark("compute" if wants(named) else "create")

    def _elements(self, named: Named) -> str:
        assert named.state is not None
        total = self.index.storage_nbytes(named.state.storage, self.step) // max(1, named.itemsize)
        count = 1
        for size in named.shape:
            count *= size
        say = self.seen.say
        if count == total:
            return say("all_elements", n=count) if count > 1 else say("only_element")
        if count <= 6 and named.stride:
            return self._places(_places(named))
        return say("n_elements", n=count)

    def _places(self, places: list[int]) -> str:
        text = ", ".join(map(str, places[:8])) + (", …" if len(places) > 8 else "")
        return self.seen.say("one_element" if len(places) == 1 else "some_elements", list=text)

    # ---- writes --------------------------------------------------------------------------------------------------

    def _reached(self, write: Write) -> bool:
        """Was the memory there under a name before the line? Filling memory that the line made is making it."""
        return any(named.state and named.state.storage == write.storage for named in self.then.values())

    def _writes(self, writes: list[Write]) -> None:
        seen = self.seen
        self.mark = "write"
        storages = list(dict.fromkeys(write.storage for write in writes))
        if len(storages) > 2:
            names = list(dict.fromkeys(t for w in writes for t in seen.trace.writes[self._row(w)].reaches))
            shown = ", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else "")
            self.add("wrote_many", storages=seen.say("storages", n=len(storages)), names=shown)
            return
        for storage in storages:
            same = [write for write in writes if write.storage == storage]
            self._one_write(same)

    def _row(self, write: Write) -> int:
        for row in self.index.writes_of_step(self.step):
            if self.seen.recording.writes[row] == write:
                return row
        return self.index.writes_of_step(self.step)[0]

    def _one_write(self, writes: list[Write]) -> None:
        seen = self.seen
        view = seen.trace.writes[self._row(writes[-1])]
        changed = sorted({e for w in writes if w.elements >= 0 for e in seen.recording.elements[w.elements]})
        total = self.index.storage_nbytes(writes[0].storage, self.step)
        size = self._itemsize(writes[0])
        elements = self._places(changed) if changed and len(changed) <= 8 else seen.say("elements_of")
        if changed and len(changed) == total // max(1, size):
            elements = seen.say("all_elements", n=len(changed)) if len(changed) > 1 else seen.say("only_element")
        if self.parts:
            self.parts.append([" ", ""])
        through = view.through
        if through:
            self.add("wrote", elements=elements, storage=view.storage, through=through)
        else:
            self.add("wrote_memory", elements=elements, storage=view.storage)
        if any(w.kind in (WriteKind.DATA, WriteKind.OUTSIDE, WriteKind.KERNEL) for w in writes):
            self.add("untold")
            self.warn = True
        too = [t for t in view.reaches if t != through and not t.endswith(".grad") and t in self.now]
        too = [t for t in too if self.now[t].base != writes[-1].object]
        values = self._values(writes[0], changed)
        if too:
            self.add("changed_too", names=", ".join(too[:_FEW]) + (", …" if len(too) > _FEW else ""),
                     values=f": {values}" if values else "")  # fmt: skip
            self.warn = True
        elif values:
            self.add("changed", values=values)
        if too:
            self._copies(writes[0])

    def _itemsize(self, write: Write) -> int:
        return self.index.geometry(self.seen.recording.states[write.state]).itemsize if write.state >= 0 else 1

    def _values(self, write: Write, changed: list[int]) -> str:
        """`1 → 10, 2 → 20`, read out of the snapshots before and after."""
        from tensormagic.recording import values

        if not changed or write.state < 0:
            return ""
        after = self.index.snapshot(write.storage, self.step)
        before = self.index.snapshot(write.storage, self.step - 1) if self.step else None
        if after is None or before is None:
            return ""
        arrays = [values.decode(self.seen.recording.blobs[snapshot.blob]) for snapshot in (before, after)]
        if arrays[0] is None or arrays[1] is None or max(changed) >= min(arrays[0].size, arrays[1].size):
            return ""
        old, new = (array.ravel() for array in arrays)
        pairs = [f"{numbers.short(old[e].item())} → {numbers.short(new[e].item())}" for e in changed[:_FEW]]
        return ", ".join(pairs) + (", …" if len(changed) > _FEW else "")

    def _copies(self, write: Write) -> None:
        """Name a clone of this memory that did not change: what people wonder about."""
        for text, named in self.now.items():
            call = self.index.maker(named.base)
            if call >= 0 and short(self.index.function(call)) == "clone" and self.index.inputs(call):
                source = self.index.state_before_call(self.index.inputs(call)[0].object, call)
                if (
                    source is not None
                    and source.storage == write.storage
                    and named.state
                    and named.state.storage != write.storage
                ):
                    self.parts.append([" ", ""])
                    self.add("not_changed", names=text)
                    return

    # ---- backward ------------------------------------------------------------------------------------------------

    def _backward(self, found: list[int]) -> None:
        seen, recording = self.seen, self.seen.recording
        self.mark = "backward"
        for number in found:
            run = recording.backwards[number]
            edges = [recording.gradients[i] for i in range(run.first_edge, run.first_edge + run.edges)]
            order = list(dict.fromkeys(edge.source for edge in edges if edge.source >= 0))
            way = list(dict.fromkeys(seen.described(seen.flow.call_of_node(node)) for node in order))
            way = [name for name in way if name][:6]
            root = seen.name(run.root, seen.say("result"))
            if way:
                text = seen.say("and", first=", ".join(way[:-1]), last=way[-1]) if len(way) > 1 else way[0]
                self.add("backward", root=root, way=text)
            else:
                self.add("backward_bare", root=root)
            added = seen.accumulations_of(number)
            fresh = [seen.say("grad_of", name=seen.name(row.object)) for row in added if not row.in_place]
            more = [seen.say("grad_of", name=seen.name(row.object)) for row in added if row.in_place]
            if self.index.string(run.kind) == "grad":
                self.add("returned")
            elif not added:
                self.add("reached_nothing")
            for key, names in (("stored", fresh), ("added", more)):
                if names:
                    self.add(key, names=", ".join(names[:_FEW]) + (", …" if len(names) > _FEW else ""))
            self._left_out({row.object for row in added})

    def _left_out(self, reached: set[int]) -> None:
        """Tensors cut off from what got a gradient: their names, and the line of the cut."""
        for cut in self.seen.flow.cuts.values():
            if cut.target < 0 or cut.source not in reached:
                continue
            names = [t for t, n in self.now.items() if n.base == cut.target]
            if names:
                why = self.seen.words.CUTS[cut.reason].format(call=self.seen.described(cut.call), line=cut.line)
                self.add("nothing_for", names=", ".join(names[:2]), why=why.replace("`", ""))
                return

    # ---- nothing special -----------------------------------------------------------------------------------------

    def _other(self) -> None:
        cleared = [t for t in self.then if t not in self.now and t.endswith(".grad") and t[:-5] in self.now]
        if cleared:
            self.add("cleared", names=", ".join(cleared[:_FEW]) + (", …" if len(cleared) > _FEW else ""))
            return
        gone = [t for t in self.then if t not in self.now and not t.endswith(".grad") and "." not in t and "[" not in t]
        if gone and self.seen.recording.steps[self.step].frame == 0:
            self.add("gone", name=gone[0])
            return
        for binding in self.seen.bindings_of(self.step):
            if binding.object >= 0:
                row = self.index.object(binding.object)
                text = self.index.path_text(binding.path)
                if row.kind in (ObjectKind.MODULE, ObjectKind.OPTIMIZER, ObjectKind.INSTANCE) and "." not in text:
                    parts = sum(t.startswith((f"{text}.", f"{text}[")) for t in self.now)
                    key = "modules" if parts else "module"
                    self.add(key, name=text, kind=self.index.string(row.type), n=parts)
                    self._set_mark("create")
                    return
        self.add("nothing" if self.now else "no_tensor_yet")


def _places(named: Named) -> list[int]:
    """Storage elements that a small tensor sees."""
    assert named.state is not None
    found = [named.state.offset]
    for size, step in zip(named.shape, named.stride, strict=True):
        found = [at + i * step for at in found for i in range(size)]
    return sorted(set(found))
