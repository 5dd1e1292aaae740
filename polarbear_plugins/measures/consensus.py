"""One order of the algorithms for many rankings: Kemeny's, by Borda's and by Copeland's scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.rankings.ranks import ranks_of
from polarbear_plugins.rankings.summaries import values_by_instance
from polarbear_plugins.rankings.table import RankingTable

if TYPE_CHECKING:
    import pandas as pd

ConsensusMethod: TypeAlias = Literal["kemeny", "borda", "copeland"]
MOST_FOR_KEMENY = 16
_EQUAL = 1e-9  # relative to all wins: sums of shares that differ by less are equal


@dataclass(frozen=True, slots=True)
class Consensus:
    """An order of algorithms that many rankings agree with as far as they can.  Returned by :func:`consensus_ranking`.

    Attributes
    ----------
    method
        How it was made.
    order
        The algorithms, the best first.  Where the method does not decide, in the order in which they were given.
    first, last
        Best and worst place of each algorithm of ``order`` that the method allows.  They differ where scores are equal,
        or where several orders have the fewest reversals.
    optima
        Number of orders with the fewest reversals; ``None`` for methods that do not count them.
    reversals
        How often a ranking contradicts the order, over all rankings and pairs.
    """

    method: ConsensusMethod
    order: tuple[str, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    optima: int | None
    reversals: float

    @property
    def decided(self) -> bool:
        """Whether the method allows a single order."""
        return self.first == self.last

    def __str__(self) -> str:
        """The order, ``=`` between neighbours whose possible places overlap."""
        signs = [" = " if self.last[k] >= self.first[k + 1] else " > " for k in range(len(self.order) - 1)]
        return "".join(name + sign for name, sign in zip(self.order, [*signs, ""], strict=True))

    def to_json(self) -> dict[str, Any]:
        """The consensus as JSON."""
        return {
            "method": self.method,
            "order": list(self.order),
            "first": dict(zip(self.order, self.first, strict=True)),
            "last": dict(zip(self.order, self.last, strict=True)),
            "optima": self.optima,
            "reversals": self.reversals,
        }


def pairwise_wins(
    table: RankingTable, timepoint: float | None = None, among: Sequence[str] | None = None
) -> pd.DataFrame:
    """On how many instances the algorithm of the row is better than that of the column.

    Runs on an instance are averaged first, as for :func:`friedman_test`.

    Parameters
    ----------
    timepoint
        One of the timepoints of the table; by default the last.
    among
        Compare only these, on instances that have all of them.

    Examples
    --------
    >>> table = RankingTable.from_values(
    ...     [[[1.0, 2.0, 2.0]], [[3.0, 1.0, 2.0]]], algorithms=["a", "b", "c"], timepoints=[10]
    ... )
    >>> pairwise_wins(table).to_dict("index")["a"]
    {'a': 0, 'b': 1, 'c': 1}
    """
    import pandas as pd

    names, values = values_by_instance(table, timepoint, among, "pairwise_wins")
    ranks = ranks_of(values, table.tolerance)
    wins = (ranks[:, :, None] < ranks[:, None, :]).sum(axis=0)
    return pd.DataFrame(wins, index=list(names), columns=list(names))


def consensus_ranking(above: pd.DataFrame, method: ConsensusMethod = "kemeny") -> Consensus:
    """Find the order of the algorithms that agrees best with many rankings.

    Parameters
    ----------
    above
        How often the algorithm of the row is better than that of the column, from :func:`pairwise_wins` or
        :func:`polarbear_plugins.partial_orders.above_counts`: a square table of numbers that are not negative.
    method
        ``"kemeny"`` has the fewest reversals of all linear orders, the sum over rankings of the pairs that it orders
        the other way round, and says how many orders have as few; for at most 16 algorithms.  ``"borda"`` orders by
        wins minus losses over all rankings, ``"copeland"`` by the number of others that are beaten more often than
        they win, minus the opposite.

    Examples
    --------
    >>> import pandas as pd
    >>> above = pd.DataFrame([[0, 6, 4], [3, 0, 7], [5, 2, 0]], index=list("abc"), columns=list("abc"))
    >>> best = consensus_ranking(above)
    >>> str(best), best.reversals, best.optima
    ('a > b > c', 10.0, 1)
    >>> str(consensus_ranking(above, "copeland"))
    'a = b = c'
    """
    kind = as_choice(method, ConsensusMethod, "consensus_ranking: method")
    names, wins = _as_wins(above)
    if kind == "kemeny":
        return _kemeny(names, wins)
    margins = wins - wins.T
    return _by_scores(kind, names, wins, (margins if kind == "borda" else _signs(margins)).sum(axis=1))


def rank_reversals(one: Sequence[str], other: Sequence[str]) -> int:
    """Number of pairs that two orders of the same algorithms place the other way round: Kendall's distance.

    >>> rank_reversals(["a", "b", "c"], ["b", "c", "a"])
    2
    """
    places = _places(one, other, "rank_reversals")
    return int(np.triu(places[:, None] > places, 1).sum())


def permutation_order(one: Sequence[str], other: Sequence[str]) -> int:
    """How often the exchange that turns one order into the other must be repeated until nothing changes.

    YAHPO Gym compares consensus rankings by this number.  It is 1 for equal orders, but 2 for one exchanged pair and
    for four: :func:`rank_reversals` tells them apart.

    >>> permutation_order(["a", "b", "c", "d"], ["b", "a", "d", "c"])
    2
    """
    places = _places(one, other, "permutation_order")
    lengths, left = [], set(range(len(places)))
    while left:
        start = place = left.pop()
        length = 1
        while (place := int(places[place])) != start:
            left.remove(place)
            length += 1
        lengths.append(length)
    return math.lcm(*lengths)


def _places(one: Sequence[str], other: Sequence[str], who: str) -> NDArray[np.int_]:
    """Places in ``other`` of what ``one`` orders."""
    if len(set(one)) != len(one) or set(one) != set(other) or len(one) != len(other) or not one:
        raise InvalidInputError(f"{who}: expected two orders of the same names, got {short(one)} and {short(other)}.")
    where = {name: place for place, name in enumerate(other)}
    return np.array([where[name] for name in one])


def _as_wins(above: object) -> tuple[tuple[str, ...], FloatArray]:
    """Names and numbers of a square table."""
    import pandas as pd

    if (
        not isinstance(above, pd.DataFrame)
        or not len(above)
        or not above.index.is_unique
        or (list(above.index) != list(above.columns))
    ):
        raise InvalidInputError(
            "consensus_ranking: expected a square table with the same distinct names in rows and columns, how often "
            f"the row is better than the column, got {short(above)}."
        )
    wins = above.to_numpy(dtype=np.float64, copy=True)
    if not np.isfinite(wins).all() or (wins < 0).any():
        raise InvalidInputError("consensus_ranking: expected finite numbers that are not negative.")
    np.fill_diagonal(wins, 0.0)
    return tuple(map(str, above.index)), wins


def _signs(margins: FloatArray) -> FloatArray:
    return np.sign(np.where(np.abs(margins) > _EQUAL * np.abs(margins).max(initial=0.0), margins, 0.0))


def _by_scores(kind: ConsensusMethod, names: tuple[str, ...], wins: FloatArray, scores: FloatArray) -> Consensus:
    lead = _signs(scores[:, None] - scores)
    order = sorted(range(len(names)), key=lambda k: (int((lead[:, k] > 0).sum()), k))
    first = tuple(int((lead[:, k] > 0).sum()) + 1 for k in order)
    last = tuple(int((lead[:, k] >= 0).sum()) for k in order)
    return Consensus(kind, tuple(names[k] for k in order), first, last, None, _reversals(wins, order))


def _reversals(wins: FloatArray, order: Sequence[int]) -> float:
    placed = wins[np.ix_(order, order)]
    return float(np.tril(placed).sum())


def _kemeny(names: tuple[str, ...], wins: FloatArray) -> Consensus:
    """The fewest reversals of all orders, exactly: the best order of each set as its first places."""
    n = len(names)
    if n > MOST_FOR_KEMENY:
        raise InvalidInputError(
            f"consensus_ranking: method kemeny takes at most {MOST_FOR_KEMENY} algorithms, got {n}. Use borda or "
            "copeland."
        )
    costs = _costs(wins)
    slack = _EQUAL * max(1.0, float(wins.sum()))
    ahead, ways = _fewest(costs, slack)
    # The rest is placed from the end: before the algorithms of a set is after those of its complement.
    behind = _fewest(costs[:, ::-1], slack)[0][::-1]
    total = float(ahead[-1])
    sizes = np.bitwise_count(np.arange(2**n, dtype=np.uint32)).astype(int)
    possible = np.zeros((n, n), dtype=bool)  # [algorithm, place]
    best_next = np.zeros((n, 2**n), dtype=bool)
    for k in range(n):
        sets = np.flatnonzero((np.arange(2**n) >> k & 1) == 0)
        best_next[k, sets] = ahead[sets] + costs[k, sets] + behind[sets | 1 << k] <= total + slack
        possible[k, sizes[sets[best_next[k, sets]]]] = True
    order, placed = [], 0
    for _ in range(n):
        order.append(int(np.flatnonzero(best_next[:, placed])[0]))
        placed |= 1 << order[-1]
    first = tuple(int(np.flatnonzero(possible[k])[0]) + 1 for k in order)
    last = tuple(int(np.flatnonzero(possible[k])[-1]) + 1 for k in order)
    return Consensus("kemeny", tuple(names[k] for k in order), first, last, int(ways[-1]), _reversals(wins, order))


def _costs(wins: FloatArray) -> FloatArray:
    """``costs[k, set]``: reversals when ``k`` comes after the algorithms of the set and before all others."""
    n = len(wins)
    costs = np.zeros((n, 1))
    for other in range(n):  # without ``other`` in the set, it comes after k
        costs = np.concatenate((costs + wins[other][:, None], costs), axis=1)
    return costs


def _fewest(costs: FloatArray, slack: float) -> tuple[FloatArray, FloatArray]:
    """Fewest reversals with each set as the first places, and the number of its orders that have so few."""
    n = len(costs)
    fewest = np.full(2**n, np.inf)
    ways = np.zeros(2**n)
    fewest[0], ways[0] = 0.0, 1.0
    sets = np.arange(2**n)
    sizes = np.bitwise_count(sets.astype(np.uint32))
    for size in range(n):
        layer = sets[sizes == size]
        steps = [(k, layer[(layer >> k & 1) == 0]) for k in range(n)]
        for k, before in steps:
            np.minimum.at(fewest, before | 1 << k, fewest[before] + costs[k, before])
        for k, before in steps:
            after = before | 1 << k
            ways[after] += np.where(fewest[before] + costs[k, before] <= fewest[after] + slack, ways[before], 0.0)
    return fewest, ways
