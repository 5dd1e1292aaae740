"""The anytime ribbon says what the advice says, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import posterior_of, race_by_hand, two_kinds

from polarbear_plugins import Posterior, RaceSettings, analyze
from polarbear_plugins.errors import InvalidInputError, ModelWarning
from polarbear_plugins.plots import colours, paper_figures, plot_ribbon

pytest.importorskip("matplotlib")

GRID = np.geomspace(10, 1e5, 12)
NAMES = ("CSA", "$x_1$ & search", "a_very_long_name_without_any_end")


def surely(*leaders: int | None, names: tuple[str, ...] = NAMES) -> Posterior:
    """A posterior in which one leads by far at each timepoint, or where ``None``, nobody does."""
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(200, len(leaders), len(names)))
    for t, leader in enumerate(leaders):
        if leader is not None:
            logs[:, t, leader] += 9
    ratings = np.exp(logs)
    ratings /= ratings.sum(axis=2, keepdims=True)
    return posterior_of(ratings, algorithms=names, timepoints=GRID[: len(leaders)])


def texts(ax: Any) -> list[str]:
    return [text.get_text().replace("\n", "") for text in ax.texts]


def faces(ax: Any) -> list[tuple[str, bool]]:
    """Colour of each stretch, and whether it is hatched."""
    from matplotlib.colors import to_hex

    return [(to_hex(part.get_facecolor()[0]).upper(), bool(part.get_hatch())) for part in ax.collections]


def test_a_stretch_has_the_colour_and_the_name_of_its_choice() -> None:
    ax = plot_ribbon(surely(*[0] * 6, *[1] * 6))
    tones = colours(NAMES)
    assert texts(ax) == ["CSA", "$x_1$ & search"]
    assert faces(ax) == [(tones["CSA"], False), (tones["$x_1$ & search"], False)]
    assert not any(text.get_parse_math() for text in ax.texts)
    assert not ax.figure.legends


def test_where_no_choice_is_supported_the_ribbon_is_hatched_and_names_the_candidates() -> None:
    ax = plot_ribbon(surely(*[0] * 6, *[None] * 6))
    assert faces(ax)[0][1] is False
    assert all(face == ("#EFEFEF", True) for face in faces(ax)[1:])
    named = texts(ax)[-1]
    assert named.endswith("?")
    assert "CSA" in named
    assert "$x_1$ & search" in named


def test_the_height_is_the_support_at_each_timepoint() -> None:
    draws = [[[0.5, 0.4], [0.9, 0.1]], [[0.44, 0.5], [0.9, 0.1]], [[0.4, 0.55], [0.9, 0.1]], [[0.9, 0.05], [0.9, 0.1]]]
    ax = plot_ribbon(posterior_of(draws))
    [part] = ax.collections
    vertices = part.get_paths()[0].vertices
    # a is about as good as b in three draws of four at first, then in all.
    assert {round(float(height), 6) for height in vertices[:, 1]} == {0.0, 0.75, 1.0}
    assert faces(ax)[0][1]  # 0.875 on average: not supported


def test_nothing_is_drawn_where_no_candidate_was_observed() -> None:
    sure = surely(*[0] * 12)
    seen = np.ones((12, 3), dtype=bool)
    seen[6:] = False
    ax = plot_ribbon(replace(sure, observed=seen))
    assert len(ax.collections) == 1
    assert ax.collections[0].get_paths()[0].vertices[:, 0].max() < GRID[6]
    assert texts(ax) == ["CSA", "not observed"]


def test_a_name_that_does_not_fit_is_a_letter_that_is_explained_below() -> None:
    with paper_figures(3.33):
        ax = plot_ribbon(surely(*[0] * 8, 2, 1, 1, 2))
        assert texts(ax) == ["CSA", "A", "B", "A"]
        [legend] = ax.figure.legends
        told = [text.get_text().replace("\n", "") for text in legend.get_texts()]
        assert told == ["A: a_very_long_name_without_any_end", "B: $x_1$ & search"]
        is_whole(ax)


def is_whole(ax: Any) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    right, top = canvas.get_width_height()
    for text in ax.figure.findobj(Text):
        box = text.get_window_extent(canvas.get_renderer())
        if text.get_text() and text.get_visible() and text.get_window_extent().width:
            assert min(box.x0, box.y0) >= -1, text
            assert box.x1 <= right + 1, text
            assert box.y1 <= top + 1, text


def test_the_ribbon_is_about_an_inch_high_at_the_width_of_a_column() -> None:
    with paper_figures(3.33):
        ax = plot_ribbon(surely(*[0] * 6, *[1] * 6))
        assert ax.figure.get_figwidth() == 3.33
        assert 0.7 < ax.figure.get_figheight() < 1.1
        is_whole(ax)


def test_of_a_result_those_that_are_left_are_compared() -> None:
    told = race_by_hand()
    ax = plot_ribbon(told)
    shown = " ".join(texts(ax))
    assert set(told.pareto_set) == {"a", "b"}
    assert not set("cde") & set(shown.replace("or", "").replace("not observed", ""))


@pytest.mark.slow
def test_a_misfit_is_told_and_a_result_is_compared_by_first_places() -> None:
    misfit = analyze(two_kinds(40), RaceSettings(seed=1, draws=200))
    assert misfit.check is not None
    assert not misfit.check.fits
    with pytest.warns(ModelWarning, match="plot_ribbon"):
        plot_ribbon(misfit.posterior)
    assert all(hatched for _, hatched in faces(plot_ribbon(misfit)))  # no warning: warnings are errors here


def test_anything_else_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="plot_ribbon: expected a result or a posterior, got 'x'"):
        plot_ribbon("x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="among"):
        plot_ribbon(surely(0, 0), among=["nobody"])
    assert texts(plot_ribbon(surely(0, names=("only",)))) == ["only"]
