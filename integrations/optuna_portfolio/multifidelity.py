"""Optuna's pruners as multi-fidelity algorithms: a trial begins at a low fidelity and may end with a full evaluation.

Each evaluation is charged its cost, so that these algorithms and those that only evaluate fully share one time axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.optuna_portfolio.suggesting import make_suggest, silence_optuna
from polarbear_plugins.problems.protocols import ChargedProblem, Problem, refusal
from polarbear_plugins.trajectories.recording import Charges
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import optuna

_WHO = "The portfolio 'optuna-multifidelity'"
_NO_FIDELITIES = "it needs a problem with fidelities (least_fidelity, measure) and one objective"


def _make_median(optuna: Any, seed: int, eta: int, most: int) -> tuple[Any, Any]:  # noqa: ARG001 - one signature for all
    return optuna.samplers.TPESampler(seed=seed), optuna.pruners.MedianPruner()


def _make_halving(optuna: Any, seed: int, eta: int, most: int) -> tuple[Any, Any]:  # noqa: ARG001
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=eta)
    return optuna.samplers.TPESampler(seed=seed), pruner


def _make_hyperband(optuna: Any, eta: int, most: int) -> Any:
    return optuna.pruners.HyperbandPruner(min_resource=1, max_resource=most, reduction_factor=eta)


# From Optuna, a seed, the factor between two levels and the resource of the last one, to a sampler and a pruner.
_MAKERS: dict[str, Callable[[Any, int, int, int], tuple[Any, Any]]] = {
    "tpe-median": _make_median,
    "tpe-halving": _make_halving,
    "hyperband": lambda optuna, seed, eta, most: (
        optuna.samplers.RandomSampler(seed=seed),
        _make_hyperband(optuna, eta, most),
    ),
    "tpe-hyperband": lambda optuna, seed, eta, most: (
        optuna.samplers.TPESampler(seed=seed),
        _make_hyperband(optuna, eta, most),
    ),
}

NAMES = tuple(_MAKERS)


def levels(least: float, eta: int) -> tuple[float, ...]:
    """Fidelities of a schedule of successive halving: each ``eta`` times the one before, up to 1.

    >>> [round(1 / level) for level in levels(1 / 52, 3)]
    [27, 9, 3, 1]
    """
    if not 0 < least <= 1:
        raise InvalidInputError(f"least fidelity: expected a number above 0 and up to 1, got {least!r}.")
    steps = math.floor(math.log(1 / least, eta) + 1e-9)
    return tuple(float(eta) ** -step for step in range(steps, -1, -1))


@dataclass(frozen=True, slots=True)
class MultifidelityAlgorithm:
    """A sampler and a pruner of Optuna on the fidelities of a problem.

    A trial is evaluated at one level after the other, reports each value, and ends when the pruner stops it.  Only
    values at full fidelity enter the trajectory: at a low fidelity a value may be too good.

    Parameters
    ----------
    name
        One of ``tpe-median``, ``tpe-halving``, ``hyperband`` and ``tpe-hyperband``.
    eta
        Factor between two levels.
    resume
        Whether the next level of a trial costs only the difference, as when training is continued; otherwise each
        level costs its full price, as when training starts again.
    """

    name: str
    eta: int = 3
    resume: bool = False

    def refuses(self, problem: Problem, /) -> str | None:
        """Why it cannot run on a problem; ``None`` if it can."""
        return None if isinstance(problem, ChargedProblem) else _NO_FIDELITIES

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run trials until the next evaluation would end after the horizon."""
        library = require("optuna", extra="optuna", who=_WHO)
        if not isinstance(problem, ChargedProblem):
            raise refusal(self, problem, _NO_FIDELITIES)
        suggest = make_suggest(problem)
        schedule = levels(problem.least_fidelity, self.eta)
        charges = Charges(horizon)
        with silence_optuna(library):
            sampler, pruner = _MAKERS[self.name](library, seed, self.eta, self.eta ** (len(schedule) - 1))
            # Hyperband assigns trials to brackets by the name of the study, which is random unless it is given.
            study = library.create_study(study_name=f"{problem.identity.name}-{seed}", sampler=sampler, pruner=pruner)
            while charges.room() and self._run_trial(library, study, problem, suggest, schedule, charges):
                pass
        return charges.trajectory(algorithm=self.name, instance=problem.identity.name, seed=seed)

    def _run_trial(
        self,
        library: Any,
        study: optuna.Study,
        problem: ChargedProblem,
        suggest: Callable[[optuna.Trial], Any],
        schedule: Sequence[float],
        charges: Charges,
    ) -> bool:
        """Run a trial until its pruner stops it; false if the horizon is reached."""
        trial = study.ask()
        configuration = suggest(trial)
        states = library.trial.TrialState
        paid = 0.0
        for step, fidelity in enumerate(schedule):
            value, cost = problem.measure(configuration, fidelity)
            charge = max(cost - paid, 1e-9 * cost) if self.resume else cost
            full = fidelity == 1
            if not charges.pay(charge, value if full else math.nan):
                return False
            paid = max(paid, cost)
            if math.isnan(value):
                study.tell(trial, state=states.FAIL)
                return True
            trial.report(value, self.eta**step)
            if full:
                study.tell(trial, value)
            elif trial.should_prune():
                study.tell(trial, state=states.PRUNED)
                return True
        return True


def optuna_multifidelity(names: Sequence[str] | None = None, **settings: Any) -> tuple[MultifidelityAlgorithm, ...]:
    """Algorithms by their names, all by default; ``settings`` are ``eta`` and ``resume``."""
    require("optuna", extra="optuna", who=_WHO)
    for name in names or ():
        if name not in _MAKERS:
            raise InvalidInputError(f"{_WHO} has no algorithm {name!r}. It has {', '.join(NAMES)}.")
    return tuple(MultifidelityAlgorithm(name, **settings) for name in names or NAMES)
