"""Colours are legible in both themes, and apart from each other, computed from the palette itself."""

import itertools

import pytest

from tensormagic.show import palette

HUES = [*palette.HUES, palette.WARNING, palette.GRADIENT]


def test_contrast_is_that_of_the_standard() -> None:
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)  # WCAG's known near miss


@pytest.mark.parametrize("name", palette.THEMES)
@pytest.mark.parametrize("hue", HUES)
def test_coloured_text_and_lines_are_legible_on_every_ground(name: str, hue: str) -> None:
    theme = palette.THEMES[name]
    made = palette.colour(hue, theme)
    for ground in palette.grounds(theme):
        assert palette.contrast(made.text, ground) >= 4.5
        assert palette.contrast(made.line, ground) >= 3


@pytest.mark.parametrize("name", palette.THEMES)
def test_inks_are_legible_on_grounds_and_on_the_tints_of_every_hue(name: str) -> None:
    theme = palette.THEMES[name]
    for ground in palette.grounds(theme):
        assert palette.contrast(theme.ink, ground) >= 7
        assert palette.contrast(theme.soft, ground) >= 4.5
    for hue in HUES:
        assert palette.contrast(theme.ink, palette.mix(hue, theme.ground, theme.tint)) >= 4.5  # values in cells
        assert palette.contrast(theme.ink, palette.mix(hue, theme.ground, theme.strong)) >= 4.5  # glyphs in the matrix


@pytest.mark.parametrize("ground", ["#ffffff", "#f5f5f5", "#111111", "#212121"])
def test_grounds_of_jupyterlab_take_the_texts_of_their_theme(ground: str) -> None:
    theme = palette.THEMES["light" if palette.luminance(ground) > 0.5 else "dark"]
    for hue in HUES:
        assert palette.contrast(palette.colour(hue, theme).text, ground) >= 4.5
    assert palette.contrast(theme.soft, ground) >= 4.5


@pytest.mark.parametrize("name", palette.THEMES)
def test_no_two_colours_are_the_same(name: str) -> None:
    made = [palette.colour(hue, palette.THEMES[name]) for hue in HUES]
    for one, other in itertools.combinations(made, 2):
        assert one.fill != other.fill
        assert one.text != other.text


def test_a_contrast_that_no_shade_reaches_is_refused() -> None:
    with pytest.raises(ValueError, match="no shade of #0072b2"):
        palette.legible("#0072b2", palette.THEMES["light"], 30)


def test_css_carries_every_colour_of_both_themes() -> None:
    text = palette.css()
    for name in palette.THEMES:
        for key, value in palette.variables(palette.THEMES[name]).items():
            assert f"{key}:{value}" in text
