"""The BBOB functions and their variant SBOX, from ioh."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.options import read_options, whole_number, whole_numbers
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.given import cube
from polarbear_plugins.problems.protocols import Identity, Problem, Suite

# Above this the seeds that ioh derives from an instance overflow, and instances repeat.
_MOST_INSTANCES = 200_000
_OPTIONS = {
    "functions": whole_numbers(1, 24),
    "instances": whole_numbers(1, _MOST_INSTANCES),
    "dimension": whole_numbers(2, 10_000),
}


# As ioh calls them; a group has the same name in a race and in logged data.
_NAMES = """
    Sphere Ellipsoid Rastrigin BuecheRastrigin LinearSlope AttractiveSector StepEllipsoid Rosenbrock RosenbrockRotated
    EllipsoidRotated Discus BentCigar SharpRidge DifferentPowers RastriginRotated Weierstrass Schaffers10 Schaffers1000
    GriewankRosenbrock Schwefel Gallagher101 Gallagher21 Katsuura LunacekBiRastrigin
"""
_GROUPS = {number: f"f{number} {name}" for number, name in enumerate(_NAMES.split(), start=1)}

_FUNCTION, _INSTANCE, _DIMENSION = (rf"(?P<{part}>[1-9]\d{{0,5}})" for part in ("function", "instance", "dimension"))
_OWN = re.compile(rf"f{_FUNCTION}-i{_INSTANCE}-d{_DIMENSION}", re.ASCII)
_LOGGED = re.compile(rf"f{_FUNCTION}_d{_DIMENSION}_i{_INSTANCE}", re.ASCII)


class BbobProblem:
    """One BBOB or SBOX function on [-5, 5]^d; its values are differences from the optimum, f(x) - f_opt.

    The problem of ioh in it stores its last evaluation: evaluate it in one thread at a time.
    """

    def __init__(self, identity: Identity, *, suite: str, function: int, instance: int, dimension: int) -> None:
        ioh = require("ioh", extra="ioh", who=_who(suite))
        self.identity = identity
        self.lower, self.upper = cube(dimension, -5, 5)
        self._problem = ioh.get_problem(function, instance, dimension, ioh.ProblemClass[suite.upper()])

    def evaluate(self, x: ArrayLike, /) -> float:
        """Value at ``x``; ``nan`` if ``x`` is not finite, and outside the box ``inf`` for SBOX."""
        point = np.asarray(x, dtype=np.float64)
        if point.shape != self.lower.shape:
            raise InvalidInputError(
                f"{self.identity.name}: expected {self.lower.size} numbers, got an array of shape {point.shape}."
            )
        value = self._problem(point.tolist())
        # ioh adds f_opt last.  The value before that is exact where the difference would be rounded to 0.
        return float(self._problem.state.current_internal.y) if math.isfinite(value) else float(value)


class BbobSuite:
    """All combinations of functions, instances and dimensions, each drawn once; the functions are the groups.

    Examples
    --------
    >>> suite = BbobSuite("sbox", functions=[3], instances=[1, 2])
    >>> sorted(identity.name for identity in suite.identities(0))
    ['f3-i1-d5', 'f3-i2-d5']
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[int] = tuple(range(1, 25)),
        instances: Sequence[int] = tuple(range(1, 6)),
        dimension: Sequence[int] = (5,),
    ) -> None:
        self.name = name
        self.functions, self.instances, self.dimensions = tuple(functions), tuple(instances), tuple(dimension)

    def identities(self, seed: int, /) -> Iterator[Identity]:
        """Draw each problem once, in an order that the seed determines."""
        seed = as_whole_number(seed, "seed", at_least=0)
        shape = len(self.functions), len(self.instances), len(self.dimensions)
        for place in np.random.default_rng(seed).permutation(math.prod(shape)):
            f, i, d = np.unravel_index(place, shape)
            yield self._identity(self.functions[f], self.instances[i], self.dimensions[d])

    def identity_named(self, name: str, /) -> Identity | None:
        """Identity of an instance by the name that it has here, or in data of IOHprofiler and COCO: ``f3_d5_i1``.

        >>> BbobSuite("bbob").identity_named("f3_d5_i1").name
        'f3-i1-d5'
        """
        match = _LOGGED.fullmatch(name) or _OWN.fullmatch(name)
        if match is None:
            return None
        function, instance, dimension = (int(match[part]) for part in ("function", "instance", "dimension"))
        known = function in self.functions and instance in self.instances and dimension in self.dimensions
        return self._identity(function, instance, dimension) if known else None

    def _identity(self, function: int, instance: int, dimension: int) -> Identity:
        return Identity(
            f"f{function}-i{instance}-d{dimension}",
            {"suite": self.name, "function": function, "instance": instance, "dimension": dimension},
            group=_GROUPS.get(function),
            fixed_group=function in _GROUPS,
        )

    def build(self, identity: Identity, /) -> Problem:
        """Build the problem of a function, instance and dimension."""
        who = f"identity {identity.name!r}"
        if identity.parameters.get("suite") != self.name:
            raise InvalidInputError(f"{who} was not drawn by {self.name!r}.")
        limits = {"function": (1, 24), "instance": (1, _MOST_INSTANCES), "dimension": (2, None)}
        numbers = {key: whole_number(*limits[key])(identity.parameters.get(key), f"{who}: {key}") for key in limits}
        return BbobProblem(identity, suite=self.name, **numbers)


@hookimpl
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """bbob, sbox: the 24 functions of BBOB; options functions (1-24), instances (1-5), dimension (5), with ranges."""
    if name not in ("bbob", "sbox"):
        return None
    suite = BbobSuite(name, **read_options(options, _OPTIONS, _who(name)))
    require("ioh", extra="ioh", who=_who(name))
    return suite


def _who(name: str) -> str:
    return f"The suite {name!r}"
