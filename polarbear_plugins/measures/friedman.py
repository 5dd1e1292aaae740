"""Friedman's test of mean ranks, and the critical difference of Nemenyi."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.rankings.ranks import ranks_of
from polarbear_plugins.rankings.summaries import Unit, counted_unit, values_by_instance
from polarbear_plugins.rankings.table import RankingTable

_PERMUTATIONS = 9_999
_AT_ONCE = 2_000_000  # ranks that are permuted at a time


@dataclass(frozen=True, slots=True, eq=False)
class FriedmanTest:
    """Whether mean ranks differ, and by how much they must.  Returned by :func:`friedman_test`.

    Attributes
    ----------
    algorithms, mean_ranks
        By mean rank, the best first.
    count, unit
        Number of rankings, and what each is of: ``"instances"``, or ``"runs"`` if there is one instance only or
        repeated runs are independent.
    instance_groups
        Number of groups to which the instances belong; 0 if they are not grouped.
    timepoint
        Where the algorithms were compared.
    statistic
        Friedman's, with the correction for ties; ``nan`` if all algorithms tie on every instance.
    p
        Share of rearrangements of the ranks within instances that differ at least as much.
    level
        Error level: the probability of any false difference, if all algorithms are equally good.
    critical_difference
        Mean ranks that differ by more are told apart, if the test rejects at all.
    """

    algorithms: tuple[str, ...]
    mean_ranks: FloatArray
    count: int
    unit: Unit
    instance_groups: int
    timepoint: float
    statistic: float
    p: float
    level: float
    critical_difference: float

    @property
    def rejects(self) -> bool:
        """Whether the algorithms are not all equally good, at the error level."""
        return self.p <= self.level

    def differ(self, one: str, other: str) -> bool:
        """Whether the mean ranks of two algorithms are told apart."""
        places = [self.algorithms.index(name) for name in (one, other)]
        return self.rejects and bool(abs(np.subtract(*self.mean_ranks[places])) > self.critical_difference)

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Largest sets of algorithms of which no two are told apart, the best first."""
        found: list[tuple[str, ...]] = []
        for start, name in enumerate(self.algorithms):
            alike = [other for other in self.algorithms[start:] if not self.differ(name, other)]
            if not found or not set(alike) <= set(found[-1]):
                found.append(tuple(alike))
        return tuple(found)

    @property
    def p_text(self) -> str:
        """The probability in words."""
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"

    @property
    def caveat(self) -> str:
        """What the test takes for granted beyond independent instances; empty if nothing."""
        if self.unit == "runs":
            return "runs of an instance count as independent, so it says little about other instances"
        if self.instance_groups:
            return f"instances count as independent, although they belong to {self.instance_groups} groups"
        return ""

    def to_json(self) -> dict[str, Any]:
        """The test as JSON."""
        return {
            "timepoint": self.timepoint,
            "mean_ranks": dict(zip(self.algorithms, self.mean_ranks.tolist(), strict=True)),
            "count": self.count,
            "unit": self.unit,
            "instance_groups": self.instance_groups,
            "caveat": self.caveat,
            "statistic": None if math.isnan(self.statistic) else self.statistic,
            "p": self.p,
            "level": self.level,
            "critical_difference": self.critical_difference,
            "groups": [list(group) for group in self.groups()],
        }


def friedman_test(
    table: RankingTable,
    timepoint: float | None = None,
    *,
    among: Sequence[str] | None = None,
    level: float = 0.05,
    seed: int = 0,
) -> FriedmanTest:
    """Test whether the mean ranks of algorithms differ at a timepoint, and say by how much they must.

    Runs on an instance are averaged first, then the algorithms are ranked on each instance.  The probability is that
    of ``statistic`` when ranks are rearranged at random within instances (9,999 times), so it holds for few instances
    and with ties.  The critical difference is Nemenyi's, which asks for more than needed where ranks tie.  Both take
    instances as independent, even those of one group.

    Parameters
    ----------
    timepoint
        One of the timepoints of the table; by default the last.
    among
        Compare only these, on instances that have all of them.
    level
        Error level.
    seed
        Of the rearrangements.

    Examples
    --------
    >>> values = [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]], [[1.0, 3.0, 2.0]]] * 3
    >>> test = friedman_test(RankingTable.from_values(values, algorithms=["a", "b", "c"], timepoints=[10]))
    >>> test.p < 0.01, round(test.critical_difference, 3), test.groups()
    (True, 1.105, (('a',), ('b', 'c')))
    """
    from scipy.stats import rankdata, studentized_range

    level = as_number(level, "friedman_test: level", above=0, below=1)
    names, values = values_by_instance(table, timepoint, among, "friedman_test")
    count, size = values.shape
    if count < 2 or size < 2:
        raise InvalidInputError(
            f"friedman_test: expected at least two algorithms on two instances that have all of them, got {size} on "
            f"{count}."
        )
    ranks = rankdata(ranks_of(values, table.tolerance), axis=1)
    mean = ranks.mean(axis=0)
    order = np.argsort(mean, kind="stable")
    spread = ranks.var(axis=1, ddof=1).sum() / count  # k (k + 1) / 12 without ties
    with np.errstate(invalid="ignore"):
        statistic = count * ((mean - mean.mean()) ** 2).sum() / spread
    q = float(studentized_range.ppf(1 - level, size, np.inf)) / math.sqrt(2)
    at = table.timepoints[-1] if timepoint is None else timepoint
    return FriedmanTest(
        tuple(names[k] for k in order),
        mean[order],
        count,
        counted_unit(table),
        len(set(table.groups)),
        float(at),
        float(statistic),
        _share_as_different(ranks, np.random.default_rng(seed)),
        level,
        q * math.sqrt(size * (size + 1) / (6 * count)),
    )


def _share_as_different(ranks: FloatArray, rng: np.random.Generator) -> float:
    """Share of rearrangements within rows whose column sums differ at least as much, the given one included."""
    seen = (ranks.sum(axis=0) ** 2).sum()
    as_many = sum(int((sums >= seen * (1 - 1e-12)).sum()) for sums in _rearranged(ranks, rng))
    return (as_many + 1) / (_PERMUTATIONS + 1)


def _rearranged(ranks: FloatArray, rng: np.random.Generator) -> Iterator[FloatArray]:
    left, batch = _PERMUTATIONS, max(1, _AT_ONCE // ranks.size)
    while left > 0:
        many = np.broadcast_to(ranks, (min(left, batch), *ranks.shape))
        yield (rng.permuted(many, axis=-1).sum(axis=1) ** 2).sum(axis=-1)
        left -= batch
