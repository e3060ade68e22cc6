"""Positions of a directed graph in layers, from left to right.

Layers, crossings and the ways of long edges by igraph's implementation of Sugiyama, Tagawa and Toda (1981), "Methods for
visual understanding of hierarchical system structures".
"""

from __future__ import annotations

import itertools
from collections import Counter

import igraph

from tensormagic.show.shape import GraphEdge, GraphNode

_CHARACTER, _PADDING, _HEIGHT = 9.0, 30.0, 46.0  # px
_SMALL = 8.2  # px a letter of what stands at an edge
_NEAREST, _FARTHEST = 110.0, 250.0  # px between layers: as much as the texts there need
_DOWN, _MARGIN, _BEND = 96.0, 24.0, 40.0  # px between rows, around, in which an edge changes its row


def place(nodes: list[GraphNode], edges: list[GraphEdge], letters: list[int]) -> tuple[float, float]:
    """Set x, y, w, h of the nodes and points and label_at of the edges, in place.

    Args:
        nodes, edges: of the graph; without circles.
        letters: for each edge, of the longest text that stands at it.

    Returns:
        width and height of the drawing.
    """
    if not nodes:
        return 0, 0
    for node in nodes:
        longest = max(len(node["label"]) * _CHARACTER, len(node.get("sub", "")) * _SMALL)
        node["w"], node["h"] = max(72.0, longest + _PADDING), _HEIGHT
    ends = [(edge["source"], edge["target"]) for edge in edges]
    found = igraph.Graph(n=len(nodes), edges=ends, directed=True).layout_sugiyama()
    rows, layers = [spot[0] for spot in found], [round(spot[1]) for spot in found]
    starts, widths = _columns(nodes, edges, layers, letters)
    ways = [[(round(spot[1]), spot[0]) for spot in way] for way in found.edge_routing]
    low = min([*rows, *(row for way in ways for _, row in way)])
    high = max([*rows, *(row for way in ways for _, row in way)])
    for node, row, layer in zip(nodes, rows, layers, strict=True):
        node["x"] = round(starts[layer] + (widths[layer] - node["w"]) / 2, 1)
        node["y"] = round(_MARGIN + (row - low) * _DOWN, 1)
    into, out = Counter(target for _, target in ends), Counter(source for source, _ in ends)
    for edge, way in zip(edges, ways, strict=True):
        source, target = nodes[edge["source"]], nodes[edge["target"]]
        middle = source["y"] + _HEIGHT / 2
        stops = [(source["x"] + source["w"], middle)]
        for layer, row in sorted(way):
            y = _MARGIN + (row - low) * _DOWN + _HEIGHT / 2
            stops += [(starts[layer], y), (starts[layer] + widths[layer], y)]
        stops.append((target["x"], target["y"] + _HEIGHT / 2))
        _route(edge, stops, late=into[edge["target"]] > 1 and (bool(way) or out[edge["source"]] == 1))
    width = max(node["x"] + node["w"] for node in nodes) + _MARGIN
    return round(width, 1), round(2 * _MARGIN + (high - low) * _DOWN + _HEIGHT, 1)


def _columns(
    nodes: list[GraphNode], edges: list[GraphEdge], layers: list[int], letters: list[int]
) -> tuple[list[float], list[float]]:
    """Left end and width of each layer."""
    count = max(layers) + 1
    widths, gaps = [0.0] * count, [_NEAREST] * count
    for node, layer in zip(nodes, layers, strict=True):
        widths[layer] = max(widths[layer], node["w"])
    for edge, length in zip(edges, letters, strict=True):
        before = layers[edge["target"]] - 1  # the texts stand right before what the edge leads to
        gaps[before] = max(gaps[before], min(_FARTHEST, length * _SMALL + _BEND + 24))
    starts = [_MARGIN]
    for layer in range(count - 1):
        starts.append(starts[-1] + widths[layer] + gaps[layer])
    return starts, widths


def _route(edge: GraphEdge, stops: list[tuple[float, float]], late: bool) -> None:
    """Level from stop to stop but for a short bend: at the start, or, `late`, at the end, where several come together."""
    points = [stops[0]]
    for (x0, y0), (x1, y1) in itertools.pairwise(stops):
        bend = min(_BEND, (x1 - x0) / 2)
        if y0 != y1 and x1 > x0:
            points += [(x1 - bend, y0)] if late else [(x0 + bend, y1)]
        points.append((x1, y1))
    edge["points"] = [[round(x, 1), round(y, 1)] for x, y in points]
    (x0, y0), (x1, y1) = stops[-2], stops[-1]
    bend = min(_BEND, (x1 - x0) / 2) if y0 != y1 else 0
    x, y = (x0 + (x1 - bend - x0) / 2, y0) if late else (x0 + bend + (x1 - x0 - bend) / 2, y1)
    edge["label_at"] = [round(x, 1), round(y - 12, 1)]
