from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit, gammaln
from scipy.stats import loggamma

from polarbear_plugins.inference.native import tempering
from polarbear_plugins.inference.native.importance import antithetic_normals
from polarbear_plugins.inference.native.tempering import Particles, Tempered, next_temperature, sample_tempered

Which = NDArray[np.intp]


@dataclass
class LogGammas:
    """Logarithms of independent gamma variables, approximated by the expansion at their mode.

    Each component has its own shape and size; the approximation takes components to be equally likely.
    """

    shapes: tuple[float, ...]
    log_sizes: tuple[float, ...] = (0.0,)
    dimension: int = 4
    jumps: bool = True

    def x(self, which: Which, z: np.ndarray) -> np.ndarray:
        shape = np.array(self.shapes)[which][:, None]
        return np.log(shape) + z / np.sqrt(shape)

    def start(self, count: int, rng: np.random.Generator) -> Particles:
        which, z = rng.integers(len(self.shapes), size=count), antithetic_normals(count, self.dimension, rng)
        return Particles(which, z, self.remainder(which, z))

    def remainder(self, which: Which, z: np.ndarray) -> np.ndarray:
        shape, x = np.array(self.shapes)[which], self.x(which, z)
        log_normal = -0.5 * np.log(2 * np.pi) - 0.5 * z**2 + 0.5 * np.log(shape)[:, None]
        log_density = shape[:, None] * x - np.exp(x) - gammaln(shape)[:, None]
        return np.array(self.log_sizes)[which] + (log_density - log_normal).sum(axis=1)

    def gradient(self, which: Which, z: np.ndarray) -> np.ndarray:
        shape = np.array(self.shapes)[which][:, None]
        return (shape - np.exp(self.x(which, z))) / np.sqrt(shape) + z

    def jump(self, particles: Particles, temperature: float, rng: np.random.Generator) -> Particles:
        if not self.jumps or len(self.shapes) == 1:
            return particles
        other = 1 - particles.which
        remainder = self.remainder(other, particles.z)
        taken = rng.random(len(other)) < expit(temperature * (remainder - particles.remainder))
        return Particles(
            np.where(taken, other, particles.which), particles.z, np.where(taken, remainder, particles.remainder)
        )

    def utilities(self, which: Which, z: np.ndarray) -> np.ndarray:
        return self.x(which, z)[:, None, :]

    def rough_utilities(self, which: Which, z: np.ndarray) -> np.ndarray:
        return self.utilities(which, z).astype(np.float32)

    def hyperparameters(self, which: Which) -> np.ndarray:
        return which[:, None].astype(float) if len(self.shapes) > 1 else np.empty((len(which), 0))


class Stuck(LogGammas):
    """Its gradient leads nowhere, so that every move is rejected."""

    def gradient(self, which: Which, z: np.ndarray) -> np.ndarray:  # noqa: ARG002
        return np.full_like(z, -1e4)


def problems(done: Tempered) -> tuple[str, ...]:
    return done.problems


@pytest.mark.parametrize("shape", [0.3, 0.5, 2.0])
def test_a_skew_density_is_sampled_as_it_is(shape: float) -> None:
    done = sample_tempered(LogGammas((shape,)), 8000, np.random.default_rng(1))
    exact = loggamma(shape)
    assert problems(done) == ()
    assert done.utilities.shape == (8000, 1, 4)
    assert done.effective > 2000
    draws = done.utilities[:, 0]
    assert draws.mean() == pytest.approx(exact.mean(), abs=0.05 * exact.std())
    assert draws.std() == pytest.approx(exact.std(), rel=0.07)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert np.mean(draws < exact.ppf(level)) == pytest.approx(level, abs=0.012)
    np.testing.assert_allclose(np.corrcoef(draws.T) - np.eye(4), 0, atol=0.06)


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.8, 0.2), (0.03, 0.97)])
def test_components_are_as_frequent_as_the_posterior_says(shares: tuple[float, float]) -> None:
    family = LogGammas((0.5, 1.0), tuple(np.log(shares).tolist()))
    done = sample_tempered(family, 8000, np.random.default_rng(2))
    assert problems(done) == ()
    assert np.mean(done.which == 0) == pytest.approx(shares[0], abs=0.02)
    for k, shape in enumerate(family.shapes):
        draws = done.utilities[done.which == k]
        exact = loggamma(shape)
        assert draws.mean() == pytest.approx(exact.mean(), abs=6 * exact.std() / np.sqrt(draws.size))


