"""Walks over autograd's graph: nodes, edges and what they saved. Holds nodes only while a walk lasts."""

from __future__ import annotations

from typing import Any

from tensormagic.recording.model import NONE, Recording
from tensormagic.watch import private
from tensormagic.watch.clock import Clock
from tensormagic.watch.memory import Memory


class Graph:
    """Writes the nodes and edges that walks meet into the recording, each once."""

    def __init__(self, recording: Recording, clock: Clock, memory: Memory, max_nodes: int) -> None:
        self.recording, self.clock, self.memory, self.max_nodes = recording, clock, memory, max_nodes
        self.noted: set[int] = set()

    def number(self, node: Any) -> int:
        """A node's number: its sequence number, or -1 - object for the AccumulateGrad of a leaf."""
        variable = getattr(node, "variable", None)
        if variable is not None and type(node).__name__ == "AccumulateGrad":
            return -1 - self.memory.tensor(variable).object
        return private.node_number(node)

    def walk(self, roots: list[Any]) -> tuple[dict[int, Any], dict[int, list[tuple[int, int]]], bool]:
        """Every node reachable from `roots`.

        Returns:
            number -> node; number -> its edges as (target number, target slot), -1, -1 where an input has none;
            whether the walk stopped at its bound.
        """
        nodes: dict[int, Any] = {}
        edges: dict[int, list[tuple[int, int]]] = {}
        stack = [root for root in roots if root is not None]
        while stack:
            node = stack.pop()
            number = self.number(node)
            if number in nodes:
                continue
            if len(nodes) >= self.max_nodes:
                return nodes, edges, True
            nodes[number] = node
            row = edges[number] = []
            for target, slot in node.next_functions:
                if target is None:
                    row.append((_NOWHERE, NONE))
                else:
                    row.append((self.number(target), slot))
                    stack.append(target)
        self._note(nodes, edges)
        return nodes, edges, False

    def _note(self, nodes: dict[int, Any], edges: dict[int, list[tuple[int, int]]]) -> None:
        recording = self.recording
        for number, node in nodes.items():
            if number in self.noted:
                continue
            self.noted.add(number)
            recording.nodes.add(number, self.clock.string(type(node).__name__), NONE)
            for slot, (target, target_slot) in enumerate(edges[number]):
                if target != _NOWHERE:
                    recording.edges.add(number, slot, target, target_slot)


# No node has this number: sequence numbers are small, leaves are -1 - object.
_NOWHERE = -(1 << 60)
NOWHERE = _NOWHERE
