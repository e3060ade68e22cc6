"""How much of a cell is recorded."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """Bounds of a trace; each that is reached is said in the panel.

    Args:
        values: tensors of at most this many elements are recorded value by value.
        first: executions of a line that are recorded in detail; later ones leave a light record.
        max_steps: steps of which a record is kept at all.
        max_calls: torch calls of which a record is kept.
        depth: how far names are followed into attributes, items and modules.
        max_names: names that a look follows.
        max_items: items of one list, tuple or dict that a look follows.
        max_nodes: nodes of autograd's graph that one walk visits.
        check_elements: call results of at most this many elements are looked at for NaN and infinity.
        watch: follow only these top-level names; None: every one.
    """

    values: int = 64
    first: int = 20
    max_steps: int = 100_000
    max_calls: int = 1_000_000
    depth: int = 6
    max_names: int = 2_000
    max_items: int = 100
    max_nodes: int = 20_000
    check_elements: int = 1 << 20
    watch: tuple[str, ...] | None = None
