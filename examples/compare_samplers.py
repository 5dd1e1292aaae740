"""Race the samplers of Optuna on BBOB functions, for users who do not know their budget yet.

    python examples/compare_samplers.py --quick
    python examples/compare_samplers.py --dimension 5 --budget 200 --samplers random,tpe,cma-es

Needs: pip install 'polarbear-plugins[optuna,ioh]'
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

import ioh
import numpy as np

from polarbear_plugins import RaceSettings, log_timepoints, race, select
from polarbear_plugins.integrations.optuna_portfolio import optuna_samplers
from polarbear_plugins.problems.protocols import Identity, Problem


class BbobProblem:
    """A function of BBOB as a box."""

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        numbers = identity.parameters
        self.function = ioh.get_problem(numbers["function"], numbers["instance"], numbers["dimension"])
        self.lower, self.upper = np.full((2, numbers["dimension"]), [[-5.0], [5.0]])

    def evaluate(self, x: list[float]) -> float:
        """Value above the optimum."""
        return float(self.function(x) - self.function.optimum.y)


class Bbob:
    """Functions and instances of BBOB, drawn at random; each process builds its own."""

    name = "bbob"

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def identities(self, seed: int) -> Iterator[Identity]:
        """Draw without end."""
        rng = np.random.default_rng(seed)
        for k in itertools.count():
            function, instance = (int(number) for number in rng.integers(1, [25, 1000]))
            numbers = {"function": function, "instance": instance, "dimension": self.dimension}
            yield Identity(f"{k}-f{function}-i{instance}", numbers)

    def build(self, identity: Identity) -> Problem:
        """Build the function."""
        return BbobProblem(identity)


def main() -> None:
    """Race the samplers and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="three samplers, 25 trials, two rounds, one process")
    parser.add_argument("--samplers", help="names with commas between; by default all whose packages are installed")
    parser.add_argument("--dimension", type=int, default=5)
    parser.add_argument("--budget", type=int, default=200, help="trials in a run")
    parser.add_argument("--max-rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.samplers = arguments.samplers or "random,qmc,tpe"
        arguments.budget, arguments.dimension, arguments.max_rounds = 25, 2, 2
    result = race(
        optuna_samplers(arguments.samplers.split(",") if arguments.samplers else None),
        Bbob(arguments.dimension),
        timepoints=log_timepoints(5, arguments.budget, 6),
        settings=RaceSettings(seed=arguments.seed, max_rounds=arguments.max_rounds, alpha=0.95, epsilon=0.1),
        workers=0 if arguments.quick else None,
    )
    print(result.summary().to_string())
    print(f"\n{result}")
    for preference in ("uniform", "final"):
        print(select(result.posterior, among=result.pareto_set, preference=preference))


if __name__ == "__main__":
    main()
