"""Numbers and shapes as short text."""

from __future__ import annotations

import math
from typing import Any


def short(value: Any, digits: int = 4) -> str:
    """A number in at most a few characters: 1, 0.25, -1.5e-07, nan, inf, True, 1+2i."""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, complex):
        return f"{short(value.real)}{'+' if value.imag >= 0 or math.isnan(value.imag) else ''}{short(value.imag)}i"
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return str(value)
        text = f"{value:.{digits}g}"
        return str(int(value)) if value == int(value) and abs(value) < 10**6 else text
    return str(value)


def listed(value: Any, most: int = 8) -> str:
    """Nested lists as text, cut after `most` entries a level."""
    if isinstance(value, list):
        shown = ", ".join(listed(item, most) for item in value[:most])
        return f"[{shown}{', …' if len(value) > most else ''}]"
    return short(value)


def size(nbytes: int) -> str:
    """A number of bytes: 16 B, 4 kB, 3.2 MB."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes} B"


def shape(dimensions: tuple[int, ...]) -> str:
    """A shape: 3, 2 × 3; nothing for that of a scalar."""
    return " × ".join(map(str, dimensions))
