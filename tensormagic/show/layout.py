"""Positions of a directed graph in layers, from left to right.

Layers and crossings by igraph's implementation of Sugiyama, Tagawa and Toda (1981), "Methods for visual understanding of
hierarchical system structures".
"""

from __future__ import annotations

import igraph

from tensormagic.show.shape import GraphEdge, GraphNode

_CHARACTER, _PADDING, _HEIGHT = 9.0, 30.0, 44.0  # px
_ACROSS, _DOWN, _MARGIN = 150.0, 100.0, 24.0  # px between layers, between rows, around


def place(nodes: list[GraphNode], edges: list[GraphEdge]) -> None:
    """Set x, y, w, h of the nodes and points and label_at of the edges, in place."""
    if not nodes:
        return
    graph = igraph.Graph(n=len(nodes), edges=[(edge["source"], edge["target"]) for edge in edges], directed=True)
    spots = list(graph.layout_sugiyama())[: len(nodes)]
    columns = sorted({round(spot[1]) for spot in spots})
    for node in nodes:
        node["w"], node["h"] = max(72.0, len(node["label"]) * _CHARACTER + _PADDING), _HEIGHT
    left = _MARGIN
    starts: dict[int, tuple[float, float]] = {}
    for column in columns:
        widest = max(node["w"] for node, spot in zip(nodes, spots, strict=True) if round(spot[1]) == column)
        starts[column] = (left, widest)
        left += widest + _ACROSS
    low = min(spot[0] for spot in spots)
    for node, spot in zip(nodes, spots, strict=True):
        start, widest = starts[round(spot[1])]
        node["x"] = round(start + (widest - node["w"]) / 2, 1)
        node["y"] = round(_MARGIN + 16 + (spot[0] - low) * _DOWN, 1)
    for edge in edges:
        _route(nodes[edge["source"]], nodes[edge["target"]], edge)


def _route(source: GraphNode, target: GraphNode, edge: GraphEdge) -> None:
    begin = [source["x"] + source["w"], source["y"] + source["h"] / 2]
    end = [target["x"], target["y"] + target["h"] / 2]
    edge["points"] = [begin, end]
    edge["label_at"] = [round((begin[0] + end[0]) / 2, 1), round((begin[1] + end[1]) / 2 - 10, 1)]
