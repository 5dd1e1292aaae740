"""A portfolio whose runs are all known, so that every rival replays the same ones, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Truth:
    """What holds over all instances: shares of first places ``[t, i]`` and of wins ``[t, i, j]``, ties divided."""

    first: np.ndarray
    wins: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Truth:
        """The truth where these values ``[instance, t, i]`` are all there is to draw from."""
        best = values == values.min(axis=2, keepdims=True)
        first = (best / best.sum(axis=2, keepdims=True)).mean(axis=0)
        below = values[:, :, :, None] < values[:, :, None, :]
        equal = values[:, :, :, None] == values[:, :, None, :]
        return cls(first, (below + equal / 2).mean(axis=0))

    @property
    def members(self) -> np.ndarray:
        """Which algorithms no other beats in first places at every timepoint."""
        return ~(self.first[:, :, None] > self.first[:, None, :]).all(axis=0).any(axis=0)

    @property
    def majority_members(self) -> np.ndarray:
        """Which algorithms no other beats on most instances at every timepoint."""
        return ~(self.wins > 0.5).all(axis=0).any(axis=0)


@dataclass(frozen=True)
class Contest:
    """A portfolio on instances in the order in which they are drawn.

    Attributes
    ----------
    algorithms
        Names, in the order of the last axis.
    timepoints
        Budgets; a run up to one of them costs as much.
    values
        ``[instance, timepoint, algorithm]``, to be minimised.
    truth
        What holds over all instances, not only over the drawn ones.
    """

    algorithms: tuple[str, ...]
    timepoints: np.ndarray
    values: np.ndarray
    truth: Truth

    @classmethod
    def drawn(
        cls, population: np.ndarray, timepoints: np.ndarray, algorithms: tuple[str, ...], instances: int, seed: int
    ) -> Contest:
        """Draw instances with replacement from a table of runs, which is then the whole truth."""
        rows = np.random.default_rng(seed).integers(0, len(population), instances)
        return cls(algorithms, timepoints, population[rows], Truth.of(population))

    @property
    def full_cost(self) -> float:
        """Cost of all runs up to the last timepoint."""
        return float(self.values.shape[0] * self.values.shape[2] * self.timepoints[-1])


@dataclass(frozen=True)
class Verdict:
    """What a rival answers.

    Attributes
    ----------
    kept
        Which algorithms are not eliminated.
    picks
        Place of the algorithm that it recommends to a user with the budget of each timepoint.
    cost
        What its runs cost.
    """

    kept: np.ndarray
    picks: np.ndarray
    cost: float


#: A rival takes a contest and a seed.
Rival = Callable[[Contest, int], Verdict]


def score(contest: Contest, verdict: Verdict) -> dict[str, float]:
    """How good an answer is; shares are of what there was to lose or to find, ``nan`` if there was nothing.

    The regret of the picks is in the share of first places, and in the mean share of wins against the others: what
    ratings and what mean ranks aim at.
    """
    truth, kept = contest.truth, verdict.kept
    lost, lost_majority = truth.members & ~kept, truth.majority_members & ~kept
    dominated = ~truth.members

    def regret(worth: np.ndarray) -> float:
        chosen = worth[np.arange(len(contest.timepoints)), verdict.picks]
        return float((worth.max(axis=1) - chosen) @ log_uniform(contest.timepoints))

    return {
        "cost": verdict.cost,
        "lost": float(lost.sum() / truth.members.sum()),
        "lost by majority": float(lost_majority.sum() / truth.majority_members.sum()),
        "family-wise": float(lost.any()),
        "family-wise by majority": float(lost_majority.any()),
        "dominated kept": float((dominated & kept).sum() / dominated.sum()) if dominated.any() else float("nan"),
        "regret": regret(truth.first),
        "regret by wins": regret((truth.wins.sum(axis=2) - 0.5) / (len(contest.algorithms) - 1)),
    }


def log_uniform(timepoints: np.ndarray) -> np.ndarray:
    """Probabilities that the last timepoint within a budget is each of them, for a budget with a uniform logarithm."""
    if len(timepoints) == 1:
        return np.ones(1)
    steps = np.diff(np.log(timepoints), append=2 * np.log(timepoints[-1]) - np.log(timepoints[-2]))
    return steps / steps.sum()
