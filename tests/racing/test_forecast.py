from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from builders import column_kinds, table_of
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import UNRANKED, PolarBearError, RaceResult, RaceSettings, race
from polarbear_plugins.plugins.synthetic import SyntheticSuite, draw_log_ratings, synthetic_portfolio
from polarbear_plugins.racing.analysis import analyze
from polarbear_plugins.racing.forecast import Forecast, forecast
from polarbear_plugins.racing.rules import next_batch
from polarbear_plugins.racing.simulation import Simulations, _correlation, _Evidence, _Pairs, _variance

SETTINGS = RaceSettings(alpha=0.95, epsilon=0.1, draws=1000, seed=1)


def race_two_rounds(**options: object) -> RaceResult:
    settings = replace(SETTINGS, max_rounds=2, **options)  # type: ignore[arg-type]
    return race(synthetic_portfolio(4, 5, 0), SyntheticSuite(), range(1, 6), settings, workers=0)


def test_the_same_seed_gives_the_same_forecast() -> None:
    result = race_two_rounds()
    assert not result.resolved
    one, same, other = (result.forecast(50, seed) for seed in (0, 0, 1))
    assert np.array_equal(one.instances, same.instances)
    assert np.array_equal(one.costs, same.costs)
    assert not np.array_equal(one.instances, other.instances)
    assert one.instances.size == 50


@pytest.mark.slow
@pytest.mark.long
def test_needs_lie_in_their_intervals_about_as_often_as_they_should() -> None:
    covered = count = 0
    for seed in range(30):
        portfolio = synthetic_portfolio(log_ratings=draw_log_ratings(3, 4, seed), correlation=0.9)
        settings = replace(SETTINGS, seed=seed)
        begun, ended = (
            race(portfolio, SyntheticSuite(), range(1, 5), replace(settings, max_rounds=most), workers=0)
            for most in (2, 60)
        )
        if begun.resolved:
            continue
        found = begun.forecast()
        low, high = found.low or math.inf, found.high or math.inf
        needed = len(ended.state.table) - len(begun.state.table)
        count += 1
        covered += low <= needed <= high
    assert count > 20
    assert covered / count > 0.8 - 3 * math.sqrt(0.16 / count)


@pytest.mark.parametrize("algorithms", [2, 3, 4, 5])
def test_the_information_of_a_ranking_of_equals_is_that_of_the_model(algorithms: int) -> None:
    # The expected Hessian of the log-likelihood over all rankings, from the model's definition.
    information = np.zeros((algorithms, algorithms))
    rankings = list(itertools.permutations(range(algorithms)))
    for ranking in rankings:
        for place in range(algorithms - 1):
            left = list(ranking[place:])
            share = np.zeros(algorithms)
            share[left] = 1 / len(left)
            information += (np.diag(share) - np.outer(share, share)) / len(rankings)
    contrast = np.zeros(algorithms)
    contrast[:2] = 1, -1
    assert _variance(np.array(float(algorithms))) == pytest.approx(contrast @ np.linalg.pinv(information) @ contrast)


def test_who_wins_at_all_timepoints_alike_makes_timepoints_correlate() -> None:
    rng = np.random.default_rng(0)
    together = np.repeat(np.sign(rng.normal(size=(300, 1, 3))), 4, axis=1)
    assert _correlation(together) == pytest.approx(np.ones((4, 4)), abs=1e-4)
    apart = _correlation(np.sign(rng.normal(size=(300, 4, 3))))
    assert np.abs(apart - np.eye(4)).max() < 0.15
    gaps = np.where(rng.random((300, 4, 3)) < 0.3, np.nan, together)
    assert _correlation(gaps) == pytest.approx(np.ones((4, 4)), abs=0.1)


def test_every_kind_of_race_has_a_forecast() -> None:
    for options in (
        {"resolution": "crossing"},
        {"prior": "bspline", "elimination": "joint"},
        {"prior": "bspline", "elimination": "joint", "resolution": "crossing"},
        {"alpha": 1.0},
    ):
        result = race_two_rounds(**options)
        found = result.forecast(20)
        assert not result.resolved
        assert (found.instances > 0).all()
        json.dumps(found.to_dict(), allow_nan=False)


