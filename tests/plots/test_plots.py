from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import posterior_of, table_of, two_kinds
from command_line import run_example

from polarbear_plugins import (
    Posterior,
    RaceResult,
    RaceSettings,
    RankingTable,
    Trajectory,
    analyze,
    log_timepoints,
    race,
)
from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.measures.audit import Audit, audit_scores
from polarbear_plugins.measures.bootstrap import Bootstrap, bootstrap_scores
from polarbear_plugins.measures.ecdf_and_aocc import ecdf
from polarbear_plugins.measures.friedman import friedman_test
from polarbear_plugins.measures.score_parts import Part, split_scores
from polarbear_plugins.measures.scores import Scores, Studies, score_studies
from polarbear_plugins.plots import (
    colours,
    paper_figures,
    plot_allocation,
    plot_attainment_difference,
    plot_bootstrap_ranks,
    plot_critical_differences,
    plot_dominance,
    plot_ecdf,
    plot_mean_curves,
    plot_model_check,
    plot_random_search,
    plot_rank_intervals,
    plot_ratings,
    plot_score_parts,
    plot_timeline,
    plot_values,
    plot_wins,
    rounds,
    style,
)
from polarbear_plugins.plugins.synthetic import SyntheticSuite, synthetic_portfolio
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.racing.state import Elimination, Round
from polarbear_plugins.rankings import mean_ranks
from polarbear_plugins.trajectories.timepoints import uniform_timepoints

NAMES = ["CSA", "sep-CMA-ES_with_restarts", "$x_1$ search", "_private", "MXNES", "LPXNES"]
NAMES += ["a_very_long_name_without_any_end_$x^2$", "RS", "DE/rand/1/bin", "TPE (multivariate)"]
Draw = Callable[..., Any]


