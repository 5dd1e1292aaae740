"""A look at the trials of a study: what the race in it knows at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.integrations.optuna_sampler.rules import Rules
from polarbear_plugins.racing.asynchronous import Standing

CELL = "polarbear:cell"  # attribute of a trial: which candidate, on the instance at which place
# A candidate ranks last on an instance where it failed twice.  That a process was killed says less about the candidate
# than an error does, but one that kills every process must not be tried for ever.
_ENOUGH, _FAILED, _ABANDONED = 4, 2, 1


def new_cell(candidate: str, place: int, founder: int | None = None) -> dict[str, Any]:
    """Attribute of a trial: its candidate, the place of its instance, and if it is the first, when it enters."""
    return {"candidate": candidate, "instance": place, "founder": founder}


@dataclass(slots=True)
class Look:
    """What the trials of a study tell.

    Attributes
    ----------
    racing
        Whether any trial has asked for its instance.
    without_instance
        Whether a trial of ours has ended without asking for its instance.
    instances
        Names, in the order in which the race draws them.
    cells
        For each candidate and instance the finished runs.
    given_up
        Cells without a finished run, and how often a trial failed there.
    claims
        Numbers of the running trials, and of those that wait to be run again, for each candidate and place of the
        instance.
    sure
        Numbers of the running trials that have seen no rival with a lower number: nobody takes their cell any more.
    entrants, founding
        Who enters in which round, and how many trials with newcomers are still running, without those that are stale.
        Whose first trial was abandoned does not enter: nobody knows all its parameters.
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
    distributions: dict[str, dict[str, Any]] = field(default_factory=dict)
    cost: float = 0.0
    sure: set[int] = field(default_factory=set)
    _numbers: list[int] = field(default_factory=list)
    _founders: list[tuple[str, int]] = field(default_factory=list)
    _failures: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    @classmethod
    def at(cls, study: Any, rules: Rules, ending: tuple[int, Any, Sequence[float] | None] | None = None) -> Look:
        """Look at a study.

        Parameters
        ----------
        ending
            Number, state and values of a trial that ends just now: the storage does not know it yet.
        """
        look = cls()
        sign = -1.0 if study.direction.name == "MAXIMIZE" else 1.0
        # From the storage itself: some pruners hand over a study that hides trials.
        trials = study._storage.get_all_trials(study._study_id, deepcopy=False)
        asked = [trial.distributions[rules.instance] for trial in trials if rules.instance in trial.distributions]
        if asked:
            look.racing = True
            look.instances = [str(value) for value in rules.values_of(asked[-1])]
        if rules.candidates is not None:
            look.entrants[1] = list(rules.candidates)
            look.parameters = {name: dict(parameters) for name, parameters in rules.candidates.items()}
        for trial in sorted(trials, key=lambda trial: trial.number):
            if CELL in trial.system_attrs:
                state, values = trial.state, trial.values
                if ending is not None and trial.number == ending[0]:
                    state, values = ending[1:]
                look._add(trial, state, values[0] if values else None, rules, sign)
        for cell, failures in look._failures.items():
            if sum(failures) >= _ENOUGH and cell not in look.cells:
                look.given_up[cell] = len(failures)
                look.cells[cell] = [np.full(rules.grid.size, np.inf)]
        for name, entering in look._founders:
            if not look.is_stale((name, 0)):
                look.founding[entering] = look.founding.get(entering, 0) + 1
        return look

    def _add(self, trial: Any, state: Any, value: float | None, rules: Rules, sign: float) -> None:
        cell = trial.system_attrs[CELL]
        name, finished = cell["candidate"], state.is_finished()
        # Optuna fails trials without a sign of life from their process; what fails by itself is marked by the sampler.
        abandoned = state.name == "FAIL" and not cell.get("failed")
        if cell["founder"] is not None:
            if not finished:
                self._founders.append((name, cell["founder"]))
            elif not abandoned and not any(name in names for names in self.entrants.values()):
                self.entrants.setdefault(cell["founder"], []).append(name)
        known, ranges = self.parameters.setdefault(name, {}), self.distributions.setdefault(name, {})
        for key, parameter in trial.params.items():
            if key != rules.instance:
                known.setdefault(key, parameter)
                ranges.setdefault(key, trial.distributions[key])
        if not finished:
            self.claims.setdefault((name, cell["instance"]), []).append(trial.number)
            if cell.get("sure"):
                self.sure.add(trial.number)
            return
        if rules.instance not in trial.params:
            self.without_instance = self.without_instance or state.name == "COMPLETE"
            return
        self._numbers.append(trial.number)
        where = name, str(trial.params[rules.instance])
        self.cost += float(rules.grid[-1])
        best = rules.best_values(trial, state.name, value, sign)
        if best is None:
            self._failures.setdefault(where, []).append(_ABANDONED if abandoned else _FAILED)
        else:
            self.cells.setdefault(where, []).append(best)

    def is_done(self, cell: tuple[str, int]) -> bool:
        """Tell whether a candidate has a finished run on the instance at a place."""
        return bool(self.instances) and (cell[0], self.instances[cell[1]]) in self.cells

    def is_stale(self, cell: tuple[str, int]) -> bool:
        """Tell whether so many later trials have ended that whoever claimed the cell is probably gone."""
        running = sum(len(numbers) for numbers in self.claims.values())
        claimed = max(self.claims.get(cell, [-1]))
        return sum(number > claimed for number in self._numbers) >= 16 + 4 * running

    def least_done(self, progress: Standing) -> list[tuple[str, int]]:
        """Cells of the survivors, those with the fewest runs first: for trials that the race does not need."""
        names = list(self.parameters) if progress.state is None else list(progress.state.pareto_set)
        cells = [(name, place) for place in range(max(len(self.instances), 1)) for name in names]

        def done(cell: tuple[str, int]) -> int:
            here = self.cells.get((cell[0], self.instances[cell[1]]), ()) if self.instances else ()
            return len(here) + len(self.claims.get(cell, ()))

        return sorted(cells, key=done)