def test_strict_resolution_needs_more_than_crossing_and_a_surer_decision_more_than_a_less_sure_one() -> None:
    def median(**options: object) -> float:
        result = race_two_rounds()
        state = replace(result.state, settings=replace(result.settings, **options))  # type: ignore[arg-type]
        return float(np.median(forecast(state, result.posterior).instances))

    assert median(resolution="crossing") < median(resolution="strict")
    assert median(alpha=0.9) < median(alpha=0.95) < median(alpha=0.999)
    assert median(epsilon=0.2) < median(epsilon=0.1)


@pytest.mark.parametrize(("wins", "losses"), [(5, 3), (4, 4), (12, 8), (10, 10), (20, 10), (30, 30)])
def test_two_algorithms_need_what_an_exact_simulation_says(wins: int, losses: int) -> None:
    # For one pair at one timepoint the posterior is a beta distribution, and how the race goes on can be told exactly.
    from scipy.stats import beta

    settings = replace(SETTINGS, alpha=0.99, batch_max=8, draws=4000)
    rows = [[[1.0, 2.0]]] * wins + [[[2.0, 1.0]]] * losses
    result = analyze(table_of(rows, timepoints=[10]), settings)
    assert not result.resolved
    rng, count = np.random.default_rng(0), 4000
    truth = rng.beta(1 + wins, 1 + losses, count)
    won, lost = np.full(count, float(wins)), np.full(count, float(losses))
    needed, drawn = np.zeros(count), 0
    while not needed.all():
        more = rng.binomial(8, truth)
        won, lost, drawn = won + more, lost + 8 - more, drawn + 8
        ahead = beta.sf(0.5, 1 + won, 1 + lost)
        inside = beta.cdf(0.6, 1 + won, 1 + lost) - beta.cdf(0.4, 1 + won, 1 + lost)
        done = (ahead >= 0.99) | (ahead <= 0.01) | (inside >= 0.99)
        needed = np.where((needed == 0) & done, drawn, needed)
    found = result.forecast(4000)
    assert found.mean == pytest.approx(needed.mean(), rel=0.15)
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        exact = float(np.quantile(needed, share, method="higher"))
        assert abs((found.quantile(share) or math.inf) - exact) <= max(16, 0.2 * exact)
    assert found.instances.std() == pytest.approx(needed.std(), rel=0.15)


def test_the_cost_is_that_of_the_runs() -> None:
    # One timepoint at time 10 and two algorithms: every instance costs 20.
    table = table_of([[[1.0, 2.0]]] * 12 + [[[2.0, 1.0]]] * 8, timepoints=[10])
    found = analyze(table, SETTINGS).forecast()
    assert np.array_equal(found.costs, 20 * found.instances)


def test_values_that_are_missing_or_infinite_are_no_obstacle() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 3, 3))
    values[:5, 0] = np.inf
    values[10:, 2, 2] = np.nan
    table = table_of(values)
    found = analyze(table, SETTINGS).forecast()
    assert (found.instances >= 8).all()


def test_rankings_in_which_both_are_unranked_say_nothing_about_a_pair() -> None:
    values = np.tile([1.0, 2.0, 3.0], (8, 2, 1))
    values[2:, :, 1:] = UNRANKED
    pairs = _Pairs.among(3)

    def evidence(values: np.ndarray) -> _Evidence:
        result = analyze(table_of(values), SETTINGS)
        return _Evidence.of(result.state, result.posterior, [0, 1, 2], pairs)

    found, full = evidence(values), evidence(np.tile([1.0, 2.0, 3.0], (8, 2, 1)))
    np.testing.assert_allclose(full.rankings - found.rankings, [[0.0, 0.0, 6.0]] * 2)


