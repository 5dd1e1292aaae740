"""Tasks for configurators: a space, instances to evaluate a configuration on, and what a pick is worth on others.

annealing
    Simulated annealing on travelling-salesman instances: three parameters, looked up at the nearest of 64
    configurations (benchmarks/fold_tasks.py).
svm-digits
    Cross-validation of a support vector machine: a grid of two parameters (benchmarks/fold_tables.py).
modcma
    1,920 variants of CMA-ES on MA-BBOB in 5 dimensions, 200 evaluations a run: the logarithm of the precision reached.
    A run depends on its configuration and instance alone, is done when somebody asks for it, and is kept.

Each seed draws 25 instances, the same for all rivals.  What counts are the others: of a table those that were not
drawn, of modcma 100 that nobody sees.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from fold_tables import TABLES, cross_validate
from fold_tasks import Drawn, FloatArray, Parameters, Task, annealing_task, generator_of, grid_task

from polarbear_plugins.integrations.ma_bbob import MaBbobSuite
from polarbear_plugins.integrations.modcma_portfolio import ModularCMAES
from polarbear_plugins.problems.spaces import Categorical, ConfigurationSpace, Integer

NAMES = ("annealing", "svm-digits", "modcma")
INSTANCES = 25
GRID = 15
_FLOOR = 1e-8  # a lower precision counts as this

_POPULATIONS, _STEPS = (5, 8, 12, 20), (0.5, 2.0)
_CHOICES: dict[str, tuple[Any, ...]] = {
    "ssa": ("CSA", "TPA", "MSR", "XNES", "MXNES", "LPXNES"),
    "matrix_adaptation": ("COVARIANCE", "SEPARABLE", "MATRIX", "CHOLESKY", "NONE"),
    "active": ("yes", "no"),
    "restart_strategy": ("NONE", "IPOP"),
    "mirrored": ("NONE", "MIRRORED"),
}
SPACE = ConfigurationSpace(
    {name: Categorical(choices) for name, choices in _CHOICES.items()}
    | {"population": Integer(0, len(_POPULATIONS) - 1), "step": Integer(0, len(_STEPS) - 1)}
)


class LazyLosses:
    """Losses of a configuration by place of the instance, computed when they are asked for."""

    def __init__(self, runs: Runs, parameters: Parameters, instances: Sequence[int]) -> None:
        self._runs, self._parameters, self._instances = runs, dict(parameters), instances

    def __getitem__(self, place: int) -> float:
        return self._runs.loss(self._parameters, self._instances[place])

    def mean(self) -> float:
        """Mean over all instances."""
        return float(np.mean([self[place] for place in range(len(self._instances))]))


class Runs:
    """Runs of modcma on MA-BBOB, each done once; ``nan`` in the table of those that nobody has asked for.

    Parameters
    ----------
    instances
        How many there are.
    cache
        File in which runs are kept between processes, if any.
    """

    dimension, horizon = 5, 200

    def __init__(self, instances: int, cache: Path | None) -> None:
        self._cache = cache
        self._shape = tuple(
            len(one.choices) if isinstance(one, Categorical) else one.upper + 1 for one in SPACE.parameters.values()
        )
        self._table = np.full((math.prod(self._shape), instances), np.nan)
        with contextlib.suppress(FileNotFoundError):
            if cache is not None and (kept := np.load(cache)).shape == self._table.shape:
                self._table = kept
        suite = MaBbobSuite(self.dimension)
        self._problems = [suite.build(identity) for identity in itertools.islice(suite.identities(1), instances)]

    def loss(self, parameters: Parameters, instance: int) -> float:
        """Logarithm of the precision that a configuration reaches on an instance."""
        place = self._place_of(parameters)
        if np.isnan(self._table[place, instance]):
            seed = int(generator_of("modcma", place, instance).integers(2**31))
            run = ModularCMAES("candidate", as_modcma(parameters)).run(self._problems[instance], self.horizon, seed)
            best = float(run.best[-1]) if len(run.best) else math.inf
            self._table[place, instance] = math.log10(min(max(best, _FLOOR), 1e8))
        return float(self._table[place, instance])

    def keep(self) -> None:
        """Write all runs to the file."""
        if self._cache is not None:
            partial = self._cache.with_suffix(f".{os.getpid()}.npy")
            partial.parent.mkdir(parents=True, exist_ok=True)
            np.save(partial, self._table)
            partial.replace(self._cache)

    def _place_of(self, parameters: Parameters) -> int:
        codes = [
            one.choices.index(parameters[name]) if isinstance(one, Categorical) else int(parameters[name])
            for name, one in SPACE.parameters.items()
        ]
        return int(np.ravel_multi_index(codes, self._shape))


def as_modcma(parameters: Parameters) -> dict[str, Any]:
    """Options of modcma that parameters of the space mean.

    >>> as_modcma({"ssa": "CSA", "active": "yes", "population": 1, "step": 0})
    {'ssa': 'CSA', 'active': True, 'lambda0': 8, 'sigma0': 0.5}
    """
    options = {name: value for name, value in parameters.items() if name in _CHOICES}
    options["active"] = options["active"] == "yes"
    return {
        **options,
        "lambda0": _POPULATIONS[parameters["population"]],
        "sigma0": _STEPS[parameters["step"]],
    }


class ModcmaTask:
    """Variants of CMA-ES; the regret of a pick is relative to configurations known as good and as middling.

    Until :meth:`refer` has been called, ``regret`` is the mean loss itself.
    """

    name, space, n_folds = "modcma", SPACE, INSTANCES
    _pool, _held_out = 50, 100

    def __init__(self, cache: Path | None = None) -> None:
        self.runs = Runs(self._pool + self._held_out, cache)

    def draw(self, seed: int) -> Drawn:
        """Draw the instances of a seed from the pool."""
        seen = [int(one) for one in generator_of(seed, self.name).permutation(self._pool)[: self.n_folds]]
        return Drawn(lambda parameters: LazyLosses(self.runs, parameters, seen), self.value)  # type: ignore[arg-type]

    def value(self, parameters: Parameters) -> float:
        """Mean loss on the instances that nobody sees."""
        return LazyLosses(self.runs, parameters, range(self._pool, self._pool + self._held_out)).mean()

    def sample(self, size: int) -> FloatArray:
        """Values of random configurations."""
        rng = generator_of("sample of modcma")
        return np.array([self.value(self.space.sample(rng)) for _ in range(size)])


@dataclass(frozen=True)
class Sources:
    """Where tables are kept between runs, and how many positions the axes of svm-digits have."""

    cache: Path
    grid: int = GRID


def load_configuring_task(name: str, sources: Sources) -> Task:
    """The task of that name, with 25 instances for each seed."""
    if name == "modcma":
        return ModcmaTask(sources.cache / "modcma_runs.npy")
    if name == "annealing":
        task = annealing_task()
        task.n_folds = INSTANCES
        return task
    table = cross_validate(name, sources.cache, sources.grid, workers=1)
    return grid_task(name, TABLES[name].axes(sources.grid), table[..., None], INSTANCES)
