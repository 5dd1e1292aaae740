"""What a sampler remembers of the studies that it serves.

Everything can be read again from the storage; what is remembered saves time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

from polarbear_plugins.integrations.optuna_sampler.rules import Rules
from polarbear_plugins.integrations.optuna_sampler.study_storage import (
    Assignment,
    read_all_trials,
    storage_of,
    study_id,
    trial_id,
)
from polarbear_plugins.integrations.optuna_sampler.study_view import StudyView, sign_of


class StudyMemory:
    """What is known of a study.

    Finished trials do not change any more, and each is taken into account once.  The others are looked at again.

    Attributes
    ----------
    view
        The last view, which other processes may have overtaken; ``None`` before the first look.
    assignments
        Of the trials that this process runs, by their identifiers; ``None`` if a trial is left to the base sampler.
    proposals
        For each of these with a newcomer, a trial of another study: its parameters come from the base sampler.
    has_rules
        Whether the study is known to have the rules of this sampler.
    rounds_shown
        How many rounds the study of candidates rests on.
    said
        What the user has been warned of.
    """

    def __init__(self, study: optuna.Study, rules: Rules) -> None:
        self.view: StudyView | None = None
        self.assignments: dict[int, Assignment | None] = {}
        self.proposals: dict[int, optuna.Trial] = {}
        self.rounds_shown = 0
        self.said: set[object] = set()
        self._lock = threading.Lock()
        self._nothing = StudyView(rules, sign_of(study))
        self._forget_trials()

    def _forget_trials(self) -> None:
        self.has_rules = False
        self._numbers: set[int] = set()  # of the finished trials
        self._finished = self._nothing.with_trials(())
        self._running: list[FrozenTrial] = []

    def look(self, study: optuna.Study) -> StudyView:
        """View of the study as its storage is now."""
        with self._lock:
            trials = read_all_trials(study)
            new = [trial for trial in trials if trial.number not in self._numbers]
            if len(trials) - len(new) < len(self._numbers):  # the study was deleted, and made again
                self._forget_trials()
                new = trials
            self._running = [trial for trial in new if not trial.state.is_finished()]
            for trial in new:
                if trial.state.is_finished():
                    self._finished.add(trial)
                    self._numbers.add(trial.number)
                    self.forget(trial)
            self.view = self._finished.with_trials(self._running)
            return self.view

    def lay_over(self, ended: FrozenTrial) -> StudyView:
        """The last view with the end of a trial, which the storage does not have yet, and may refuse."""
        with self._lock:
            others = [trial for trial in self._running if trial.number != ended.number]
            self.view = self._finished.with_trials([*others, ended])
            return self.view

    def forget(self, trial: FrozenTrial) -> None:
        """Forget what was remembered for a running trial."""
        self.assignments.pop(trial_id(trial), None)
        self.proposals.pop(trial_id(trial), None)


class StudyMemories:
    """The memory of each study, for as long as its storage is there.  A copy in another process begins empty."""

    def __init__(self) -> None:
        self._by_storage: WeakKeyDictionary[BaseStorage, dict[int, StudyMemory]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, study: optuna.Study, rules: Rules) -> StudyMemory:
        """The memory of a study."""
        with self._lock:
            of_storage = self._by_storage.setdefault(storage_of(study), {})
            if study_id(study) not in of_storage:
                of_storage[study_id(study)] = StudyMemory(study, rules)
            return of_storage[study_id(study)]

    def __reduce__(self) -> tuple[Callable[[], StudyMemories], tuple[()]]:
        return StudyMemories, ()
