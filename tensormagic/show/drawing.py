"""The graph that one backward run went through, as drawings: the whole, folded where it is large, and what folds open to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tensormagic.analysis import folding
from tensormagic.analysis.folding import Box
from tensormagic.show import layout
from tensormagic.show.facts import Seen
from tensormagic.show.shape import Graph, GraphEdge, GraphNode

MOST_BOXES = 18  # of one drawing: a hall can read so many
_OUTSIDE = 6  # neighbours of an opened fold that are drawn beside it
_CUTS = 8
_LETTERS = 26  # of a label
_PASSING = {
    "t",
    "transpose",
    "permute",
    "view",
    "reshape",
    "expand",
    "tocopy",
    "unsqueeze",
    "squeeze",
    "asstrided",
    "clone",
}


class Drawings:
    """Makes the drawings of one run.

    Args:
        seen: the facts of a trace.
        places: storage -> its place in the view, for colours.
        nodes: the nodes that gradients came through, leaves included.
        step: of the run; later cuts are not drawn.
        sends: (sender, receiver, text) of each gradient, in order.
        most: how many drawings there may be.
    """

    def __init__(
        self, seen: Seen, places: dict[int, int], nodes: Sequence[int], step: int, sends: Sequence[tuple[int, int, str]], most: int
    ) -> None:  # fmt: skip
        self.seen, self.places, self.step, self.sends, self.most = seen, places, step, sends, most
        known = set(nodes)
        self.inputs = {
            node: [one for one in dict.fromkeys(seen.flow.edges.get(node, ())) if one in known] for node in nodes
        }
        self.takers: dict[int, list[int]] = {}
        for node, taken in self.inputs.items():
            for one in taken:
                self.takers.setdefault(one, []).append(node)
        self.shared = {node for node, taken in self.takers.items() if node < 0 and len(taken) > 1}
        self.labels = {node: operation(seen, node) for node in nodes if node >= 0}
        self.graphs: list[Graph] = []
        self.waiting: list[Callable[[], None]] = []
        self.promised = 0
        self._cuts = self._found_cuts(known)

    def made(self) -> list[Graph]:
        """The whole graph first, then what its folds open to, the outer ones first."""
        order = folding.ordered(list(self.inputs), self.inputs)
        passing = [node for node, label in self.labels.items() if label in _PASSING]
        belongs = folding.modules(order, self.inputs, self._owners(), passing)
        self._later(folding.fold(order, self.inputs, self.labels, belongs, MOST_BOXES), "")
        while self.waiting:
            self.waiting.pop(0)()
        return self.graphs

    def _owners(self) -> dict[int, str]:
        """Leaf -> the module that holds it: its name without the last part, where the name has parts."""
        found = {}
        for node in self.inputs:
            name, _, last = self.seen.name(-1 - node, "").rpartition(".") if node < 0 else ("", "", "")
            if name and last.isidentifier():
                found[node] = name
        return found

    def _later(self, boxes: list[Box], label: str) -> int:
        """Ask for a drawing; its number, -1 where there are enough."""
        if self.promised >= self.most:
            return -1
        self.promised += 1
        self.waiting.append(lambda: self.graphs.append(self._draw(boxes, label)))
        return self.promised - 1

    # ---- one drawing ---------------------------------------------------------------------------------------------

    def _draw(self, boxes: list[Box], label: str) -> Graph:
        place = {node: at for at, box in enumerate(boxes) for node in box.nodes}
        nodes = [self._box(box) for box in boxes]
        for one in self._outside(place) if label else ():
            place[one] = len(nodes)
            nodes.append(self._node(one) | {"kind": "outside"})  # type: ignore[arg-type]
        edges: list[GraphEdge] = []
        letters: list[int] = []
        edge_of: dict[tuple[int, int], int] = {}
        inner = len(boxes)
        for node, at in place.items():
            for one in self.inputs.get(node, ()):
                source = place.get(one, at)
                if source == at or (source >= inner and at >= inner) or (source, at) in edge_of:
                    continue
                edge_of[source, at] = len(edges)
                single = at >= inner or len(boxes[at].nodes) == 1
                text = f"{self.labels[node]} · {self.seen.flow.line_of_node(node)}" if single else ""
                letters.append(len(text))
                edges.append(
                    {"source": source, "target": at, "label": text, "cut": False, "points": [], "label_at": [0, 0]}
                )
        where: list[int | None] = []
        for sender, receiver, text in self.sends:
            if sender < 0:  # what backward was called with
                where.append(-1 - place[receiver] if receiver in place else None)
            elif sender in place and place[sender] == place.get(receiver):
                where.append(-1 - place[sender])
            else:
                at_edge = edge_of.get((place.get(receiver, -1), place.get(sender, -1)))
                where.append(at_edge)
                if at_edge is not None:
                    letters[at_edge] = max(letters[at_edge], len(text))
        if not label:
            self._cut(place, nodes, edges, letters)
        width, height = layout.place(nodes, edges, letters)
        return {"label": label, "nodes": nodes, "edges": edges, "at": where, "width": width, "height": height}

    def _outside(self, place: dict[int, int]) -> list[int]:
        near: dict[int, None] = {}
        for node in place:
            near.update(dict.fromkeys(self.inputs.get(node, ())))
            near.update(dict.fromkeys(self.takers.get(node, ())))
        return [node for node in near if node not in place][:_OUTSIDE]

    def _box(self, box: Box) -> GraphNode:
        if len(box.nodes) == 1:
            return self._node(box.nodes[0])
        say = self.seen.say
        does = list(dict.fromkeys(self.labels[node] for node in box.nodes if node >= 0))
        label = box.module or _between(_modules(box)) or ", ".join(does)
        count = say("nodes", n=len(box.nodes))
        sub = say("times", n=box.times, nodes=count) if box.times > 1 else count
        inner = (
            folding.folded(list(box.parts), self.inputs, self.labels, MOST_BOXES, self.shared)
            if box.times == 1
            else list(box.parts)
        )
        inside = f"{label} {say('times_mark', n=box.times)}" if box.times > 1 else label
        return {
            "label": _cut_short(label), "sub": sub, "kind": "fold", "storage": -1, "line": 0, "x": 0, "y": 0, "w": 0, "h": 0,
            "tip": f"{label} · {sub} · {', '.join(does[:12])}",
            "opens": self._later(folding.shortened(inner, MOST_BOXES), inside),
        }  # fmt: skip

    def _node(self, node: int) -> GraphNode:
        seen = self.seen
        if node < 0:
            object = -1 - node
            state = seen.index.state(object)
            label, storage = seen.name(object), state.storage if state else -1
            line, kind = seen.index.line_of(seen.index.object(object).step), "leaf"
            tip = f"{label} · {seen.say('leaf')}"
        else:
            named = self.seen.node_tensors.get(node)
            label, storage = named or (self.labels[node], -1)
            line, kind = seen.flow.line_of_node(node), "result" if named else "operation"
            tip = f"{label} · {seen.flow.node_names.get(node, '')}"
        return {
            "label": _cut_short(label), "kind": kind, "storage": self.places.get(storage, -1),
            "tip": f"{tip} · {seen.say('line', n=line)}" if line > 0 else tip,
            "line": max(0, line), "x": 0, "y": 0, "w": 0, "h": 0,
        }  # fmt: skip

    # ---- cuts ----------------------------------------------------------------------------------------------------

    def _found_cuts(self, known: set[int]) -> list[tuple[int, int, str, str, int]]:
        """(node, storage, name, label, line) of each cut at a node of the graph that was there by the run's step."""
        seen, found = self.seen, {}
        for cut in seen.flow.cuts.values():
            if (
                len(found) >= _CUTS
                or seen.recording.calls[cut.call].step > self.step
                or seen.flow.is_bookkeeping(cut.call)
            ):
                continue
            state = seen.index.state_before_call(cut.source, cut.call)
            node = state.node if state is not None and state.node >= 0 else -1 - cut.source
            if node not in known:
                continue
            names = seen.all_names(cut.target) if cut.target >= 0 else ()
            after = seen.index.state(cut.target) if cut.target >= 0 else None
            name = names[0] if names else seen.call_text(cut.call)
            label = f"{seen.described(cut.call)} · {seen.line_of_call(cut.call)}"
            found[node, name, label] = (node, after.storage if after else -1, name, label, cut.line)
        return list(found.values())

    def _cut(self, place: dict[int, int], nodes: list[GraphNode], edges: list[GraphEdge], letters: list[int]) -> None:
        """Where data goes on and the gradient does not come back."""
        for node, storage, name, label, line in self._cuts:
            edges.append({
                "source": place[node], "target": len(nodes), "cut": True, "points": [], "label_at": [0, 0], "label": label,
            })  # fmt: skip
            letters.append(len(label) + 2)
            nodes.append({
                "label": _cut_short(name), "kind": "constant", "storage": self.places.get(storage, -1), "tip": name,
                "line": max(0, line), "x": 0, "y": 0, "w": 0, "h": 0,
            })  # fmt: skip


def operation(seen: Seen, node: int) -> str:
    """What a node of the graph undoes, as people say it: `mul`, `addmm`."""
    name = seen.flow.node_names.get(node, "").rstrip("0123456789").removesuffix("Backward").lower()
    return name or seen.described(seen.flow.call_of_node(node)) or seen.say("operation")


def _modules(box: Box) -> list[str]:
    """The modules that are folded in a box, in order."""
    found = [box.module] if box.module else [name for part in box.parts for name in _modules(part)]
    return list(dict.fromkeys(found))


def _between(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}" if names else ""


def _cut_short(text: str) -> str:
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"
