"""The colours of storages and of marks, for both themes, and the CSS custom properties that carry them.

Hues are those of Okabe and Ito (2008), chosen to stay apart for colour-blind eyes; vermillion is kept for warnings.
A hue alone is too light or too dark to write with on some grounds, so each has three forms per theme: `fill` (the hue
itself: bars, tints), `line` (at least 3 to 1 against every ground: outlines) and `text` (at least 4.5 to 1). The last
two are the hue moved towards black or white as little as that takes. Contrast is computed as WCAG 2.2 defines it.
"""

from __future__ import annotations

from typing import NamedTuple

HUES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#b8a900", "#8c8c8c")
COUNT = len(HUES)
WARNING = "#d55e00"
GRADIENT = "#7b4fd6"
TEXT_CONTRAST = 4.5
LINE_CONTRAST = 3.0


class Theme(NamedTuple):
    """The grounds that anything may stand on, the inks, and how much of a hue is in a tint (0 to 1)."""

    ground: str
    raised: str
    border: str
    ink: str
    soft: str
    tint: float  # values, the line shown now
    strong: float  # names that share, in the matrix


THEMES = {
    "light": Theme("#ffffff", "#f5f6f8", "#d5d9e0", "#1b1f24", "#565f6d", 0.14, 0.42),
    "dark": Theme("#111418", "#1c2128", "#3a424e", "#eceff3", "#a9b3c0", 0.26, 0.55),
}


class Colour(NamedTuple):
    """One hue in one theme, as "#rrggbb"."""

    fill: str
    line: str
    text: str


def _channels(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]


def luminance(colour: str) -> float:
    """Relative luminance, 0 to 1, of "#rrggbb" (WCAG 2.2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio, 1 to 21, of two colours (WCAG 2.2)."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def mix(one: str, other: str, share: float) -> str:
    """`share` (0 to 1) of `one` and the rest of `other`, per sRGB channel, as CSS `color-mix(in srgb, ...)` does."""
    pairs = zip(_channels(one), _channels(other), strict=True)
    return "#" + "".join(f"{round(255 * (a * share + b * (1 - share))):02x}" for a, b in pairs)


def grounds(theme: Theme) -> list[str]:
    """What text may stand on: the panel, its raised parts and the line that is shown now."""
    return [theme.ground, theme.raised, mix(HUES[0], theme.ground, theme.tint)]


def legible(hue: str, theme: Theme, ratio: float) -> str:
    """The hue moved towards the theme's ink end until it has `ratio` against every ground, in steps of 2 %."""
    towards = "#000000" if luminance(theme.ground) > luminance(theme.ink) else "#ffffff"
    for step in range(51):
        colour = mix(towards, hue, step / 50)
        if all(contrast(colour, ground) >= ratio for ground in grounds(theme)):
            return colour
    raise ValueError(f"no shade of {hue} reaches contrast {ratio} on {theme.ground}")


def colour(hue: str, theme: Theme) -> Colour:
    """The three forms of a hue in a theme."""
    return Colour(hue, legible(hue, theme, LINE_CONTRAST), legible(hue, theme, TEXT_CONTRAST))


def variables(theme: Theme) -> dict[str, str]:
    """The CSS custom properties of a theme: --tt-c0 (fill), --tt-l0 (line), --tt-t0 (text), ... and the grounds."""
    found = {
        "--tt-bg": theme.ground, "--tt-bg2": theme.raised, "--tt-line": theme.border,
        "--tt-ink": theme.ink, "--tt-soft": theme.soft,
        "--tt-tint": f"{theme.tint:.0%}", "--tt-strong": f"{theme.strong:.0%}",
    }  # fmt: skip
    for key, hue in [*enumerate(HUES), ("warn", WARNING), ("grad", GRADIENT)]:
        for form, value in zip("clt", colour(hue, theme), strict=True):
            found[f"--tt-{form}{key}" if isinstance(key, int) else f"--tt-{form}-{key}"] = value
    return found


def css() -> str:
    """Both themes as rules for the shadow root; print is always light."""
    light, dark = (";".join(f"{k}:{v}" for k, v in variables(THEMES[name]).items()) for name in ("light", "dark"))
    return f":host{{{light}}}\n@media not print{{:host([data-theme=dark]){{{dark}}}}}\n"
