"""Values of each configuration of a study on each instance, and how it is known what an instance is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.optuna_sampler.study_view import sign_of

#: What the steps of trials are: instances (folds, seeds, problems), or times on one instance (epochs).
Steps: TypeAlias = Literal["instances", "times"]

# A value of a trial, and the instance that it belongs to.
_Values: TypeAlias = Mapping[Any, float]


@dataclass(slots=True)
class Configuration:
    """Trials with the same parameters.

    ``values`` has the values on each instance, minimised, and infinite where the trial failed.
    """

    parameters: dict[str, Any]
    distributions: dict[str, BaseDistribution]
    values: dict[Any, list[float]] = field(default_factory=dict)

    @property
    def numbers(self) -> list[float]:
        """All values."""
        return [value for on_instance in self.values.values() for value in on_instance]

    @property
    def finite(self) -> bool:
        """Whether all values are finite, so that there is a mean."""
        return all(math.isfinite(value) for value in self.numbers)


@dataclass(frozen=True, slots=True)
class StudyValues:
    """Values of the configurations of a study.

    Attributes
    ----------
    paired
        Whether values on the same instance belong together; otherwise instances are the numbers of repetitions.
    source
        What counts as an instance, and who says so, in words.
    unused
        How many finished trials have no value on an instance: they failed, or were pruned before they had one.
    unexplained
        How many steps trials report at most, if nothing says what they are.
    """

    configurations: list[Configuration]
    paired: bool
    source: str
    unused: int
    unexplained: int


def read_values(study: optuna.Study, instance: str, steps: Steps | None, n_timepoints: int | None) -> StudyValues:
    """Values of the configurations of a study."""
    finished = [trial for trial in study.get_trials(deepcopy=False) if trial.state.is_finished()]
    complete = [trial for trial in finished if trial.state == TrialState.COMPLETE]
    declared = _declared_steps(study, steps, n_timepoints)
    paired, values = True, list[tuple[FrozenTrial, _Values]]()
    if any(instance in trial.params for trial in complete):
        source = f"Instances are the values of the parameter {instance!r}"
        values = [(trial, {trial.params[instance]: _value(trial)}) for trial in complete if instance in trial.params]
    elif declared is not None and any(trial.intermediate_values for trial in finished):
        length, source = declared
        # That a trial was pruned depends on what it had reported: what it has reported counts like any other.
        reported = [trial for trial in finished if trial.state != TrialState.FAIL]
        values = [(trial, own) for trial in reported if (own := _last_of_each(trial, length))]
    else:
        source = "Repeated trials of a configuration are independent repetitions"
        paired, values = False, [(trial, {None: _value(trial)}) for trial in complete]
    configurations = _group(values, instance, paired, sign_of(study))
    longest = max((len(trial.intermediate_values) for trial in finished), default=0)
    unexplained = longest if not paired and steps is None and longest > 1 else 0
    return StudyValues(configurations, paired, source, len(finished) - len(values), unexplained)


def losses_of(configurations: Iterable[Configuration]) -> FloatArray:
    """``losses[instance, configuration]``: means of repeated values, ``nan`` where there are none."""
    columns = [configuration.values for configuration in configurations]
    rows = {where: row for row, where in enumerate(dict.fromkeys(where for own in columns for where in own))}
    losses = np.full((len(rows), len(columns)), np.nan)
    for column, own in enumerate(columns):
        for where, values in own.items():
            losses[rows[where], column] = np.mean(values) if np.isfinite(values).all() else np.inf
    return losses


def _declared_steps(study: optuna.Study, steps: Steps | None, n_timepoints: int | None) -> tuple[int, str] | None:
    """How many steps there are on each instance, and in words who says so; ``None`` if steps are not instances."""
    if steps is not None:
        as_choice(steps, Steps, "steps")
    if n_timepoints is not None:
        as_whole_number(n_timepoints, "n_timepoints", at_least=1)
    if steps == "times":
        if n_timepoints is not None:
            raise InvalidInputError('n_timepoints is for steps="instances": how many steps there are on each of them.')
        return None
    # Any pruner may declare it by this attribute, as PolarBearPruner does.
    by_pruner = getattr(study.pruner, "n_timepoints", None)
    if by_pruner is None and isinstance(study.pruner, optuna.pruners.WilcoxonPruner):
        by_pruner = 1
    if steps is None and n_timepoints is None and not isinstance(by_pruner, int):
        return None
    length = n_timepoints or (by_pruner if isinstance(by_pruner, int) else 1)
    given = steps is not None or n_timepoints is not None
    what = "Steps are instances" if length == 1 else f"Each {length} steps are an instance, whose last value counts"
    return length, f"{what} ({'as given' if given else f'declared by {type(study.pruner).__name__}'})"


def _value(trial: FrozenTrial) -> float:
    return math.nan if trial.value is None else trial.value


def _last_of_each(trial: FrozenTrial, length: int) -> _Values:
    """Value at the last step of each instance; instances that did not get so far have none."""
    reported = trial.intermediate_values.items()
    return {step // length: value for step, value in reported if step >= 0 and step % length == length - 1}


def _group(
    values: Iterable[tuple[FrozenTrial, _Values]], instance: str, paired: bool, sign: float
) -> list[Configuration]:
    groups: dict[tuple[tuple[str, str, str], ...], Configuration] = {}
    for trial, own in values:
        parameters = {name: value for name, value in sorted(trial.params.items()) if name != instance}
        # True, 1 and 1.0 are different values; and a choice may be a list, which has no hash.
        key = tuple((name, type(value).__name__, repr(value)) for name, value in parameters.items())
        configuration = groups.setdefault(key, Configuration(parameters, trial.distributions))
        for where, value in own.items():
            place = where if paired else len(configuration.values)
            configuration.values.setdefault(place, []).append(math.inf if math.isnan(value) else sign * value)
    return list(groups.values())


def check_repeated(study: optuna.Study, values: StudyValues, chosen: Sequence[Configuration]) -> None:
    """Refuse values that cannot tell luck from merit."""
    if len(chosen) < 2:
        raise InvalidInputError(
            f"The study {study.study_name!r} has {len(chosen)} configurations with usable values; expected several. "
            f"{values.source}."
        )
    present = (~np.isnan(losses_of(chosen))).astype(np.float64)
    shared = present.T @ present
    if values.paired:
        np.fill_diagonal(shared, 0.0)
    if shared.max() < 2:
        found = f"The study {study.study_name!r} has {len(chosen)} configurations"
        raise InvalidInputError(f"{found} {_advise(values)}")


def _advise(values: StudyValues) -> str:
    """What is wrong with values of which none is repeated, and what to do."""
    if values.paired:
        return (
            f"of which no two have values on two instances that they share, and nothing tells luck from merit. "
            f"{values.source}. Evaluate the good ones on the same instances."
        )
    again = "evaluate the good ones again (PolarBearSampler does) or on several folds."
    if not values.unexplained:
        return f"with one value each, and nothing tells luck from merit: {again}"
    return (
        f"with one value each, and trials with up to {values.unexplained} steps, and nothing says what these are. If "
        f'they are folds, seeds or problems, pass steps="instances"; if they are epochs, nothing tells luck from '
        f"merit: {again}"
    )
