"""GP-BBOB: mixtures of the 24 SBOX functions whose weights change over the box (appendix C of the PolarBear paper).

The logits of the weights are a Gaussian process, made of random Fourier features; only the largest k(x) of them count,
where k(x) comes from another one.
"""

from __future__ import annotations

import functools
import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.gp_bbob.distributions import Distribution, as_distribution
from polarbear_plugins.options import Reader, read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.given import cube
from polarbear_plugins.problems.protocols import Identity, Problem, Suite

__all__ = ["PRIORS", "GpBbobProblem", "GpBbobSuite", "Mixture", "polarbear_suite"]

_WHO = "The suite 'gp-bbob'"
_FUNCTIONS = 24

#: The priors of the paper's Table 3, in its order.
PRIORS = {
    "dimension": "normal(240, 30)[2, 320]",
    "offset": "cauchy(0, 1000)",
    "instances": "integers(1, 999)",
    "temperature": "lognormal(-0.5, 0.5)",
    "features": "integers(32, 128)",
    "lengthscale": "lognormal(2, 1)",
    "amplitude": "lognormal(0, 0.7)",
    "sparsity": "lognormal(1.1, 0.5)[2, 24]",
    "sparsity_features": "integers(16, 64)",
    "sparsity_lengthscale": "lognormal(0, 1)",
    "sparsity_amplitude": "lognormal(0, 0.7)",
}
# Smallest and largest number that a prior may give; what is whole is cut to whole numbers.
_LIMITS = {
    "dimension": (2, 10_000),
    "instances": (1, 200_000),
    "features": (1, 100_000),
    "sparsity": (1, _FUNCTIONS),
    "sparsity_features": (1, 100_000),
}
_POSITIVE = ("temperature", "lengthscale", "amplitude", "sparsity_lengthscale", "sparsity_amplitude")


class Mixture:
    """The weights of the 24 functions at each point: a sparse softmax of Gaussian processes.

    Parameters
    ----------
    lengthscale, sparsity_lengthscale
        Of the squared-exponential kernels, in the units of the box [-5, 5]^d.
    sparsity
        Distribution of how many functions count, rounded to whole numbers.
    field_seed
        From which all random features are drawn.
    """

    def __init__(
        self,
        *,
        dimension: int,
        temperature: float,
        features: int,
        lengthscale: float,
        amplitude: float,
        sparsity: Distribution,
        sparsity_features: int,
        sparsity_lengthscale: float,
        sparsity_amplitude: float,
        field_seed: list[int],
    ) -> None:
        rng = np.random.default_rng(field_seed)
        logits = _random_features(rng, dimension, features, lengthscale, amplitude, _FUNCTIONS)
        level = _random_features(rng, dimension, sparsity_features, sparsity_lengthscale, sparsity_amplitude, 1)
        self._frequencies = np.ascontiguousarray(np.hstack([logits[0], level[0]]))
        self._phases = np.concatenate([logits[1], level[1]])
        self._features = features
        self._logits = logits[2] / temperature
        self._level = level[2][:, 0]
        self._thresholds = _thresholds(sparsity)

    def logits(self, points: FloatArray) -> FloatArray:
        """z(x) / T of each function, ``[point, function]``."""
        waves = np.cos(points @ self._frequencies + self._phases)
        return waves[:, : self._features] @ self._logits

    def sparsity(self, points: FloatArray) -> NDArray[np.int64]:
        """k(x): how many functions count at each point."""
        level = np.cos(points @ self._frequencies + self._phases)[:, self._features :] @ self._level
        return np.searchsorted(self._thresholds, level, side="left") + 1

    def weights(self, points: FloatArray) -> FloatArray:
        """w(x), ``[point, function]``: they sum to 1, and all but k(x) of them are 0."""
        logits = self.logits(points)
        order = np.argsort(-logits, axis=1, kind="stable")
        ranks = np.argsort(order, axis=1)
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares[ranks >= self.sparsity(points)[:, None]] = 0
        return shares / shares.sum(axis=1, keepdims=True)

    def active(self, point: FloatArray) -> tuple[list[int], list[float]]:
        """Which functions count at one point, and their weights: :meth:`weights` without the zeros, but faster."""
        waves = np.cos(point @ self._frequencies + self._phases)
        logits = waves[: self._features] @ self._logits
        count = bisect_left(self._thresholds, float(waves[self._features :] @ self._level)) + 1
        chosen = logits.argpartition(_FUNCTIONS - count)[_FUNCTIONS - count :]
        shares = np.exp(logits[chosen] - logits.max())
        return chosen.tolist(), (shares / shares.sum()).tolist()


class GpBbobProblem:
    """A mixture of SBOX functions on [-5, 5]^d, plus an offset; its optimum is unknown.

    Building takes long in many dimensions.  An evaluation changes nothing that another one sees.
    """

    def __init__(self, identity: Identity, *, instances: list[int], offset: float, **field: Any) -> None:
        ioh = require("ioh", extra="ioh", who=_WHO)
        dimension = field["dimension"]
        self.identity = identity
        self.mixture = Mixture(**field)
        self.lower, self.upper = cube(dimension, -5, 5)
        self._offset = offset
        self._functions = [
            ioh.get_problem(place + 1, instance, dimension, ioh.ProblemClass.SBOX)
            for place, instance in enumerate(instances)
        ]

    def evaluate(self, x: ArrayLike, /) -> float:
        """Value at ``x``; ``inf`` outside the box, ``nan`` if ``x`` is not finite."""
        point = np.asarray(x, dtype=np.float64)
        if point.shape != self.lower.shape:
            raise InvalidInputError(
                f"{self.identity.name}: expected {self.lower.size} numbers, got an array of shape {point.shape}."
            )
        if not np.isfinite(point).all():
            return math.nan
        functions, weights = self.mixture.active(point)
        place = point.tolist()
        value = 0.0
        for function, weight in zip(functions, weights, strict=True):
            if weight:  # the weight of one that counts may still be too small for a number
                value += weight * self._functions[function](place)
        return value + self._offset


