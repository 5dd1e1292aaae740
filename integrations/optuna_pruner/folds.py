"""A loop over folds, seeds or instances that reports, prunes, and says what the objective returns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import optuna
from numpy.typing import NDArray

from polarbear_plugins.checks import as_choice, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.optuna_pruner.pruner import PolarBearPruner
from polarbear_plugins.seeds import derived_seed

Ending: TypeAlias = Literal["raise", "estimate"]


class FoldTrial:
    """A trial as a callback that reports epochs sees it while one fold runs; steps are epochs of this fold.

    For callbacks that take a trial and know nothing of folds, such as those of Optuna's integrations.
    """

    def __init__(self, trial: optuna.Trial, fold: int, race: FoldRace) -> None:
        self._trial, self._fold, self._race = trial, fold, race

    def report(self, value: float, step: int) -> None:
        """Report the loss at an epoch of this fold; epochs past the last timepoint of the pruner are left out."""
        self._race.report_epoch(self._fold, value, step)

    def should_prune(self) -> bool:
        """Whether to prune the trial."""
        return self._trial.should_prune()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._trial, name)


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold, seed or instance of a race over folds.

    Attributes
    ----------
    number
        The same for the same fold in every trial: its place in the splitter or the list.
    item
        What the splitter or the list has there: a pair of index arrays for a splitter.
    """

    number: int
    item: Any
    _race: FoldRace

    @property
    def train(self) -> NDArray[np.intp]:
        """Positions of the samples to fit on."""
        return self.item[0]

    @property
    def test(self) -> NDArray[np.intp]:
        """Positions of the samples to judge by."""
        return self.item[1]

    @property
    def trial(self) -> FoldTrial:
        """The trial for callbacks that report epochs; needs a pruner with as many ``n_timepoints``."""
        return self._race.trial_of(self.number)

    def report(self, loss: float) -> None:
        """Report the loss on this fold; ``nan`` means that it failed there."""
        self._race.take(self.number, float(loss))


class FoldRace:
    """Folds of a trial in the order in which they are run; see :func:`race_folds`."""

    def __init__(self, trial: optuna.Trial, items: Sequence[Any], pruned: Ending | None, seed: int) -> None:
        self._trial, self._items = trial, items
        pruner = trial.study.pruner
        self._pruner = pruner if isinstance(pruner, PolarBearPruner) else None
        self._ending = pruned or ("estimate" if self._pruner and self._pruner.goal == "optimize" else "raise")
        if self._ending == "estimate" and self._pruner is None:
            raise InvalidInputError(
                f'race_folds: pruned="estimate" needs a study with a PolarBearPruner, got {type(pruner).__name__}.'
            )
        self._order = np.random.default_rng([seed, trial.number]).permutation(len(items)).tolist()
        self._losses: dict[int, float] = {}
        self._ran_all_epochs: set[int] = set()
        self._stopped = False

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Fold]:
        for done, number in enumerate(self._order):
            yield Fold(number, self._items[number], self)
            if number not in self._losses:
                raise InvalidInputError(f"race_folds: fold {number} ended without a loss. Call fold.report(loss).")
            if done + 1 < len(self._order) and self._trial.should_prune():
                self._stopped = True
                if self._ending == "raise":
                    raise optuna.TrialPruned(f"Pruned after {done + 1} of {len(self._order)} folds.")
                return

    @property
    def losses(self) -> dict[int, float]:
        """Losses so far, by the number of the fold."""
        return dict(self._losses)

    @property
    def value(self) -> float:
        """What the objective returns: the mean loss, or its estimate if the trial was pruned."""
        if self._stopped and self._pruner is not None:
            return self._pruner.estimate(self._trial.study, self._trial)
        missing = len(self._items) - len(self._losses)
        if missing:
            raise InvalidInputError(
                f"race_folds: {missing} of {len(self._items)} folds have no loss yet. Take the value after the loop."
            )
        return math.fsum(self._losses.values()) / len(self._losses)

    def take(self, number: int, loss: float) -> None:
        """Keep a loss and report it, as that of the last timepoint where the pruner has several."""
        if number in self._losses:
            raise InvalidInputError(f"race_folds: fold {number} has a loss already.")
        self._losses[number] = loss
        if self._pruner is None:
            self._trial.report(loss, number)
        elif number not in self._ran_all_epochs:
            self._pruner.report(self._trial, loss, instance=number, time=self._pruner.n_timepoints - 1)

    def report_epoch(self, number: int, loss: float, epoch: int) -> None:
        """Report the loss at an epoch of a fold, if the pruner has a timepoint for it."""
        if self._pruner is None:
            raise InvalidInputError("fold.trial needs a study with a PolarBearPruner(n_timepoints=...).")
        last = self._pruner.n_timepoints - 1
        if epoch <= last:
            self._pruner.report(self._trial, loss, instance=number, time=epoch)
        if epoch == last:
            self._ran_all_epochs.add(number)

    def trial_of(self, number: int) -> FoldTrial:
        """The trial as a callback sees it in one fold."""
        return FoldTrial(self._trial, number, self)


