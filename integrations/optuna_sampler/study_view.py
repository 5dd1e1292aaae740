"""What the trials of a study say about its race, at one moment."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.integrations.optuna_sampler.rules import Rules
from polarbear_plugins.integrations.optuna_sampler.study_storage import Assignment, assignment_of, read_all_trials
from polarbear_plugins.racing.asynchronous import Standing

# A candidate ranks last on an instance where it failed twice, or was abandoned four times.  That a process was killed
# says less about the candidate than an error does, but a candidate that kills every process must not be run for ever.
_LIMIT, _FAILED, _ABANDONED = 4, 2, 1

Cell: TypeAlias = tuple[str, str]
Place: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Suggested:
    """A parameter of a trial; those of the earliest trial, in the order in which it asked, are the candidate's."""

    number: int
    position: int
    value: Any
    distribution: BaseDistribution


@dataclass(slots=True, eq=False)
class StudyView:
    """What the trials of a study say.

    Trials may be added in any order: the same trials make the same view.  What is in the containers never changes, so
    that a copy of them is all that a later view needs.

    Attributes
    ----------
    asked
        Number and distribution of the latest trial that has asked for its instance.
    instances
        Names, in the order in which the race draws them.
    without_instance
        Whether a trial of the race has completed without asking for its instance.
    runs
        For each candidate and instance the finished runs, by the numbers of their trials.
    failures
        For each candidate and instance how many trials failed, and how much these failures weigh.  The instance of a
        trial that failed before asking for it is a position in the order of the instances.
    claims
        Numbers of the running trials, and of those that wait to be run again, for each candidate and position of the
        instance.
    sure
        Numbers of the running trials that have seen no other trial with a lower number on their cell: no other trial
        takes it.
    founders
        Running trials with a newcomer: number, name and the round in which it enters.
    founded
        The same of finished ones.  A candidate whose first trial was abandoned does not enter: not all of its
        parameters are known.
    ended
        Numbers of the finished trials of the race.
    standing
        Where the race stands in this view, once somebody has asked.
    """

    rules: Rules
    sign: float
    asked: tuple[int, BaseDistribution] | None = None
    instances: tuple[str, ...] = ()
    without_instance: bool = False
    runs: dict[Cell, tuple[FloatArray, ...]] = field(default_factory=dict)
    failures: dict[tuple[str, str | int], tuple[int, int]] = field(default_factory=dict)
    claims: dict[Place, tuple[int, ...]] = field(default_factory=dict)
    sure: set[int] = field(default_factory=set)
    founders: list[tuple[int, str, int]] = field(default_factory=list)
    founded: list[tuple[int, str, int]] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    standing: Standing | None = None
    _numbers: dict[Cell, tuple[int, ...]] = field(default_factory=dict)
    _suggested: dict[str, dict[str, _Suggested]] = field(default_factory=dict)
    _first_trials: dict[str, int] = field(default_factory=dict)
    _cells: dict[Cell, tuple[FloatArray, ...]] | None = None

    @classmethod
    def of(cls, study: optuna.Study, rules: Rules) -> StudyView:
        """View of a study as its storage is now."""
        return cls(rules, sign_of(study)).with_trials(read_all_trials(study))

    def with_trials(self, trials: Iterable[FrozenTrial]) -> StudyView:
        """A view with further trials; this one stays as it is."""
        view = replace(
            self,
            runs=dict(self.runs),
            failures=dict(self.failures),
            claims=dict(self.claims),
            sure=set(self.sure),
            founders=list(self.founders),
            founded=list(self.founded),
            ended=list(self.ended),
            standing=None,
            _numbers=dict(self._numbers),
            _suggested=dict(self._suggested),
            _first_trials=dict(self._first_trials),
            _cells=None,
        )
        for trial in trials:
            view.add(trial)
        return view

    def add(self, trial: FrozenTrial) -> None:
        """Add a trial; a finished one never changes again, the others do."""
        distribution = trial.distributions.get(self.rules.instance)
        if distribution is not None and (self.asked is None or self.asked[0] < trial.number):
            self._set_instances(trial.number, distribution)
        assignment = assignment_of(trial)
        if assignment is None:
            return
        self._add_parameters(trial, assignment["candidate"])
        if trial.state.is_finished():
            self._add_finished(trial, assignment)
        else:
            self._add_running(trial, assignment)

    def _set_instances(self, number: int, distribution: BaseDistribution) -> None:
        if self.asked is None or self.asked[1] != distribution:
            self.instances = tuple(map(str, self.rules.order_instances(distribution)))
        self.asked = number, distribution

    def _add_parameters(self, trial: FrozenTrial, name: str) -> None:
        self._first_trials[name] = min(self._first_trials.get(name, trial.number), trial.number)
        known = self._suggested.get(name, {})
        earlier = {
            key: _Suggested(trial.number, position, value, trial.distributions[key])
            for position, (key, value) in enumerate(trial.params.items())
            if key != self.rules.instance and (key not in known or known[key].number > trial.number)
        }
        if earlier or not known:
            self._suggested[name] = {**known, **earlier}

    def _add_running(self, trial: FrozenTrial, assignment: Assignment) -> None:
        place = assignment["candidate"], assignment["instance"]
        self.claims[place] = (*self.claims.get(place, ()), trial.number)
        if assignment.get("sure"):
            self.sure.add(trial.number)
        if assignment["founder"] is not None:
            insort(self.founders, (trial.number, assignment["candidate"], assignment["founder"]))

    def _add_finished(self, trial: FrozenTrial, assignment: Assignment) -> None:
        name, asked = assignment["candidate"], self.rules.instance in trial.params
        # Optuna fails trials whose process no longer sends a heartbeat; the sampler marks those that failed themselves.
        abandoned = trial.state == TrialState.FAIL and not assignment.get("failed")
        if assignment["founder"] is not None and not abandoned:
            insort(self.founded, (trial.number, name, assignment["founder"]))
        if not asked and trial.state == TrialState.COMPLETE:
            self.without_instance = True
            return
        insort(self.ended, trial.number)
        best = self.rules.best_values(trial, self.sign) if asked else None
        if best is not None:
            self._add_run((name, str(trial.params[self.rules.instance])), trial.number, best)
            return
        where = str(trial.params[self.rules.instance]) if asked else assignment["instance"]
        weight = _LIMIT if trial.state == TrialState.PRUNED else _ABANDONED if abandoned else _FAILED
        count, total = self.failures.get((name, where), (0, 0))
        self.failures[name, where] = count + 1, total + weight

    def _add_run(self, cell: Cell, number: int, best: FloatArray) -> None:
        numbers, runs = self._numbers.get(cell, ()), self.runs.get(cell, ())
        place = bisect_right(numbers, number)
        self._numbers[cell] = (*numbers[:place], number, *numbers[place:])
        self.runs[cell] = (*runs[:place], best, *runs[place:])

    @property
    def racing(self) -> bool:
        """Whether any trial has asked for its instance."""
        return self.asked is not None

    @property
    def cost(self) -> float:
        """Units of the time axis that were spent."""
        return len(self.ended) * float(self.rules.grid[-1])

    @property
    def given_up(self) -> dict[Cell, int]:
        """Cells without a finished run where trials failed too often, and how many did."""
        instances = self.instances
        counts: dict[Cell, int] = {}
        weights: dict[Cell, int] = {}
        for (name, where), (count, weight) in self.failures.items() if instances else ():
            cell = name, where if isinstance(where, str) else instances[where % len(instances)]
            counts[cell] = counts.get(cell, 0) + count
            weights[cell] = weights.get(cell, 0) + weight
        return {cell: counts[cell] for cell in counts if weights[cell] >= _LIMIT and cell not in self.runs}

    @property
    def cells(self) -> Mapping[Cell, tuple[FloatArray, ...]]:
        """For each candidate and instance the finished runs; one that was given up has found nothing."""
        if self._cells is None:
            nothing = self.rules.nothing_found
            self._cells = {**self.runs, **dict.fromkeys(self.given_up, nothing)}
        return self._cells

    @property
    def entrants(self) -> dict[int, list[str]]:
        """Candidates that enter in each round, by the numbers of their first trials."""
        entering = dict.fromkeys(self.rules.candidates or (), 1)
        for _, name, number in self.founded:
            entering.setdefault(name, number)
        rounds: dict[int, list[str]] = {}
        for name, number in entering.items():
            rounds.setdefault(number, []).append(name)
        return rounds

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Parameters of each candidate, in the order of their first trials, given ones first."""
        names = sorted(self._first_trials, key=self._first_trials.__getitem__)
        return {name: self.parameters_of(name) for name in (*(self.rules.candidates or ()), *names)}

    def parameters_of(self, name: str) -> dict[str, Any]:
        """Parameters of a candidate: given ones, or from its earliest trial that has the parameter."""
        found = sorted(self._suggested.get(name, {}).items(), key=lambda item: (item[1].number, item[1].position))
        given = (self.rules.candidates or {}).get(name, {})
        return {**given, **{key: one.value for key, one in found if key not in given}}

    def distributions_of(self, name: str) -> dict[str, BaseDistribution]:
        """Distributions of a candidate's parameters, as far as its trials have asked for them."""
        return {key: one.distribution for key, one in self._suggested.get(name, {}).items()}

    def knows(self, name: str) -> bool:
        """Whether the candidate is given or has a trial."""
        return name in (self.rules.candidates or ()) or name in self._first_trials

    def is_hopeless(self) -> bool:
        """Whether so many trials failed before any asked for its instance that there will be no race.

        Each of the given candidates has been repeated, or as many from the base sampler as race at once.
        """
        if self.racing or self.without_instance:
            return False
        if self.rules.candidates is not None:
            return all(self.has_failed_at_once(name) for name in self.rules.candidates)
        return sum(weight for _, weight in self.failures.values()) >= _LIMIT * self.rules.room

    def has_failed_at_once(self, name: str) -> bool:
        """Whether a candidate was given up on its first instance before the instances were known."""
        return self.failures.get((name, 0), (0, 0))[1] >= _LIMIT

    def is_done(self, place: Place) -> bool:
        """Whether a candidate has a finished run on the instance at a position."""
        return bool(self.instances) and (place[0], self.instances[place[1]]) in self.cells

    def is_stale(self, place: Place, asking: int) -> bool:
        """Whether so many later trials have ended that the process which claimed the cell is probably gone.

        :param asking: number of the trial that wants to know; its own claim does not count.
        """
        running = sum(number != asking for numbers in self.claims.values() for number in numbers)
        claimed = max((number for number in self.claims.get(place, ()) if number != asking), default=-1)
        return len(self.ended) - bisect_right(self.ended, claimed) >= 16 + 4 * running

    def newcomers_on_their_way(self, entering: int, asking: int) -> int:
        """How many trials with newcomers of a round are running, beside the one that asks and without stale ones."""
        return sum(
            entering == their_round and number != asking and not self.is_stale((name, 0), asking)
            for number, name, their_round in self.founders
        )

    def claimed_places(self, asking: int, claimed: bool) -> set[Place]:
        """Cells that other trials run than the one that asks.

        :param claimed: the trial has claimed its own cell, and those that it takes precedence over do not count.
        """

        def in_the_way(other: int) -> bool:
            return other != asking and (not claimed or other < asking or other in self.sure)

        return {place for place, numbers in self.claims.items() if any(map(in_the_way, numbers))}

    def least_done(self, standing: Standing) -> list[Place]:
        """Cells of the survivors, those with the fewest runs first: for trials that the race does not need."""
        names = list(self.parameters) if standing.state is None else list(standing.state.pareto_set)
        places = [(name, place) for place in range(max(len(self.instances), 1)) for name in names]

        def count_runs(place: Place) -> int:
            finished = self.cells.get((place[0], self.instances[place[1]]), ()) if self.instances else ()
            return len(finished) + len(self.claims.get(place, ()))

        return sorted(places, key=count_runs)


def sign_of(study: optuna.Study) -> float:
    """Factor that turns the values of a study into values to be minimised."""
    return -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
