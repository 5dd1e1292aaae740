"""How figures look in a paper: readable in grey, no text too small, and nothing of it outside its context."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plots import colours, paper_figures, style
from polarbear_plugins.plots.look import Look, look, narrow_figures

TEN = [f"a{number}" for number in range(10)]


def lightness(tone: str) -> float:
    """L* of CIELAB, what remains of a colour in grey: 0 is black, 100 is white."""
    rgb = np.array([int(tone[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    y = float(linear @ [0.2126, 0.7152, 0.0722])
    return 116 * np.cbrt(y) - 16 if y > 0.008856 else 903.3 * y


def test_in_a_paper_lines_and_areas_differ_without_their_colours() -> None:
    pytest.importorskip("matplotlib")
    tones = colours(TEN)
    with paper_figures():
        lines = [(str(style.line_style(name, tones)), style.marker(name, tones)) for name in TEN]
        hatches = [style.hatch(name, tones) for name in TEN]
        assert all(style.line_look(name, tones, 50)["marker"] for name in TEN)
    assert len(set(lines)) == 10
    for one, other in itertools.combinations(range(10), 2):
        apart = abs(lightness(tones[TEN[one]]) - lightness(tones[TEN[other]]))
        assert hatches[one] != hatches[other] or apart > 20
    assert {style.line_style(name, tones) for name in TEN[:8]} == {"-"}  # as before, on a screen
    assert "marker" not in style.line_look(TEN[0], tones, 50)


def test_in_a_paper_a_higher_probability_is_darker_also_in_grey() -> None:
    colour = pytest.importorskip("matplotlib.colors")

    def grey() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([lightness(colour.to_hex(style.shades()(p))) for p in np.linspace(0, 1, 21)])

    with paper_figures():
        assert (np.diff(grey()) < 0).all()
    assert (np.diff(grey()) > 0).any()  # on a screen: orange, white, blue


def test_texts_on_a_colour_can_be_read_also_in_grey() -> None:
    pytest.importorskip("matplotlib")
    from polarbear_plugins.plots.ribbon import _on

    for tone in colours(TEN).values():
        assert abs(lightness(tone) - (100 if _on(tone) == "white" else 0)) > 40, tone


def test_small_fonts_shrink_towards_six_points_and_none_is_smaller() -> None:
    column = Look(width=3.33, font=8.0, paper=True)
    assert [column.points(size) for size in (10, 8, 6, 4)] == [8, 7, 6, 6]
    assert column.smallest == 6
    assert [Look().points(size) for size in (10, 8, 4)] == [10, 8, 4]
    assert (column.line, Look().line) == (16, 22)


def test_a_look_ends_with_its_context() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    before = dict(matplotlib.rcParams)
    with paper_figures(5.0, font=9), narrow_figures():
        assert (look().width, look().paper, look().legend_below) == (4.8, False, True)
        assert matplotlib.rcParams["pdf.fonttype"] == matplotlib.rcParams["ps.fonttype"] == 42
    assert look() == Look()
    assert dict(matplotlib.rcParams) == before
    with paper_figures(7.0):
        assert not look().legend_below


@pytest.mark.parametrize(
    ("width", "font", "message"),
    [(1.0, 8, "width: expected a number from 2 to 30, got 1"), (3.3, 5, "font: expected a number from 6 to 24")],
)
def test_what_could_not_be_read_is_refused(width: float, font: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message), paper_figures(width, font):
        pass


def test_powers_of_ten_are_plain_numbers_and_not_too_many() -> None:
    figure = pytest.importorskip("matplotlib.figure")
    ax = figure.Figure().subplots()
    ax.set_xscale("log")
    style.label_powers(ax.xaxis, 10.0, 1e5)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["10", "100", "1,000", "10,000", "100,000"]
    style.label_powers(ax.xaxis, 1.0, 1e8)
    assert len(ax.get_xticks()) == 5
