"""The likelihood of first places alone: who was chosen from those that took part."""

from __future__ import annotations

import numpy as np
import pytest
from builders import table_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polarbear_plugins import fit
from polarbear_plugins.arrays import RankArray
from polarbear_plugins.inference.scores import instance_scores, ranks_used
from polarbear_plugins.plackett_luce import subsets
from polarbear_plugins.plackett_luce.likelihood import Likelihood
from polarbear_plugins.plackett_luce.subsets import Statistics, first_place_statistics, statistics_of
from polarbear_plugins.rankings import UNRANKED, UNRANKED_RANK
from polarbear_plugins.rankings.ranks import ranks_of

VALUES = [0.0, 1.0, 2.0, np.nan, UNRANKED]
KINDS = np.tile([[1.0, 3.0, 2.0], [3.0, 1.0, 2.0]], (30, 1))[:, None, :]  # c is always second


def counts_of(statistics: Statistics) -> list[dict[frozenset[int], float]]:
    """For each timepoint, how often each set was chosen from."""
    return [
        {frozenset(np.flatnonzero(row).tolist()): float(count) for row, count in zip(members, counts, strict=True)}
        for members, counts in statistics.sets
    ]


def assert_same_sets(one: list[dict[frozenset[int], float]], other: list[dict[frozenset[int], float]]) -> None:
    assert len(one) == len(other)
    for here, there in zip(one, other, strict=True):
        assert here == pytest.approx(there)


@st.composite
def rankings(draw: st.DrawFn) -> tuple[RankArray, np.ndarray]:
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(2, 5)))
    values = draw(arrays(np.float64, shape, elements=st.sampled_from(VALUES), fill=st.nothing()))
    weights = draw(arrays(np.float64, shape[0], elements=st.sampled_from([0.5, 1.0, 3.0]), fill=st.nothing()))
    return ranks_of(values), weights


@given(rankings())
def test_each_ranking_is_one_choice_from_those_that_took_part(drawn: tuple[RankArray, np.ndarray]) -> None:
    ranks, weights = drawn
    wins, sets = np.zeros(ranks.shape[1:]), [{} for _ in range(ranks.shape[1])]  # type: ignore[var-annotated]
    for row, weight in zip(ranks, weights, strict=True):
        for t, ranking in enumerate(row):
            inside = frozenset(np.flatnonzero(ranking > 0).tolist())
            best = np.flatnonzero(ranking == 1)
            if len(inside) < 2 or not best.size:  # an algorithm alone, or none that is ranked
                continue
            sets[t][inside] = sets[t].get(inside, 0.0) + weight
            wins[t, best] += weight / best.size
    statistics = first_place_statistics(ranks, weights)
    np.testing.assert_allclose(statistics.wins, wins, atol=1e-12)
    assert_same_sets(counts_of(statistics), sets)
    assert not statistics.ties


@given(rankings())
def test_without_a_tie_for_the_first_place_it_is_the_likelihood_with_all_others_unranked(
    drawn: tuple[RankArray, np.ndarray],
) -> None:
    ranks, weights = drawn
    ranks = np.where((ranks == 1).sum(axis=2, keepdims=True) > 1, np.int16(0), ranks)
    others_unranked = np.where(ranks > 1, np.int16(UNRANKED_RANK), ranks)
    one, other = first_place_statistics(ranks, weights), statistics_of(others_unranked, weights)
    np.testing.assert_allclose(one.wins, other.wins, atol=1e-12)
    assert_same_sets(counts_of(one), counts_of(other))


