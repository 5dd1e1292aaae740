"""The rules of a race inside a study: what the sampler was given, and what every process must agree on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name
from polarbear_plugins.racing.asynchronous import AsynchronousRace
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory, sample_staircase

Parameters: TypeAlias = Mapping[str, Any]

# With more instances than this, the race draws from a sample of this size.
_MOST_INSTANCES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Rules of the race in a study.

    Parameters
    ----------
    instance
        Name of the parameter that is the instance.
    timepoints
        Steps at which trajectories are compared; ``None`` if the returned value is what counts.
    room
        How many candidates from the base sampler are in the race at once.
    candidates
        Given candidates; ``None`` if they come from the base sampler.
    """

    settings: RaceSettings
    instance: str
    timepoints: tuple[float, ...] | None
    room: int
    candidates: Mapping[str, Parameters] | None

    @property
    def grid(self) -> FloatArray:
        """Timepoints of the race; a value that a trial returns belongs to timepoint 1."""
        return np.array([1.0] if self.timepoints is None else self.timepoints)

    def race(self) -> AsynchronousRace:
        """Race under these rules."""
        return AsynchronousRace(self.settings, self.grid, self.room if self.candidates is None else None)

    def order_instances(self, distribution: BaseDistribution) -> list[Any]:
        """Values of the instance parameter, in the order in which the race draws them; the same in all processes."""
        values: Sequence[Any]
        if isinstance(distribution, CategoricalDistribution):
            values = distribution.choices
        elif isinstance(distribution, IntDistribution):
            values = range(distribution.low, distribution.high + 1, distribution.step or 1)
        else:
            raise InvalidInputError(
                f"The instance {self.instance!r} must be a whole number or a choice, got {distribution}. Use "
                f'trial.suggest_int("{self.instance}", 0, n - 1) or trial.suggest_categorical.'
            )
        return [values[place] for place in _draw_order(len(values), self.settings.seed or 0)]

    def best_values(self, trial: FrozenTrial, state: TrialState, value: float | None, sign: float) -> FloatArray | None:
        """Best value of a finished trial at each timepoint, minimised; ``None`` if it failed."""
        complete = state == TrialState.COMPLETE
        if state == TrialState.FAIL or (complete and value is None):
            return None
        grid = self.grid
        reports = sorted(trial.intermediate_values.items())
        if self.timepoints is None or not reports:
            # A trial that was pruned, or reported no trajectory, has found nothing before it ended.
            best = np.full(grid.size, np.inf)
            best[-1] = sign * value if complete and value is not None else np.inf
            return best
        if reports[0][0] < 0:
            raise InvalidInputError(
                f"Trial {trial.number} reports the step {reports[0][0]}. Steps are times and must not be negative."
            )
        last = float(reports[-1][0])
        trajectory = Trajectory.from_evaluations(
            [sign * number for _, number in reports],
            algorithm="candidate",
            instance="instance",
            times=[step for step, _ in reports],
            horizon=max(last, float(grid[-1])) if complete else last,
        )
        values = sample_staircase(trajectory, grid)
        return values if not math.isnan(values[0]) else np.where(np.isnan(values), np.inf, values)

    def to_json(self) -> dict[str, Any] | None:
        """Rules as JSON data; ``None`` if the prior or the engine is an object, which JSON cannot hold."""
        try:
            settings = self.settings.to_json()
        except InvalidInputError:
            return None
        return {
            "settings": settings,
            "instance": self.instance,
            "timepoints": None if self.timepoints is None else list(self.timepoints),
            "room": self.room,
            "candidates": None if self.candidates is None else {k: dict(v) for k, v in self.candidates.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Rules:
        """Rules from the data of :meth:`to_json`."""
        timepoints = None if data["timepoints"] is None else tuple(data["timepoints"])
        settings = RaceSettings.from_json(data["settings"])
        return cls(settings, data["instance"], timepoints, data["room"], data["candidates"])


def as_candidates(given: object, instance: str) -> dict[str, Parameters]:
    """Check candidates; those of a list are named by their positions."""
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise InvalidInputError(f"candidates: expected a list of parameters, or parameters by name, got {given!r}.")
    pairs = given.items() if isinstance(given, Mapping) else ((str(place), one) for place, one in enumerate(given))
    candidates: dict[str, Parameters] = {}
    for key, parameters in pairs:
        name = as_name(key, "name of a candidate")
        if not isinstance(parameters, Mapping) or not all(isinstance(part, str) for part in parameters):
            raise InvalidInputError(f"The candidate {name!r} must be parameters by name, got {parameters!r}.")
        if instance in parameters:
            raise InvalidInputError(
                f"The candidate {name!r} has a value for {instance!r}. The race chooses the instance; leave it out."
            )
        for part, value in parameters.items():
            if not (value is None or isinstance(value, bool | int | float | str)):
                raise InvalidInputError(
                    f"The candidate {name!r}: {part} must be a number, text, true, false or None, got {value!r}."
                )
        candidates[name] = dict(parameters)
    if len(candidates) < 2:
        raise InvalidInputError(f"A race needs at least two candidates, got {len(candidates)}.")
    return candidates


@lru_cache(maxsize=64)
def _draw_order(count: int, seed: int) -> tuple[int, ...]:
    """Positions of the instances in the order in which the race draws them."""
    rng = np.random.default_rng(derived_seed(seed, "instances"))
    order = rng.permutation(count) if count <= _MOST_INSTANCES else rng.choice(count, _MOST_INSTANCES, replace=False)
    return tuple(order.tolist())
