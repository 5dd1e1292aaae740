"""Problems of GP-BBOB, and the priors from which their parameters are drawn."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.gp_bbob.distributions import Distribution, as_distribution
from polarbear_plugins.integrations.gp_bbob.mixture import FUNCTIONS, Mixture
from polarbear_plugins.options import Reader, read_options
from polarbear_plugins.problems.given import cube
from polarbear_plugins.problems.protocols import Identity, Problem

#: The suite, as messages call it.
WHO = "The suite 'gp-bbob'"

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
# Smallest and largest value of these priors; their draws are truncated to whole numbers.
_LIMITS = {
    "dimension": (2, 10_000),
    "instances": (1, 200_000),
    "features": (1, 100_000),
    "sparsity": (1, FUNCTIONS),
    "sparsity_features": (1, 100_000),
}
_POSITIVE = ("temperature", "lengthscale", "amplitude", "sparsity_lengthscale", "sparsity_amplitude")


class GpBbobProblem:
    """A mixture of SBOX functions on [-5, 5]^d, plus an offset; its optimum is unknown.

    Building takes long in many dimensions.  Evaluations do not affect each other.
    """

    def __init__(self, identity: Identity, *, instances: list[int], offset: float, **field: Any) -> None:
        ioh = require("ioh", extra="ioh", who=WHO)
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
            if weight:  # an active weight may be rounded to 0
                value += weight * self._functions[function](place)
        return value + self._offset


class GpBbobSuite:
    """An endless sequence of problems, with parameters from priors.

    Parameters
    ----------
    priors
        Those that differ from :data:`PRIORS`: distributions, text such as ``lognormal(2, 1)``, or numbers.

    Examples
    --------
    >>> suite = GpBbobSuite({"dimension": 20, "offset": 0})
    >>> next(suite.identities(1)).parameters["dimension"]
    20
    """

    name = "gp-bbob"

    def __init__(self, priors: Mapping[str, object] | None = None) -> None:
        readers: dict[str, Reader] = dict.fromkeys(PRIORS, as_distribution)
        self.priors: dict[str, Distribution] = read_options({**PRIORS, **(priors or {})}, readers, WHO)
        for key, prior in self.priors.items():
            least, most = prior.support
            low, high = _LIMITS.get(key, (-math.inf, math.inf))
            if not low <= least <= most <= high:
                raise InvalidInputError(
                    f"{WHO}: {key} must lie between {low} and {high}, got {prior}. Truncate it, as in {PRIORS[key]}."
                    if prior.kind in ("normal", "lognormal", "cauchy")
                    else f"{WHO}: {key} must lie between {low} and {high}, got {prior}."
                )
            if key in _POSITIVE and least <= 0 and prior.kind != "lognormal":
                raise InvalidInputError(f"{WHO}: {key} must be positive, got {prior}.")

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
                    drawn[key] = [int(prior.quantile(rng.random())) for _ in range(FUNCTIONS)]
                else:
                    value = prior.quantile(rng.random())
                    drawn[key] = int(value) if key in _LIMITS else value
            drawn["field_seed"] = [seed, index, 1]
            yield Identity(f"d{drawn['dimension']}-{seed}-{index}", drawn)

    def build(self, identity: Identity, /) -> Problem:
        """Build the problem; the last two are kept."""
        return _build_cached(identity.to_json())


# The algorithms of a race run on an instance one after the other, and building takes seconds to minutes.
@functools.lru_cache(maxsize=2)
def _build_cached(text: str) -> GpBbobProblem:
    identity = Identity.from_json(text)
    return GpBbobProblem(identity, **_check_parameters(identity))


def _check_parameters(identity: Identity) -> dict[str, Any]:
    """Checked parameters of an identity."""
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
            if not isinstance(value, list) or len(value) != FUNCTIONS:
                raise InvalidInputError(f"{who}: instances must be {FUNCTIONS} whole numbers.")
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
