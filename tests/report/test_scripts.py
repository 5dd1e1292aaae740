"""The scripts of a report: unchanged where they are of others, and the same numbers as in Python where they compute."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import posterior_of, synthetic_race

from polarbear_plugins import RaceResult, plots, select, select_portfolio
from polarbear_plugins.report import style
from polarbear_plugins.report.at_budget import bounded
from polarbear_plugins.report.explorer import encode_shares, explorer_data
from polarbear_plugins.selection.preferences import as_preference

ASSETS = Path(style.__file__).parent / "assets"
NODE = shutil.which("node")
with_node = pytest.mark.skipif(NODE is None, reason="needs node")


def evaluate(expression: str, **given: Any) -> Any:
    """Value of an expression in JavaScript, with the functions that need no page and the ``given`` data."""
    assert NODE is not None
    functions = "\n".join((ASSETS / f"{name}.js").read_text() for name in ("pure", "preference"))
    data = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    script = f'"use strict";\n{functions}\n{data}console.log(JSON.stringify({expression}));'
    done = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def raced() -> RaceResult:
    return synthetic_race(algorithms=7, timepoints=10)


def test_vendored_files_are_the_recorded_ones() -> None:
    recorded = dict(re.findall(r"^\| (uplot/\S+) \| ([0-9a-f]{64}) \|$", (ASSETS / "README.md").read_text(), re.M))
    found = {
        path.relative_to(ASSETS).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (ASSETS / "uplot").iterdir()
    }
    assert found == recorded
    assert len(found) == 3
    assert "(v1.6.32)" in style.LIBRARY
    assert "Copyright (c) 2022 Leon Sorokin" in style.LIBRARY  # its licence goes with it


def test_every_script_is_part_of_the_page_and_none_makes_html_or_code_of_text() -> None:
    assert {path.stem for path in ASSETS.glob("*.js")} == set(style.SCRIPTS)
    for banned in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "Function(",
        "</script",
        "<!--",
    ):
        assert banned not in style.SCRIPT
    for text in (style.LIBRARY, style.SCRIPT):
        assert "</script" not in text.lower()
    assert "</style" not in style.STYLE.lower()


@with_node
@pytest.mark.parametrize("heights", [[50] * 8, [100, 80, 60, 40, 20, 10, 5, 0], [0, 0, 0, 0, 0, 0, 0, 7]])
def test_a_drawn_preference_has_the_values_of_select_with_its_weights(raced: RaceResult, heights: list[int]) -> None:
    data = explorer_data(raced, raced.posterior, "", plots.colours(raced.algorithms))
    own, grid = data["own"], raced.timepoints
    weights, found = evaluate(
        "[weightsOf(heights, own.knots, positions, own.base), judgeOwn(own, decodeShares(own.sample), heights, ratio)]",
        own=own,
        heights=heights,
        positions=grid.tolist(),
        ratio=data["aboutAsGood"],
    )
    choice = select(raced.posterior, raced.pareto_set, weights)
    assert sum(weights) == pytest.approx(1)
    assert found["values"] == pytest.approx(choice.values.mean(axis=0), abs=1e-12)
    assert choice.candidates[found["chosen"]] == choice.algorithm
    # All draws are in the page, so that these agree as well, up to 16 bits.
    summary = choice.summary().loc[list(choice.candidates)]
    assert found["best"] == pytest.approx(summary["p_best"].tolist(), abs=0.006)
    assert found["regret"] == pytest.approx(summary["expected_regret"].tolist(), abs=2e-5)
    assert found["support"] == pytest.approx(choice.support, abs=0.006)
    if len(set(heights)) == 1:
        assert weights == pytest.approx(as_preference("uniform", grid).values(np.eye(grid.size)))


@with_node
def test_the_value_of_a_portfolio_is_that_of_select_portfolio(raced: RaceResult) -> None:
    data = explorer_data(raced, raced.posterior, "", plots.colours(raced.algorithms))
    own, names = data["own"], [raced.algorithms[place] for place in data["left"]]
    heights = [10, 30, 90, 5, 0, 60, 20, 100]
    for size in (2, 3):
        weights, best, value, sure = evaluate(
            "(() => { const found = judgeOwn(own, decodeShares(own.sample), heights, 0.8);"
            " const best = bestPortfolio(found.values, size);"
            " return [weightsOf(heights, own.knots, positions, own.base), best, portfolioValue(found.values, best),"
            " portfolioBest(found.drawn, found.values.length, best)]; })()",
            own=own,
            heights=heights,
            size=size,
            positions=raced.timepoints.tolist(),
        )
        expected = select_portfolio(raced.posterior, size, raced.pareto_set, weights, repeat=False)
        assert tuple(names[one] for one in best) == expected.algorithms
        assert value == pytest.approx(expected.scores[expected.algorithms], abs=1e-12)
        by_best = select_portfolio(raced.posterior, size, raced.pareto_set, weights, "best", repeat=False)
        assert sure == pytest.approx(by_best.scores[expected.algorithms], abs=0.006)


@with_node
def test_how_surely_no_other_portfolio_is_better_is_counted_as_by_select_portfolio() -> None:
    ratings = np.random.default_rng(3).dirichlet([3, 3, 2, 2], size=(60, 1))
    scores = select_portfolio(posterior_of(ratings), 2, risk="best", repeat=False).scores
    pairs = [["abcd".index(name) for name in members] for members in scores]
    found = evaluate(
        "pairs.map((members) => portfolioBest(values, 4, members))", values=ratings.ravel().tolist(), pairs=pairs
    )
    assert found == pytest.approx(list(scores.values()))
    assert len(set(found)) > 3
    assert max(found) < 1


@with_node
def test_numbers_and_texts_are_those_of_python() -> None:
    shares = np.array([0.0, 0.5, 1.0, np.nan])
    assert evaluate("Array.from(decodeShares(text))", text=encode_shares(shares)) == [0, 0.5, 1, None]
    cases = [(0.9731, 4000), (1.0, 4000), (0.0, 100), (0.5, 50), (0.9996, 9000), (0.99, 200), (0.0, 200)]
    said = evaluate("cases.map(([p, draws]) => probability(p, draws))", cases=cases)
    assert said == [bounded(p, draws) for p, draws in cases]
    assert said[-1] == "< 0.02"  # 3 of 200, rounded up
    assert evaluate("probability(null, 10)") == "-"
    rows = [["a,b", 'say "x"', None, 0.25], ["line\nbreak", "=1+1", 3, ""]]
    text = evaluate("csv(rows)", rows=rows)
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["a,b", 'say "x"', "", "0.25"],
        ["line\nbreak", "=1+1", "3", ""],
    ]
    state = {"follow": "a&b=c #é", "zoom": "1,2", "none": None}
    assert evaluate("fromFragment(toFragment(state))", state=state) == {"follow": "a&b=c #é", "zoom": "1,2"}
    assert evaluate('fromFragment("ratings")') == {}


@with_node
def test_a_share_that_all_draws_agree_on_still_has_a_monte_carlo_error() -> None:
    assert evaluate("monteCarloError(1, 200)") > 0.005
    assert evaluate("monteCarloError(0.5, 100)") == pytest.approx(0.1)


@with_node
def test_ticks_of_a_logarithmic_axis_are_few_and_inside() -> None:
    cases = [(0.0, 5.0, 6), (2.0, 2.3, 6), (-3.0, 12.0, 5), (1.0, 2.0, 8)]
    found = evaluate("cases.map((given) => logTicks(...given))", cases=cases)
    for (low, high, most), ticks in zip(cases, found, strict=True):
        assert 2 <= len(ticks) <= most
        assert min(ticks) >= low - 1e-6
        assert max(ticks) <= high + 1e-6


@with_node
@pytest.mark.parametrize(
    ("p_support", "begins"),
    [
        (1.0, "Choose a ("),
        (0.96, "Too close to tell from this sample"),
        (0.8, "No choice is supported: a is highest ("),
    ],
)
def test_a_choice_from_a_sample_is_supported_only_beyond_its_monte_carlo_error(p_support: float, begins: str) -> None:
    draws = 200
    ratings = np.tile([[[0.6, 0.4], [0.6, 0.4]]], (draws, 1, 1))
    ratings[: round((1 - p_support) * draws)] = [0.3, 0.7]
    posterior = posterior_of(ratings, algorithms=["a", "b"])
    assert select(posterior).algorithm == "a"
    values = ratings.mean(axis=1)
    says = evaluate(
        "ownText(judgeOwn(own, Float64Array.from(sample), [1, 1], data.aboutAsGood), names, own, data)",
        own={"spans": [0.5, 0.5], "means": [values.mean(axis=0).tolist()] * 2, "draws": draws, "worth": draws},
        sample=ratings.ravel().tolist(),
        names=["a", "b"],
        data={"aboutAsGood": 0.45 / 0.55, "supported": 0.95, "worthNaming": 0.05, "draws": 4000},
    )
    assert says.startswith(begins)
    assert "from 200 of 4,000 draws" in says
    assert ("b may be best" in says) == (p_support <= 0.95)
