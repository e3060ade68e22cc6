"""The gradient tab: the drawings of each backward run, what its nodes sent one after the other, and what added up where."""

from __future__ import annotations

from typing import Any

from tensormagic.recording import values
from tensormagic.show import numbers
from tensormagic.show.drawing import Drawings, operation
from tensormagic.show.facts import Seen
from tensormagic.show.sentences import runs
from tensormagic.show.shape import Accumulation, BackwardEvent, BackwardRun, Gradients, Run

MOST_RUNS = 12  # that are drawn: the first ones and the last
_NODES = 20_000  # of one run that are laid out
_EVENTS = 300  # nodes of one run that can be stepped through
_GRAPHS = 40  # drawings of all runs together
_LEAVES, _PARTS = 40, 12
_ON_EDGE = 22  # letters beside an edge


def build(seen: Seen, places: dict[int, int]) -> Gradients:
    """The gradient tab.

    Args:
        seen: the facts of a trace.
        places: storage -> its place in the view, for colours.
    """
    drawn = [number for number, run in enumerate(seen.recording.backwards) if run.edges]
    notes = []
    if len(drawn) > MOST_RUNS:
        notes.append(seen.say("runs_bound", n=len(drawn), shown=MOST_RUNS))
        drawn = drawn[: MOST_RUNS - 1] + drawn[-1:]
    graphs: list[Any] = []
    made = []
    for left, number in zip(range(len(drawn), 0, -1), drawn, strict=True):
        made.append(_Run(seen, number).made(places, graphs, max(1, (_GRAPHS - len(graphs)) // left)))
    legend: list[Run] = [[seen.say(key), ""] for key in ("legend_leaf", "legend_result", "legend_operation")]
    legend += [[seen.say("legend_gradient"), "grad"], [seen.say("legend_cut"), "warn"]]
    return {"graphs": graphs, "runs": made, "legend": legend if graphs else [], "note": " ".join(notes)}


class _Run:
    """One backward run: the gradients that were seen in it, in the order in which the engine sent them."""

    def __init__(self, seen: Seen, number: int) -> None:
        self.seen, self.number = seen, number
        self.row = seen.recording.backwards[number]
        span = range(self.row.first_edge, self.row.first_edge + self.row.edges)
        found = [seen.recording.gradients[at] for at in span]
        self.edges = [edge for edge in found if edge.run == number]

    def made(self, places: dict[int, int], graphs: list[Any], most: int) -> BackwardRun:
        """The run, its drawings appended to `graphs`."""
        seen, row = self.seen, self.row
        note: list[str] = []
        used: dict[int, None] = {}
        for edge in self.edges:
            if edge.source >= 0:
                used.setdefault(edge.source)
            used.setdefault(edge.target)
        first = len(graphs)
        events, sends = self._events(note)
        nodes = list(used)
        if len(nodes) > _NODES:
            note.append(seen.say("nodes_bound", n=len(nodes), shown=_NODES))
            nodes = nodes[:_NODES]
        made = Drawings(seen, places, nodes, row.step, sends, most).made() if nodes else []
        for graph in made:
            for node in graph["nodes"]:
                if node.get("opens", -1) >= 0:
                    node["opens"] += first
        graphs += made
        added = seen.accumulations_of(self.number)
        if len(added) > _LEAVES:
            note.append(seen.say("leaves_bound", n=len(added), shown=_LEAVES))
        arrived: dict[int, list[Any]] = {}
        for edge in self.edges:
            if edge.target < 0 and edge.blob >= 0:
                arrived.setdefault(-1 - edge.target, []).append(edge)
        label = seen.say(
            "run", root=seen.operand(row.root) if row.root >= 0 else "", kind=seen.index.string(row.kind),
            line=seen.index.line_of(row.step),
        )  # fmt: skip
        return {
            "step": seen.place(row.step), "label": label, "graph": first if made else -1, "events": events,
            "leaves": [self._leaf(one, arrived.get(one.object, [])) for one in added[:_LEAVES]], "note": " ".join(note),
        }  # fmt: skip

    # ---- node by node --------------------------------------------------------------------------------------------

    def _events(self, note: list[str]) -> tuple[list[BackwardEvent], list[tuple[int, int, str]]]:
        """What each node sent, and (sender, receiver, text) of every gradient of these."""
        groups: list[list[Any]] = []
        for edge in self.edges:
            if groups and groups[-1][0].source == edge.source:
                groups[-1].append(edge)
            else:
                groups.append([edge])
        if len(groups) > _EVENTS:
            note.append(self.seen.say("events_bound", n=len(groups), shown=_EVENTS))
        arrived: dict[int, list[int]] = {}
        events: list[BackwardEvent] = []
        sends: list[tuple[int, int, str]] = []
        for group in groups[:_EVENTS]:
            texts = [self._text(edge.blob, _ON_EDGE) for edge in group]
            events.append({"say": self._said(group, arrived.get(group[0].source, [])), "texts": texts})
            sends += [(edge.source, edge.target, text) for edge, text in zip(group, texts, strict=True)]
            for edge in group:
                arrived.setdefault(edge.target, []).append(edge.blob)
        return events, sends

    def _said(self, group: list[Any], arrived: list[int]) -> list[Run]:
        """`mul`, line 5, got [1, 1] and sends [1, 2] to `w`."""
        seen, words = self.seen, self.seen.words.SAY
        if group[0].source < 0:
            told = runs(words["event_start"], name=self._receiver(group[0].target), text=self._text(group[0].blob))
            return told
        node = group[0].source
        line = seen.flow.line_of_node(node)
        told = runs(words["event_node"], operation=operation(seen, node))
        if line > 0:
            told += runs(words["event_line"], line=line)
        if len(arrived) == 1:
            told += runs(words["event_got"], text=self._text(arrived[0]))
        elif len(arrived) > 1:
            told += runs(words["event_summed"], n=len(arrived))
        for at, edge in enumerate(group[:4]):
            key = "event_sends" if at == 0 else "event_and"
            told += runs(words[key], text=self._text(edge.blob), name=self._receiver(edge.target))
        return told + runs(words["event_more"] if len(group) > 4 else words["event_end"])

    def _receiver(self, node: int) -> str:
        seen = self.seen
        if node < 0:
            return seen.name(-1 - node)
        named = seen.node_tensors.get(node)
        return named[0] if named else operation(seen, node)

    # ---- values --------------------------------------------------------------------------------------------------

    def _text(self, blob: int, most: int = 44) -> str:
        """The values of a gradient, or what is known of a large one."""
        if blob < 0:
            return self.seen.say("no_gradient")
        kept = self.seen.recording.blobs[blob]
        listed = values.values(kept)
        if listed is not None:
            text = numbers.listed(listed, 5 if most > 40 else 4)
            return text if len(text) <= most else text[: most - 1] + "…"
        if kept.low is not None:
            return f"{self.seen.shape(kept.shape)}: {numbers.short(kept.low, 3)} … {numbers.short(kept.high, 3)}"
        return self.seen.shape(kept.shape)

    def _leaf(self, row: Any, arrived: list[Any]) -> Accumulation:
        """What was added to a leaf's .grad, part by part."""
        seen = self.seen
        name = seen.say("grad_of", name=seen.name(row.object))
        parts = []
        for edge in arrived:
            line = seen.flow.line_of_node(edge.source)
            source = seen.say("start") if edge.source < 0 else operation(seen, edge.source)
            parts.append({
                "text": self._text(edge.blob, 34), "source": seen.say("part", operation=source, line=line) if line > 0 else source,
            })  # fmt: skip
        before, after = self._text(row.before, 34), self._text(row.after, 34)
        key = "leaf_many" if len(parts) > 1 else "leaf_one" if row.before < 0 else "leaf_added"
        say = runs(seen.words.SAY[key], name=name, before=before, n=len(parts), after=after)
        told: Accumulation = {"name": name, "before": before, "parts": parts[:_PARTS], "after": after, "say": say}  # type: ignore[typeddict-item]
        if len(parts) > _PARTS:
            told["more"] = seen.say("parts_bound", n=len(parts) - _PARTS)
        return told