def test_a_ranking_of_more_algorithms_tells_more_about_a_pair() -> None:
    values = np.tile([1.0, 2.0, 3.0, 4.0], (8, 2, 1))
    values[:, 0, 2:] = np.nan  # at the first timepoint only two were seen
    result = analyze(table_of(values), SETTINGS)
    found = _Evidence.of(result.state, result.posterior, [0, 1], _Pairs.among(2))
    np.testing.assert_allclose(found.unit, _variance(np.array([2.0, 4.0])))
    np.testing.assert_allclose(found.rankings, 8 + found.unit[:, None] / 2)
    assert found.unit[0] == pytest.approx(4.0)  # the variance of a log-odds of one half is 1 / (1/2 * 1/2)


def test_one_algorithm_left_needs_nothing() -> None:
    table = table_of([[[1.0, 2.0]]] * 40, timepoints=[10])
    found = analyze(table, SETTINGS).forecast(7)
    assert (found.instances.tolist(), found.mean, found.median) == ([0.0] * 7, 0.0, 0)


def test_json_has_the_quantiles_of_instances_and_costs() -> None:
    simulated = np.array([*range(1, 11), np.inf])
    found = Forecast(instances=simulated, costs=100 * simulated, rounds=simulated)
    assert found.to_dict() == {
        "instances": {"mean": None, "low": 2, "median": 6, "high": 10},
        "cost": {"low": 200, "median": 600, "high": 1000},
        "interval": 0.8,
        "simulations": 11,
        "unfinished": 1,
    }


def test_in_a_simulation_rankings_of_the_few_that_are_left_tell_less() -> None:
    result = analyze(table_of(np.tile([1.0, 2.0, 3.0, 4.0], (8, 2, 1))), SETTINGS)
    state = replace(result.state, resolved=np.zeros_like(result.state.resolved), batch=5)
    simulations = Simulations(state, result.posterior, [0, 1], 3, np.random.default_rng(0))
    mean, spread = simulations._observe(np.arange(3))
    # So far four algorithms were ranked, now two: five rankings are worth fewer of those before.
    added = 5 * float(_variance(np.array(4.0)) / _variance(np.array(2.0)))
    assert 0 < added < 5
    np.testing.assert_allclose(simulations._added, np.full((3, 2, 1), added))
    known = simulations._known
    np.testing.assert_allclose(spread, np.tile(known.spread / np.sqrt(1 + added / known.rankings), (3, 1, 1)))
    assert mean.shape == (3, 2, 1)


def test_what_takes_too_long_is_said_to() -> None:
    table = table_of([[[1.0, 2.0]], [[2.0, 1.0]]] * 4, timepoints=[10])
    found = analyze(table, replace(SETTINGS, epsilon=0.001, alpha=0.9999)).forecast()
    assert found.to_dict()["unfinished"] > 0
    assert (found.mean, found.high) == (None, None)
    assert "many" in str(found) or "hundred times" in str(found)


@given(st.integers(1, 200), st.integers(0, 50), st.integers(0, 50))
def test_batches_of_many_races_are_those_of_each(batch: int, before: int, settled: int) -> None:
    after = max(before - settled, 0)
    expected = batch * 2 if before == after else batch // 2 if before - after > 0.2 * before else batch
    bounded = min(max(expected, SETTINGS.batch_min), SETTINGS.batch_max)
    many = next_batch(
        np.array([batch, batch]), np.array([before] * 2), np.array([after] * 2), np.array([10, 10]), SETTINGS
    )
    assert int(next_batch(batch, before, after, 10, SETTINGS)) == bounded
    assert many.tolist() == [bounded, bounded]


def test_bad_input_is_refused() -> None:
    result = race_two_rounds()
    with pytest.raises(PolarBearError, match="simulations must be a whole number of at least 1"):
        result.forecast(0)
    with pytest.raises(PolarBearError, match="seed must be a whole number of at least 0"):
        result.forecast(5, -1)
    with pytest.raises(PolarBearError, match="quantile: expected a number from 0 to 1"):
        result.forecast(5).quantile(1.5)


def test_a_forecast_gives_its_simulations(raced: RaceResult) -> None:
    found = raced.forecast(simulations=20)
    frame = found.to_pandas()
    assert column_kinds(frame) == {"simulation": "int", "instances": "float", "cost": "float"}
    np.testing.assert_array_equal(frame["instances"], found.instances)
    np.testing.assert_array_equal(frame["cost"], found.costs)