def race_folds(
    trial: optuna.Trial,
    folds: Any,
    X: Any = None,  # noqa: N803 - as scikit-learn calls it
    y: Any = None,
    groups: Any = None,
    *,
    pruned: Ending | None = None,
    seed: int = 0,
) -> FoldRace:
    """Loop over the folds of a trial: each loss is reported, the trial is pruned, and ``value`` is what to return.

    Every trial has the same folds under the same numbers, and goes through them in an order of its own.  A trial that
    fails on a fold reports ``nan``.

    Parameters
    ----------
    folds
        A splitter of scikit-learn, which is asked for its splits of ``X``, ``y`` and ``groups``; or a list of anything:
        pairs of indices, seeds, instances.
    pruned
        What happens when the pruner says so: ``"raise"`` raises ``optuna.TrialPruned``, ``"estimate"`` ends the loop,
        and ``value`` is the estimate of a :class:`PolarBearPruner`.  By default that pruner's goal decides: estimates
        are for ``goal="optimize"``.
    seed
        Of the orders.

    Examples
    --------
    >>> from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> def objective(trial):
    ...     x = trial.suggest_float("x", 0, 10)
    ...     folds = race_folds(trial, range(10))
    ...     for fold in folds:
    ...         fold.report((x - 2) ** 2 + fold.item)
    ...     return folds.value
    >>> sampler = optuna.samplers.RandomSampler(seed=1)
    >>> study = optuna.create_study(sampler=sampler, pruner=PolarBearPruner(goal="optimize"))
    >>> study.optimize(objective, n_trials=20)
    >>> sum(len(trial.intermediate_values) for trial in study.trials) < 20 * 6
    True
    """
    seed = as_whole_number(seed, "seed", at_least=0)
    ending = None if pruned is None else as_choice(pruned, Ending, "pruned")
    return FoldRace(trial, _items(folds, X, y, groups), ending, derived_seed(seed, "folds"))


def _items(folds: Any, x: Any, y: Any, groups: Any) -> Sequence[Any]:
    if hasattr(folds, "split"):
        _check_repeatable(folds)
        items = list(folds.split(x, y, groups))
    elif isinstance(folds, Iterable):
        items = list(folds)
    else:
        raise InvalidInputError(f"race_folds: expected a splitter or a list of folds, got {folds!r}.")
    if not items:
        raise InvalidInputError("race_folds: there are no folds.")
    return items


def _check_repeatable(splitter: Any) -> None:
    """Refuse a splitter that splits differently each time: the same fold must be the same in every trial."""
    shuffles = getattr(splitter, "shuffle", True)
    if shuffles and hasattr(splitter, "random_state") and not isinstance(splitter.random_state, int | np.integer):
        raise InvalidInputError(
            f"race_folds: {splitter} splits differently in every trial, and then folds cannot be compared. "
            f"Give it a whole number as random_state."
        )
