from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from scipy.special import logsumexp, softmax
from scipy.stats import dirichlet

from polarbear_plugins.arrays import RankArray
from polarbear_plugins.inference.native import remainder as remainders
from polarbear_plugins.inference.native.remainder import Remainder
from polarbear_plugins.plackett_luce import likelihood, subsets
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert, scores
from polarbear_plugins.plackett_luce.subsets import Statistics, statistics_of
from polarbear_plugins.rankings.ranks import UNRANKED_RANK, ranks_of
from polarbear_plugins.trajectories.trajectory import UNRANKED


def log_probability(order: Sequence[int], x: np.ndarray) -> float:
    """Product formula: each place is chosen among those that are left."""
    return float(sum(x[chosen] - logsumexp(x[list(order[place:])]) for place, chosen in enumerate(order)))


def orders_of(ranking: Sequence[int]) -> Iterator[list[int]]:
    """All orders without ties that a ranking leaves open; the absent are in none of them."""
    places = sorted({rank for rank in ranking if rank})
    groups = [[i for i, rank in enumerate(ranking) if rank == place] for place in places]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [i for part in parts for i in part]


def averaged(ranking: Sequence[int], x: np.ndarray) -> float:
    """Average of the log-probability over all orders that a ranking leaves open."""
    return float(np.mean([log_probability(order, x) for order in orders_of(ranking)]))


def statistics(rankings: ArrayLike, weights: ArrayLike | None = None) -> Statistics:
    """Statistics of rankings at one timepoint."""
    ranks = np.asarray(rankings, dtype=np.int16)[:, None, :]
    return statistics_of(ranks, np.ones(len(ranks)) if weights is None else np.asarray(weights, dtype=float))


def value(rankings: ArrayLike, x: np.ndarray, weights: ArrayLike | None = None) -> float:
    return float(Likelihood(statistics(rankings, weights)).value(x[None]))


def counts_of(statistics: Statistics) -> list[dict[frozenset[int], float]]:
    """For each timepoint, how often each set was chosen from."""
    return [
        {frozenset(np.flatnonzero(row).tolist()): float(count) for row, count in zip(members, counts, strict=True)}
        for members, counts in statistics.sets
    ]


def random_ranks(rows: int, timepoints: int, n: int, *, levels: int, absent: float, seed: int = 0) -> RankArray:
    """Rankings with many ties (few levels) and absent algorithms."""
    rng = np.random.default_rng([seed, n])
    values = rng.integers(levels, size=(rows, timepoints, n)).astype(float)
    values[rng.random(values.shape) < absent] = np.nan
    return ranks_of(values)


def big_tie() -> RankArray:
    """14 algorithms: ties of 10 at the top, in the middle and at the end, at two timepoints, one of them twice."""
    top = [1] * 10 + [11, 12, 13, 14]
    middle = [1, 2] + [3] * 10 + [13, 0]
    end = [1, 2, 3, 4] + [5] * 10
    return np.array([[top, middle], [end, middle], [range(1, 15), top]], dtype=np.int16)


def many() -> RankArray:
    """70 algorithms: more than a 64-bit word has bits; one ranking with ties, one partial, one with a large tie."""
    rng = np.random.default_rng(70)
    values = rng.permutation(70) + np.zeros((3, 2, 70))
    values[0] = values[0] // 3
    values[1, :, rng.permutation(70)[:40]] = np.nan
    values[2, 0, 10:30] = -1.0
    return ranks_of(values)


def first_places(rows: int, timepoints: int, n: int, *, levels: int, seed: int = 0) -> RankArray:
    """Rankings, with ties, of which only some of the best are known."""
    rng = np.random.default_rng([seed, n])
    values = rng.integers(levels, size=(rows, timepoints, n)).astype(float)
    values[values >= rng.integers(1, levels, size=(rows, timepoints, 1))] = UNRANKED
    values[rng.random(values.shape) < 0.1] = np.nan
    return ranks_of(values)


DERIVATIVE_CASES = {
    "no ties": random_ranks(4, 3, 5, levels=1_000_000, absent=0.0),
    "ties": random_ranks(6, 3, 5, levels=3, absent=0.0),
    "partial rankings": random_ranks(6, 3, 5, levels=1_000_000, absent=0.4),
    "ties in partial rankings": random_ranks(6, 3, 6, levels=3, absent=0.3),
    "more algorithms than fit a table": random_ranks(5, 2, 14, levels=6, absent=0.2),
    "large ties": big_tie(),
    "unranked algorithms": first_places(6, 3, 6, levels=4),
    "unranked ones among more algorithms than fit a table": first_places(5, 2, 14, levels=5),
    "70 algorithms": many(),
}


