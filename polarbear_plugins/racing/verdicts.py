"""What a round may decide: from the posterior, the guard and the second opinion to relations that count."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.posterior.relations import Relations, compare
from polarbear_plugins.racing.betting import second_opinion
from polarbear_plugins.racing.guard import support_of
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Elimination, RaceState
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.rankings.tallies import tally


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What the data of a race allow to decide.

    Attributes
    ----------
    probability
        ``probability[i, j]`` that ``i`` dominates ``j`` under the model.
    eliminates
        ``eliminates[i, j]``: whether ``j`` may be eliminated because of ``i``.
    evidence
        ``evidence[i, j]``: how strong the case is, to name the strongest rival.
    held
        ``held[i, j]``: whether the model alone would eliminate ``j`` because of ``i``, and the guard objects.
    settled
        ``settled[t, i, j]``: whether the pair is settled at that timepoint.
    disputed
        ``disputed[t, i, j]``: whether that is because the model and the counts are sure of opposite orders.
    """

    probability: FloatArray
    eliminates: BoolArray
    evidence: FloatArray
    held: BoolArray
    settled: BoolArray
    disputed: BoolArray


def judge(state: RaceState, posterior: Posterior, rankings: RankingTable) -> Verdict:
    """Apply the settings of a race to its rankings and their posterior."""
    settings = state.settings
    relations = compare(posterior, settings.epsilon)
    probability = dominance(relations, settings)
    dominates, equivalent = settled_pairs(relations, settings.alpha)
    # Where one was never observed, its rating is only the prior, which decides nothing.
    known = posterior.observed[:, :, None] & posterior.observed[:, None, :]
    dominates, equivalent = dominates & known, equivalent & known
    disputed = np.zeros_like(dominates)
    if settings.guard == "counts":
        dominates, equivalent, disputed = _guarded(state, rankings, dominates, equivalent)
    everywhere: BoolArray = np.logical_and.reduce(dominates, axis=0)
    by_model = (probability >= settings.alpha) & np.logical_and.reduce(known, axis=0)
    if settings.rule == "anytime-valid":
        opinion = second_opinion(rankings, about_new_groups(posterior))
        eliminates, evidence = opinion.dominates(settings.alpha), opinion.log_e_values
        held = np.zeros_like(eliminates)
    else:
        eliminates, evidence = by_model & everywhere, probability
        held = by_model & ~everywhere
    settled = dominates | dominates.transpose(0, 2, 1) | equivalent | disputed
    if settings.resolution == "crossing":
        settled |= crossing(dominates, equivalent)
    # One that is better at every timepoint, though not yet surely enough to eliminate, will likely do so: stopping here
    # would keep an algorithm that has lost every run.
    pending = everywhere & ~eliminates
    settled &= ~(pending | pending.T)
    return Verdict(probability, eliminates, evidence, held, settled, disputed)


def about_new_groups(posterior: Posterior) -> bool:
    """Whether the posterior is about a new group, of which those there are are a sample."""
    return posterior.groups is not None and posterior.groups.scope == "new"


def dominance(relations: Relations, settings: RaceSettings) -> FloatArray:
    """``probability[i, j]`` that ``i`` dominates ``j``: at all timepoints at once, or at the least sure timepoint."""
    return relations.p_anytime if settings.elimination == "joint" else relations.p_better.min(axis=0)


def settled_pairs(relations: Relations, alpha: float) -> tuple[BoolArray, BoolArray]:
    """``dominates[t, i, j]`` and ``equivalent[t, i, j]`` with probability ``alpha``; dominance takes precedence."""
    dominates: BoolArray = relations.p_better >= alpha
    equivalent = (relations.p_equivalent >= alpha) & ~dominates & ~dominates.transpose(0, 2, 1)
    return dominates, equivalent


def crossing(dominates: BoolArray, equivalent: BoolArray) -> BoolArray:
    """``crosses[i, j]``: neither can dominate the other, since two of the relations (>, <, =) hold somewhere."""
    better = dominates.any(axis=0)
    kinds = better.astype(int) + better.T + equivalent.any(axis=0)
    return kinds >= 2


def p_any_wrong(posterior: Posterior, eliminations: Iterable[Elimination]) -> float:
    """Probability that the rival of at least one eliminated algorithm is not the better one.

    At all timepoints at once if the posterior is joint; otherwise at the least sure timepoint.
    """
    right = np.ones(posterior.log_ratings.shape[:2], dtype=bool)
    places = {name: place for place, name in enumerate(posterior.algorithms)}
    for out in eliminations:
        rival, eliminated = (posterior.log_ratings[..., places[name]] for name in (out.by, out.algorithm))
        right &= rival > eliminated
    return float(1 - right.all(axis=1).mean() if posterior.joint else (1 - right.mean(axis=0)).max())


def _guarded(
    state: RaceState, rankings: RankingTable, dominates: BoolArray, equivalent: BoolArray
) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Relations that counts among the algorithms in the race do not contradict, and pairs that are in dispute.

    A pair is in dispute where the model is sure of one order and the counts are as sure of the other.  Neither
    algorithm can then eliminate the other, and more instances will not change that: the pair is settled.
    """
    inside = [state.algorithms.index(name) for name in state.pareto_set]
    support = support_of(tally(rankings, inside), state.settings.epsilon, state.settings.alpha)
    here = np.ix_(range(state.timepoints.size), inside, inside)
    disputed = np.zeros_like(dominates)
    disputed[here] = dominates[here] & support.worse
    supported, possible = np.zeros_like(dominates), np.zeros_like(dominates)
    supported[here], possible[here] = support.better, support.equivalent
    return dominates & supported, equivalent & possible, disputed | disputed.transpose(0, 2, 1)
