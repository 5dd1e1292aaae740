"""The rules of a race inside a study: what the sampler was given, and what every process must agree on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name
from polarbear_plugins.racing.asynchronous import AsynchronousRace
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory, sample_staircase

Parameters: TypeAlias = Mapping[str, Any]

_MANY = 4096  # of more instances than these a sample stands for all


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What the race in a study goes by.

    Parameters
    ----------
    instance
        Name of the parameter that is the instance.
    timepoints
        Steps at which curves are compared; ``None`` if the returned value is what counts.
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
        """Timepoints of the race: that of a value that a trial returns is 1."""
        return np.array([1.0] if self.timepoints is None else self.timepoints)

    def race(self) -> AsynchronousRace:
        """Make the race of these rules."""
        return AsynchronousRace(self.settings, self.grid, self.room if self.candidates is None else None)

    def values_of(self, distribution: Any) -> list[Any]:
        """Values of the instance parameter, in the order in which the race draws them; the same in all processes."""
        if hasattr(distribution, "choices"):
            choices = list(distribution.choices)
        elif type(distribution).__name__ == "IntDistribution":
            choices = range(distribution.low, distribution.high + 1, distribution.step or 1)  # type: ignore[assignment]
        else:
            raise InvalidInputError(
                f"The instance {self.instance!r} must be a whole number or a choice, got {distribution}. Use "
                f'trial.suggest_int("{self.instance}", 0, n - 1) or trial.suggest_categorical.'
            )
        return [choices[place] for place in _order(len(choices), self.settings.seed or 0)]

    def best_values(self, trial: Any, state: str, value: float | None, sign: float) -> FloatArray | None:
        """Best value of a finished trial at each timepoint, minimised; ``None`` if it failed."""
        if state == "FAIL" or (state == "COMPLETE" and value is None):
            return None
        grid = self.grid
        reports = sorted(trial.intermediate_values.items())
        if self.timepoints is None or not reports:
            # What was pruned, or has no curve, has found nothing until its end.
            ended = np.full(grid.size, np.inf)
            ended[-1] = sign * value if state == "COMPLETE" and value is not None else np.inf
            return ended
        if reports[0][0] < 0:
            raise InvalidInputError(f"Trial {trial.number} reports the negative step {reports[0][0]}.")
        last = float(reports[-1][0])
        curve = Trajectory.from_evaluations(
            [sign * number for _, number in reports],
            algorithm="candidate",
            instance="instance",
            times=[step for step, _ in reports],
            horizon=max(last, float(grid[-1])) if state == "COMPLETE" else last,
        )
        values = sample_staircase(curve, grid)
        return values if not math.isnan(values[0]) else np.where(np.isnan(values), np.inf, values)

    def to_json(self) -> dict[str, Any] | None:
        """Give the rules as JSON data; ``None`` if there is no text for them."""
        try:
            settings = self.settings.to_json()
        except InvalidInputError:  # a prior or an engine that is an object
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
        """Make rules from the data of :meth:`to_json`."""
        timepoints = None if data["timepoints"] is None else tuple(data["timepoints"])
        settings = RaceSettings.from_json(data["settings"])
        return cls(settings, data["instance"], timepoints, data["room"], data["candidates"])


def as_candidates(given: Any, instance: str) -> dict[str, Parameters]:
    """Check candidates; those of a list are called by their places."""
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise InvalidInputError(f"candidates: expected a list of parameters, or parameters by name, got {given!r}.")
    pairs = given.items() if isinstance(given, Mapping) else ((str(place), one) for place, one in enumerate(given))
    candidates: dict[str, Parameters] = {}
    for key, parameters in pairs:
        name = as_name(key, "name of a candidate")
        if not isinstance(parameters, Mapping) or not all(isinstance(part, str) for part in parameters):
            raise InvalidInputError(f"The candidate {name!r} must be parameters by name, got {parameters!r}.")
        if instance in parameters:
            raise InvalidInputError(f"The candidate {name!r} has an {instance!r}, which is for the race to choose.")
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
def _order(count: int, seed: int) -> tuple[int, ...]:
    rng = np.random.default_rng(derived_seed(seed, "instances"))
    order = rng.permutation(count) if count <= _MANY else rng.choice(count, _MANY, replace=False)
    return tuple(order.tolist())
