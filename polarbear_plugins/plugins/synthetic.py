"""Algorithms with known ratings, for tests and demonstrations of races.

The value of a synthetic run at each timepoint is its log-rating plus Gumbel noise, so that the rankings follow the
Plackett-Luce model with exactly those ratings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array, as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.options import Reader, read_options, whole_number
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Algorithm, Identity, Problem, Suite
from polarbear_plugins.trajectories.trajectory import Trajectory

# Best values never increase: each timepoint lies this much below the previous one, whatever the noise.
_STEP = 1e4

_MAX_SIZE = 2000  # of algorithms and of timepoints, so that the draws fit in memory


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticAlgorithm:
    """An algorithm with a known log-rating at the times 1, 2, ..., T.

    Parameters
    ----------
    correlation
        Between the noise at neighbouring timepoints of a run: 0 makes their rankings independent; real runs are near
        0.9.
    """

    name: str
    log_ratings: FloatArray
    correlation: float = 0.0

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Draw a run."""
        steps = min(math.floor(horizon), self.log_ratings.size)
        noise = utilities(self.log_ratings[None, :], self.correlation, np.random.default_rng(seed))[0]
        times = np.arange(1.0, steps + 1)
        best = -(_STEP * times + np.clip(noise[:steps], -_STEP / 2, _STEP / 2))
        instance = problem.identity.name
        return Trajectory(algorithm=self.name, instance=instance, seed=seed, times=times, best=best, horizon=horizon)


class SyntheticSuite:
    """Endless instances without content: the randomness is in the runs."""

    name = "synthetic"

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Number the instances."""
        number = 0
        while True:
            number += 1
            yield Identity(f"{seed}-{number}")

    def build(self, identity: Identity, /) -> Problem:
        """A problem that consists of its name."""
        return GivenProblem(identity, None)


def utilities(log_ratings: FloatArray, correlation: float, rng: np.random.Generator) -> FloatArray:
    """``log_ratings[..., t]`` plus Gumbel noise that is correlated between neighbouring timepoints.

    Ranking several algorithms by it from high to low draws from the Plackett-Luce model.
    """
    if not correlation:
        return log_ratings + rng.gumbel(size=log_ratings.shape)
    from scipy.special import log_ndtr

    normal = rng.standard_normal(log_ratings.shape)
    for t in range(1, log_ratings.shape[-1]):
        normal[..., t] = correlation * normal[..., t - 1] + math.sqrt(1 - correlation**2) * normal[..., t]
    return log_ratings - np.log(-log_ndtr(normal))


def draw_log_ratings(algorithms: int, timepoints: int, seed: int) -> FloatArray:
    """``log_ratings[t, algorithm]`` from the Gaussian process of the paper's synthetic examples.

    A Matérn kernel with nu = 3/2 on [0, 1], scale ~ LogNormal(0, 0.5), lengthscale ~ InverseGamma(5, 3).
    """
    rng = np.random.default_rng(seed)
    scale, lengthscale = rng.lognormal(0, 0.5), 3 / rng.gamma(5)
    time = np.linspace(0, 1, timepoints) if timepoints > 1 else np.zeros(1)
    distance = math.sqrt(3) * np.abs(time[:, None] - time) / lengthscale
    kernel = (1 + distance) * np.exp(-distance) + 1e-9 * np.eye(timepoints)
    drawn = scale * np.linalg.cholesky(kernel) @ rng.standard_normal((timepoints, algorithms))
    return drawn - np.log(np.exp(drawn).sum(axis=1, keepdims=True))


def pareto_set(log_ratings: FloatArray) -> NDArray[np.bool_]:
    """Which algorithms no other dominates at all timepoints: a flag for each column of ``log_ratings[t, i]``."""
    better = (log_ratings[:, :, None] > log_ratings[:, None, :]).all(axis=0)
    return ~np.logical_or.reduce(better, axis=0)


def synthetic_portfolio(
    algorithms: int = 5,
    timepoints: int = 20,
    seed: int = 0,
    correlation: float = 0.0,
    log_ratings: ArrayLike | None = None,
) -> tuple[SyntheticAlgorithm, ...]:
    """Algorithms A, B, C, ... with given ratings, or ratings drawn from a Gaussian process.

    Parameters
    ----------
    log_ratings
        ``log_ratings[t, algorithm]`` at the times 1, 2, ..., T; drawn by default.

    Examples
    --------
    >>> [algorithm.name for algorithm in synthetic_portfolio(3)]
    ['A', 'B', 'C']
    """
    correlation = as_number(correlation, "correlation", at_least=0, at_most=1)
    if log_ratings is None:
        count = as_whole_number(algorithms, "algorithms", at_least=2)
        steps = as_whole_number(timepoints, "timepoints", at_least=1)
        logs = draw_log_ratings(count, steps, as_whole_number(seed, "seed", at_least=0))
    else:
        logs = as_array(log_ratings, "log_ratings")
        if logs.ndim != 2 or logs.shape[1] < 2 or not np.isfinite(logs).all():
            raise InvalidInputError(
                "log_ratings: expected finite numbers, a row for each timepoint and a column for each of at least two "
                f"algorithms; got the shape {list(logs.shape)}."
            )
    return tuple(
        SyntheticAlgorithm(_letter_name(place), np.ascontiguousarray(logs[:, place]), correlation)
        for place in range(logs.shape[1])
    )


@hookimpl
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """synthetic: algorithms with known ratings; options algorithms, timepoints, seed, correlation, log_ratings."""
    if name != "synthetic":
        return None
    readers: dict[str, Reader] = {
        "algorithms": whole_number(2, _MAX_SIZE),
        "timepoints": whole_number(1, _MAX_SIZE),
        "seed": whole_number(0),
        "correlation": _read_number,
        "log_ratings": lambda value, what: as_array(value, what),  # type: ignore[arg-type]  # checked there
    }
    return synthetic_portfolio(**read_options(options, readers, "The portfolio 'synthetic'"))


@hookimpl
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """synthetic: instances without content, for the portfolio of the same name."""
    if name != "synthetic":
        return None
    read_options(options, {}, "The suite 'synthetic'")
    return SyntheticSuite()


def _read_number(value: object, what: str) -> float:
    try:
        return as_number(float(value) if isinstance(value, str) else value, what)
    except ValueError:
        raise InvalidInputError(f"{what} must be a number, got {value!r}.") from None


def _letter_name(place: int) -> str:
    """Name of an algorithm: A, B, ..., Z, A2, B2, ..."""
    letter, again = chr(ord("A") + place % 26), place // 26
    return letter if not again else f"{letter}{again + 1}"
