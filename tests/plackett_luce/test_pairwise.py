from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from builders import table_of
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import beta

from polarbear_plugins import compare, fit
from polarbear_plugins.plackett_luce.likelihood import margin_of
from polarbear_plugins.plackett_luce.pairwise import RatingMode, choices_of

TABLES = arrays(np.float64, (6, 4), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf, np.nan]))


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (1, 0), (5, 0), (40, 0), (9, 1), (20, 10), (2, 5), (6, 6)])
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.2])
def test_two_algorithms_have_the_beta_posterior(wins: int, losses: int, epsilon: float) -> None:
    values = np.array([[1.0, 2.0]] * wins + [[2.0, 1.0]] * losses).reshape(-1, 2)
    exact = beta(1 + wins, 1 + losses).sf(0.5 + epsilon)
    assert RatingMode(values).p_better(0, 1, margin_of(epsilon)) == pytest.approx(exact, abs=0.004)


def test_probabilities_are_those_of_the_draws_of_fit() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(25, 6)) + np.linspace(0, 1.2, 6)
    values[rng.random(values.shape) < 0.2] = np.nan
    values[:, 5] += 9  # always last
    table = table_of(values[:, None, :])
    drawn = compare(fit(table, draws=20_000, seed=1)).p_better[0]
    mode = RatingMode(values)
    for one, other in itertools.permutations(range(6), 2):
        assert mode.p_better(one, other) == pytest.approx(drawn[one, other], abs=0.015)


def test_ties_are_close_to_the_average_over_their_orders() -> None:
    rng = np.random.default_rng(6)
    values = np.round(rng.normal(size=(30, 5)) + np.linspace(0, 1, 5))
    table = table_of(values[:, None, :])
    drawn = compare(fit(table, draws=20_000, seed=1)).p_better[0]
    mode = RatingMode(values)
    for one, other in itertools.permutations(range(5), 2):
        assert mode.p_better(one, other) == pytest.approx(drawn[one, other], abs=0.03)


@given(TABLES)
@example(np.array([[0, 1, np.nan, np.nan], *[[np.nan] * 4] * 4, [1, np.nan, 0, np.nan]]))  # the search stops early
def test_the_probabilities_of_a_pair_sum_to_one(values: np.ndarray) -> None:
    mode = RatingMode(values)
    assert mode.p_better(0, 1) + mode.p_better(1, 0) == pytest.approx(1.0, abs=1e-6)


@given(TABLES)
def test_algorithms_with_equal_values_are_better_with_probability_one_half(values: np.ndarray) -> None:
    values[:, 1] = values[:, 0]
    assert RatingMode(values).p_better(0, 1) == pytest.approx(0.5, abs=1e-3)


@given(TABLES, st.permutations(range(4)))
def test_relabelling_changes_nothing(values: np.ndarray, order: list[int]) -> None:
    there = order.index(0), order.index(3)
    assert RatingMode(values[:, order]).p_better(*there) == pytest.approx(RatingMode(values).p_better(0, 3), abs=1e-3)


@given(TABLES)
def test_a_monotone_transform_on_each_instance_changes_nothing(values: np.ndarray) -> None:
    scale = np.logspace(-3, 3, 6)[:, None]
    assert RatingMode(values * scale - scale).p_better(0, 3) == RatingMode(values).p_better(0, 3)


@given(TABLES)
def test_the_wider_the_margin_the_less_probable(values: np.ndarray) -> None:
    mode = RatingMode(values)
    likely = [mode.p_better(0, 1, margin_of(epsilon)) for epsilon in (0.0, 0.1, 0.3)]
    assert likely == sorted(likely, reverse=True)


@given(TABLES)
def test_each_algorithm_is_chosen_once_for_each_instance_that_has_it(values: np.ndarray) -> None:
    members, wins = choices_of(values)
    assert members.shape == (np.count_nonzero(~np.isnan(values)), 4)
    assert wins.tolist() == np.count_nonzero(~np.isnan(values), axis=0).tolist()
    assert (members.sum(axis=1) > 0).all()


def test_hundreds_of_instances_with_one_winner_are_no_trouble() -> None:
    values = np.tile(np.arange(17.0), (500, 1))
    mode = RatingMode(values)
    assert mode.p_better(0, 16) == pytest.approx(1.0)
    assert np.isfinite(mode.utilities).all()
    assert mode.normal_scores(16)[16] == -math.inf