@functools.cache
def a_result(timepoints: int = 200) -> RaceResult:
    rng = np.random.default_rng(0)
    grid = np.array([100.0]) if timepoints == 1 else log_timepoints(100, 60_000, timepoints, integer=True)
    slopes = np.linspace(0.5, 1.5, 10) * np.linspace(1, 3, grid.size)[:, None]
    values = 10 ** (rng.normal(size=(30, 1, 10)) - slopes + np.linspace(0, 2, 10))
    values[10:, grid.size // 2 :, 3] = np.nan
    table = RankingTable.from_values(
        np.minimum.accumulate(values, axis=1), algorithms=NAMES, timepoints=grid, instances=range(30)
    )
    return analyze(table, RaceSettings(seed=1, draws=400))


@pytest.fixture(scope="module")
def result() -> RaceResult:
    return a_result()


@pytest.fixture(scope="module")
def raced() -> RaceResult:
    settings = RaceSettings(seed=2, draws=400, max_rounds=40, resolution="crossing")
    return race(synthetic_portfolio(10, 8, seed=5), SyntheticSuite(), np.arange(1.0, 9), settings, workers=0)


@pytest.fixture(scope="module")
def bootstrap() -> Bootstrap:
    rng = np.random.default_rng(0)
    losses = {(name, "f"): rng.normal(0.2 * place, 1, 20) for place, name in enumerate(NAMES)}
    return bootstrap_scores(losses, NAMES, ["f"], resamples=500)


@functools.cache
def a_leaderboard() -> Scores:
    rng = np.random.default_rng(0)
    cells = {
        (name, f"{model}_f{k}"): rng.lognormal(4.2 - 0.6 * place, 1, (6, 8, 2))
        for place, name in enumerate(NAMES)
        for model in ("DT", "$x$_model", "random forest")
        for k in range(3)
    }
    return score_studies(Studies(visible=cells, random=["RS"]))


@functools.cache
def an_audit() -> Audit:
    scores = np.random.default_rng(0).normal(size=(60, 10)) - 0.2 * np.arange(10)
    return audit_scores(scores, NAMES, better="higher", flips=199)


def some_parts() -> tuple[Part, ...]:
    scores = a_leaderboard()
    return split_scores(scores, {name: name.rpartition("_")[0] for name in scores.instances})


def every_figure(result: RaceResult, bootstrap: Bootstrap) -> dict[str, Draw]:
    runs, table = list(result.trajectories()), result.state.table
    return {
        "ratings": lambda **options: plot_ratings(result.posterior, eliminated=NAMES[7:], **options),
        "dominance": lambda **options: plot_dominance(result, **options),
        "values": lambda **options: plot_values(result.posterior, **options),
        "allocation": lambda **options: plot_allocation(result, **options),
        "wins": lambda **options: plot_wins(result.posterior, **options),
        "timeline": lambda **options: plot_timeline(result.posterior, **options),
        "bootstrap": lambda **options: plot_bootstrap_ranks(bootstrap, **options),
        "check": lambda **options: plot_model_check(result.check, **options),  # type: ignore[arg-type]
        "random search": lambda **options: plot_random_search(a_leaderboard(), **options),
        "zoom": lambda **options: plot_random_search(a_leaderboard(), zoom=True, **options),
        "parts": lambda **options: plot_score_parts(some_parts(), **options),
        "ranks": lambda **options: plot_rank_intervals(an_audit(), **options),
        "ecdf": lambda **options: plot_ecdf(runs, **options),
        "mean ranks": lambda **options: plot_mean_curves(mean_ranks(table), **options),
        "critical differences": lambda **options: plot_critical_differences(friedman_test(table), **options),
        "attainment": lambda **options: plot_attainment_difference(runs, NAMES[0], NAMES[2], **options),
    }


def render(ax: Any) -> Any:
    """Canvas with the figure drawn on it, which can measure texts."""
    return _drawn(ax.figure)


@functools.lru_cache(maxsize=1)  # several questions about one figure, which is finished by then
def _drawn(figure: Any) -> Any:
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    canvas = agg.FigureCanvasAgg(figure)
    canvas.draw()
    return canvas


def inked(ax: Any) -> float:
    """Share of the pixels inside the axes that are not white."""
    pixels = np.asarray(render(ax).buffer_rgba())
    box = ax.get_window_extent()
    height = pixels.shape[0]
    inside = pixels[height - int(box.y1) + 4 : height - int(box.y0) - 4, int(box.x0) + 4 : int(box.x1) - 4, :3]
    return float((inside < 250).any(axis=2).mean())


def texts(ax: Any) -> list[Any]:
    """All texts that are seen: labels of axes and ticks, titles, legends, numbers."""
    from matplotlib.text import Text

    found = [text for text in ax.figure.findobj(Text) if text.get_text().strip() and text.get_visible()]
    ticks = {
        tick
        for axes in ax.figure.axes
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim()))
        for kind in (axis.majorTicks, axis.minorTicks)
        for tick in kind
        if not min(low, high) <= tick.get_loc() <= max(low, high)
    }
    hidden = {label for tick in ticks for label in (tick.label1, tick.label2)}
    return [text for text in found if text not in hidden]


def overlaps(ax: Any) -> list[tuple[str, str]]:
    renderer = render(ax).get_renderer()
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts(ax)]
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(boxes, 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 1 and min(a.y1, b.y1) - max(a.y0, b.y0) > 1
    ]


FIGURES = ["ratings", "dominance", "values", "allocation", "wins", "timeline", "bootstrap", "ecdf", "attainment"]
FIGURES += ["check", "mean ranks", "critical differences", "random search", "zoom", "parts", "ranks"]
NARROW = ["ratings", "dominance", "values", "allocation", "wins", "timeline", "check", "mean ranks"]


@pytest.mark.parametrize("figure", FIGURES)
def test_ten_algorithms_at_200_timepoints_are_drawn_with_labels_apart(
    figure: str, result: RaceResult, bootstrap: Bootstrap
) -> None:
    pytest.importorskip("matplotlib")
    ax = every_figure(result, bootstrap)[figure]()
    assert overlaps(ax) == []
    assert inked(ax) > 0.005
    assert ax.get_xlabel()
    assert ax.get_title()
    is_whole(ax)
    legend = ax.get_legend()
    if legend is not None:
        assert not legend.get_window_extent(render(ax).get_renderer()).overlaps(ax.get_window_extent())


