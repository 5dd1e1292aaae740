from __future__ import annotations

import numpy as np
import pytest
from arviz_stats.base import array_stats
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.inference.native.importance import (
    antithetic_normals,
    resample,
    smooth_weights,
    systematic_resample,
)


def test_larger_log_weights_give_larger_weights() -> None:
    log_weights = np.random.default_rng(0).normal(size=1000)
    weights, _, _ = smooth_weights(log_weights)
    assert (np.diff(weights[np.argsort(log_weights)]) >= 0).all()
    assert weights[np.argmax(log_weights)] > 50 * weights[np.argmin(log_weights)]


def test_weights_are_normalised_and_say_what_they_are_worth() -> None:
    weights, _, effective = smooth_weights(np.random.default_rng(1).normal(size=1000))
    assert weights.sum() == pytest.approx(1.0)
    assert effective == pytest.approx(1 / np.sum(weights**2))
    assert 100 < effective < 900


def test_below_the_tail_weights_are_proportional_to_what_they_were() -> None:
    log_weights = np.random.default_rng(2).normal(size=2000)
    weights, _, _ = smooth_weights(log_weights)
    low = log_weights < np.median(log_weights)
    np.testing.assert_allclose(np.ptp(np.log(weights[low]) - log_weights[low]), 0, atol=1e-10)


@pytest.mark.parametrize(("shape", "low", "high"), [(1.0, 0.75, 1.25), (0.7, 0.55, 0.85), (0.2, 0.0, 0.35)])
def test_k_hat_is_the_shape_of_the_tail(shape: float, low: float, high: float) -> None:
    # The exponential of an exponential variable with mean k is a Pareto variable of shape k.
    log_weights = shape * np.random.default_rng(3).exponential(size=20_000)
    _, k_hat, _ = smooth_weights(log_weights)
    assert low < k_hat < high


@pytest.mark.parametrize("count", [100, 250, 1000, 4000])
@pytest.mark.parametrize("scale", [-1.0, 1e-3, 0.2, 1.0, 4.0])
def test_weights_are_those_of_arviz(count: int, scale: float) -> None:
    log_weights = scale * np.random.default_rng(count).exponential(size=count)
    weights, k_hat, _ = smooth_weights(log_weights)
    logs, shape = array_stats.psislw(-log_weights)  # it takes log-likelihoods, and weighs by their inverse
    assert k_hat == pytest.approx(float(shape), rel=1e-9)
    np.testing.assert_allclose(weights, np.exp(logs), rtol=1e-9)


def test_a_tail_that_cannot_be_fitted_is_left_as_it_is() -> None:
    log_weights = np.concatenate([np.zeros(999), [1.0]])
    weights, k_hat, _ = smooth_weights(log_weights)
    assert k_hat == np.inf
    np.testing.assert_allclose(weights, np.exp(log_weights) / np.exp(log_weights).sum())


def test_a_normal_proposal_for_a_cauchy_target_is_found_out() -> None:
    z = np.random.default_rng(4).normal(size=4000)
    _, k_hat, _ = smooth_weights(-np.log1p(z**2) + 0.5 * z**2)
    assert k_hat > 0.5


@pytest.mark.parametrize("seed", range(5))
def test_smoothing_never_raises_a_weight_above_the_largest(seed: int) -> None:
    log_weights = np.random.default_rng(seed).exponential(size=1000)
    weights, _, _ = smooth_weights(log_weights)
    lowest = np.argmin(log_weights)  # outside the tail, and so untouched
    assert np.log(weights.max() / weights[lowest]) <= np.ptp(log_weights) + 1e-9


@pytest.mark.parametrize("offset", [-2000.0, 0.0, 2000.0])
def test_equal_weights_have_no_tail_and_are_worth_their_number(offset: float) -> None:
    weights, k_hat, effective = smooth_weights(np.full(400, offset))
    np.testing.assert_allclose(weights, 1 / 400)
    assert k_hat == 0
    assert effective == pytest.approx(400)


def test_adding_a_constant_to_the_log_weights_changes_nothing() -> None:
    log_weights = np.random.default_rng(6).normal(size=500)
    one, other = smooth_weights(log_weights), smooth_weights(log_weights - 3000)
    np.testing.assert_allclose(one[0], other[0], rtol=1e-9)
    assert one[1:] == pytest.approx(other[1:], rel=1e-6)


probabilities = st.lists(st.floats(0, 1), min_size=1, max_size=30).filter(lambda weights: sum(weights) > 1e-3)


@given(probabilities, st.integers(1, 200), st.integers(0, 1000))
def test_systematic_choices_come_as_often_as_expected_up_to_one(weights: list[float], count: int, seed: int) -> None:
    share = np.array(weights) / sum(weights)
    chosen = systematic_resample(share, count, np.random.default_rng(seed))
    assert len(chosen) == count
    assert (np.diff(chosen) >= 0).all()
    assert (np.abs(np.bincount(chosen, minlength=share.size) - count * share) < 1 + 1e-9).all()


@given(probabilities, st.integers(1, 200), st.integers(0, 1000))
def test_resampling_comes_as_often_as_expected_up_to_one(weights: list[float], count: int, seed: int) -> None:
    share = np.array(weights) / sum(weights)
    chosen = resample(share, count, np.random.default_rng(seed))
    assert (np.abs(np.bincount(chosen, minlength=share.size) - count * share) < 1 + 1e-9).all()
    assert len(chosen) == count


def test_resampling_gives_a_random_order() -> None:
    chosen = resample(np.full(1000, 1e-3), 1000, np.random.default_rng(7))
    assert abs(np.corrcoef(chosen, np.arange(1000))[0, 1]) < 0.15


def test_systematic_choices_are_unbiased() -> None:
    share, rng = np.array([0.05, 0.3, 0.65]), np.random.default_rng(8)
    chosen = np.concatenate([systematic_resample(share, 3, rng) for _ in range(4000)])
    np.testing.assert_allclose(np.bincount(chosen) / chosen.size, share, atol=0.02)


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_antithetic_points_come_with_their_mirror_images(count: int) -> None:
    points = antithetic_normals(count, 3, np.random.default_rng(9))
    half = -(-count // 2)
    assert points.shape == (count, 3)
    np.testing.assert_array_equal(points[half:], -points[: count - half])
    assert len(np.unique(points[:half], axis=0)) == half


def test_antithetic_points_are_standard_normal() -> None:
    points = antithetic_normals(20_000, 2, np.random.default_rng(10))
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(points.T), np.eye(2), atol=0.05)
    assert np.mean(np.abs(points) < 1) == pytest.approx(0.6827, abs=0.015)
