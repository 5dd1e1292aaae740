"""Which algorithm to choose at which timepoints, and how well the data support it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.choice import ratings_among
from polarbear_plugins.selection.preferences import probability_best
from polarbear_plugins.selection.support import SUPPORTED, WORTH_NAMING, about_best

_WORTH_A_CHANGE = 0.01  # mean rating over time


@dataclass(frozen=True, slots=True)
class Stretch:
    """Timepoints from one place up to another, both included, and the algorithm to choose there.

    Attributes
    ----------
    support
        Probability that nothing is noticeably better, at a timepoint of the stretch chosen at random; 0 where none of
        the candidates was ever observed.
    rivals
        Others that may be the best there, the likeliest first.
    """

    first: int
    last: int
    algorithm: str
    support: float = 1.0
    rivals: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether the data support the choice."""
        return self.support >= SUPPORTED


def stretches(posterior: Posterior, among: Sequence[str]) -> list[Stretch]:
    """Which algorithm to choose when: the highest mean ratings among the candidates, with a change only where it pays.

    Each change of the choice must gain at least 0.01 in rating on average over all timepoints: a tiny lead for a while
    is not a reason to change.
    """
    ratings = ratings_among(posterior, among)
    chosen = _best_path(ratings.mean(axis=0) / posterior.timepoints.size)
    known = candidates_observed(posterior, among).tolist()
    steps = len(chosen)
    starts = [t for t in range(steps) if t == 0 or (chosen[t], known[t]) != (chosen[t - 1], known[t - 1])]
    ends = [*(start - 1 for start in starts[1:]), steps - 1]
    return [
        _stretch(ratings[:, start : end + 1], start, chosen[start], among)
        if known[start]
        else Stretch(
            start, end, among[chosen[start]], 0.0, tuple(name for name in among if name != among[chosen[start]])
        )
        for start, end in zip(starts, ends, strict=True)
    ]


def candidates_observed(posterior: Posterior, among: Sequence[str]) -> BoolArray:
    """Whether any of the candidates was ever observed, at each timepoint; nothing is advised where none was."""
    columns = [posterior.algorithms.index(name) for name in among]
    known: BoolArray = np.logical_or.reduce(posterior.observed[:, columns], axis=1)
    return known


def _stretch(ratings: FloatArray, first: int, chosen: int, among: Sequence[str]) -> Stretch:
    support = float(about_best(ratings, chosen).mean())
    p_best = probability_best(ratings.reshape(-1, len(among)))
    rivals = [place for place in np.argsort(-p_best, kind="stable") if place != chosen]
    named = tuple(among[place] for place in rivals if p_best[place] >= WORTH_NAMING)
    return Stretch(first, first + ratings.shape[1] - 1, among[chosen], support, () if support >= SUPPORTED else named)


def _best_path(gain: FloatArray) -> list[int]:
    """Candidate at each timepoint with the highest total of ``gain[timepoint, candidate]``, minus changes."""
    steps, candidates = gain.shape
    # The best total up to each timepoint that ends with each candidate, and the choice before it.
    total, before = gain[0].copy(), np.zeros((steps, candidates), dtype=int)
    for t in range(1, steps):
        best = int(np.argmax(total))
        change = total[best] - _WORTH_A_CHANGE > total
        before[t] = np.where(change, best, np.arange(candidates))
        total = np.where(change, total[best] - _WORTH_A_CHANGE, total) + gain[t]
    chosen = [int(np.argmax(total))]
    for t in range(steps - 1, 0, -1):
        chosen.append(int(before[t, chosen[-1]]))
    chosen.reverse()
    return chosen