@pytest.mark.parametrize(
    "figure", ["ratings", "dominance", "values", "allocation", "wins", "timeline", "check", "mean ranks"]
)
def test_narrow_figures_are_whole_with_labels_apart_and_the_legend_below(
    figure: str, result: RaceResult, bootstrap: Bootstrap
) -> None:
    pytest.importorskip("matplotlib")
    with style.narrow_figures():
        ax = every_figure(result, bootstrap)[figure]()
    assert overlaps(ax) == []
    assert ax.figure.get_figwidth() <= 4.8
    is_whole(ax)
    assert ax.get_legend() is None
    renderer = render(ax).get_renderer()
    for legend in ax.figure.legends:
        assert legend.get_window_extent(renderer).y1 < ax.get_window_extent().y0
    assert len(ax.figure.legends) == (figure in ("ratings", "dominance", "timeline", "check", "mean ranks"))
    assert ax.get_window_extent().height > 100


@pytest.mark.slow
@pytest.mark.parametrize("figure", FIGURES)
def test_figures_of_a_column_are_whole_with_labels_apart_and_no_text_below_six_points(
    figure: str, result: RaceResult, bootstrap: Bootstrap
) -> None:
    pytest.importorskip("matplotlib")
    with paper_figures(3.33):
        ax = every_figure(result, bootstrap)[figure]()
        assert ax.figure.get_figwidth() == 3.33
        assert overlaps(ax) == []
        is_whole(ax)
        assert min(text.get_fontsize() for text in texts(ax)) >= 6
        assert ax.get_title() == ""
        assert not any("mathdefault" in text.get_text() for text in texts(ax))  # whose exponents would be smaller
        renderer = render(ax).get_renderer()
        for legend in ax.figure.legends:
            assert legend.get_window_extent(renderer).y1 < ax.get_window_extent().y0
        assert ax.get_window_extent().height > 60
        assert ax.get_window_extent().width > 0.35 * ax.figure.bbox.width


def is_whole(ax: Any) -> None:
    """Check that no text is cut at the edge of the figure."""
    canvas = render(ax)
    for text in texts(ax):
        box = text.get_window_extent(canvas.get_renderer())
        assert box.x0 >= -1
        assert box.y0 >= -1
        assert box.x1 <= canvas.get_width_height()[0] + 1
        assert box.y1 <= canvas.get_width_height()[1] + 1, text


@pytest.mark.parametrize("figure", FIGURES)
def test_names_are_shown_as_they_are(figure: str, bootstrap: Bootstrap) -> None:
    pytest.importorskip("matplotlib")
    ax = every_figure(a_result(20), bootstrap)[figure]()
    render(ax)
    shown = texts(ax)
    named = [text for text in shown if "$x" in text.get_text()]
    assert named
    assert not any(text.get_parse_math() for text in named)
    if figure != "attainment":
        assert any(text.get_text().startswith("_private") for text in shown)


@pytest.mark.parametrize("figure", FIGURES)
def test_given_axes_are_drawn_into_and_returned(figure: str, bootstrap: Bootstrap) -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    axes = figure_module.Figure(figsize=(14, 6), layout="constrained").subplots(1, 2)
    draw = every_figure(a_result(20), bootstrap)[figure]
    assert draw(ax=axes[1]) is axes[1]
    assert inked(axes[1]) > 0.005
    assert inked(axes[0]) == 0
    with pytest.raises(InvalidInputError, match="ax must be Axes"):
        draw(ax="here")


@pytest.mark.parametrize("figure", FIGURES)
def test_one_timepoint_is_enough(figure: str, bootstrap: Bootstrap) -> None:
    pytest.importorskip("matplotlib")
    ax = every_figure(a_result(1), bootstrap)[figure]()
    assert overlaps(ax) == []
    assert inked(ax) > 0.001


@pytest.mark.parametrize("draw", [plot_ratings, plot_values, plot_timeline, plot_wins])
def test_one_algorithm_is_enough(draw: Draw) -> None:
    pytest.importorskip("matplotlib")
    diagnostics = Diagnostics(engine="none", route="none", good=True)
    posterior = Posterior(("$a$",), np.arange(1.0, 6), np.zeros((50, 5, 1)), "dirichlet", False, diagnostics)
    ax = draw(posterior)
    assert overlaps(ax) == []
    if draw is not plot_wins:  # against whom?
        assert inked(ax) > 0.001


