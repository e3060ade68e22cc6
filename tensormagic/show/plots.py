"""Matplotlib figures, drawn into `ax=` where it is given. pyplot and its global state are not touched."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from tensormagic.analysis import sharing
from tensormagic.analysis.sharing import Sharing
from tensormagic.recording import values
from tensormagic.show.facts import Seen
from tensormagic.show.palette import HUES
from tensormagic.show.view_sharing import chosen


def _axes(ax: Any, width: float, height: float) -> Any:
    return Figure(figsize=(width, height), layout="constrained").add_subplot() if ax is None else ax


def plot_gradients(trace: Any, ax: Any = None, language: str = "en") -> Any:
    """What each backward run brought to each leaf, stacked by contribution.

    Args:
        trace: a `Trace`.
        ax: matplotlib Axes to draw into; None: those of a new figure.
        language: of the words; see `words.catalogue`.

    Returns:
        The Axes. A bar's height is the sum of the mean absolute values of the contributions.
    """
    seen = Seen(trace, language)
    recording = seen.recording
    bars: list[tuple[str, list[tuple[str, float]]]] = []
    for row in recording.accumulations:
        run = recording.backwards[row.run]
        parts = []
        for at in range(run.first_edge, run.first_edge + run.edges):
            edge = recording.gradients[at]
            if edge.run == row.run and edge.target == -1 - row.object and edge.blob >= 0:
                array = values.decode(recording.blobs[edge.blob])
                if array is not None:
                    name = (
                        seen.described(seen.flow.call_of_node(edge.source)) if edge.source >= 0 else seen.say("start")
                    )
                    line = seen.flow.line_of_node(edge.source)
                    label = seen.say("part", operation=name, line=line) if line > 0 else name
                    parts.append((label, float(np.mean(np.abs(array)))))
        bars.append(
            (
                f"{seen.say('grad_of', name=seen.name(row.object))}\n{seen.say('line', n=seen.index.line_of(run.step))}",
                parts,
            )
        )
    ax = _axes(ax, max(4.0, 1.2 * len(bars) + 1), 3.2)
    labelled: dict[str, str] = {}
    for place, (_, parts) in enumerate(bars):
        bottom = 0.0
        for label, height in parts:
            colour = labelled.get(label)
            fresh = colour is None
            if colour is None:
                colour = labelled[label] = HUES[len(labelled) % len(HUES)]
            ax.bar(place, height, bottom=bottom, color=colour, edgecolor="white", label=label if fresh else None)
            bottom += height
    ax.set_xticks(range(len(bars)), [label for label, _ in bars])
    ax.set_ylabel(seen.say("plot_contribution"))
    ax.set_title(seen.say("plot_gradients"))
    if labelled:
        ax.legend(fontsize="small")
    return ax


def plot_sharing(
    trace: Any, names: list[str] | None = None, step: int | None = None, ax: Any = None, language: str = "en"
) -> Any:
    """The sharing matrix at a step.

    Args:
        trace: a `Trace`.
        names: which names; None: those that the panel shows.
        step: after which step of the recording; None: the last.
        ax: matplotlib Axes to draw into; None: those of a new figure.
        language: of the words; see `words.catalogue`.

    Returns:
        The Axes.
    """
    seen = Seen(trace, language)
    if names is None:
        names = chosen(seen, len(seen.recording.steps) - 1 if step is None else step) if seen.shown else []
    shown, matrix = sharing.matrix(seen.index, names, step)
    size = max(2.4, 0.5 * len(shown) + 1)
    ax = _axes(ax, size, size)
    grid = np.zeros((len(shown), len(shown)))
    for i in range(len(shown)):
        for j in range(len(shown)):
            relation: Sharing = matrix[i, j]
            grid[i, j] = 0 if relation is Sharing.SEPARATE else 0.35 if relation is Sharing.SAME_STORAGE else 0.7
            ax.text(j, i, relation.glyph, ha="center", va="center", fontfamily="DejaVu Sans")
    if len(shown):
        ax.imshow(grid, cmap="Blues", vmin=0, vmax=1.4)
    ax.set_xticks(range(len(shown)), shown, rotation=90 if len(shown) > 6 else 0)
    ax.set_yticks(range(len(shown)), shown)
    ax.tick_params(length=0)
    ax.set_title(seen.say("plot_sharing"))
    return ax
