"""The finished trials that a running one is compared with, looked up as seldom as possible."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock
from time import monotonic
from typing import TypeVar

import optuna
from optuna.trial import FrozenTrial, TrialState

from polarbear_plugins.integrations.optuna_pruner.study_storage import identity_of, read_reason

# A process works on a few studies and trials at once; an entry more costs little.
_MOST_ENTRIES = 64
_SECONDS = 1.0

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class _Lookup:
    at: float  # on a clock in seconds
    finished: Sequence[FrozenTrial]  # the best first


class References:
    """Finished trials with the best values, for each trial that is running.

    Reading all trials from a storage takes longer than judging one.  So the finished ones are looked up when a trial is
    judged for the first time, and then at most once a second.  In a study that runs one trial at a time nothing changes
    in between.
    """

    def __init__(self) -> None:
        self._lookups: OrderedDict[tuple[str, int, int, int], _Lookup] = OrderedDict()
        # Finished trials stay as they are, so their number says whether there are new ones to sort in.
        self._sorted: OrderedDict[tuple[str, int, int], tuple[int, Sequence[FrozenTrial]]] = OrderedDict()
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[References], tuple[()]]:
        return References, ()  # a copy looks for itself

    def best(
        self, study: optuna.Study, trial: FrozenTrial, sign: float, usable: Callable[[FrozenTrial], bool], most: int
    ) -> list[FrozenTrial]:
        """Finished trials with the best values among those that share a step with the trial, at most so many."""
        steps = trial.intermediate_values.keys()
        others = (one for one in self.finished(study, trial, sign) if one.number != trial.number)
        shared = (one for one in others if not steps.isdisjoint(one.intermediate_values))
        return list(itertools.islice(filter(usable, shared), most))

    def finished(self, study: optuna.Study, trial: FrozenTrial, sign: float) -> Sequence[FrozenTrial]:
        """Trials that ran to their end and reported something, those with the best values first."""
        key, now = identity_of(study), monotonic()
        known = self._lookups.get((*key, trial.number))
        if known is None or now - known.at >= _SECONDS:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            with self._lock:
                count, finished = self._sorted.get(key, (0, ()))
                if count != len(complete):
                    finished = _best_first(complete, sign)
                    _remember(self._sorted, key, (len(complete), finished))
                known = _Lookup(now, finished)
                _remember(self._lookups, (*key, trial.number), known)
        return known.finished


def _best_first(complete: Sequence[FrozenTrial], sign: float) -> list[FrozenTrial]:
    # A trial that returned an estimate was stopped because its losses looked bad: it is no reference.
    finished = [one for one in complete if one.intermediate_values and read_reason(one) is None]
    return sorted(finished, key=lambda one: (sign * (one.value or 0.0), one.number))


def _remember(entries: OrderedDict[K, V], key: K, entry: V) -> None:
    entries[key] = entry
    entries.move_to_end(key)
    if len(entries) > _MOST_ENTRIES:
        entries.popitem(last=False)