def test_an_algorithm_has_the_same_colour_in_every_figure(raced: RaceResult, bootstrap: Bootstrap) -> None:
    colour = pytest.importorskip("matplotlib.colors")
    given = {name: f"#0{place}0{place}F0" for place, name in enumerate(reversed(NAMES))}
    draw = every_figure(a_result(20), bootstrap)
    for figure, kept in (("ratings", NAMES[:7]), ("ecdf", NAMES), ("dominance", NAMES), ("check", NAMES)):
        box = draw[figure](colour=given).get_legend()
        # Broken names are put together again; what a figure adds behind a name is left off.
        texts = [text.get_text().replace("\n", "").replace(" ", "").partition("(n=")[0] for text in box.get_texts()]
        shown = dict(zip(texts, (handle.get_color() for handle in box.legend_handles), strict=True))
        assert {name: shown[name.replace(" ", "")] for name in kept} == {name: given[name] for name in kept}
    timeline = draw["timeline"](colour=given)
    faces = [colour.to_hex(part.get_facecolor()[0]).upper() for part in timeline.collections]
    assert faces == [given[name] for name in NAMES]
    values = draw["values"](colour=given)
    rows = [text.get_text().replace("\n", "").replace(" ", "") for text in values.get_yticklabels()]
    faces = [colour.to_hex(part.get_facecolor()[0]).upper() for part in values.collections]
    assert dict(zip(rows, faces, strict=True)) == {name.replace(" ", ""): tone for name, tone in given.items()}
    bars = draw["bootstrap"](colour=given).patches
    assert {colour.to_hex(bar.get_facecolor()).upper() for bar in bars} == set(given.values())
    with pytest.raises(InvalidInputError, match="there is none for 'A'"):
        plot_dominance(raced, colour=given)


def test_colours_are_those_of_the_sequence_and_told_apart_by_everyone() -> None:
    ten = list(colours(NAMES).values())
    assert colours(NAMES) == colours(iter(NAMES))
    assert len(set(ten)) == 10
    labs = [[_lab(tone, matrix) for matrix in _SIGHT.values()] for tone in ten]
    for (i, one), (j, other) in itertools.combinations(enumerate(labs), 2):
        for sight, a, b in zip(_SIGHT, one, other, strict=True):
            assert np.linalg.norm(a - b) > 15, (sight, ten[i], ten[j])
    many = [f"a{number}" for number in range(32)]
    tones = colours(many)
    looks = {(tones[name], str(style.line_style(name, tones))) for name in many}
    assert len(looks) == 32
    assert {style.line_style(name, tones) for name in many[:8]} == {"-"}