@st.composite
def rankings(draw: st.DrawFn) -> list[int]:
    n = draw(st.integers(2, 5))
    values = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, math.nan]), min_size=n, max_size=n))
    return [int(rank) for rank in ranks_of(np.array(values))]


utilities = st.integers(0, 10_000).map(lambda seed: np.random.default_rng(seed).normal(scale=2.0, size=5))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_the_probabilities_of_all_permutations_sum_to_one(n: int) -> None:
    x = np.random.default_rng(n).normal(scale=2.0, size=n)
    logs = [value([places], x) for places in itertools.permutations(range(1, n + 1))]
    assert math.fsum(map(math.exp, logs)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_a_ranking_without_ties_has_the_probability_of_the_product_formula(n: int) -> None:
    x = np.random.default_rng(n).normal(scale=2.0, size=n)
    for order in itertools.permutations(range(n)):
        places = np.argsort(order) + 1
        assert value([places], x) == pytest.approx(log_probability(order, x), rel=1e-12)


@given(rankings(), utilities)
def test_a_ranking_counts_as_the_average_over_the_orders_that_it_leaves_open(ranking: list[int], x: np.ndarray) -> None:
    x = x[: len(ranking)]
    assert value([ranking], x) == pytest.approx(averaged(ranking, x), rel=1e-11, abs=1e-11)


@pytest.mark.parametrize(
    "ranking",
    [
        pytest.param([1, 1, 3, 4, 5], id="at the top"),
        pytest.param([1, 2, 2, 2, 5], id="in the middle"),
        pytest.param([1, 2, 3, 3, 3], id="at the end"),
        pytest.param([1, 1, 3, 3, 5], id="two"),
        pytest.param([1, 1, 3, 3, 3], id="nothing but ties"),
        pytest.param([1, 1, 1, 1, 1], id="everything"),
        pytest.param([0, 1, 0, 1, 3], id="in a partial ranking"),
        pytest.param([0, 1, 1, 1, 0], id="everything in a partial ranking"),
    ],
)
def test_a_tie_counts_as_the_average_over_its_orders(ranking: list[int]) -> None:
    x = np.array([0.3, -1.2, 2.0, 0.9, -0.4])
    assert value([ranking], x) == pytest.approx(averaged(ranking, x), rel=1e-12)


def completions(ranking: Sequence[int]) -> list[list[int]]:
    """All rankings that have the unranked algorithms in some order behind the ranked ones."""
    unranked = [i for i, rank in enumerate(ranking) if rank == UNRANKED_RANK]
    ranked = sum(1 for rank in ranking if 0 < rank < UNRANKED_RANK)
    found = []
    for order in itertools.permutations(unranked):
        full = list(ranking)
        for place, i in enumerate(order, start=ranked + 1):
            full[i] = place
        found.append(full)
    return found


@pytest.mark.parametrize("known", range(6))
def test_the_first_places_have_the_probability_of_all_orders_of_the_rest(known: int) -> None:
    x = np.array([0.3, -1.2, 2.0, 0.9, -0.4])
    ranking = [place if place <= known else UNRANKED_RANK for place in (2, 5, 1, 4, 3)]
    full = [value([each], x) for each in completions(ranking)]
    assert len(full) == math.factorial(5 - known)
    assert value([ranking], x) == pytest.approx(logsumexp(full), rel=1e-12, abs=1e-12)


@st.composite
def top_lists(draw: st.DrawFn) -> list[int]:
    """Rankings with ties, absent and unranked algorithms."""
    n = draw(st.integers(2, 5))
    values = draw(st.lists(st.sampled_from([0.0, 1.0, math.inf, math.nan, UNRANKED]), min_size=n, max_size=n))
    return [int(rank) for rank in ranks_of(np.array(values))]


@given(top_lists(), utilities)
def test_unranked_algorithms_behind_ties_leave_all_their_orders_open(ranking: list[int], x: np.ndarray) -> None:
    """For each order of the tied ones, the probabilities of the orders of the unranked ones are summed."""
    x = x[: len(ranking)]
    last = max((rank for rank in ranking if rank < UNRANKED_RANK), default=0)
    orders: dict[tuple[int, ...], list[float]] = {}
    for full in completions(ranking):
        for order in orders_of(full):
            known = tuple(i for i in order if ranking[i] <= last)
            orders.setdefault(known, []).append(log_probability(order, x))
    expected = np.mean([logsumexp(logs) for logs in orders.values()])
    assert value([ranking], x) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_a_single_unranked_algorithm_is_the_last() -> None:
    found, full = statistics([[2, UNRANKED_RANK, 1]]), statistics([[2, 3, 1]])
    assert found.wins.tolist() == full.wins.tolist()
    assert counts_of(found) == counts_of(full)


def test_a_ranked_algorithm_beside_an_unranked_one_has_won() -> None:
    found = statistics([[1, UNRANKED_RANK]])
    assert found.wins.tolist() == [[1.0, 0.0]]
    assert counts_of(found) == [{frozenset({0, 1}): 1.0}]


@pytest.mark.parametrize("ranking", [[UNRANKED_RANK] * 3, [UNRANKED_RANK, 0, 0], [1, 0, 0]])
def test_where_nothing_is_compared_nothing_is_counted(ranking: list[int]) -> None:
    found = statistics([ranking])
    assert not found.wins.any()
    assert counts_of(found) == [{}]


def test_unranked_algorithms_are_not_tied() -> None:
    x = np.array([1.0, 0.5, -1.0])
    assert value([[1, UNRANKED_RANK, UNRANKED_RANK]], x) > value([[1, 2, 2]], x)
    # A tie favours equal ratings of the last two; of unranked ones only the sum of their ratings matters.
    theta = softmax(x)
    moved = np.log([theta[0], theta[1:].sum() / 2, theta[1:].sum() / 2])
    assert value([[1, 2, 2]], moved) > value([[1, 2, 2]], x)
    unranked = [[1, UNRANKED_RANK, UNRANKED_RANK]]
    assert value(unranked, moved) == pytest.approx(value(unranked, x), rel=1e-12)


@given(rankings(), utilities, st.floats(-20, 20))
def test_absent_algorithms_do_not_matter(ranking: list[int], x: np.ndarray, utility: float) -> None:
    x = x[: len(ranking)]
    assert value([[0, *ranking, 0]], np.array([utility, *x, -utility])) == pytest.approx(value([ranking], x), abs=1e-10)


@pytest.mark.parametrize("tied", [5, 10])
def test_a_tie_says_the_same_whether_or_not_so_many_are_absent_that_another_way_is_taken(tied: int) -> None:
    ranking = [1] + [2] * tied + list(range(tied + 2, 12))
    few, more = statistics([ranking]), statistics([[*ranking, 0, 0, 0]])
    assert bool(more.ties) == (tied == 10)
    x = np.random.default_rng(tied).normal(scale=2.0, size=(1, 14))
    one, other = Likelihood(few), Likelihood(more)
    assert other.value(x) == pytest.approx(one.value(x[:, :11]), rel=1e-11)
    np.testing.assert_allclose(other.gradient(x)[:, :11], one.gradient(x[:, :11]), atol=1e-10)
    np.testing.assert_allclose(other.information(x)[:, :11, :11], one.information(x[:, :11]), atol=1e-10)


@pytest.mark.parametrize("ranking", [[0, 0, 0], [0, 1, 0]])
def test_a_ranking_of_fewer_than_two_says_nothing(ranking: list[int]) -> None:
    x = np.array([1.0, -2.0, 0.5])
    likelihood = Likelihood(statistics([ranking, [1, 2, 3]]))
    assert likelihood.value(x[None]) == pytest.approx(log_probability([0, 1, 2], x), rel=1e-12)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_the_gradient_is_the_slope_of_the_value(ranks: RankArray) -> None:
    rng = np.random.default_rng(1)
    likelihood = Likelihood(statistics_of(ranks, rng.uniform(0.5, 3.0, size=len(ranks))))
    x = rng.normal(size=ranks.shape[1:])
    steps = 1e-4 * np.eye(x.size).reshape(-1, *x.shape)
    slopes = (likelihood.value(x + steps) - likelihood.value(x - steps)) / 2e-4
    np.testing.assert_allclose(likelihood.gradient(x).ravel(), slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_the_information_is_the_negative_slope_of_the_gradient(ranks: RankArray) -> None:
    rng = np.random.default_rng(2)
    likelihood = Likelihood(statistics_of(ranks, rng.uniform(0.5, 3.0, size=len(ranks))))
    x = rng.normal(size=ranks.shape[1:])
    timepoints, n = x.shape
    steps = 1e-4 * np.eye(x.size).reshape(-1, *x.shape)
    slopes = (likelihood.gradient(x + steps) - likelihood.gradient(x - steps)) / 2e-4
    slopes = slopes.reshape(timepoints, n, timepoints, n)
    information = likelihood.information(x)
    for t, u in itertools.product(range(timepoints), repeat=2):
        expected = -information[t] if t == u else np.zeros((n, n))
        np.testing.assert_allclose(slopes[t, :, u], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_adding_a_constant_to_the_utilities_of_a_timepoint_changes_nothing(ranks: RankArray) -> None:
    rng = np.random.default_rng(3)
    likelihood = Likelihood(statistics_of(ranks, np.ones(len(ranks))))
    x = rng.normal(size=ranks.shape[1:])
    shifted = x + rng.normal(scale=50.0, size=(len(x), 1))
    assert likelihood.value(shifted) == pytest.approx(likelihood.value(x), rel=1e-10)
    np.testing.assert_allclose(likelihood.gradient(shifted), likelihood.gradient(x), atol=1e-9)
    np.testing.assert_allclose(likelihood.information(shifted), likelihood.information(x), atol=1e-9)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_many_utilities_at_once_give_what_each_gives_alone(ranks: RankArray) -> None:
    likelihood = Likelihood(statistics_of(ranks, np.ones(len(ranks))))
    x = np.random.default_rng(4).normal(size=(2, 3, *ranks.shape[1:]))
    assert likelihood.value(x).shape == (2, 3)
    for place in np.ndindex(2, 3):
        assert likelihood.value(x)[place] == pytest.approx(likelihood.value(x[place]), rel=1e-12)
        np.testing.assert_allclose(likelihood.gradient(x)[place], likelihood.gradient(x[place]), atol=1e-12)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_the_timepoints_together_are_the_sum_of_the_timepoints(ranks: RankArray) -> None:
    whole = statistics_of(ranks, np.ones(len(ranks)))
    x = np.random.default_rng(5).normal(size=ranks.shape[1:])
    parts = [Likelihood(whole.at(t)) for t in range(whole.timepoints)]
    assert Likelihood(whole).value(x) == pytest.approx(
        sum(float(part.value(x[t : t + 1])) for t, part in enumerate(parts)), rel=1e-12
    )
    np.testing.assert_allclose(
        Likelihood(whole).information(x), [part.information(x[t : t + 1])[0] for t, part in enumerate(parts)]
    )


def test_many_timepoints_with_different_sets_are_still_the_sum_of_the_timepoints() -> None:
    ranks = random_ranks(40, 12, 8, levels=1_000_000, absent=0.3)
    ranks[:, [2, 3, 7]] = 0  # absent
    whole = statistics_of(ranks, np.ones(len(ranks)))
    x = np.random.default_rng(5).normal(size=ranks.shape[1:])
    expected = [sum(averaged(ranking, x[t]) for ranking in ranks[:, t].tolist() if any(ranking)) for t in range(12)]
    assert Likelihood(whole).value(x) == pytest.approx(sum(expected), rel=1e-12)
    for t in (2, 3, 7):
        assert not Likelihood(whole).gradient(x)[t].any()


def test_timepoints_in_several_blocks_are_still_the_sum_of_the_timepoints() -> None:
    # Rankings of many algorithms hardly share a set, so that not all timepoints are in one product.
    ranks = random_ranks(20, 5, 12, levels=1_000_000, absent=0.0)
    whole = statistics_of(ranks, np.ones(len(ranks)))
    blocks = likelihood._blocks(whole)
    assert len(blocks) > 1
    assert [t for block in blocks for t in range(5)[block.timepoints]] == list(range(5))
    x = np.random.default_rng(5).normal(size=ranks.shape[1:])
    parts = [Likelihood(whole.at(t)) for t in range(5)]
    expected = sum(float(part.value(x[t : t + 1])) for t, part in enumerate(parts))
    assert Likelihood(whole).value(x) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_the_weight_two_is_the_ranking_twice(ranks: RankArray) -> None:
    twice = Likelihood(statistics_of(np.concatenate([ranks, ranks]), np.ones(2 * len(ranks))))
    heavier = Likelihood(statistics_of(ranks, np.full(len(ranks), 2.0)))
    x = np.random.default_rng(6).normal(size=ranks.shape[1:])
    assert heavier.value(x) == pytest.approx(twice.value(x), rel=1e-12)
    np.testing.assert_allclose(heavier.gradient(x), twice.gradient(x), atol=1e-10)
    np.testing.assert_allclose(heavier.information(x), twice.information(x), atol=1e-10)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_weights_on_timepoints_multiply_what_each_timepoint_says(ranks: RankArray) -> None:
    plain = statistics_of(ranks, np.ones(len(ranks)))
    weights = np.linspace(0.2, 1.5, ranks.shape[1])
    x = np.random.default_rng(7).normal(size=ranks.shape[1:])
    weighted = Likelihood(plain.weighted(weights))
    np.testing.assert_allclose(weighted.gradient(x), weights[:, None] * Likelihood(plain).gradient(x), atol=1e-11)
    expected = sum(
        float(weight * Likelihood(plain.at(t)).value(x[t : t + 1])) for t, weight in enumerate(weights.tolist())
    )
    assert weighted.value(x) == pytest.approx(expected, rel=1e-12)


@given(st.integers(0, 10_000), st.sampled_from([3, 6, 14, 70]))
@settings(max_examples=25)
def test_the_order_of_the_rows_does_not_matter(seed: int, n: int) -> None:
    ranks = random_ranks(6, 2, n, levels=4 if n < 14 else n, absent=0.2, seed=seed)
    rng = np.random.default_rng(seed)
    weights, order = rng.uniform(0.5, 2.0, size=6), rng.permutation(6)
    one, other = statistics_of(ranks, weights), statistics_of(ranks[order], weights[order])
    np.testing.assert_allclose(one.wins, other.wins, atol=1e-12)
    for mine, theirs in zip(counts_of(one), counts_of(other), strict=True):
        assert mine == pytest.approx(theirs)


def test_wins_and_sets_are_what_counting_by_hand_gives() -> None:
    counted = statistics([[1, 2, 3], [3, 1, 2], [0, 2, 1], [1, 1, 3]], weights=[1.0, 2.0, 4.0, 8.0])
    # The tie: both are chosen above c, from all three and then from one of them with c.
    np.testing.assert_allclose(counted.wins, [[1 + 8, 1 + 2 + 8, 2 + 4]])
    assert counts_of(counted) == [
        {
            frozenset({0, 1, 2}): 1 + 2 + 8,
            frozenset({1, 2}): 1 + 4 + 4,
            frozenset({0, 2}): 2 + 4,
        }
    ]


@pytest.mark.parametrize("alpha", [0.1, 1.0, 3.5])
@pytest.mark.parametrize("n", [2, 4])
def test_with_dirichlet_adds_the_density_of_the_utilities_under_a_dirichlet_prior(alpha: float, n: int) -> None:
    data = statistics([np.arange(n) + 1])
    basis, rng = helmert(n), np.random.default_rng(n)
    differences = []
    for eta in rng.normal(scale=1.5, size=(6, n - 1)):
        steps = 1e-5 * np.eye(n - 1)
        up, down = (softmax((eta + sign * steps) @ basis.T, axis=1)[:, :-1] for sign in (1, -1))
        jacobian = np.linalg.slogdet((up - down) / 2e-5)[1]
        density = dirichlet(np.full(n, alpha)).logpdf(softmax(basis @ eta)) + jacobian
        x = (basis @ eta)[None]
        added = Likelihood(data.with_dirichlet(alpha)).value(x) - Likelihood(data).value(x)
        differences.append(float(added) - density)
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


def test_a_prior_leaves_sets_as_small_in_memory_as_they_are() -> None:
    data = statistics([[1, 2, 3], [2, 1, 3]])
    [(members, counts)] = data.sets
    small = Statistics(data.wins, ((members.astype(np.int8), counts),), data.ties)  # as very many sets are kept
    [(more, how_often)] = small.with_dirichlet(0.5).sets
    assert more.dtype == np.int8
    assert more.tolist() == [*members.tolist(), [1, 1, 1]]
    assert how_often.tolist() == [*counts, 1.5]


@pytest.mark.parametrize("n", range(2, 11))
def test_the_helmert_matrix_has_orthonormal_columns_that_sum_to_zero(n: int) -> None:
    matrix = helmert(n)
    assert matrix.shape == (n, n - 1)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(n - 1), atol=1e-14)
    np.testing.assert_allclose(matrix.sum(axis=0), 0, atol=1e-14)


@pytest.mark.parametrize("known", [2, 6])
def test_without_ties_the_scores_are_the_gradients_of_single_rankings(known: int) -> None:
    ranks = random_ranks(8, 3, 6, levels=1_000_000, absent=0.3)
    ranks[ranks > known] = UNRANKED_RANK
    x = np.random.default_rng(8).normal(size=ranks.shape[1:])
    single = [Likelihood(statistics_of(ranks[row : row + 1], np.ones(1))).gradient(x) for row in range(len(ranks))]
    np.testing.assert_allclose(scores(ranks, x), single, atol=1e-12)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_the_scores_of_a_ranking_sum_to_zero(ranks: RankArray) -> None:
    x = np.random.default_rng(9).normal(size=ranks.shape[1:])
    np.testing.assert_allclose(scores(ranks, x).sum(axis=-1), 0, atol=1e-11)


def test_in_a_tie_of_equals_the_scores_are_the_gradient() -> None:
    ranks = np.array([[[1, 2, 2, 2, 5]]], dtype=np.int16)
    x = np.array([[1.0, 0.5, 0.5, 0.5, 0.0]])
    exact = Likelihood(statistics_of(ranks, np.ones(1))).gradient(x)
    np.testing.assert_allclose(scores(ranks, x)[0], exact, atol=0.02)
    assert scores(ranks, x)[0, 0, 1] == scores(ranks, x)[0, 0, 2] == scores(ranks, x)[0, 0, 3]


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_utilities_that_differ_by_a_thousand_give_finite_numbers(ranks: RankArray, scale: float) -> None:
    likelihood = Likelihood(statistics_of(ranks, np.ones(len(ranks))).with_dirichlet(0.5))
    x = np.tile(scale * np.linspace(0, 1000, ranks.shape[2]), (ranks.shape[1], 1))
    assert np.isfinite(likelihood.value(x))
    assert np.isfinite(likelihood.gradient(x)).all()
    assert np.isfinite(likelihood.information(x)).all()


def test_scores_at_utilities_that_differ_by_a_thousand_are_finite() -> None:
    ranks = np.array([[[1, 2, 3]]], dtype=np.int16)
    assert np.isfinite(scores(ranks, np.array([[0.0, -500.0, -1000.0]]))).all()


def test_a_certain_ranking_is_certain_and_its_opposite_is_not_impossible() -> None:
    x = np.array([500.0, 250.0, 0.0])
    assert value([[1, 2, 3]], x) == pytest.approx(0.0, abs=1e-12)
    assert value([[3, 2, 1]], x) == pytest.approx(-750.0, rel=0.5)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0, pytest.param(200.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("weight", [1.0, 1e5])
def test_the_remainder_is_what_an_expansion_leaves(ranks: RankArray, scale: float, weight: float) -> None:
    likelihood = Likelihood(statistics_of(ranks, np.full(len(ranks), weight)).with_dirichlet(0.5))
    rng = np.random.default_rng(3)
    x = rng.normal(size=ranks.shape[1:])
    count = 700 if scale < 100 else 100  # far out, large ties take longest
    step = (scale * rng.normal(size=(count, *x.shape))).astype(np.float32)
    gradient, information = likelihood.gradient(x), likelihood.information(x)
    curved = np.einsum("tij,ztj->zti", information, step)
    value = likelihood.value(x + step) - likelihood.value(x) - np.einsum("zti,zti->z", step, gradient - 0.5 * curved)
    remainder = Remainder(likelihood, x, gradient, information)
    error = 1e-6 * weight * len(ranks) * x.size  # of single precision
    np.testing.assert_allclose(remainder.value(step), value, rtol=3e-6, atol=min(error, 1e-3))
    slope = likelihood.gradient(x + step) - gradient + curved
    np.testing.assert_allclose(remainder.gradient(step), slope, rtol=3e-6, atol=error * (1 + scale))


def test_the_remainder_is_the_same_where_its_shares_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    ranks = rng.permuted(np.tile(np.arange(1, 6, dtype=np.int16), (9, 7, 1)), axis=-1)
    likelihood, x = Likelihood(statistics_of(ranks, np.ones(9))), rng.normal(size=(7, 5))
    step = rng.normal(size=(300, 7, 5)).astype(np.float32)
    kept = Remainder(likelihood, x, likelihood.gradient(x), likelihood.information(x))
    monkeypatch.setattr(remainders, "_MOST_SHARES", 0)
    again = Remainder(likelihood, x, likelihood.gradient(x), likelihood.information(x))
    np.testing.assert_array_equal(kept.value(step), again.value(step))
    np.testing.assert_array_equal(kept.gradient(step), again.gradient(step))


def many_sets(timepoints: int = 2) -> RankArray:
    """Rankings of so many algorithms on so many instances that hardly any set occurs twice."""
    rng = np.random.default_rng(8)
    values = rng.gumbel(size=(500, timepoints, 16)) + np.linspace(0, 1, 16)
    values[:20, 0, :3] = np.nan
    return ranks_of(values)


def test_very_many_sets_in_parts_say_what_they_say_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = statistics_of(many_sets(), np.linspace(0.5, 2.0, 500)).with_dirichlet(0.5)
    assert min(counts.size for _, counts in counted.sets) > likelihood.MANY_SETS
    x = np.random.default_rng(9).normal(size=(3, 2, 16))
    parts = Likelihood(counted)
    assert all(len(block.parts) > 1 for block in parts.blocks)
    found = parts.values(x), parts.gradient(x), parts.information(x[0])
    monkeypatch.setattr(likelihood, "MANY_SETS", 1 << 30)
    once = Likelihood(counted)
    for one, other in zip(found, (once.values(x), once.gradient(x), once.information(x[0])), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-9)


# By sums over all sets, both ways, set by set, and in double precision.
@pytest.mark.parametrize("scale", [0.003, 0.02, 0.04, 0.3, 3.0, 100.0])
def test_the_remainder_of_very_many_sets_is_what_an_expansion_leaves(scale: float) -> None:
    likelihood = Likelihood(statistics_of(many_sets(), np.ones(500)).with_dirichlet(0.5))
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 16))
    step = (scale * rng.normal(size=(300, 2, 16))).astype(np.float32)
    gradient, information = likelihood.gradient(x), likelihood.information(x)
    remainder = Remainder(likelihood, x, gradient, information)
    curved = np.einsum("tij,ztj->zti", information, step)
    value = likelihood.value(x + step) - likelihood.value(x) - np.einsum("zti,zti->z", step, gradient - 0.5 * curved)
    # Long steps are far from the mode, where the third digit does not matter; how sums round depends on the machine.
    np.testing.assert_allclose(remainder.value(step), value, rtol=3e-6, atol=0.01 * max(1, min(scale, 2)))
    np.testing.assert_allclose(remainder.value(step[:9]), value[:9], rtol=3e-6, atol=1e-4 + 0.01 * min(scale, 2))
    slope = likelihood.gradient(x + step) - gradient + curved
    np.testing.assert_allclose(remainder.gradient(step), slope, rtol=1e-5, atol=0.01 * (1 + scale))


def test_sums_of_powers_are_those_of_the_sets_and_know_what_they_leave_over() -> None:
    counted = statistics_of(many_sets(1), np.ones(500)).with_dirichlet(0.5)
    likelihood, rng = Likelihood(counted), np.random.default_rng(5)
    x = rng.normal(size=(1, 16))
    remainder = Remainder(likelihood, x, likelihood.gradient(x), likelihood.information(x))
    change = np.expm1(rng.uniform(0.0, 0.3, size=(40, 1, 1)) * rng.normal(size=(40, 1, 16)))
    sums, left = remainder._sums_of_powers(change, likelihood.wins - likelihood.gradient(x))
    [(members, counts)] = counted.sets
    shares = members * np.exp(x)
    u = change[:, 0] @ (shares / shares.sum(axis=1, keepdims=True)).T
    np.testing.assert_allclose(sums, (u**3 / 3 - u**2 / 2) @ counts, rtol=1e-9, atol=1e-9)
    assert (np.abs((np.log1p(u) - u) @ counts - sums) <= left).all()
    assert (left < remainders._MOST_LEFT).any()
    assert (left > remainders._MOST_LEFT).any()


@pytest.mark.parametrize("n", [30, 70])
def test_statistics_counted_in_pieces_are_those_counted_at_once(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = random_ranks(12, 5, n, levels=n // 15, absent=0.1)  # large ties among them
    weights = np.linspace(0.5, 2.0, 12)
    once = statistics_of(ranks, weights)
    assert once.ties
    monkeypatch.setattr(subsets, "_MOST_CHOICES", 2 * 12 * n)
    pieces = statistics_of(ranks, weights)
    np.testing.assert_array_equal(pieces.wins, once.wins)
    assert counts_of(pieces) == counts_of(once)

    def by_members(counted: Statistics) -> dict[tuple[bytes, bytes], list[float]]:
        return {(tie.block.tobytes(), tie.rest.tobytes()): tie.counts.tolist() for tie in counted.ties}

    assert by_members(pieces) == by_members(once)


# Utilities far apart


def exact_derivatives(ranking: Sequence[int], x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, gradient and information of a ranking without ties, choice by choice in logarithms."""
    order = [i for i in np.argsort(ranking) if ranking[i]]
    gradient, information = np.zeros(x.size), np.zeros((x.size, x.size))
    for place, chosen in enumerate(order):
        left = np.array(order[place:])
        probabilities = np.zeros(x.size)
        probabilities[left] = softmax(x[left])
        gradient += np.eye(x.size)[chosen] - probabilities
        information += np.diag(probabilities) - np.outer(probabilities, probabilities)
    return log_probability(order, x), gradient, information


FAR = {
    "a thousand apart": np.array([0.0, -1000.0, 1000.0, -2000.0]),
    "two far behind and close together": np.array([0.0, -1000.0, -1001.5, 3.0]),
    "just beyond": np.array([0.0, -300.5, -299.0, -0.5]),
    "ratings that vanish": np.array([0.0, -1e5, -1e5 - 1, -2e5]),
}


@pytest.mark.parametrize("x", FAR.values(), ids=FAR)
@pytest.mark.parametrize("ranking", [[1, 2, 3, 4], [4, 3, 2, 1], [0, 1, 2, 3], [2, 0, 1, 0]])
def test_utilities_far_apart_have_the_likelihood_of_exact_arithmetic(ranking: list[int], x: np.ndarray) -> None:
    likelihood = Likelihood(statistics([ranking] * 3))
    value, gradient, information = exact_derivatives(ranking, x)
    assert float(likelihood.value(x[None])) == pytest.approx(3 * value, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(likelihood.gradient(x[None])[0], 3 * gradient, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(likelihood.information(x[None])[0], 3 * information, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ranks", DERIVATIVE_CASES.values(), ids=DERIVATIVE_CASES)
def test_ordinary_utilities_say_the_same_in_logarithms(ranks: RankArray, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Likelihood(statistics_of(ranks, np.ones(len(ranks))).with_dirichlet(0.5))
    x = np.random.default_rng(5).normal(size=(7, *ranks.shape[1:]))
    near = here.values(x), here.gradient(x), here.mean_information(x)
    monkeypatch.setattr(likelihood, "LOWEST", -1e-9)
    monkeypatch.setattr(likelihood, "_CHUNK", 100)  # several rows at a time, and a last part of its own
    far = here.values(x), here.gradient(x), here.mean_information(x)
    for one, other in zip(near, far, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 400.0])
@pytest.mark.parametrize("case", ["no ties", "partial rankings", "unranked algorithms"])
def test_the_mean_information_is_the_mean_over_the_draws(case: str, scale: float) -> None:
    ranks = DERIVATIVE_CASES[case]
    here = Likelihood(statistics_of(ranks, np.ones(len(ranks))))
    x = scale * np.random.default_rng(6).normal(size=(9, *ranks.shape[1:]))
    mean = np.mean([here.information(each) for each in x], axis=0)
    np.testing.assert_allclose(here.mean_information(x), mean, rtol=1e-9, atol=1e-12)


def test_many_algorithms_have_the_mean_information_of_their_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks, x = DERIVATIVE_CASES["no ties"], np.random.default_rng(7).normal(size=(4, 3, 5))
    one = Likelihood(statistics_of(ranks, np.ones(len(ranks)))).mean_information(x)
    monkeypatch.setattr(likelihood, "_MOST_PAIRS", 0)
    other = Likelihood(statistics_of(ranks, np.ones(len(ranks)))).mean_information(x)
    np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 100.0, 1000.0, 1e6])
def test_sets_are_summed_in_logarithms_however_far_apart_their_members_are(scale: float) -> None:
    rng = np.random.default_rng(8)
    x, members = scale * rng.normal(size=(6, 2, 5)), (rng.random((9, 5)) < 0.5).astype(float)
    members[members.sum(axis=1) == 0, 2] = 1.0
    logs = logsumexp(x[..., None, :], b=members, axis=-1)
    np.testing.assert_allclose(likelihood.log_set_sums(x, members), logs, rtol=1e-12, atol=1e-9)
    shares = softmax(np.where(members > 0, x[..., None, :], -np.inf), axis=-1)
    np.testing.assert_allclose(likelihood.set_shares(x, members), shares, rtol=1e-9, atol=1e-12)


def test_the_empty_set_has_no_rating() -> None:
    assert likelihood.log_set_sums(np.array([[1.0, 2.0]]), np.zeros((1, 2)))[0, 0] == -np.inf


@pytest.mark.parametrize("centre", [1.0, 800.0])
def test_the_remainder_far_from_ordinary_utilities_is_what_an_expansion_leaves(centre: float) -> None:
    here = Likelihood(statistics([[1, 2, 3], [1, 3, 2], [2, 1, 3]]))
    x = np.array([[centre, 0.0, -centre]])
    step = np.random.default_rng(9).normal(size=(50, 1, 3)).astype(np.float32)
    step[25:] *= 500  # beyond what shares can express
    gradient, information = here.gradient(x), here.information(x)
    curved = np.einsum("tij,ztj->zti", information, step)
    value = here.value(x + step) - here.value(x) - np.einsum("zti,zti->z", step, gradient - 0.5 * curved)
    remainder = Remainder(here, x, gradient, information)
    for rows in (slice(0, 25), slice(25, 50)):
        np.testing.assert_allclose(remainder.value(step[rows]), value[rows], rtol=1e-5, atol=1e-4)
        slope = here.gradient(x + step[rows]) - gradient + curved[rows]
        np.testing.assert_allclose(remainder.gradient(step[rows]), slope, rtol=1e-5, atol=1e-4)
