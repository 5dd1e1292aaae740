"""A complete plugin: the suite ``spheres`` and the portfolio ``samplers``.  Copy it and change what it does."""

import itertools

import numpy as np

from polarbear_plugins import Trajectory, hookimpl
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.given import FunctionAlgorithm
from polarbear_plugins.problems.protocols import Identity


class Sphere:
    def __init__(self, identity):
        self.identity, self.center = identity, np.array(identity.parameters["center"])
        self.lower, self.upper = np.full(self.center.size, -5.0), np.full(self.center.size, 5.0)

    def evaluate(self, x):
        return float(np.sum((np.asarray(x) - self.center) ** 2))


class Spheres:
    def __init__(self, dimension=2):
        self.name, self.dimension = "spheres", int(dimension)

    def identities(self, seed):
        rng = np.random.default_rng(seed)
        for i in itertools.count():
            yield Identity(f"sphere-{i}", {"center": rng.uniform(-4, 4, self.dimension).tolist()})

    def build(self, identity):
        return Sphere(identity)


def sample(problem, horizon, seed, spread):
    rng, middle = np.random.default_rng(seed), (problem.lower + problem.upper) / 2
    points = rng.uniform(problem.lower, problem.upper, (int(horizon), middle.size)) * spread + middle * (1 - spread)
    values = [problem.evaluate(x) for x in points]
    return Trajectory.from_evaluations(values, algorithm="?", instance="?", horizon=horizon)  # labelled by the caller


@hookimpl
def polarbear_suite(name, options):
    """spheres: a bowl around a random centre; option dimension (2)."""
    if name == "spheres":
        if set(options) - {"dimension"}:
            raise InvalidInputError(f"spheres takes the option dimension, got {', '.join(options)}.")
        return Spheres(**options)
    return None


@hookimpl
def polarbear_portfolio(name, options):
    """samplers: random search over the whole box, and over the middle of it."""
    if name == "samplers":
        if options:
            raise InvalidInputError(f"samplers takes no options, got {', '.join(options)}.")
        spreads = {"everywhere": 1.0, "middle": 0.5}
        return [
            FunctionAlgorithm(label, lambda problem, horizon, seed, s=s: sample(problem, horizon, seed, s))
            for label, s in spreads.items()
        ]
    return None
