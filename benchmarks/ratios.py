"""The table: each piece of work traced and under the floors, as ratios to the bare run beside it."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from benchmarks import floors, work


class Row(NamedTuple):
    """One line of the table."""

    name: str
    source: str
    rounds: int
    aim: float
    profiled: str | None  # what torch.profiler runs: fewer steps where it would take minutes; None: the same


ROWS = [
    Row("MLP, 200 steps", work.mlp(200), 7, 4.0, work.mlp(50)),
    Row("MLP, 2000 steps", work.mlp(2000), 3, 2.5, work.mlp(50)),
    Row("base and 50 views, loop", work.VIEWS, 25, 12.0, None),
    Row("base and 50 views, one line", work.VIEWS_IN_ONE_LINE, 25, 12.0, None),
    Row("transformer encoder layer", work.TRANSFORMER, 9, 1.05, None),
]


def ratio(run: Callable[[str], float], source: str, rounds: int) -> tuple[float, list[float], float]:
    """Median over rounds of (run / the bare run just before it), every round's ratio, median of the bare seconds."""
    bare, ratios = [], []
    for _ in range(rounds):
        bare.append(floors.bare(source))
        ratios.append(run(source) / bare[-1])
    return median(ratios), ratios, median(bare)


def table(quick: bool = False) -> None:
    """Print the table. `quick`: three rounds of each row and no profiler."""
    others = [name for name in floors.FLOORS if not (quick and name == "torch.profiler")]
    print(f"{'work':30}{'aim':>7}{'ours':>8}  {'(lowest-highest)':18}" + "".join(f"{name:>20}" for name in others))
    for row in ROWS:
        rounds = min(row.rounds, 3) if quick else row.rounds
        floors.bare(row.source)
        floors.traced(row.source)  # both warm
        ours, each, bare = ratio(floors.traced, row.source, rounds)
        cells = []
        for name in others:
            profiler = name == "torch.profiler"
            source = row.profiled if profiler and row.profiled else row.source
            cells.append(ratio(floors.FLOORS[name], source, min(rounds, 3) if profiler else rounds)[0])
        spread = f"({min(each):.2f}-{max(each):.2f})"
        print(
            f"{row.name:30}{row.aim:7.2f}{ours:8.2f}  {spread:18}"
            + "".join(f"{cell:20.2f}" for cell in cells)
            + f"   bare {bare * 1e3:.2f} ms",
            flush=True,
        )


def afterwards(rounds: int = 9) -> None:
    """Plain work before the process has traced anything, and after: must come first in the run."""
    source = work.mlp(200)
    floors.bare(source)
    before = [floors.bare(source) for _ in range(2 * rounds)]
    floors.traced(source)
    after = [floors.bare(source) for _ in range(rounds)]
    noise = median(before[rounds:]) / median(before[:rounds])
    print(
        f"plain work after a trace: {median(after) / median(before[rounds:]):.3f} (two halves before it: {noise:.3f})"
    )
