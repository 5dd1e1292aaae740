"""What the analyses of finished runs are given, what they answer, and what an answer is worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.stats import rankdata

from rivals.contest import Truth, log_uniform

_FLOOR = 1e-6  # a probability of exactly 0 would lose without bound
_ROUNDING = 0.005  # an algorithm that is never first has a share of 0, which no interval of a posterior contains
_SHIFTS = 5  # pairs of instances to each instance of a long simulation


@dataclass(frozen=True)
class Sample:
    """Finished runs.

    Attributes
    ----------
    algorithms, timepoints
        In the order of the last two axes.
    values
        ``[instance, timepoint, algorithm]``, to be minimised.
    groups
        Of the instances, if they belong to any.
    """

    algorithms: tuple[str, ...]
    timepoints: np.ndarray
    values: np.ndarray
    groups: tuple[str, ...] | None = None

    @property
    def ranks(self) -> np.ndarray:
        """Ranks within each instance and timepoint, 1 is best, ties share their mean."""
        return rankdata(self.values, axis=2)


@dataclass(frozen=True)
class Answer:
    """What a method says about new instances; what it does not say is ``None``.

    Attributes
    ----------
    picks
        Best algorithm at each timepoint.
    wins
        ``[t, i, j]``: probability that ``i`` beats ``j`` on a new instance.
    first
        ``[t, i]``: probability that ``i`` is best on a new instance.
    better
        ``[t, i, j]``: whether it states, with 95 %, that ``i`` is better than ``j``.
    meaning
        In which sense of :class:`Population` it is better.
    intervals
        Lower and upper ends of 95 % intervals, for ``wins``, ``first`` or ``mean ranks``.
    alarm
        Whether the method itself says that its model does not fit.
    """

    picks: np.ndarray
    wins: np.ndarray | None = None
    first: np.ndarray | None = None
    better: np.ndarray | None = None
    meaning: str = "majority"
    intervals: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    alarm: bool = False


@dataclass(frozen=True)
class Population:
    """All instances there are, or a long simulation."""

    values: np.ndarray
    areas: np.ndarray  # over the curve, [instance, t, i]

    @cached_property
    def truth(self) -> Truth:
        """Shares of first places and of wins."""
        return Truth.of(self.values)

    @cached_property
    def mean_ranks(self) -> np.ndarray:
        """``[t, i]``."""
        return rankdata(self.values, axis=2).mean(axis=0)

    def better(self, meaning: str) -> np.ndarray:
        """``[t, i, j]``: whether ``i`` is better than ``j``.

        ``majority``: it wins more often than it loses.  ``first places``: it is first more often.  ``mean ranks``: its
        mean rank is lower.  ``signed ranks``: the sum of two differences of values is more often in its favour than
        not.  ``area``: its mean area over the curve is larger.
        """
        if meaning == "majority":
            return self.truth.wins > 0.5
        if meaning == "signed ranks":
            return self._signed_ranks > 0.5
        measure = {"first places": self.truth.first, "mean ranks": -self.mean_ranks, "area": self.areas.mean(axis=0)}
        return measure[meaning][:, :, None] > measure[meaning][:, None, :]

    @cached_property
    def _signed_ranks(self) -> np.ndarray:
        count, timepoints, n = self.values.shape
        shifts = range(1, count) if count <= 500 else range(1, _SHIFTS + 1)
        share = np.full((timepoints, n, n), 0.5)
        for i in range(n):
            for j in range(i):
                ahead = self.values[:, :, j] - self.values[:, :, i]
                sums = [ahead + np.roll(ahead, shift, axis=0) for shift in shifts]
                share[:, i, j] = np.mean([(s > 0).mean(axis=0) + (s == 0).mean(axis=0) / 2 for s in sums], axis=0)
                share[:, j, i] = 1 - share[:, i, j]
        return share


def score(answer: Answer, held_out: Truth, population: Population, timepoints: np.ndarray) -> dict[str, float]:
    """What an answer is worth on held-out instances, and how many of its statements are false over all of them.

    A tie is half a win and half a loss.  Scores are means over pairs and timepoints; those of the winner are weighted
    as by a budget with a uniform logarithm.
    """
    weights, count = log_uniform(timepoints), len(timepoints)
    first, truth = held_out.first, population.truth
    pairs = np.tril_indices(first.shape[1], -1)
    found = {"regret": float((first.max(axis=1) - first[np.arange(count), answer.picks]) @ weights)}
    if answer.wins is not None:
        p, won = answer.wins[:, *pairs], held_out.wins[:, *pairs]
        bounded = np.clip(p, _FLOOR, 1 - _FLOOR)
        found["log_score"] = float((won * np.log(bounded) + (1 - won) * np.log(1 - bounded)).mean())
        found["brier"] = float((won * (1 - p) ** 2 + (1 - won) * p**2).mean())
    if answer.first is not None:
        found["winner_log_score"] = float((first * np.log(np.maximum(answer.first, _FLOOR))).sum(axis=1) @ weights)
    if answer.better is not None:
        found["pairs"] = float(count * len(pairs[0]))
        found["statements"] = float(answer.better.sum())
        found["false"] = float((answer.better & ~population.better("majority")).sum())
        found["false_own"] = float((answer.better & ~population.better(answer.meaning)).sum())
    known = {"wins": truth.wins[:, *pairs], "first": truth.first, "mean ranks": population.mean_ranks}
    for name, (lower, upper) in answer.intervals.items():
        low, high = (end[:, *pairs] if name == "wins" else end for end in (lower, upper))
        found[f"coverage of {name}"] = float(
            ((low - _ROUNDING <= known[name]) & (known[name] <= high + _ROUNDING)).mean()
        )
        found[f"width of {name}"] = float((high - low).mean())
    if answer.alarm:
        found["alarm"] = 1.0
    return found
