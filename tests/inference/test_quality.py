from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polarbear_plugins.inference.native.quality import (
    correlations,
    distinct_share,
    has_forgotten,
    shortcomings,
    weights_suffice,
    worth_of_rounds,
)

RNG = np.random.default_rng(1)
FINE: dict[str, Any] = {
    "distinct": 1.0,
    "effective": 3500.0,
    "acceptance": 0.8,
    "left": 0.02,
    "chains": 1000,
    "moves": 9,
}


def test_memory_is_the_largest_absolute_correlation_with_where_chains_began() -> None:
    before = RNG.normal(size=(2000, 3))
    after = RNG.normal(size=(2000, 3))
    after[:, 1] = 5 - before[:, 1] + 0.75 * after[:, 1]
    exact = [abs(np.corrcoef(one, other)[0, 1]) for one, other in zip(before.T, after.T, strict=True)]
    np.testing.assert_allclose(correlations(before, after), exact, rtol=1e-9)
    assert correlations(before, after).max() == pytest.approx(exact[1])
    assert correlations(before, after).max() > 0.7


@pytest.mark.parametrize("constant", ["before", "after", "both"])
def test_a_coordinate_without_spread_is_never_forgotten(constant: str) -> None:
    before, after = RNG.normal(size=(2, 1000, 3))
    assert has_forgotten(correlations(before, after).max(), 1000)
    if constant in ("before", "both"):
        before[:, 2] = 0.7
    if constant in ("after", "both"):
        after[:, 2] = -0.3
    assert correlations(before, after)[2] == pytest.approx(1.0)
    assert not has_forgotten(correlations(before, after).max(), 1000)


def test_nothing_to_remember_is_no_memory() -> None:
    assert correlations(np.empty((10, 0)), np.empty((10, 0))).size == 0


def test_chains_have_forgotten_what_chance_alone_would_give_them() -> None:
    assert has_forgotten(0.09, 10_000)
    assert not has_forgotten(0.11, 10_000)
    assert has_forgotten(0.3, 100)  # a hundred independent chains correlate by that much
    assert not has_forgotten(0.4, 100)


@pytest.mark.parametrize(
    ("k_hat", "effective", "proposals", "suffices"),
    [
        (0.3, 600, 1000, True),
        (0.3, 400, 1000, False),
        (0.45, 610, 1000, True),
        (0.45, 590, 1000, False),
        (0.6, 890, 1000, False),
        (0.6, 910, 1000, True),
        (0.8, 950, 1000, False),
        (0.6, 950, 4000, False),  # many effective draws, but of four times as many proposals
        (0.3, 950, 4000, True),
    ],
)
def test_importance_weights_suffice_if_their_tail_is_light_for_how_uneven_they_are(
    k_hat: float, effective: float, proposals: int, suffices: bool
) -> None:
    assert weights_suffice(k_hat, effective, 1000, proposals) is suffices


def test_independent_rounds_are_worth_all_of_their_draws() -> None:
    rounds = list(RNG.normal(size=(4, 5000, 3)))
    assert worth_of_rounds(rounds) == pytest.approx(20_000, rel=0.1)


def test_copies_of_a_round_are_worth_one_round() -> None:
    one = RNG.normal(size=(500, 3))
    assert worth_of_rounds([one] * 4) == pytest.approx(500)


def test_rounds_are_worth_what_the_slowest_quantity_is_worth() -> None:
    slow = RNG.normal(size=5000)
    rounds = []
    for _ in range(4):
        slow = 0.8 * slow + 0.6 * RNG.normal(size=5000)
        rounds.append(np.stack([RNG.normal(size=5000), slow], axis=1))
    distance = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    variance_of_the_mean = (0.8**distance).mean()
    assert worth_of_rounds(rounds) == pytest.approx(5000 / variance_of_the_mean, rel=0.05)


def test_a_single_round_is_worth_its_distinct_draws() -> None:
    one = RNG.normal(size=(10, 3))
    assert worth_of_rounds([np.concatenate([one, one[:4]])]) == 10


def test_the_distinct_share_counts_copies_once() -> None:
    draws = RNG.normal(size=(100, 4, 3))
    assert distinct_share(draws) == 1
    assert distinct_share(draws[RNG.permutation(np.arange(100) % 25)]) == 0.25
    assert distinct_share(np.repeat(draws[:1], 50, axis=0)) == 0.02


def test_the_distinct_share_tells_permuted_draws_apart() -> None:
    draws = np.array([[[1.0, 2.0, 4.0]], [[2.0, 1.0, 4.0]], [[4.0, 2.0, 1.0]]])
    assert distinct_share(draws) == 1


def test_good_draws_have_no_shortcomings() -> None:
    assert shortcomings(4000, **FINE) == ()
    assert shortcomings(4000, **FINE | {"acceptance": None}) == ()  # a Gibbs sweep is never rejected
    at_the_limits = FINE | {"distinct": 0.25, "effective": 200.0, "acceptance": 0.2}
    assert shortcomings(4000, **at_the_limits) == ()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"left": 0.5}, "after 9 moves draws still correlate by 0.50 with where they began"),
        ({"distinct": 0.2}, "only 20% of the draws are distinct"),
        ({"effective": 199.0}, "4000 draws are worth only 199 independent ones"),
        ({"acceptance": 0.1}, "only 10% of the moves were accepted"),
    ],
)
def test_each_shortcoming_alone_is_told(change: dict[str, float], complaint: str) -> None:
    assert shortcomings(4000, **FINE | change) == (complaint,)


def test_fewer_draws_need_fewer_effective_ones_in_proportion() -> None:
    assert shortcomings(1000, **FINE | {"effective": 50.0}) == ()
    assert shortcomings(1000, **FINE | {"effective": 49.0}) == ("1000 draws are worth only 49 independent ones",)
