"""Selection of a portfolio: algorithms to run in parallel, of which the best result counts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.display.frames import categories
from polarbear_plugins.display.html import html_table, text
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.choice import as_candidates, ratings_among, warn_of_misfit
from polarbear_plugins.selection.preferences import Preference, PreferenceLike, Risk, as_preference, as_risk

if TYPE_CHECKING:
    import pandas as pd


Method: TypeAlias = Literal["enumeration", "greedy+local search"]
Members: TypeAlias = tuple[int, ...]  # sorted indices of candidates, one for each copy

_MAX_SLOTS = 1000  # a larger number is probably a budget given by mistake
_MAX_ROWS = 10  # of a table in a notebook
_MAX_EXCHANGES = 10_000  # of two members at once; above it, members are exchanged one by one


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class PortfolioChoice:
    """The portfolio to run, and why.  Returned by :func:`polarbear_plugins.select_portfolio`.

    Attributes
    ----------
    algorithms
        The algorithms chosen, one for each slot; one that runs twice is listed twice.
    candidates
        The algorithms to choose from, in the order of the posterior.
    preference, risk
        Their names; ``weights`` holds the weight of each timepoint if the preference is a weighted mean, else ``None``.
    repeat
        Whether an algorithm could be chosen more than once.
    method
        ``"enumeration"``: all portfolios were compared, and no other has a higher score.  ``"greedy+local search"``:
        there were too many; no exchange of one member, or of two where feasible, gives a higher score.
    scores
        Score of each portfolio that was compared under the risk profile, the choice first.
    values
        ``values[draw]``: posterior of the value of the choice.
    expected_regret
        Expected difference between the value of the best portfolio compared and that of the choice.
    """

    algorithms: tuple[str, ...]
    candidates: tuple[str, ...]
    preference: str
    risk: str
    weights: FloatArray | None
    repeat: bool
    method: Method
    scores: Mapping[tuple[str, ...], float]
    values: FloatArray
    expected_regret: float

    @property
    def size(self) -> int:
        """Number of slots."""
        return len(self.algorithms)

    @property
    def counts(self) -> dict[str, int]:
        """How often each member runs."""
        return dict(Counter(self.algorithms))

    def summary(self) -> pd.DataFrame:
        """Score of each portfolio that was compared, and copies of each candidate in it, the best first."""
        import pandas as pd

        index = pd.Index([" + ".join(members) for members in self.scores], name="portfolio")
        counts = {("copies", name): [members.count(name) for members in self.scores] for name in self.candidates}
        return pd.DataFrame({("score", ""): list(self.scores.values()), **counts}, index=index)

    def to_pandas(self) -> pd.DataFrame:
        """The portfolios that were compared in long form, the best first: a row for each member.

        Columns: ``portfolio`` (its members, joined by `` + ``), ``score``, ``algorithm`` and ``copies`` of it.
        """
        import pandas as pd

        rows = [
            (" + ".join(members), score, self.candidates.index(name), copies)
            for members, score in self.scores.items()
            for name, copies in Counter(members).items()
        ]
        frame = pd.DataFrame(rows, columns=["portfolio", "score", "algorithm", "copies"])
        frame["algorithm"] = categories(frame["algorithm"].to_numpy(), self.candidates)
        return frame

    def to_dict(self, first: int = 10) -> dict[str, Any]:
        """JSON-ready dict of everything but the draws, with only the ``first`` best scores."""
        return {
            "algorithms": list(self.algorithms),
            "counts": self.counts,
            "candidates": list(self.candidates),
            "preference": self.preference,
            "weights": None if self.weights is None else self.weights.tolist(),
            "risk": self.risk,
            "repeat": self.repeat,
            "method": self.method,
            "considered": len(self.scores),
            "expected_regret": self.expected_regret,
            "mean": float(self.values.mean()),
            "scores": [
                {"algorithms": list(members), "score": score} for members, score in islice(self.scores.items(), first)
            ],
        }

    def _repr_html_(self) -> str:
        best = [[" + ".join(members), f"{score:.3g}"] for members, score in islice(self.scores.items(), _MAX_ROWS)]
        caption = f"The best {len(best)} of {len(self.scores):,} portfolios compared"
        return f"<p>{text(self)}</p>{html_table(('portfolio', '>score'), best, caption)}"

    def __repr__(self) -> str:
        return (
            f"PortfolioChoice({' + '.join(self.algorithms)} by {self.method} of {len(self.scores)}, preference "
            f"{self.preference!r}, risk {self.risk!r}, score {self.scores[self.algorithms]:.3g}, "
            f"expected regret {self.expected_regret:.3g})"
        )


def select_portfolio(
    posterior: Posterior,
    size: int,
    among: Iterable[str] | None = None,
    preference: PreferenceLike = "uniform",
    risk: str = "expected",
    *,
    repeat: bool = True,
    exact_up_to: int = 10_000,
) -> PortfolioChoice:
    """Choose algorithms to run in parallel, each with the whole budget, where the best result counts.

    The rating of a portfolio is the sum of its members' ratings, the probability that it contains the winner; an
    algorithm that runs twice counts twice, so the sum can exceed 1.  The rest is as in
    :func:`polarbear_plugins.select`.

    Parameters
    ----------
    size
        Number of slots.  Portfolios are only compared with others of this size.
    among, preference, risk
        As in :func:`polarbear_plugins.select`.
    repeat
        Whether an algorithm can take several slots.  If the preference is a weighted mean (all but ``"worst"`` and
        functions) and the risk ``"expected"`` or ``"best"``, copies of the single best algorithm are then optimal.
        The sum assumes independent runs, which those of one algorithm on one instance seldom are; ``False`` requires
        different algorithms.
    exact_up_to
        Up to this many portfolios, all are compared.  Above it, a portfolio is built greedily, and one or two members
        are exchanged while the score improves; see ``method``.  ``"best"`` and the expected regret then refer to the
        portfolios compared.

    Examples
    --------
    >>> from polarbear_plugins import RankingTable, fit
    >>> early, late = [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]
    >>> table = RankingTable.from_values([[early, late]] * 30, algorithms=["a", "b", "c"], timepoints=[1, 100])
    >>> posterior = fit(table, seed=1)
    >>> choice = select_portfolio(posterior, size=2, preference="worst")
    >>> choice.algorithms, choice.method
    (('a', 'c'), 'enumeration')
    >>> select_portfolio(posterior, size=2, preference="final").algorithms
    ('c', 'c')
    """
    candidates = as_candidates(posterior, among)
    size = as_whole_number(size, "size", at_least=1)
    if size > _MAX_SLOTS:
        raise InvalidInputError(f"size: expected at most {_MAX_SLOTS} slots, got {size}.")
    exact_up_to = as_whole_number(exact_up_to, "exact_up_to", at_least=0)
    n = len(candidates)
    if not repeat and size > n:
        raise InvalidInputError(
            f"size: {size} slots cannot be filled with {n} different algorithms ({', '.join(candidates)}). "
            "Ask for fewer, or allow repeat=True."
        )
    checked, profile = as_preference(preference, posterior.timepoints), as_risk(risk)
    pool_of = _pool_function(ratings_among(posterior, candidates), checked, profile)
    method: Method
    if (math.comb(n + size - 1, size) if repeat else math.comb(n, size)) <= exact_up_to:
        method = "enumeration"
        choose = combinations_with_replacement if repeat else combinations
        pool = pool_of(choose(range(n), size))
    else:
        method = "greedy+local search"
        pool = _search(pool_of, n, size, repeat=repeat)
    scores = {tuple(candidates[place] for place in members): score for members, score in pool.ranked().items()}
    values = pool.values(pool.winner())
    warn_of_misfit(posterior, "select_portfolio")
    return PortfolioChoice(
        algorithms=next(iter(scores)),
        candidates=candidates,
        preference=checked.name,
        risk=profile.name,
        weights=checked.weights,
        repeat=bool(repeat),
        method=method,
        scores=scores,
        values=values,
        expected_regret=float((pool.highest - values).mean()),
    )


class _Pool:
    """The portfolios compared so far, and what is needed to score them.

    The values of all would not fit in memory.  A mean or a quantile is computed at once; for the probability of being
    best only the values of portfolios that are best in some draw are kept, since the others keep probability 0.
    """

    def __init__(self, values: Callable[[Members], FloatArray], risk: Risk) -> None:
        self.values = values
        self.risk = risk
        self.means: dict[Members, float] = {}
        self.highest: FloatArray = np.array(-np.inf)  # the best value in each draw
        self._scores: dict[Members, float] = {}
        self._leaders: dict[Members, FloatArray] = {}
        self._room = 64

    def add(self, portfolios: Iterable[Members]) -> None:
        for members in portfolios:
            if members in self.means:
                continue
            values = self.values(members)
            self.means[members] = float(values.mean())
            self.highest = np.maximum(self.highest, values)
            if self.risk.name != "best":
                self._scores[members] = float(self.risk.scores(values[:, None])[0])
            elif (values >= self.highest).any():
                self._leaders[members] = values
                if len(self._leaders) > self._room:
                    self._drop_overtaken()
                    self._room = 64 + 2 * len(self._leaders)

    def _drop_overtaken(self) -> None:
        self._leaders = {members: values for members, values in self._leaders.items() if (values >= self.highest).any()}

    def scores(self) -> dict[Members, float]:
        if self.risk.name != "best":
            return self._scores
        leading = {members: float((values >= self.highest).mean()) for members, values in self._leaders.items()}
        return {members: leading.get(members, 0.0) for members in self.means}

    def ranked(self) -> dict[Members, float]:
        """Scores, the best first."""
        scores = self.scores()
        return {members: scores[members] for members in sorted(scores, key=self._order(scores))}

    def winner(self) -> Members:
        scores = self.scores()
        return min(scores, key=self._order(scores))

    def _order(self, scores: Mapping[Members, float]) -> Callable[[Members], tuple[float, float, Members]]:
        # The mean breaks ties between scores, then the order of the candidates.
        return lambda members: (-scores[members], -self.means[members], members)


def _pool_function(ratings: FloatArray, preference: Preference, risk: Risk) -> Callable[[Iterable[Members]], _Pool]:
    """A function that puts portfolios into a new pool."""
    # parts[candidate, ..., draw]: portfolios add contiguous blocks.
    parts: FloatArray = np.ascontiguousarray(ratings.transpose(2, 1, 0))
    linear = preference.weights is not None
    if linear:  # the value of the sum is the sum of the values
        parts = np.stack([preference.values(part.T) for part in parts])

    def values(members: Members) -> FloatArray:
        # In the order of the candidates, so that rounding does not depend on how a portfolio was found.
        total = np.zeros(parts.shape[1:])
        for place, copies in Counter(members).items():
            total += parts[place] if copies == 1 else copies * parts[place]
        return total if linear else preference.values(total.T)

    def pool_of(portfolios: Iterable[Members]) -> _Pool:
        pool = _Pool(values, risk)
        pool.add(portfolios)
        return pool

    return pool_of


def _search(pool_of: Callable[[Iterable[Members]], _Pool], n: int, size: int, *, repeat: bool) -> _Pool:
    """Build a portfolio greedily, then exchange members until no exchange improves the score."""
    built: Members = ()
    for _ in range(size):
        free = range(n) if repeat else sorted(set(range(n)) - set(built))
        built = pool_of(tuple(sorted((*built, place))) for place in free).winner()
    pool = pool_of([built])
    if repeat:
        # Under a weighted mean the best portfolio of each draw is one of these, so the search is exact.
        pool.add((place,) * size for place in range(n))
    # Two algorithms that lead at different times are worth little without each other: single exchanges miss them.
    pairs = math.comb(n + 1, 2)
    widest = 2 if size > 1 and min(math.comb(size, 2), pairs) * pairs <= _MAX_EXCHANGES else 1
    tried: Counter[Members] = Counter()
    while tried[best := pool.winner()] < widest:
        tried[best] += 1
        pool.add(_exchanges(best, n, tried[best], repeat=repeat))
    return pool


def _exchanges(members: Members, n: int, width: int, *, repeat: bool) -> Iterator[Members]:
    """Portfolios that differ from this one in up to ``width`` members."""
    choose = combinations_with_replacement if repeat else combinations
    for leaving in sorted(set(combinations(members, width))):
        rest = list((Counter(members) - Counter(leaving)).elements())
        for entering in choose(range(n), width):
            if repeat or not set(entering) & set(rest):
                yield tuple(sorted((*rest, *entering)))
