"""What the trials of a study say about its race, at one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.integrations.optuna_sampler.rules import Rules
from polarbear_plugins.integrations.optuna_sampler.study_storage import Assignment, assignment_of, read_all_trials
from polarbear_plugins.racing.asynchronous import Standing

# Number, state and values of a trial that is ending: the storage does not have them yet.
EndingTrial: TypeAlias = tuple[int, TrialState, Sequence[float] | None]

# A candidate ranks last on an instance where it failed twice, or was abandoned four times.  That a process was killed
# says less about the candidate than an error does, but a candidate that kills every process must not be run for ever.
_LIMIT, _FAILED, _ABANDONED = 4, 2, 1


@dataclass(slots=True)
class StudyView:
    """What the trials of a study say.

    Attributes
    ----------
    racing
        Whether any trial has asked for its instance.
    without_instance
        Whether a trial of the race has completed without asking for its instance.
    instances
        Names, in the order in which the race draws them.
    cells
        For each candidate and instance the finished runs.
    given_up
        Cells without a finished run where trials failed too often, and how many did.
    claims
        Numbers of the running trials, and of those that wait to be run again, for each candidate and position of the
        instance.
    sure
        Numbers of the running trials that have seen no other trial with a lower number on their cell: no other trial
        takes it.
    entrants, founding
        Candidates that enter in each round, and how many trials with newcomers are still running, without those that
        are stale.  A candidate whose first trial was abandoned does not enter: not all of its parameters are known.
    parameters, distributions
        Of each candidate: from its earliest trial that has the parameter.
    cost
        Units of the time axis that were spent.
    """

    racing: bool = False
    without_instance: bool = False
    instances: list[str] = field(default_factory=list)
    cells: dict[tuple[str, str], list[FloatArray]] = field(default_factory=dict)
    given_up: dict[tuple[str, str], int] = field(default_factory=dict)
    claims: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    entrants: dict[int, list[str]] = field(default_factory=dict)
    founding: dict[int, int] = field(default_factory=dict)
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict)
    distributions: dict[str, dict[str, BaseDistribution]] = field(default_factory=dict)
    cost: float = 0.0
    sure: set[int] = field(default_factory=set)
    _ended: list[int] = field(default_factory=list)
    _founders: list[tuple[str, int]] = field(default_factory=list)
    _failures: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, study: optuna.Study, rules: Rules, ending: EndingTrial | None = None) -> StudyView:
        """View of a study as its storage is now, with a trial that is ending."""
        view = cls()
        sign = sign_of(study)
        trials = read_all_trials(study)
        asked = [trial.distributions[rules.instance] for trial in trials if rules.instance in trial.distributions]
        if asked:
            view.racing = True
            view.instances = [str(value) for value in rules.order_instances(asked[-1])]
        if rules.candidates is not None:
            view.entrants[1] = list(rules.candidates)
            view.parameters = {name: dict(parameters) for name, parameters in rules.candidates.items()}
        for trial in trials:
            assignment = assignment_of(trial)
            if assignment is not None:
                state: TrialState = trial.state
                values: Sequence[float] | None = trial.values
                if ending is not None and trial.number == ending[0]:
                    _, state, values = ending
                view._add(trial, assignment, state, values[0] if values else None, rules, sign)
        for cell, failures in view._failures.items():
            if sum(failures) >= _LIMIT and cell not in view.cells:
                view.given_up[cell] = len(failures)
                view.cells[cell] = [np.full(rules.grid.size, np.inf)]
        for name, entering in view._founders:
            if not view.is_stale((name, 0)):
                view.founding[entering] = view.founding.get(entering, 0) + 1
        return view

    def _add(
        self,
        trial: FrozenTrial,
        assignment: Assignment,
        state: TrialState,
        value: float | None,
        rules: Rules,
        sign: float,
    ) -> None:
        name, entering, finished = assignment["candidate"], assignment["founder"], state.is_finished()
        # Optuna fails trials whose process no longer sends a heartbeat; the sampler marks those that failed themselves.
        abandoned = state == TrialState.FAIL and not assignment.get("failed")
        if entering is not None:
            if not finished:
                self._founders.append((name, entering))
            elif not abandoned and not any(name in names for names in self.entrants.values()):
                self.entrants.setdefault(entering, []).append(name)
        parameters, distributions = self.parameters.setdefault(name, {}), self.distributions.setdefault(name, {})
        for key, parameter in trial.params.items():
            if key != rules.instance:
                parameters.setdefault(key, parameter)
                distributions.setdefault(key, trial.distributions[key])
        if not finished:
            self.claims.setdefault((name, assignment["instance"]), []).append(trial.number)
            if assignment.get("sure"):
                self.sure.add(trial.number)
            return
        if rules.instance not in trial.params:
            self.without_instance = self.without_instance or state == TrialState.COMPLETE
            return
        self._ended.append(trial.number)
        cell = name, str(trial.params[rules.instance])
        self.cost += float(rules.grid[-1])
        best = rules.best_values(trial, state, value, sign)
        if best is None:
            self._failures.setdefault(cell, []).append(_ABANDONED if abandoned else _FAILED)
        else:
            self.cells.setdefault(cell, []).append(best)

    def is_done(self, cell: tuple[str, int]) -> bool:
        """Whether a candidate has a finished run on the instance at a position."""
        return bool(self.instances) and (cell[0], self.instances[cell[1]]) in self.cells

    def is_stale(self, cell: tuple[str, int]) -> bool:
        """Whether so many later trials have ended that the process which claimed the cell is probably gone."""
        running = sum(len(numbers) for numbers in self.claims.values())
        claimed = max(self.claims.get(cell, [-1]))
        return sum(number > claimed for number in self._ended) >= 16 + 4 * running

    def least_done(self, standing: Standing) -> list[tuple[str, int]]:
        """Cells of the survivors, those with the fewest runs first: for trials that the race does not need."""
        names = list(self.parameters) if standing.state is None else list(standing.state.pareto_set)
        cells = [(name, place) for place in range(max(len(self.instances), 1)) for name in names]

        def count_runs(cell: tuple[str, int]) -> int:
            finished = self.cells.get((cell[0], self.instances[cell[1]]), ()) if self.instances else ()
            return len(finished) + len(self.claims.get(cell, ()))

        return sorted(cells, key=count_runs)


def sign_of(study: optuna.Study) -> float:
    """Factor that turns the values of a study into values to be minimised."""
    return -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
