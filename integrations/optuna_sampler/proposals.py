"""New candidates from the base sampler."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from polarbear_plugins.integrations.optuna_sampler.study_view import StudyView
from polarbear_plugins.racing.asynchronous import Standing


def propose(base: optuna.samplers.BaseSampler, view: StudyView, standing: Standing) -> optuna.Trial:
    """Ask the base sampler for a new candidate, in a study with one trial for each candidate."""
    with ANNOUNCEMENTS.silenced():
        study = optuna.create_study(sampler=base)
    for name, rating in standing.mean_log_ratings().items():
        distributions = view.distributions_of(name)
        parameters = {key: value for key, value in view.parameters_of(name).items() if key in distributions}
        study.add_trial(optuna.trial.create_trial(params=parameters, distributions=distributions, value=-rating))
    return study.ask()


def suggest(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    """Ask a trial for a parameter with a given distribution."""
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(
            name, distribution.low, distribution.high, step=distribution.step, log=distribution.log
        )
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    raise AssertionError(distribution)  # Optuna has no others


class _Announcements(logging.Filter):
    """Keeps Optuna from announcing the studies that only the base sampler sees, in the thread that makes them."""

    def __init__(self) -> None:
        super().__init__()
        self._here = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - as the base class has it
        """Whether to log a record."""
        return not getattr(self._here, "silent", False)

    @contextmanager
    def silenced(self) -> Iterator[None]:
        """Log nothing that this thread says here about studies in memory."""
        self._here.silent = True
        try:
            yield
        finally:
            self._here.silent = False


# A level would be that of all threads, and of the user.
ANNOUNCEMENTS = _Announcements()
logging.getLogger(optuna.storages.InMemoryStorage.__module__).addFilter(ANNOUNCEMENTS)
