"""Where scores or measures and the rankings of the same data disagree, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from polarbear_plugins.display.text import spans
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.bootstrap import Bootstrap
from polarbear_plugins.measures.orders import MeasureName, MeasureOrders
from polarbear_plugins.measures.scores import Scores
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.posterior.relations import compare
from polarbear_plugins.rankings.ranks import UNRANKED_RANK
from polarbear_plugins.rankings.table import RankingTable

DisagreementKind: TypeAlias = Literal["reversed", "only the score is sure", "only the rankings are sure"]
ContradictionKind: TypeAlias = Literal["reversed", "crossing", "open"]
_CONTRADICTIONS: tuple[ContradictionKind, ...] = ("reversed", "crossing", "open")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A pair of algorithms on which score and rankings disagree at the end of the runs.

    Attributes
    ----------
    ahead, behind
        The algorithm with the better score, and the other.
    kind
        ``reversed``: the rankings favour the other one.  Otherwise both favour the same one, but only one of the two is
        sure.
    resampled
        Share of the resamples of the studies in which ``ahead`` has the better score.
    ranked
        Posterior probability that ``ahead`` has the higher rating.
    wins
        Share of the comparisons in which ``ahead`` has the better value, ties counted half.
    instance, share
        The instance that contributes most to the lead in the score, and its share of it: above 1 if others reduce the
        lead.
    """

    ahead: str
    behind: str
    kind: DisagreementKind
    resampled: float
    ranked: float
    wins: float
    instance: str
    share: float

    def __str__(self) -> str:
        lead = f"{self.ahead} scores above {self.behind} (in {self.resampled:.1%} of the resamples)"
        wins = f"is better in {self.wins:.0%} of the comparisons"
        if self.kind == "reversed":
            return (
                f"{lead}, but {self.behind} has the higher rating with probability {1 - self.ranked:.2f}: "
                f"{self.ahead} {wins} and gets {self._share} of its lead on {self.instance}."
            )
        if self.kind == "only the score is sure":
            return (
                f"{lead}, but the rankings are not sure (probability {self.ranked:.2f}): it {wins} and gets "
                f"{self._share} of its lead on {self.instance}. Other instances may reverse it."
            )
        return (
            f"{self.ahead} has a higher rating than {self.behind} with probability {self.ranked:.3f} and {wins}, but "
            f"scores above it in only {self.resampled:.1%} of the resamples."
        )

    @property
    def _share(self) -> str:
        return "more than all" if self.share > 1 else f"{self.share:.0%}"


def find_disagreements(
    scores: Scores, bootstrap: Bootstrap, table: RankingTable, posterior: Posterior, alpha: float = 0.99
) -> list[Disagreement]:
    """Pairs on which scores and rankings disagree at the end, the clearest contradictions first.

    They answer different questions.  A score averages differences between values on these instances, and its bootstrap
    is about other repetitions on them.  A rating counts wins, and its posterior is about other instances of the same
    kind.

    Parameters
    ----------
    alpha
        Probability, and share of the resamples, from which on something counts as sure.
    """
    names = scores.algorithms
    if set(names) != set(posterior.algorithms) or set(names) != set(table.algorithms):
        raise InvalidInputError("Scores, rankings and posterior are of different algorithms.")
    rated = compare(posterior).p_better[-1]
    rating = [posterior.algorithms.index(name) for name in names]
    column = [table.algorithms.index(name) for name in names]
    resampled, losses = bootstrap.p_better, scores.by_instance[-1]
    found = []
    for i, ahead in enumerate(names):
        for j, behind in enumerate(names):
            if not scores.mean[-1, i] < scores.mean[-1, j]:
                continue
            share, p = float(resampled[i, j]), float(rated[rating[i], rating[j]])
            kind: DisagreementKind
            if p < 0.5:
                kind = "reversed"
            elif share >= alpha > p:
                kind = "only the score is sure"
            elif p >= alpha > share:
                kind = "only the rankings are sure"
            else:
                continue
            lead = losses[j] - losses[i]
            most = int(np.argmax(lead))
            wins = _win_share(table, column[i], column[j])
            found.append(
                Disagreement(
                    ahead, behind, kind, share, p, wins, scores.instances[most], float(lead[most] / lead.sum())
                )
            )
    order = ("reversed", "only the score is sure", "only the rankings are sure")
    return sorted(found, key=lambda pair: (order.index(pair.kind), pair.ranked, -pair.resampled))


