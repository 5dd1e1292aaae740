from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import PolarBearError
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.measures import bootstrap as module
from polarbear_plugins.measures.bootstrap import Bootstrap, bootstrap_scores

Losses = dict[tuple[str, str], FloatArray]
NAMES, INSTANCES = ("a", "b", "c"), ("f1", "f2", "f3", "f4")


def made(seed: int = 0, studies: tuple[int, ...] = (5,), *, ordered: bool = False) -> Losses:
    rng = np.random.default_rng(seed)
    cells = [(name, instance) for name in NAMES for instance in INSTANCES]
    losses = {cell: rng.random(studies[k % len(studies)]) for k, cell in enumerate(cells)}
    return {cell: np.sort(values) for cell, values in losses.items()} if ordered else losses


def plain(losses: Losses, resamples: int, seed: int) -> FloatArray:
    """One resample after another, study by study."""
    rng = np.random.default_rng(seed)
    return np.array(
        [
            [np.mean([rng.choice(losses[name, f], losses[name, f].size).mean() for f in INSTANCES]) for name in NAMES]
            for _ in range(resamples)
        ]
    )


@pytest.mark.parametrize("studies", [(5,), (3, 7, 1)])
def test_resampled_scores_spread_as_those_of_a_plain_loop(studies: tuple[int, ...]) -> None:
    losses = made(1, studies, ordered=True)
    fast, slow = bootstrap_scores(losses, NAMES, INSTANCES, 20_000).losses, plain(losses, 4_000, 1)
    deviation = slow.std(axis=0)
    np.testing.assert_allclose(fast.mean(axis=0), slow.mean(axis=0), atol=float(0.1 * deviation.max()))
    np.testing.assert_allclose(fast.std(axis=0), deviation, rtol=0.06)
    levels = [0.025, 0.5, 0.975]
    np.testing.assert_allclose(
        np.quantile(fast, levels, axis=0), np.quantile(slow, levels, axis=0), atol=float(0.2 * deviation.max())
    )
    assert np.abs(np.corrcoef(fast.T) - np.eye(3)).max() < 0.04


def test_studies_in_order_make_the_mean_of_the_resamples_no_less_exact() -> None:
    places = [f"f{k}" for k in range(20)]
    losses = {("a", place): np.arange(5.0) for place in places}
    means = [bootstrap_scores(losses, ["a"], places, 1_000, seed).losses.mean() for seed in range(100)]
    # A mean of 5 studies has the variance 2 / 5, that of 20 instances a 20th of it, and there are 1,000 resamples.
    assert np.std(means) < 1.3 * np.sqrt(2 / 5 / 20 / 1_000)


def test_few_resamples_of_different_algorithms_are_independent_too() -> None:
    losses = {(name, "f1"): np.array([0.0, 1.0]) for name in NAMES}
    found = np.concatenate([bootstrap_scores(losses, NAMES, ["f1"], 3, seed).losses for seed in range(500)])
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.1


def test_more_cells_and_resamples_than_are_drawn_together_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CELLS", 2)
    monkeypatch.setattr(module, "_MAX_COUNTS", 1)
    losses = made(2)
    found = bootstrap_scores(losses, NAMES, INSTANCES, 4_500).losses
    exact = np.array([np.mean([losses[name, f].mean() for f in INSTANCES]) for name in NAMES])
    variance = np.array([sum(losses[name, f].var() / 5 for f in INSTANCES) / 16 for name in NAMES])
    np.testing.assert_allclose(found.mean(axis=0), exact, atol=5 * float(np.sqrt(variance / 4_500).max()))
    np.testing.assert_allclose(found.var(axis=0), variance, rtol=0.12)


def test_two_studies_each_have_the_probabilities_of_all_sixteen_resamples() -> None:
    losses = {("a", "f1"): np.array([0.1, 0.3]), ("b", "f1"): np.array([0.2, 0.4])}
    found = bootstrap_scores(losses, ["a", "b"], ["f1"], 40_000)
    # Means: a 0.1, 0.2, 0.3 and b 0.2, 0.3, 0.4, the middle one twice as likely.
    first, tied, last = 11 / 16, 4 / 16, 1 / 16
    np.testing.assert_allclose(found.p_better, [[0, first + tied / 2], [last + tied / 2, 0]], atol=0.01)
    shares = {str(ranking): ranking.share for ranking in found.rankings()}
    assert shares == {
        "a > b": pytest.approx(first, abs=0.01),
        "a = b": pytest.approx(tied, abs=0.01),
        "b > a": pytest.approx(last, abs=0.01),
    }


@given(st.integers(0, 2**32 - 1))
def test_the_same_seed_gives_the_same_resamples_and_another_seed_others(seed: int) -> None:
    losses = made()
    one, again, other = (bootstrap_scores(losses, NAMES, INSTANCES, 20, s).losses for s in (seed, seed, seed + 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_studies_that_all_gave_the_same_leave_nothing_to_chance() -> None:
    losses = {cell: np.full(7, np.mean(values)) for cell, values in made().items()}
    found = bootstrap_scores(losses, NAMES, INSTANCES, 100)
    exact = [np.mean([losses[name, f][0] for f in INSTANCES]) for name in NAMES]
    np.testing.assert_allclose(found.losses, np.tile(exact, (100, 1)), rtol=1e-12)
    assert len(found.rankings()) == 1
    np.testing.assert_allclose(found.interval(), [exact, exact])


def test_algorithms_with_the_same_scores_share_a_place_whatever_the_rounding() -> None:
    losses = {(name, f): np.full(n, 0.1) for n, name in enumerate(NAMES, 1) for f in INSTANCES}
    [ranking] = bootstrap_scores(losses, NAMES, INSTANCES, 50).rankings()
    assert ranking.places == (NAMES,)


def test_places_and_rankings_count_the_resamples() -> None:
    losses = np.array([[0.1, 0.2, 0.3], [0.1, 0.3, 0.2], [0.1, 0.2, 0.3], [0.2, 0.1, 0.3]])
    ranks = np.array([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]], dtype=np.int16)
    found = Bootstrap(algorithms=NAMES, losses=losses, ranks=ranks)
    np.testing.assert_allclose(found.places, [[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.25, 0.75]])
    assert [(str(r), r.share) for r in found.rankings(1)] == [("a", 0.75), ("b", 0.25)]
    assert str(found.rankings()[0]) == "a > b > c"
    np.testing.assert_allclose(found.p_better, [[0, 0.75, 1], [0.25, 0, 0.75], [0, 0.25, 0]])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"resamples": 0}, "resamples must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ],
)
def test_numbers_that_mean_nothing_are_refused(more: dict[str, int], message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        bootstrap_scores(made(), NAMES, INSTANCES, **more)


def test_an_interval_needs_a_level_between_0_and_1() -> None:
    with pytest.raises(PolarBearError, match="level: expected a number between 0 and 1, both excluded, got 95"):
        bootstrap_scores(made(), NAMES, INSTANCES, 5).interval(95)