@pytest.mark.parametrize("timepoints", [1, 40])
def test_counting_few_sets_and_many_gives_the_same(timepoints: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(timepoints)
    values = rng.choice([0.0, 1.0, 2.0, np.nan], size=(3 if timepoints == 1 else 60, timepoints, 6))
    ranks, weights = ranks_of(values), rng.uniform(0.5, 2.0, len(values))
    found = []
    for few in (6, 0):  # a table of all sets, filled one by one or all at once; and a list of sets
        monkeypatch.setattr(subsets, "_FEW_ALGORITHMS", few)
        found += [count(ranks, weights) for count in (first_place_statistics, statistics_of)]
    for one, other in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(one.wins, other.wins, atol=1e-12)
        assert_same_sets(counts_of(one), counts_of(other))


@pytest.mark.parametrize("repeat", [1, 50])
def test_sets_that_occur_often_are_counted_each_time(repeat: int) -> None:
    # Few entries are added one by one, many all at once.
    ranks = np.array([[[1, 2, 3, 4, 5, 6]], [[1, 2, 3, 0, 0, 0]], [[1, 2, 3, 0, 0, 0]]] * repeat, dtype=np.int16)
    [sets] = counts_of(first_place_statistics(ranks, np.ones(len(ranks))))
    assert sets == {frozenset(range(6)): repeat, frozenset(range(3)): 2 * repeat}


# Ratings


@pytest.mark.parametrize("alpha", [0.5, 1.0, 3.0])
def test_the_posterior_of_complete_rankings_is_the_conjugate_one(alpha: float) -> None:
    # First places of the four: 7, 4, 1 and 0, one of them a tie of the first two.
    orders = [[1, 2, 3, 4]] * 6 + [[2, 1, 4, 3]] * 3 + [[3, 2, 1, 4]] + [[1, 1, 3, 4]] * 2
    table = table_of(np.array(orders, dtype=float)[:, None, :])
    posterior = fit(table, likelihood="first-places", seed=1, draws=20_000, alpha=alpha, check=False)
    share = (alpha + np.array([7, 4, 1, 0])) / (4 * alpha + 12)
    error = np.sqrt(share * (1 - share) / (4 * alpha + 13) / 20_000)
    assert (np.abs(posterior.ratings[:, 0].mean(axis=0) - share) < 4 * error).all()
    spread = np.sqrt(share * (1 - share) / (4 * alpha + 13))
    assert posterior.ratings[:, 0].std(axis=0) == pytest.approx(spread, rel=0.05)
    assert posterior.likelihood == "first-places"


def test_one_that_is_never_first_has_a_rating_near_zero_though_it_is_always_second() -> None:
    table = table_of(KINDS)
    first = fit(table, likelihood="first-places", seed=1).ratings[:, 0].mean(axis=0)
    whole = fit(table, seed=1).ratings[:, 0].mean(axis=0)
    assert first[2] == pytest.approx(1 / 63, abs=0.002)
    assert first[:2] == pytest.approx([31 / 63] * 2, abs=0.01)
    assert whole[2] > 0.35


def test_for_two_algorithms_first_places_are_whole_rankings() -> None:
    rng = np.random.default_rng(1)
    values = rng.choice([0.0, 1.0, 2.0, 3.0, np.nan], size=(40, 3, 2))
    table = table_of(values)
    one, other = (fit(table, likelihood=likelihood, seed=1) for likelihood in ("first-places", "rankings"))  # type: ignore[arg-type]
    # A tie splits the first place, and is the average of both orders: the same.
    np.testing.assert_allclose(one.log_ratings.mean(axis=0), other.log_ratings.mean(axis=0), atol=0.02)


def test_the_ranks_that_count_are_first_or_unranked() -> None:
    table = table_of([[[1.0, 2.0, 3.0, np.nan]], [[2.0, 2.0, UNRANKED, 3.0]]])
    assert ranks_used(table, "rankings").tolist() == table.ranks.tolist()
    unranked = UNRANKED_RANK
    assert ranks_used(table, "first-places").tolist() == [[[1, unranked, unranked, 0]], [[1, 1, unranked, unranked]]]


@pytest.mark.parametrize("likelihood", ["rankings", "first-places"])
def test_the_scores_of_all_instances_are_the_gradient(likelihood: str) -> None:
    rng = np.random.default_rng(3)
    names = ["u", "u", "v", "w", "w", "x"]
    table = table_of(rng.permuted(np.tile(np.arange(4.0), (6, 2, 1)), axis=2), instances=names, weights=range(1, 7))
    x = rng.normal(size=(2, 4))
    scores = instance_scores(table, ranks_used(table, likelihood), x)  # type: ignore[arg-type]
    count = statistics_of if likelihood == "rankings" else first_place_statistics
    assert scores.shape == (4, 2, 4)
    np.testing.assert_allclose(scores.sum(axis=0), Likelihood(count(table.ranks, table.weights)).gradient(x))
    # The rows of an instance, weighted.
    rows = slice(3, 5)
    np.testing.assert_allclose(
        scores[2], Likelihood(count(table.ranks[rows], table.weights[rows])).gradient(x), atol=1e-12
    )
