"""The rules of a race inside a study: what the sampler was given, and what every process must agree on."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.names import as_name
from polarbear_plugins.racing.asynchronous import AsynchronousRace
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory, sample_staircase

Parameters: TypeAlias = Mapping[str, Any]

# With more instances than this, the race draws from a sample of this size.
_MOST_INSTANCES = 4096

# Settings that may change while a race is going on.
_LIMITS = ("max_rounds", "max_cost")


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

    @property
    def nothing_found(self) -> tuple[FloatArray, ...]:
        """The only run of a candidate that failed for good; always the same object."""
        return _nothing_found(1 if self.timepoints is None else len(self.timepoints))

    def race(self) -> AsynchronousRace:
        """Race under these rules."""
        return AsynchronousRace(self.settings, self.grid, self.room if self.candidates is None else None)

    def order_instances(self, distribution: BaseDistribution) -> list[Any]:
        """Values of the instance parameter, in the order in which the race draws them; the same in all processes."""
        values = self._instance_values(distribution)
        return [values[place] for place in _draw_order(len(values), self.settings.seed or 0)]

    def instance_at(self, place: int, distribution: BaseDistribution) -> Any:
        """Value of the instance parameter at a position in the order in which the race draws them."""
        values = self._instance_values(distribution)
        order = _draw_order(len(values), self.settings.seed or 0)
        return values[order[place % len(order)]]

    def _instance_values(self, distribution: BaseDistribution) -> Sequence[Any]:
        if isinstance(distribution, CategoricalDistribution):
            return distribution.choices
        if isinstance(distribution, IntDistribution):
            return range(distribution.low, distribution.high + 1, distribution.step or 1)
        raise InvalidInputError(
            f"The instance {self.instance!r} must be a whole number or a choice, got {distribution}. Use "
            f'trial.suggest_int("{self.instance}", 0, n - 1) or trial.suggest_categorical.'
        )

    def best_values(self, trial: FrozenTrial, sign: float) -> FloatArray | None:
        """Best value of a finished trial at each timepoint, minimised; ``None`` if it failed."""
        complete, value = trial.state == TrialState.COMPLETE, trial.value
        if trial.state == TrialState.FAIL or (complete and value is None):
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

    def check_same_race(self, written: Mapping[str, Any], study: str) -> None:
        """Refuse to continue the race of a study under other rules; only its limits may change.

        :param written: what :meth:`to_json` gave when the study was begun, possibly by an earlier version.
        """
        own = self.to_json()
        if own is None:
            raise InvalidInputError(
                f"The study {study!r} was begun with a prior and an engine that have names, and this sampler has "
                "objects, which cannot be compared. Use the same sampler, or another study name."
            )
        # As JSON data, in which a tuple and a list are the same.
        differences = Rules.from_json(written)._differences(Rules.from_json(json.loads(json.dumps(own))))
        if differences:
            raise InvalidInputError(
                f"The study {study!r} was begun under other rules: {'; '.join(differences)}. A race goes on under the "
                "rules it began with. Use the same sampler, or another study name; for one more candidate, use "
                "study.enqueue_trial."
            )

    def _differences(self, now: Rules) -> list[str]:
        """What differs from the rules of today, in words: as it was, and as it is now."""
        names = [part.name for part in fields(RaceSettings) if part.name not in _LIMITS]
        pairs = [(name, getattr(self.settings, name), getattr(now.settings, name)) for name in names]
        pairs += [(name, getattr(self, name), getattr(now, name)) for name in ("instance", "timepoints")]
        if self.candidates is None and now.candidates is None:
            pairs.append(("n_candidates", self.room, now.room))
        different = [f"{name} was {before!r} and is {after!r}" for name, before, after in pairs if before != after]
        return different + _different_candidates(self.candidates, now.candidates)

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


def _different_candidates(before: Mapping[str, Parameters] | None, now: Mapping[str, Parameters] | None) -> list[str]:
    if before is None or now is None:
        return [] if before is now else [f"candidates were {_origin(before)} and are {_origin(now)}"]
    different = [f"the candidate {name!r} is missing" for name in before if name not in now]
    different += [f"the candidate {name!r} is new" for name in now if name not in before]
    different += [
        f"the candidate {name!r} was {dict(before[name])} and is {dict(now[name])}"
        for name in before
        if name in now and before[name] != now[name]
    ]
    if not different and list(before) != list(now):  # in which they are asked for, and ties are broken
        different.append(f"the order of the candidates was {', '.join(before)} and is {', '.join(now)}")
    return different


def _origin(candidates: Mapping[str, Parameters] | None) -> str:
    return "from the base sampler" if candidates is None else "given"


def as_candidates(given: object, instance: str) -> dict[str, Parameters]:
    """Check candidates; those of a list are named by their positions, those of a grid by their values.

    >>> as_candidates({"x": [0.0, 1.0], "y": ["a"]}, "instance")
    {'x=0.0, y=a': {'x': 0.0, 'y': 'a'}, 'x=1.0, y=a': {'x': 1.0, 'y': 'a'}}
    """
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise InvalidInputError(
            "candidates: expected a list of parameters, parameters by name, or values of each parameter, got "
            f"{given!r}."
        )
    candidates: dict[str, Parameters] = {}
    for key, parameters in _named(given):
        name = as_name(key, "name of a candidate")
        if not isinstance(parameters, Mapping) or not all(isinstance(part, str) for part in parameters):
            raise InvalidInputError(f"The candidate {name!r} must be parameters by name, got {parameters!r}.")
        if instance in parameters:
            raise InvalidInputError(
                f"The candidate {name!r} has a value for {instance!r}. The race chooses the instance; leave it out."
            )
        if name in candidates:
            raise InvalidInputError(f"candidates: there are two of the name {name!r}. Leave out repeated values.")
        candidates[name] = {part: _as_value(value, name, part) for part, value in parameters.items()}
    if len(candidates) < 2:
        raise InvalidInputError(f"A race needs at least two candidates, got {len(candidates)}.")
    return candidates


def _named(given: Mapping[Any, Any] | Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """Name and parameters of each candidate, in whatever style they are given."""
    if not isinstance(given, Mapping):
        return ((str(place), one) for place, one in enumerate(given))
    lists = [name for name, value in given.items() if _is_list(value)]
    if not lists:
        return given.items()
    others = [name for name in given if name not in lists]
    if others:
        raise InvalidInputError(
            f"candidates: {lists[0]!r} has a list of values and {others[0]!r} has {short(given[others[0]])}. Give "
            "either the parameters of each candidate by its name, or a list of values for each parameter."
        )
    empty = [name for name in lists if not len(given[name])]
    if empty:
        raise InvalidInputError(f"candidates: the list of values of {empty[0]!r} is empty.")
    combinations = (dict(zip(given, values, strict=True)) for values in itertools.product(*given.values()))
    return ((", ".join(f"{name}={value}" for name, value in one.items()), one) for one in combinations)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)


def _as_value(value: object, candidate: str, part: str) -> Any:
    """A parameter's value as Optuna and JSON know it; numpy's numbers become those of Python."""
    plain = value.item() if isinstance(value, np.generic) else value
    if not (plain is None or isinstance(plain, bool | int | float | str)):
        raise InvalidInputError(
            f"The candidate {candidate!r}: {part} must be a number, text, true, false or None, got {value!r}."
        )
    return plain


@lru_cache(maxsize=8)
def _nothing_found(timepoints: int) -> tuple[FloatArray, ...]:
    best = np.full(timepoints, np.inf)
    best.flags.writeable = False
    return (best,)


@lru_cache(maxsize=64)
def _draw_order(count: int, seed: int) -> tuple[int, ...]:
    """Positions of the instances in the order in which the race draws them."""
    rng = np.random.default_rng(derived_seed(seed, "instances"))
    order = rng.permutation(count) if count <= _MOST_INSTANCES else rng.choice(count, _MOST_INSTANCES, replace=False)
    return tuple(order.tolist())