def test_particles_that_cannot_move_are_not_good() -> None:
    done = sample_tempered(Stuck((0.15,)), 4000, np.random.default_rng(1))
    assert done.acceptance < 0.05
    found = " ".join(problems(done))
    assert "moves were accepted" in found
    assert "draws are distinct" in found
    assert "still correlate" in found


@pytest.mark.parametrize("log_sizes", [(0.0, 0.0), (0.0, -3.0), (0.0, -50.0)])
def test_components_without_jumps_between_them_are_not_good(log_sizes: tuple[float, float]) -> None:
    # Even where resampling leaves only one of them: who has always been there has not forgotten that.
    done = sample_tempered(LogGammas((2.0, 2.0), log_sizes, jumps=False), 2000, np.random.default_rng(3))
    assert done.acceptance > 0.5
    assert done.memory == pytest.approx(1.0)
    assert "still correlate by 1.00" in " ".join(problems(done))


@pytest.mark.parametrize("limit", ["temperatures", "work"])
def test_a_posterior_that_was_not_reached_is_not_good(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    family, most_leaps = LogGammas((0.05,)), 10_000
    assert sample_tempered(family, 2000, np.random.default_rng(4)).temperatures > 2
    if limit == "temperatures":
        monkeypatch.setattr(tempering, "_MOST_TEMPERATURES", 1)
    else:
        most_leaps = 3
    done = sample_tempered(family, 2000, np.random.default_rng(4), most_leaps)
    assert done.temperatures == 1
    assert done.memory == 1
    assert "still correlate" in " ".join(problems(done))
    assert done.utilities.shape == (2000, 1, 4)


def test_the_same_seed_gives_the_same_particles() -> None:
    one, same, other = (
        sample_tempered(LogGammas((0.5, 1.0), (0.0, 1.0)), 1000, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.utilities, same.utilities)
    np.testing.assert_array_equal(one.which, same.which)
    assert not np.array_equal(one.utilities, other.utilities)


def test_at_temperature_zero_a_move_rotates_the_gaussian_and_is_always_accepted() -> None:
    family, rng = LogGammas((0.3,)), np.random.default_rng(5)
    mover, particles = tempering._Mover(family, rng), family.start(2000, rng)
    moved = mover.move(particles, 0.0)
    assert mover.shares == [1.0]
    assert not np.isclose(moved.z, particles.z).all(axis=1).any()
    np.testing.assert_allclose(moved.remainder, family.remainder(moved.which, moved.z))
    np.testing.assert_allclose(np.cov(moved.z.T), np.eye(4), atol=0.12)


# Temperatures


@pytest.mark.parametrize("before", [0.0, 0.4])
def test_equal_weights_need_no_further_temperature(before: float) -> None:
    assert next_temperature(np.full(100, -7.0), before) == 1
    assert next_temperature(np.random.default_rng(1).normal(size=1000) * 0.1, before) == 1


@pytest.mark.parametrize("before", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("scale", [20.0, 1000.0, 1e6])
def test_a_temperature_leaves_half_of_the_particles(scale: float, before: float) -> None:
    remainder = scale * np.random.default_rng(2).normal(size=4000)
    new = next_temperature(remainder, before)
    assert before < new < 1
    weights = np.exp((new - before) * (remainder - remainder.max()))
    assert weights.sum() ** 2 / (weights @ weights) == pytest.approx(2000, rel=0.01)


def test_a_temperature_rises_however_steep_the_weights_are() -> None:
    remainder = np.array([0.0, -1e300, -1e300, -1e300])
    assert 0 < next_temperature(remainder, 0.0) < 1e-9
    assert next_temperature(remainder, 0.9999999) > 0.9999999