class GpBbobSuite:
    """Problems without end, with parameters from priors.

    Parameters
    ----------
    priors
        Those that are not as in :data:`PRIORS`: distributions, their texts, or numbers.

    Examples
    --------
    >>> suite = GpBbobSuite({"dimension": 20, "offset": 0})
    >>> next(suite.identities(1)).parameters["dimension"]
    20
    """

    name = "gp-bbob"

    def __init__(self, priors: Mapping[str, object] | None = None) -> None:
        readers: dict[str, Reader] = dict.fromkeys(PRIORS, as_distribution)
        self.priors: dict[str, Distribution] = read_options({**PRIORS, **(priors or {})}, readers, _WHO)
        for key, prior in self.priors.items():
            least, most = prior.support
            low, high = _LIMITS.get(key, (-math.inf, math.inf))
            if not low <= least <= most <= high:
                raise InvalidInputError(
                    f"{_WHO}: {key} must lie between {low} and {high}, got {prior}. Truncate it, as in {PRIORS[key]}."
                    if prior.kind in ("normal", "lognormal", "cauchy")
                    else f"{_WHO}: {key} must lie between {low} and {high}, got {prior}."
                )
            if key in _POSITIVE and least <= 0 and prior.kind != "lognormal":
                raise InvalidInputError(f"{_WHO}: {key} must be positive, got {prior}.")

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw the parameters of problems; each has a random stream of its own."""
        seed = as_whole_number(seed, "seed", at_least=0)
        for index in itertools.count():
            rng = np.random.default_rng([seed, index])
            drawn: dict[str, Any] = {}
            for key, prior in self.priors.items():
                if key == "sparsity":
                    drawn[key] = str(prior)
                elif key == "instances":
                    drawn[key] = [int(prior.quantile(rng.random())) for _ in range(_FUNCTIONS)]
                else:
                    value = prior.quantile(rng.random())
                    drawn[key] = int(value) if key in _LIMITS else value
            drawn["field_seed"] = [seed, index, 1]
            yield Identity(f"d{drawn['dimension']}-{seed}-{index}", drawn)

    def build(self, identity: Identity, /) -> Problem:
        """Build the problem, or give the one that was built for the same identity just before."""
        return _built(identity.to_json())


# The algorithms of a race meet an instance one after the other, and building takes seconds to minutes.
@functools.lru_cache(maxsize=2)
def _built(text: str) -> GpBbobProblem:
    identity = Identity.from_json(text)
    return GpBbobProblem(identity, **_checked(identity))


def _checked(identity: Identity) -> dict[str, Any]:
    """Parameters of an identity as they should be."""
    who = f"identity {identity.name!r}"
    missing = [key for key in (*PRIORS, "field_seed") if key not in identity.parameters]
    if missing:
        raise InvalidInputError(f"{who} has no {', '.join(missing)}; it was not drawn by 'gp-bbob'.")
    checked: dict[str, Any] = {}
    for key in PRIORS:
        value = identity.parameters[key]
        if key == "sparsity":
            checked[key] = as_distribution(value, f"{who}: {key}")
        elif key == "instances":
            if not isinstance(value, list) or len(value) != _FUNCTIONS:
                raise InvalidInputError(f"{who}: instances must be {_FUNCTIONS} whole numbers.")
            checked[key] = [as_whole_number(one, f"{who}: instances", at_least=1) for one in value]
        elif key in _LIMITS:
            checked[key] = as_whole_number(value, f"{who}: {key}", at_least=_LIMITS[key][0])
        else:
            checked[key] = as_number(value, f"{who}: {key}")
    seeds = identity.parameters["field_seed"]
    if not isinstance(seeds, list):
        raise InvalidInputError(f"{who}: field_seed must be a list of whole numbers.")
    checked["field_seed"] = [as_whole_number(one, f"{who}: field_seed", at_least=0) for one in seeds]
    return checked


def _random_features(
    rng: np.random.Generator, dimension: int, features: int, lengthscale: float, amplitude: float, outputs: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Frequencies, phases and coefficients of a Gaussian process with a squared-exponential kernel."""
    frequencies = rng.standard_normal((dimension, features)) / lengthscale
    phases = rng.uniform(0, 2 * math.pi, features)
    return frequencies, phases, amplitude * math.sqrt(2 / features) * rng.standard_normal((features, outputs))


def _thresholds(sparsity: Distribution) -> list[float]:
    """Levels h at which k = F_K^-1(Phi(h)) goes from 1 to 2, from 2 to 3, ..., from 23 to 24."""
    normal = NormalDist()
    limits = [sparsity.cdf(count + 0.5) for count in range(1, _FUNCTIONS)]
    return [-math.inf if p <= 0 else math.inf if p >= 1 else normal.inv_cdf(p) for p in limits]


@hookimpl
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """gp-bbob: mixtures of SBOX functions that change over the box; options dimension and the paper's other priors."""
    if name != GpBbobSuite.name:
        return None
    suite = GpBbobSuite(options)
    require("ioh", extra="ioh", who=_WHO)
    return suite
