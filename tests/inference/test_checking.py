"""The check of the model: silent on rankings from it, loud on others."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import table_of
from scipy.stats import binom

from polarbear_plugins import RankingTable, check_model, fit
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.fitting import with_check
from polarbear_plugins.plugins.synthetic import utilities
from polarbear_plugins.posterior.model_check import ModelCheck

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import misfit_cases

KINDS = np.tile([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]], (30, 1))[:, None, :]  # c is always second


def test_timepoints_and_algorithms_without_comparisons_are_left_out() -> None:
    values = np.concatenate([KINDS, np.full((60, 1, 3), np.nan), KINDS], axis=1)
    values[:, 1, 0] = 1.0  # alone
    with_absent = np.concatenate([values, np.full((60, 3, 1), np.nan)], axis=2)
    check = fit(table_of(with_absent), seed=1).check
    assert check is not None
    assert (check.p_first[1], check.p_pairs[1]) == (1.0, 1.0)
    assert np.isnan(check.observed[1]).all()
    assert np.isnan(check.modelled[1]).all()
    assert check.observed[[0, 2], :3].tolist() == [[0.5, 0.5, 0.0]] * 2
    assert np.isnan(check.observed[:, 3]).all()
    assert not check.fits


def check_of(values: np.ndarray, seed: int = 1, draws: int = 1000, **more: Any) -> ModelCheck:
    check = fit(table_of(values, **more), seed=seed, draws=draws).check
    assert check is not None
    return check


def test_two_kinds_of_instances_are_found_with_sixty_of_them() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        kinds = np.where(rng.random(60) < 0.5, 1.0, -1.0)[:, None, None]
        values = kinds * np.array([-1.0, 1.0, 0.0]) + 0.2 * rng.standard_normal((60, 1, 3))
        assert not check_of(values, seed).fits


@pytest.mark.parametrize("kind", ["two kinds", "plackett-luce"])
def test_generated_data_that_do_not_follow_the_model_are_told_from_those_that_do(kind: misfit_cases.Kind) -> None:
    found = []
    for seed in range(4):
        values = misfit_cases.Generator(kind, seed).sample(120, np.random.default_rng(seed))
        found.append(check_of(values, seed).fits)
    assert found == [kind == "plackett-luce"] * 4


def test_a_circle_is_found_in_pairs_though_first_places_fit() -> None:
    # a before b before c before a: each is first on a third of the instances, and each pair is won by two thirds.
    values = np.tile([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]], (60, 1))[:, None, :]
    check = check_of(values)
    assert not check.fits
    assert check.p_first[0] > 0.2
    assert check.p_pairs[0] < 0.005
    gap = check.pair_gap
    assert gap is not None
    assert gap.observed == pytest.approx(
        {("a", "b"): 2 / 3, ("b", "c"): 2 / 3, ("a", "c"): 1 / 3}[gap.algorithm, gap.other]
    )
    assert gap.modelled == pytest.approx(0.5, abs=0.02)
    assert check.telling_gap is gap


def test_first_places_and_ratings_in_a_new_group_are_not_checked_against_the_rankings() -> None:
    table = table_of(KINDS, groups=["f", "g"] * 30)
    first = fit(table, seed=1, likelihood="first-places")
    assert first.check is None  # multinomial whatever the model
    with pytest.raises(InvalidInputError, match="this one is about first places"):
        check_model(first, table)
    with pytest.raises(InvalidInputError, match="this one is about a new group; see its own check"):
        check_model(fit(table, seed=1, groups="new"), table)


def test_the_shares_are_those_counted_and_those_of_the_model() -> None:
    table = table_of(KINDS)
    posterior = fit(table, seed=1)
    check = check_model(posterior, table, seed=1)
    assert check.observed.tolist() == [[0.5, 0.5, 0.0]]
    assert check.modelled[0] == pytest.approx(posterior.ratings[:, 0].mean(axis=0), abs=0.01)
    assert check.first_gap is not None
    assert (check.first_gap.algorithm, check.first_gap.other, check.first_gap.observed) == ("c", None, 0.0)
    assert check.first_gap.modelled == pytest.approx(check.modelled[0, 2])


def test_partial_rankings_are_compared_with_the_model_among_those_that_took_part() -> None:
    # c takes part in half of the rankings.
    values = np.tile([[0.0, 1.0, 2.0], [0.0, 1.0, np.nan], [1.0, 0.0, np.nan], [1.0, 0.0, 2.0]], (15, 1))[:, None, :]
    check = check_of(values)
    assert check.observed.tolist() == [[0.5, 0.5, 0.0]]
    assert check.fits


def test_the_same_seed_gives_the_same_check() -> None:
    table = table_of(np.random.default_rng(1).random((20, 2, 3)))
    posterior = fit(table, seed=1)
    one, same, other = (check_model(posterior, table, seed=seed) for seed in (1, 1, 2))
    assert one.to_json() == same.to_json() != other.to_json()
    assert posterior.check is not None
    again = fit(table, seed=1).check
    assert again is not None
    assert again.to_json() == posterior.check.to_json()


def test_a_fit_is_checked_unless_it_is_told_not_to_and_its_draws_are_the_same() -> None:
    table = table_of(KINDS)
    one, other = fit(table, seed=1), fit(table, seed=1, check=False)
    assert one.check is not None
    assert other.check is None
    np.testing.assert_array_equal(one.log_ratings, other.log_ratings)
    later = with_check(other, table, 1).check
    assert later is not None
    assert later.to_json() == one.check.to_json()


@pytest.mark.parametrize(
    "other",
    [
        table_of(KINDS, algorithms=["x", "y", "z"]),
        table_of(KINDS, timepoints=[7]),
        table_of(np.repeat(KINDS, 2, axis=1)),
        table_of(KINDS[:, :, :2]),
    ],
)
def test_a_table_that_does_not_belong_to_the_posterior_is_refused(other: RankingTable) -> None:
    with pytest.raises(InvalidInputError, match="check_model: the posterior was not fitted to this table"):
        check_model(fit(table_of(KINDS), seed=1), other)


def test_runs_that_repeat_an_instance_are_no_further_evidence_against_the_model() -> None:
    # Ten runs on each of six instances, which are alike: six instances do not show what sixty do.
    values = np.repeat(KINDS[:6], 10, axis=0)
    names = [f"i{row // 10}" for row in range(60)]
    assert check_of(values, instances=names).p == pytest.approx(check_of(KINDS[:6]).p, abs=0.1)
    assert check_of(KINDS[:6]).fits
    assert not check_of(values, instances=names, repetitions="independent").fits


def test_runs_that_differ_as_much_as_instances_are_further_evidence_against_the_model() -> None:
    # Eight runs on each of seven instances, of both kinds: as good as 56 instances.
    names = [f"i{row // 8}" for row in range(56)]
    assert not check_of(KINDS[:56], instances=names).fits
    assert check_of(np.concatenate([KINDS[:6], KINDS[:1]])).fits


def test_the_overall_p_corrects_for_timepoints_and_for_looking_twice() -> None:
    values = np.random.default_rng(3).random((120, 5, 3))
    values[:, 2] = np.tile([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0], [1.0, 2.0, 0.0]], (40, 1))  # a circle
    check = check_of(values)
    assert check.p_pairs.argmin() == 2
    assert check.p_pairs.min() < 0.05
    assert check.p == pytest.approx(min(1.0, 2 * 5 * check.p_pairs.min()))


def test_relabelling_algorithms_moves_the_gaps_with_them() -> None:
    order = [2, 0, 1]
    one, other = (
        fit(table_of(values, algorithms=list(names)), seed=1).check
        for values, names in ((KINDS, "abc"), (KINDS[:, :, order], "cab"))
    )
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.observed[:, order], other.observed)
    assert one.modelled[:, order] == pytest.approx(other.modelled, abs=0.02)
    assert one.fits == other.fits


# False alarms


def noisy(shape: tuple[int, int, int], rng: np.random.Generator, correlation: float = 0.0) -> np.ndarray:
    """Values whose rankings follow the Plackett-Luce model with ratings drawn at random."""
    instances, timepoints, n = shape
    ratings = 1.5 * rng.standard_normal(n)[:, None] + 0.5 * rng.standard_normal((n, timepoints))
    drawn = utilities(np.broadcast_to(ratings, (instances, n, timepoints)), correlation, rng)
    return -drawn.transpose(0, 2, 1)


def alarm(kind: str, shape: tuple[int, int, int], seed: int) -> bool:
    rng = np.random.default_rng([seed, *shape])
    more: dict[str, Any] = {}
    values = noisy(shape, rng, 0.9 if kind == "correlated" else 0.0)
    if kind == "repeated":  # three runs of each instance, of which all are as different as runs on others
        values = noisy((3 * shape[0], *shape[1:]), rng)
        more = {"instances": [f"i{row // 3}" for row in range(len(values))]}
    elif kind == "ties":
        values = np.round(2 * values) / 2
    elif kind == "partial":
        values[rng.random(values.shape) < 0.3] = np.nan
        values[0] = noisy((1, *shape[1:]), rng)[0]  # so that something is compared
    return not check_of(values, seed, draws=300, **more).fits


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["independent", "correlated", "repeated", "ties", "partial"])
@pytest.mark.parametrize("simulations", [3, pytest.param(8, marks=pytest.mark.long)])
def test_rankings_from_the_model_raise_an_alarm_in_at_most_two_percent(kind: str, simulations: int) -> None:
    shapes = list(itertools.product((5, 20, 100), (1, 8), (2, 3, 8)))
    alarms = {shape: sum(alarm(kind, shape, seed) for seed in range(simulations)) for shape in shapes}
    assert sum(alarms.values()) <= binom.ppf(0.999, simulations * len(shapes), 0.02)
    assert max(alarms.values()) <= binom.ppf(0.9999, simulations, 0.02), alarms
