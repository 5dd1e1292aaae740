"""PolarBearSampler: a race inside a study, with candidates from TPE; and variants of it that test one reason each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import optuna
from equal_budget import suggest
from fold_tasks import Parameters, Task

from polarbear_plugins import RaceSettings
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler, likely_best
from rivals.configuring.budget import Meter, Picks
from rivals.configuring.neighbours import NeighbourSampler


@dataclass(frozen=True)
class Variant:
    """How the sampler is set up.

    Parameters
    ----------
    label
        Name of the row.
    base
        Sampler that candidates come from, for a seed.
    alpha
        Probability that an elimination needs; ``None`` leaves all settings at their defaults.
    guard
        Whether an elimination must also agree with counted wins, which with few instances decides more than alpha.
    """

    label: str
    base: Callable[[int], optuna.samplers.BaseSampler]
    alpha: float | None = None
    guard: Literal["counts", "none"] = "counts"

    def make_sampler(self, seed: int) -> PolarBearSampler:
        """A new sampler."""
        settings = None
        if self.alpha is not None:  # otherwise as the defaults of the sampler
            settings = RaceSettings(
                alpha=self.alpha, guard=self.guard, batch_size=4, batch_min=1, batch_max=16, draws=2000
            )
        return PolarBearSampler(base=self.base(seed), settings=settings, seed=seed)


def _tpe(seed: int) -> optuna.samplers.BaseSampler:
    return optuna.samplers.TPESampler(seed=seed)


VARIANTS = {
    "polarbear": Variant("PolarBearSampler, TPE", _tpe),
    "polarbear-near": Variant("PolarBearSampler, near survivors", NeighbourSampler),
    "polarbear-bold": Variant("PolarBearSampler, TPE, alpha 0.8", _tpe, 0.8),
    "polarbear-unguarded": Variant("PolarBearSampler, TPE, alpha 0.8, no guard", _tpe, 0.8, "none"),
}


def configure(variant: Variant, task: Task, seed: int, budgets: Sequence[int]) -> Picks:
    """What ``likely_best`` names at each budget of one study."""
    meter = Meter(task.draw(seed), max(budgets))

    def objective(trial: optuna.Trial) -> float:
        instance = trial.suggest_int("instance", 0, task.n_folds - 1)
        parameters = {name: value for name, value in suggest(trial, task.space).items() if name != "instance"}
        return meter.loss(parameters, instance)

    study = optuna.create_study(sampler=variant.make_sampler(seed))
    picks: dict[int, Parameters | None] = {}
    for budget in sorted(budgets):
        study.optimize(objective, n_trials=budget - meter.spent)
        picks[budget] = dict(likely_best(study).parameters)
    return {variant.label: picks}


RIVALS = {name: functools.partial(configure, variant) for name, variant in VARIANTS.items()}