def _win_share(table: RankingTable, one: int, other: int) -> float:
    """Share of the rows, by their weights, in which one algorithm is better than another at the last timepoint."""
    mine, theirs = table.ranks[:, -1, one], table.ranks[:, -1, other]
    # Between two unranked ones nothing is known.
    compared = (mine > 0) & (theirs > 0) & (np.minimum(mine, theirs) < UNRANKED_RANK)
    weights = table.weights * compared
    total = weights.sum()
    return float((weights * ((mine < theirs) + 0.5 * (mine == theirs))).sum() / total) if total else 0.5


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A pair of algorithms in an order by measures that rankings do not confirm.

    Attributes
    ----------
    measures
        The measures that put ``ahead`` before ``behind``.
    kind
        ``reversed``: ``behind`` is surely better at some timepoints, ``ahead`` at none.  ``crossing``: each is surely
        better at some, so that the budget decides.  ``open``: neither is surely better at any.
    lost, won
        Timepoints at which ``behind``, or ``ahead``, is surely better, as intervals in words.
    highest
        Highest probability, over the timepoints, that ``ahead`` is better.
    alpha
        Probability from which on something counts as sure.
    """

    measures: tuple[MeasureName, ...]
    ahead: str
    behind: str
    kind: ContradictionKind
    lost: tuple[str, ...]
    won: tuple[str, ...]
    highest: float
    alpha: float

    def __str__(self) -> str:
        verb = "puts" if len(self.measures) == 1 else "put"
        start = f"{_join_words(self.measures)} {verb} {self.ahead} before {self.behind}, but "
        if self.kind == "open":
            return (
                f"{start}by rankings neither is surely better at any timepoint (P at most {self.highest:.2f} for "
                f"{self.ahead}): other instances may reverse it."
            )
        lost = f"{self.behind} is better at {_join_words(self.lost)} (P >= {self.alpha:g})"
        if self.kind == "reversed":
            return f"{start}{lost}, and {self.ahead} surely at no timepoint (P at most {self.highest:.2f})."
        return f"{start}{lost}, and {self.ahead} at {_join_words(self.won)}: the budget decides, which one order hides."


def find_contradictions(orders: MeasureOrders, posterior: Posterior, alpha: float = 0.99) -> list[Contradiction]:
    """Pairs in an order by measures that the posterior of the rankings does not confirm, the clearest first.

    A pair is confirmed if the one ahead is better with probability ``alpha`` at some timepoints and the one behind at
    none.
    """
    places = orders.columns_in(posterior)
    better = compare(posterior).p_better[:, places][:, :, places]
    losses = {measure: orders.losses(measure) for measure in orders.by_measure}
    found = []
    for i, ahead in enumerate(orders.algorithms):
        for j, behind in enumerate(orders.algorithms):
            measures = tuple(measure for measure, loss in losses.items() if loss[i] < loss[j])
            won, lost = better[:, i, j] >= alpha, better[:, j, i] >= alpha
            if not measures or (won.any() and not lost.any()):
                continue
            kind: ContradictionKind = "open" if not lost.any() else "crossing" if won.any() else "reversed"
            grid = posterior.timepoints
            highest = float(better[:, i, j].max())
            where = tuple(spans(grid, lost)), tuple(spans(grid, won))
            found.append(Contradiction(measures, ahead, behind, kind, *where, highest, alpha))
    return sorted(found, key=lambda pair: (_CONTRADICTIONS.index(pair.kind), -len(pair.measures)))


def _join_words(words: tuple[str, ...]) -> str:
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