# How colours look to people with normal sight, and without one kind of cones (Machado, Oliveira and Fernandes, 2009).
_SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def _lab(tone: str, sight: Any) -> Any:
    """CIELAB coordinates of a colour: distances are as large as they look."""
    rgb = np.array([int(tone[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    x, y, z = (to_xyz @ np.clip(sight @ linear, 0, 1)) / to_xyz.sum(axis=1)
    f = [np.cbrt(part) if part > 0.008856 else 7.787 * part + 16 / 116 for part in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("figure", ["ratings", "allocation", "timeline", "ecdf", "attainment"])
def test_time_is_logarithmic_where_the_grid_is(figure: str, bootstrap: Bootstrap) -> None:
    pytest.importorskip("matplotlib")
    assert every_figure(a_result(20), bootstrap)[figure]().get_xscale() == "log"
    values = 10 ** np.random.default_rng(0).normal(size=(10, 1, 10)).repeat(9, axis=1)
    table = RankingTable.from_values(values, algorithms=NAMES, timepoints=uniform_timepoints(10, 90, 9))
    plain = analyze(table, RaceSettings(seed=1, draws=100))
    assert every_figure(plain, bootstrap)[figure]().get_xscale() == "linear"


@pytest.mark.parametrize("count", [3, 20, 200])
@pytest.mark.parametrize("integer", [False, True])
def test_a_log_grid_is_known_from_a_uniform_one(count: int, integer: bool) -> None:
    assert style.log_spaced(log_timepoints(1, 5000, count, integer=integer))
    assert not style.log_spaced(uniform_timepoints(1, 5000, count, integer=integer))
    assert not style.log_spaced(uniform_timepoints(0, 5000, count, integer=integer))


def test_the_eliminated_are_grey_and_without_a_band(result: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    ax = plot_ratings(result.posterior, eliminated=NAMES[:4])
    grey = [line.get_color() == style.GREY for line in ax.lines]
    assert grey == [True] * 4 + [False] * 6
    assert len(ax.collections) == 6
    assert (
        plot_ratings(result.posterior, algorithms=NAMES[3:5], eliminated=NAMES[:4]).lines[0].get_color() == style.GREY
    )


def test_the_bands_hold_what_the_posterior_says(result: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    ax = plot_ratings(result.posterior, level=0.5, algorithms=[NAMES[0]])
    edge = ax.collections[0].get_paths()[0].vertices[:, 1]
    low, high = np.quantile(result.posterior.ratings[:, :, 0], [0.25, 0.75], axis=0)
    assert np.isclose([edge.min(), edge.max()], [low.min(), high.max()]).all()
    assert np.allclose(ax.lines[0].get_ydata(), result.posterior.ratings[:, :, 0].mean(axis=0))


def test_the_check_is_drawn_as_points_observed_and_lines_modelled(result: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    check = result.check
    assert check is not None
    ax = plot_model_check(check, algorithms=NAMES[1:3])
    lines = [line for line in ax.lines if line.get_linestyle() != "None"]
    points = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert len(lines) == len(points) == 2
    for place, (line, point) in enumerate(zip(lines, points, strict=True), start=1):
        np.testing.assert_array_equal(line.get_ydata(), check.modelled[:, place])
        some = np.searchsorted(check.timepoints, point.get_xdata())
        assert 2 < some.size < check.timepoints.size
        np.testing.assert_array_equal(point.get_ydata(), check.observed[some, place])
        assert line.get_color() == point.get_color()
    alone = plot_model_check(a_result(1).check, algorithms=NAMES[:1])  # type: ignore[arg-type]
    assert alone.lines[1].get_ydata() == a_result(1).check.observed[:, 0]  # type: ignore[union-attr]


def test_equal_shares_do_not_hide_each_other() -> None:
    pytest.importorskip("matplotlib")
    ax = plot_model_check(analyze(two_kinds(20), RaceSettings(seed=1, draws=200)).check)  # type: ignore[arg-type]
    render(ax)
    points = [line for line in ax.lines if line.get_linestyle() == "None"]
    seen = [tuple(line.get_transform().transform(line.get_xydata())[0].round(1)) for line in points]
    assert points[0].get_ydata()[0] == points[1].get_ydata()[0]
    assert len(set(seen)) == len(points) == 4
    assert max(line.get_ydata().max() for line in points) < ax.get_ylim()[1]  # all are inside


def test_dominance_ends_in_crosses_and_diamonds(raced: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    assert raced.eliminations
    assert raced.resolved
    ax = plot_dominance(raced)
    tones = colours(raced.algorithms)
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    diamonds = [line for line in ax.lines if line.get_marker() == "D"]
    assert {line.get_color() for line in crosses} == {tones[out.algorithm] for out in raced.eliminations}
    assert {line.get_color() for line in diamonds} == {tones[name] for name in raced.pareto_set}
    for out in raced.eliminations:
        [cross] = [line for line in crosses if line.get_color() == tones[out.algorithm]]
        assert round(cross.get_xdata()[0]) == out.round
        # Never less than what eliminated it: another rival that fell in the same round may have been surer.
        assert cross.get_ydata()[0] >= min(out.probability, 1 - 1e-4)
    assert max(round(line.get_xdata()[0]) for line in diamonds) == len(raced.rounds)


def test_the_scale_opens_up_above_nine_tenths() -> None:
    p = np.array([0.0, 0.3, 0.9, 0.99, 0.999, 0.9999])
    height = rounds._to_height(p)
    assert np.allclose(np.diff(height)[-3:], height[3] - height[2])
    assert height[3] - height[2] > 3 * (height[1] - height[0]) * 0.09 / 0.3
    assert np.allclose(rounds._to_probability(height), p)


def a_round(number: int, inside: str, out: str = "", settled: str = "") -> Round:
    return Round(
        number=number,
        batch=8,
        instances=8 * number,
        cost=1.0,
        eliminations=tuple(Elimination(name, "a", 0.99, number) for name in out),
        resolved=tuple((pair[0], pair[1]) for pair in settled.split()),
        resolved_share=0.5,
        rivals=dict.fromkeys(inside, ("a", 0.5)),
        good=True,
        next_batch=8,
    )


@pytest.mark.parametrize("count", [14, 15, 60, 200])
def test_the_labels_of_many_rounds_stay_apart(count: int, raced: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    many = tuple(replace(a_round(number, "ABC"), instances=1000 * number) for number in range(1, count + 1))
    ax = plot_dominance(replace(raced, state=replace(raced.state, rounds=many)))
    assert overlaps(ax) == []
    assert len(ax.get_xticks()) >= 5


@pytest.mark.parametrize("inches", [1.6, 2.5, 8])
def test_the_numbers_of_wins_fit_into_small_axes(inches: float, result: RaceResult) -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    short = replace(result.posterior, algorithms=tuple("ABCDEFGHIJ"))
    ax = plot_wins(short, ax=figure_module.Figure(figsize=(inches, inches), layout="constrained").subplots())
    renderer = render(ax).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in ax.texts]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert len(boxes) == (90 if inches > 2 else 0)


def test_an_algorithm_is_settled_since_its_last_pair_was_and_a_newcomer_opens_it_again() -> None:
    first = (a_round(1, "abc", settled="ab"), a_round(2, "abc", settled="bc"), a_round(3, "abc", out="c"))
    assert rounds.rounds_of_settling(first[:1]) == {}
    assert rounds.rounds_of_settling(first[:2]) == {"b": 2}
    assert rounds.rounds_of_settling(first) == {"a": 3, "b": 2}
    entered = (*first, a_round(4, "abd", settled="ad"))
    assert rounds.rounds_of_settling(entered) == {"a": 3}
    assert rounds.rounds_of_settling((*entered, a_round(5, "abd", out="d"))) == {"a": 3, "b": 5}


def test_the_allocation_counts_instances_and_not_repetitions() -> None:
    pytest.importorskip("matplotlib")
    values = np.array([[[1.0, 2.0], [1.0, np.nan]], [[3.0, 2.0], [1.0, 1.0]], [[1.0, 2.0], [1.0, np.nan]]])
    table = table_of(values, instances=["f", "g", "f"])
    ax = plot_allocation(analyze(table, RaceSettings(seed=1, draws=100)))
    assert ax.collections[0].get_array().reshape(2, 2).tolist() == [[2, 2], [2, 1]]


def test_the_timeline_shows_the_probability_of_being_best(result: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    ax = plot_timeline(result.posterior, among=NAMES[:3])
    best = (result.posterior.log_ratings[:, :, :3].argmax(axis=2) == 0).mean(axis=0)
    vertices = ax.collections[0].get_paths()[0].vertices
    assert np.isclose(vertices[:, 1].max(), best.max())
    assert len(ax.collections) == 3


def test_nobody_wins_always_and_no_name_turns_another() -> None:
    pytest.importorskip("matplotlib")
    ratings = np.tile([0.9995, 0.0005], (10, 1, 1))
    ax = plot_wins(posterior_of(ratings, algorithms=("a\u202eb", "c"), timepoints=[1.0]))
    assert [text.get_text() for text in ax.texts] == [">.99", "<.01"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a\\u202eb", "c"]


def test_wins_are_those_at_the_last_timepoint_reached(result: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    grid = result.timepoints
    ax = plot_wins(result.posterior, timepoint=(grid[50] + grid[51]) / 2)
    shown = np.asarray(ax.images[0].get_array())
    ratings = result.posterior.ratings[:, 50]
    order = np.argsort(-ratings.mean(axis=0))
    for i, j in itertools.permutations(range(10), 2):
        one, other = ratings[:, order[i]], ratings[:, order[j]]
        assert shown[i, j] == pytest.approx((one / (one + other)).mean())
    assert f"{grid[50]:,.0f}" in ax.get_title()
    with pytest.raises(InvalidInputError, match="before the first timepoint"):
        plot_wins(result.posterior, timepoint=grid[0] / 2)


def test_the_ecdf_is_that_of_the_runs_watched_in_full(result: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    runs = list(result.trajectories())
    ax = plot_ecdf(runs)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "_private (n=10)" in labels
    full = [run for run in runs if run.horizon == result.timepoints[-1]]
    shares = ecdf(full, result.timepoints)
    for line, name in zip(ax.lines, shares.columns, strict=True):
        assert np.allclose(line.get_ydata(), shares[name])


def test_the_attainment_difference_agrees_with_moocore() -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("moocore")
    from polarbear_plugins.measures.attainment import attainment_differences

    rng = np.random.default_rng(3)
    runs = [
        Trajectory(
            algorithm=name,
            instance=number,
            times=[1, 2, 4, 8],
            best=np.sort(10 ** rng.uniform(-4, 1, 4))[::-1],
            horizon=9,
        )
        for name in ("a", "b")
        for number in range(5)
    ]
    ax = plot_attainment_difference(runs, "a", "b")
    mesh = ax.collections[0]
    corners = mesh.get_coordinates()
    shown = mesh.get_array().reshape(corners.shape[0] - 1, -1)
    frame = attainment_differences(runs[:5], runs[5:], 9)
    times, borders = corners[0, :, 0], corners[:, 0, 1]
    for row, column in itertools.product(range(shown.shape[0]), range(4)):
        value, time = np.sqrt(borders[row] * borders[row + 1]), times[column]
        here = frame[(frame.time_from <= time) & (time < frame.time_to)]
        here = here[(here.value_from <= value) & (value < here.value_to)]
        assert shown[row, column] == pytest.approx(here.difference.sum())


def test_the_attainment_difference_takes_equally_many_runs_on_common_instances() -> None:
    pytest.importorskip("matplotlib")

    def run(name: str, instance: str, seed: int, best: float) -> Trajectory:
        return Trajectory(algorithm=name, instance=instance, seed=seed, times=[1], best=[best], horizon=5)

    same = [run("a", "f", 0, 1.0), run("b", "f", 0, 1.0)]
    more = [run("a", "f", 1, 1e-3), run("b", "g", 0, 1e-3)]
    ax = plot_attainment_difference(same + more, "a", "b")
    assert not np.asarray(ax.collections[0].get_array()).any()
    assert "1 runs each" in ax.get_title()
    with pytest.raises(InvalidInputError, match="share no instance"):
        plot_attainment_difference([same[0], more[1]], "a", "b")


def test_an_algorithm_meets_the_curve_of_random_search_where_it_scores_as_well() -> None:
    pytest.importorskip("matplotlib")
    scores = a_leaderboard()
    ax = plot_random_search(scores)
    curve = ax.lines[0].get_xydata()
    assert curve[-1].tolist() == [
        scores.baseline.limit,
        100 * (1 - scores.baseline.expected_loss(scores.baseline.limit)),
    ]
    ends = {tuple(line.get_xydata()[0]): line.get_marker() for line in ax.lines if len(line.get_xydata()) == 1}
    for name, worth, score in zip(scores.algorithms, scores.equivalents, scores.leaderboard, strict=True):
        if name == "RS":
            expected = 100 * (1 - scores.baseline.expected_loss(scores.baseline.evaluations))
            assert ends[scores.baseline.evaluations, expected] == "o"
        else:
            assert (ends[worth or scores.baseline.limit, score] == ">") == (worth is None)
    assert None in scores.equivalents  # some is beyond what random search reaches
    assert any(worth for worth in scores.equivalents)
    assert len(plot_random_search(scores, algorithms=["CSA", "MXNES"]).get_legend().get_texts()) == 4


def test_the_parts_show_quartiles_medians_and_means() -> None:
    pytest.importorskip("matplotlib")
    parts = some_parts()
    lines = plot_score_parts(parts, algorithms=["CSA"]).lines
    for k, part in enumerate(parts):
        quartiles, median, mean = lines[3 * k : 3 * k + 3]
        found = part.scores[[each.algorithm for each in part.scores].index("CSA")]
        assert quartiles.get_ydata().tolist() == [found.quartiles[0], found.quartiles[2]]
        assert set(median.get_ydata()) == {found.quartiles[1]}
        assert mean.get_ydata().tolist() == [found.score]


def test_the_rank_intervals_are_those_of_the_audit_and_bars_its_tie_groups() -> None:
    pytest.importorskip("matplotlib")
    audit = an_audit()
    lines = plot_rank_intervals(audit).lines
    for row, interval in enumerate(audit.rank_intervals):
        assert tuple(lines[2 * row].get_xdata()) == interval
        assert lines[2 * row + 1].get_xdata().tolist() == [audit.places[row]]
    bars = [tuple(line.get_ydata()) for line in lines[2 * len(NAMES) :]]
    assert bars == [(first - 0.25, last + 0.25) for first, last in audit.tie_groups]
    assert len(bars) > 1


def test_bad_input_is_refused(result: RaceResult) -> None:
    pytest.importorskip("matplotlib")
    posterior = result.posterior
    for call, message in [
        (lambda: plot_ratings(posterior, algorithms=["nobody"]), "algorithms: there is no 'nobody'"),
        (lambda: plot_ratings(posterior, algorithms=[]), "at least one"),
        (lambda: plot_ratings(posterior, eliminated="CSA"), "expected names"),
        (lambda: plot_ratings(posterior, level=1.0), "level"),
        (lambda: plot_model_check(None), "plot_model_check: expected the check of a model, got None"),  # type: ignore[arg-type]
        (lambda: plot_model_check(result.check, algorithms=[]), "at least one"),  # type: ignore[arg-type]
        (lambda: plot_ratings(posterior, colour={**colours(NAMES), "CSA": "no colour"}), "is not a colour"),
        (lambda: plot_ratings(posterior, colour="red"), "expected a colour for each"),
        (lambda: plot_values(posterior, preference="never"), "preference"),
        (lambda: plot_timeline(posterior, among=["nobody"]), "among"),
        (lambda: plot_dominance(posterior), "plot_dominance: expected the result"),
        (lambda: plot_dominance(replace(result, state=replace(result.state, rounds=()))), "no finished round"),
        (lambda: plot_bootstrap_ranks(posterior), "expected a Bootstrap"),
        (lambda: plot_ecdf([]), "no trajectories"),
        (lambda: plot_attainment_difference(result.trajectories(), "CSA", "nobody"), "no run of 'nobody'"),
        (lambda: plot_attainment_difference(result.trajectories(), "CSA", "CSA"), "twice"),
        (lambda: colours("CSA"), "expected the names"),
    ]:
        with pytest.raises(InvalidInputError, match=message):
            call()


def test_a_saved_result_has_the_same_figure(raced: RaceResult, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    loaded = RaceResult.load(raced.save(tmp_path / "race.npz"))
    one, other = ([line.get_xydata().tolist() for line in plot_dominance(each).lines] for each in (raced, loaded))
    assert one == other


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, polarbear_plugins.plots; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "polarbear_plugins.plots.style" in loaded
    assert "matplotlib" not in loaded


def test_without_matplotlib_a_line_tells_what_to_install(result: RaceResult, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"plot_ratings needs .*polarbear-plugins\[plots\]"):
        plot_ratings(result.posterior)


def gallery(root: Path) -> list[Path]:
    """Pictures of the documentation that examples/figures.py draws; that of a report is made by tools/pictures.py."""
    return [path for path in (root / "docs" / "figures").glob("*.png") if path.name != "report.png"]


def test_the_pictures_of_the_gallery_are_small_and_shown_on_the_page(root: Path) -> None:
    pictures = gallery(root)
    assert pictures
    assert all(path.stat().st_size < 60_000 for path in pictures)
    page = (root / "docs" / "guide" / "report.md").read_text()
    assert all(f"(../figures/{path.name})" in page for path in pictures)


@pytest.mark.slow
@pytest.mark.long
def test_the_gallery_is_drawn(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run_example("figures.py", "--quick", "--folder", tmp_path)
    made = {path.stem for path in tmp_path.glob("*.png")}
    assert {"ratings", "dominance", "values", "allocation", "wins", "timeline", "ecdf", "hasse"} <= made
    assert {path.stem for path in gallery(root)} <= made
