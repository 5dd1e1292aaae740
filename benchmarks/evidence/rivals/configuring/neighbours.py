"""Candidates near good ones, as irace draws them: a base sampler that tests why PolarBearSampler wins or loses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial

_STARTUP = 8  # candidates at random, as many as race at once
_ELITES = 4
_LEAST_SPREAD = 0.05


class NeighbourSampler(optuna.samplers.BaseSampler):
    """Draws each parameter around that of one of the best trials, the nearer the more trials there are.

    A number is drawn from a normal distribution cut off at the bounds, with a standard deviation of half the range
    divided by ``n ** (1 / d)`` after n trials with d parameters, as in irace; a category stays as it is with the
    corresponding probability.  Parents are the four best trials, the first four times as often as the last.

    Parameters
    ----------
    seed
        Of all draws.
    """

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._fallback = optuna.samplers.RandomSampler(seed=seed)
        self._parent: FrozenTrial | None = None
        self._spread = 0.5

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:  # noqa: ARG002 - as the base class has it
        """Choose the parent of a trial."""
        known = [one for one in study.get_trials(deepcopy=False) if one.value is not None]
        self._parent = None
        if len(known) < _STARTUP:
            return
        elites = sorted(known, key=lambda one: one.value or 0.0)[:_ELITES]
        weights = np.arange(len(elites), 0, -1.0)
        self._parent = elites[self._rng.choice(len(elites), p=weights / weights.sum())]
        self._spread = max(_LEAST_SPREAD, 0.5 * len(known) ** (-1 / max(1, len(self._parent.params))))

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:  # noqa: ARG002
        """Parameters are drawn one by one."""
        return {}

    def sample_relative(
        self,
        study: optuna.Study,  # noqa: ARG002
        trial: FrozenTrial,  # noqa: ARG002
        search_space: dict[str, BaseDistribution],  # noqa: ARG002
    ) -> dict[str, Any]:
        """Parameters are drawn one by one."""
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Draw a parameter near that of the parent."""
        if self._parent is None or param_name not in self._parent.params:
            return self._fallback.sample_independent(study, trial, param_name, param_distribution)
        centre = self._parent.params[param_name]
        if isinstance(param_distribution, CategoricalDistribution):
            stays = self._rng.random() >= self._spread
            return centre if stays else param_distribution.choices[self._rng.integers(len(param_distribution.choices))]
        return self._near(float(centre), param_distribution)

    def _near(self, centre: float, distribution: Any) -> float | int:
        to, back = (math.log, math.exp) if distribution.log else (float, float)
        lower, upper = to(distribution.low), to(distribution.high)
        whole = isinstance(distribution, optuna.distributions.IntDistribution)
        edge = 0.5 if whole and not distribution.log else 0.0
        drawn = math.inf
        while not lower - edge <= drawn <= upper + edge:
            drawn = self._rng.normal(to(centre), self._spread * (upper - lower + 2 * edge))
        value = min(max(back(drawn), distribution.low), distribution.high)
        return round(value) if whole else value
