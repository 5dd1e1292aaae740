"""How much scores and rankings depend on the repetitions that were run."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings.ranks import ranks_of

if TYPE_CHECKING:
    import pandas as pd


_CELLS = 200  # means computed from the same resamples
_MIN_ROWS = 1_000  # resamples drawn at least
_MAX_COUNTS = 2_000_000  # counts held at once, to bound memory
_EQUAL = 1e-12  # means this close differ by rounding only

_place = operator.itemgetter(0)


@dataclass(frozen=True, slots=True)
class RankingFrequency:
    """A ranking, best first, tied algorithms together, and its share of the resamples."""

    places: tuple[tuple[str, ...], ...]
    share: float

    def __str__(self) -> str:
        return " > ".join(" = ".join(tied) for tied in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Resampled mean losses and their rankings.

    Attributes
    ----------
    losses
        ``losses[resample, algorithm]``: mean over the instances.
    ranks
        ``ranks[resample, algorithm]``: 1 is best, equal losses share the better rank.
    """

    algorithms: tuple[str, ...]
    losses: FloatArray
    ranks: RankArray

    def interval(self, level: float = 0.95) -> FloatArray:
        """``[bound, algorithm]``: lower and upper end of the central interval of the mean losses."""
        level = as_number(level, "level", above=0, below=1)
        return np.quantile(self.losses, [(1 - level) / 2, (1 + level) / 2], axis=0)

    @property
    def places(self) -> FloatArray:
        """``places[algorithm, place]``: share of the resamples in which an algorithm takes that place."""
        n = len(self.algorithms)
        return np.stack([np.bincount(column - 1, minlength=n) for column in self.ranks.T]) / len(self.ranks)

    @property
    def p_better(self) -> FloatArray:
        """``p_better[i, j]``: share of the resamples in which ``i`` ranks before ``j``, ties counted half."""
        n = len(self.algorithms)
        shares: FloatArray = np.zeros((n, n))
        for i in range(n):
            difference = self.ranks[:, i : i + 1] - self.ranks
            shares[i] = ((difference < 0) + 0.5 * (difference == 0)).mean(axis=0)
        np.fill_diagonal(shares, 0.0)
        return shares

    def to_pandas(self) -> pd.DataFrame:
        """The resamples in long form, with columns ``resample``, ``algorithm``, ``loss`` and ``rank``."""
        axes = {"resample": np.arange(len(self.losses)), "algorithm": self.algorithms}
        return long_frame(axes, {"loss": self.losses, "rank": self.ranks})

    def rankings(self, top: int | None = None) -> list[RankingFrequency]:
        """Rankings by frequency; with ``top``, of the first places only."""
        ranks = self.ranks
        if top is not None:
            top = as_whole_number(top, "top", at_least=1)
            ranks = np.where(ranks <= top, ranks, np.int16(0))
        found, counts = np.unique(ranks, axis=0, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        shares = (counts[order] / len(ranks)).tolist()
        return [
            RankingFrequency(self._names(row), share) for row, share in zip(found[order].tolist(), shares, strict=True)
        ]

    def _names(self, ranks: list[int]) -> tuple[tuple[str, ...], ...]:
        tied: dict[int, list[str]] = {}
        for place, name in sorted(zip(ranks, self.algorithms, strict=True), key=_place):
            if place:
                tied.setdefault(place, []).append(name)
        return tuple(map(tuple, tied.values()))


def bootstrap_scores(
    losses: Mapping[tuple[str, str], FloatArray],
    algorithms: Sequence[str],
    instances: Sequence[str],
    resamples: int = 10_000,
    seed: int = 0,
) -> Bootstrap:
    """Resample the studies of each algorithm on each instance with replacement, and average as scores do.

    The instances are fixed: the variation is that of other repetitions on the same instances.

    Parameters
    ----------
    losses
        ``losses[algorithm, instance]``: the loss of each study; numbers of studies may differ.

    Examples
    --------
    >>> losses = {("csa", "f1"): np.array([0.1, 0.3]), ("msr", "f1"): np.array([0.2, 0.4])}
    >>> bootstrap_scores(losses, ["csa", "msr"], ["f1"], resamples=5000).p_better.round(1)
    array([[0. , 0.8],
           [0.2, 0. ]])
    """
    resamples = as_whole_number(resamples, "resamples", at_least=1)
    rng = np.random.default_rng(as_whole_number(seed, "seed", at_least=0))
    by_size: dict[int, list[tuple[int, FloatArray]]] = {}
    for place, algorithm in enumerate(algorithms):
        for instance in instances:
            studies = losses[algorithm, instance]
            if np.isnan(studies).any():
                raise InvalidInputError(f"bootstrap: {algorithm!r} on {instance!r} has a loss that is nan.")
            by_size.setdefault(len(studies), []).append((place, studies))
    mean = np.zeros((len(algorithms), resamples))
    for size, cells in by_size.items():
        block = max(_MIN_ROWS, _MAX_COUNTS // size)
        for start in range(0, resamples, block):
            part = mean[:, start : start + block]
            for first in range(0, len(cells), _CELLS):
                _add_means(rng, cells[first : first + _CELLS], part)
    mean /= len(instances)
    together = np.ascontiguousarray(mean.T)
    return Bootstrap(algorithms=tuple(algorithms), losses=together, ranks=ranks_of(together, _EQUAL))


def _add_means(rng: np.random.Generator, cells: Sequence[tuple[int, FloatArray]], totals: FloatArray) -> None:
    """Add means of resamples of each cell, an algorithm's studies on one instance, to the row of the algorithm.

    Resamples are drawn once for all cells.  Each cell starts at a different one and wraps around, so that no two use
    the same one in the same column: a column consists of independent resamples.  The studies are shuffled first, in
    case their order means something.
    """
    size, wanted = len(cells[0][1]), totals.shape[1]
    rows = max(wanted, _MIN_ROWS)
    drawn = rng.integers(0, size, (rows, size))
    drawn += size * np.arange(rows)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=rows * size).reshape(rows, size) / size
    means = np.stack([rng.permutation(studies) for _, studies in cells]) @ counts.T
    for (place, _), cell, begin in zip(cells, means, rng.choice(rows, len(cells), replace=False), strict=True):
        turn = min(rows - begin, wanted)
        totals[place, :turn] += cell[begin : begin + turn]
        totals[place, turn:] += cell[: wanted - turn]
