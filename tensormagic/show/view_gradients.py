"""The graph from leaves to what backward was called on, the gradients that came back along it, and what added up where."""

from __future__ import annotations

from typing import Any

from tensormagic.recording import values
from tensormagic.show import layout, numbers
from tensormagic.show.facts import Seen, short
from tensormagic.show.sentences import runs
from tensormagic.show.shape import Accumulation, BackwardEvent, BackwardRun, Gradients, GraphEdge, GraphNode

MOST_NODES = 80  # nodes that are drawn; the nodes farthest from the leaves' names are folded first
MOST_RUNS = 12


def build(seen: Seen, places: dict[int, int]) -> Gradients:
    """The gradient tab.

    Args:
        seen: the facts of a trace.
        places: storage -> its place in the view, for colours.
    """
    if not len(seen.recording.nodes):
        return {"nodes": [], "edges": [], "runs": [], "width": 0, "height": 0, "legend": [], "note": ""}
    drawing = _Drawing(seen, places)
    drawing.graph()
    return drawing.result()


class _Drawing:
    def __init__(self, seen: Seen, places: dict[int, int]) -> None:
        self.seen, self.places = seen, places
        self.nodes: list[GraphNode] = []
        self.edges: list[GraphEdge] = []
        self.number: dict[int, int] = {}  # node of the graph -> place in `nodes`
        self.edge_of: dict[tuple[int, int], int] = {}  # (sender, receiver) -> place in `edges`
        self.note = ""

    def graph(self) -> None:
        """Draw what the shown backward runs used, the newest nodes first where there are too many."""
        seen = self.seen
        used: dict[int, None] = {}
        for run in list(seen.recording.backwards)[:MOST_RUNS] or []:
            for at in range(run.first_edge, run.first_edge + run.edges):
                edge = seen.recording.gradients[at]
                if edge.source >= 0:
                    used.setdefault(edge.source)
                used.setdefault(edge.target)
        if not used:
            used = dict.fromkeys(node.seq for node in seen.recording.nodes)
        chosen = list(used)[:MOST_NODES]
        if len(used) > len(chosen):
            self.note = f"{len(used)} nodes: the first {len(chosen)} that gradients reached are drawn."
        named = self._named()
        for node in chosen:
            self._node(node, named.get(node))
        for node in chosen:
            for target in dict.fromkeys(seen.flow.edges.get(node, ())):
                if target in self.number:
                    self._edge(target, node)
        self._cuts()
        layout.place(self.nodes, self.edges)

    def _named(self) -> dict[int, tuple[str, int]]:
        """Node -> (name, storage) of the tensor that it is the grad_fn of, leaves included."""
        seen = self.seen
        found: dict[int, tuple[str, int]] = {}
        for row in range(len(seen.recording.states)):
            state = seen.recording.states[row]
            names = seen.names(state.object)
            if state.node >= 0 and names and state.node not in found:
                found[state.node] = (seen.name(state.object), state.storage)
        return found

    def _node(self, node: int, named: tuple[str, int] | None) -> None:
        seen = self.seen
        self.number[node] = len(self.nodes)
        if node < 0:
            object = -1 - node
            state = seen.index.state(object)
            label, storage = seen.name(object), state.storage if state else -1
            line = seen.index.line_of(seen.index.object(object).step)
            kind = "leaf"
        else:
            line = seen.flow.line_of_node(node)
            label = named[0] if named else self._operation(node)
            storage = named[1] if named else -1
            kind = "result" if named else "operation"
        self.nodes.append({
            "label": label if len(label) <= 22 else label[:21] + "…", "kind": kind,
            "storage": self.places.get(storage, -1), "tip": f"{label} · {seen.flow.node_names.get(node, '')}",
            "line": max(0, line), "x": 0, "y": 0, "w": 0, "h": 0,
        })  # fmt: skip

    def _operation(self, node: int) -> str:
        return self.seen.flow.node_names.get(node, "").removesuffix("0").removesuffix("Backward").lower() or "operation"

    def _edge(self, source: int, target: int) -> None:
        """Data goes from `source` to `target`; the gradient comes back the other way."""
        label = f"{self._operation(target)} · {self.seen.flow.line_of_node(target)}"
        self.edge_of[target, source] = len(self.edges)
        self.edges.append({
            "source": self.number[source], "target": self.number[target], "label": label, "cut": False, "points": [],
            "label_at": [0, 0],
        })  # fmt: skip

    def _cuts(self) -> None:
        """Where data goes on to a named tensor and the gradient does not come back."""
        seen = self.seen
        for cut in list(seen.flow.cuts.values())[:20]:
            source = self._node_of(cut.source, cut.call)
            names = seen.all_names(cut.target) if cut.target >= 0 else ()
            if source is None or not names:
                continue
            state = seen.index.state(cut.target)
            self.edges.append({
                "source": source, "target": len(self.nodes), "cut": True, "points": [], "label_at": [0, 0],
                "label": f"{short(seen.index.function(cut.call))} · {seen.line_of_call(cut.call)}",
            })  # fmt: skip
            self.nodes.append({
                "label": names[0], "kind": "constant", "storage": self.places.get(state.storage, -1) if state else -1,
                "tip": names[0], "line": max(0, cut.line), "x": 0, "y": 0, "w": 0, "h": 0,
            })  # fmt: skip

    def _node_of(self, object: int, call: int) -> int | None:
        state = self.seen.index.state_before_call(object, call)
        node = state.node if state is not None and state.node >= 0 else -1 - object
        return self.number.get(node)

    # ---- runs ----------------------------------------------------------------------------------------------------

    def result(self) -> Gradients:
        seen = self.seen
        width = max((node["x"] + node["w"] for node in self.nodes), default=0) + 20
        height = max((node["y"] + node["h"] for node in self.nodes), default=0) + 30
        made = [self._run(number) for number in range(min(len(seen.recording.backwards), MOST_RUNS))]
        legend = [["violet: gradients going back", ""], ["dashed: data goes on, no gradient returns", "soft"]]
        return {
            "width": width, "height": height, "nodes": self.nodes, "edges": self.edges, "runs": made, "legend": legend,
            "note": self.note, "plot": "", "plot_alt": "",
        }  # fmt: skip

    def _run(self, number: int) -> BackwardRun:
        seen = self.seen
        run = seen.recording.backwards[number]
        line = seen.index.line_of(run.step)
        events: list[BackwardEvent] = []
        for at in range(run.first_edge, run.first_edge + run.edges):
            edge = seen.recording.gradients[at]
            place = self.edge_of.get((edge.source, edge.target))
            if place is None or edge.run != number:
                continue
            text = self._values(edge.blob)
            operation = self._operation(edge.source)
            events.append(
                {
                    "edge": place,
                    "text": text,
                    "say": runs("`{operation}` sends {text}.", operation=operation, text=text),
                }
            )
        leaves = [self._leaf(number, row) for row in seen.accumulations_of(number)]
        kind = seen.index.string(run.kind)
        root = seen.operand(run.root) if run.root >= 0 else ""
        return {"step": seen.place(run.step), "label": f"{root}.{kind}(), line {line}", "events": events,
                "leaves": leaves[:40], "note": ""}  # fmt: skip

    def _values(self, blob: int) -> str:
        if blob < 0:
            return "none"
        kept = self.seen.recording.blobs[blob]
        listed = values.values(kept)
        if listed is not None:
            text = numbers.listed(listed, 6)
            return text if len(text) <= 60 else text[:59] + "…"
        if kept.low is not None:
            return f"{numbers.shape(kept.shape)}: {numbers.short(kept.low, 3)} … {numbers.short(kept.high, 3)}"
        return numbers.shape(kept.shape)

    def _leaf(self, number: int, row: Any) -> Accumulation:
        seen = self.seen
        name = f"{seen.name(row.object)}.grad"
        run = seen.recording.backwards[number]
        parts = []
        for at in range(run.first_edge, run.first_edge + run.edges):
            edge = seen.recording.gradients[at]
            if edge.run == number and edge.target == -1 - row.object and edge.blob >= 0:
                source = (
                    f"{self._operation(edge.source)}, line {seen.flow.line_of_node(edge.source)}"
                    if edge.source >= 0
                    else "start"
                )
                parts.append({"text": self._values(edge.blob), "source": source})
        before, after = self._values(row.before), self._values(row.after)
        say = runs(
            "**{name}** was {before}; {n} added up to {after}.", name=name, before=before, n=len(parts), after=after
        )
        return {"name": name, "before": before, "parts": parts[:12], "after": after, "say": say}
