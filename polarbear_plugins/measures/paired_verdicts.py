"""Verdicts on two versions at several budgets, with one error level for all budgets together.

A unit (an instance, say) has a lead at each budget: the share of its pairs of runs that the new version wins minus the
share that it loses.  The win share of the new version is 1/2 plus half the mean lead; a tie is half a win.

**How sure.**  Ties say nothing about who is better, so P(better) is that of wins and losses alone: with a uniform prior
the share of wins has a Beta distribution.  Units that count in part (some of their pairs won, some lost) count as
``(sum |lead|)^2 / sum lead^2`` whole ones.  Together with the share of ties this gives the posterior of the win share,
which is that of a Dirichlet(1, 1, 1) prior of win, tie and loss if every unit has one pair.

**When it is enough.**  If the two versions are equal, exchanging them on any unit changes nothing, so the signs of its
leads, at all budgets at once, are a matter of chance.  Flipping them at random shows how sure P(better) becomes at the
surest budget by chance alone.  The threshold is what chance exceeds with the probability ``level``: exactly so for any
number of units, any ties, and any dependence between budgets.  The interval of the win share leaves out, on each side,
what the threshold leaves out, so it excludes 1/2 where a budget is decided, and only there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.measures.sign_flips import counts_all, flip_signs

Verdict: TypeAlias = Literal["better", "worse", "equivalent", "open"]

_FEWEST_FLIPS, _MOST_FLIPS = 9_999, 999_999
_FLIPS_BEYOND = 40  # expected beyond the threshold, so that it does not depend on a few
_AT_ONCE = 4_000_000  # signs drawn at a time
_ROUNDING = 1e-7  # relative, of probabilities that are equal
_DECIMALS = 9  # of sums of leads; more are rounding
_NODES = 64  # of the integral over the share of ties
_HALVINGS = 30  # of the range of win shares in which a bound lies


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Verdicts at each budget; ``nan`` and ``None`` where nothing was compared.

    Attributes
    ----------
    p
        Share of flips that are as sure at any budget as this budget is: at most ``level`` where it is decided.
    tail
        1 minus the threshold of P(better); 0 if there are too few units to decide anything.
    interval_tail
        What the interval leaves out on each side.
    """

    verdicts: tuple[Verdict | None, ...]
    units: FloatArray
    p_better: FloatArray
    share: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray
    tail: float
    interval_tail: float


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What the leads say at each budget: sums over units, none of which but ``lead`` changes if signs are flipped."""

    units: FloatArray
    lead: FloatArray
    size: FloatArray
    squares: FloatArray

    @classmethod
    def of(cls, leads: FloatArray) -> Evidence:
        """Evidence of ``leads[unit, budget]``, in which ``nan`` is absent."""
        known = np.nan_to_num(leads)
        units = (~np.isnan(leads)).sum(axis=0).astype(np.float64)
        return cls(units, known.sum(axis=0), np.abs(known).sum(axis=0), (known**2).sum(axis=0))

    def at(self, budget: int) -> Evidence:
        """The evidence at one budget."""
        return Evidence(*(each[budget : budget + 1] for each in (self.units, self.lead, self.size, self.squares)))

    def wins_and_losses(self, lead: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Whole units won and lost, if the leads sum to ``lead``."""
        decided = self.size**2 / np.maximum(self.squares, 1e-300)
        share = lead / np.maximum(self.size, 1e-300)
        return decided * np.maximum(1 + share, 0.0) / 2, decided * np.maximum(1 - share, 0.0) / 2

    def doubt(self, lead: FloatArray) -> FloatArray:
        """Posterior probability that the other version is the better one than ``lead`` says; 1/2 at most."""
        from scipy.special import betainc

        wins, losses = self.wins_and_losses(np.abs(lead))
        return np.asarray(betainc(wins + 1, losses + 1, 0.5), dtype=np.float64)


def judge_leads(
    leads: FloatArray, level: float, epsilon: float, seed: int = 0, fewest_flips: int = _FEWEST_FLIPS
) -> Judged:
    """Verdicts on ``leads[unit, budget]``.

    Parameters
    ----------
    level
        Largest probability that any budget is decided if the two are equal.
    epsilon
        Equivalent where the whole interval of the win share is this close to 1/2.
    seed
        Of the flips, where there are too many to count them all.
    fewest_flips
        The level is exact with any number; with more flips the verdict depends less on the seed.

    Examples
    --------
    >>> found = judge_leads(np.array([[1.0, 0.0]] * 12 + [[-1.0, 0.0]]), level=0.01, epsilon=0.05)
    >>> found.verdicts, found.p.round(4).tolist(), found.p_better.round(4).tolist()
    (('better', 'open'), [0.0034, 1.0], [0.9991, 0.5])
    """
    evidence = Evidence.of(leads)
    seen = evidence.units > 0
    doubt = evidence.doubt(evidence.lead)
    p_better = np.where(seen, np.where(evidence.lead > 0, 1 - doubt, doubt), np.nan)
    p, tail = calibrate(leads, level, seed, fewest_flips)
    # Where nothing can be decided, as if the two always tie, the interval has Bonferroni's level, and contains 1/2.
    outside = tail or min(level / (2 * max(seen.sum(), 1)), (1 - _ROUNDING) * float(doubt.min()))
    low, high = (np.where(seen, bound, np.nan) for bound in interval(evidence, outside))
    verdicts: list[Verdict | None] = []
    for t in range(seen.size):
        if not seen[t]:
            verdicts.append(None)
        elif 0.5 - epsilon <= low[t] and high[t] <= 0.5 + epsilon:
            verdicts.append("equivalent")
        else:
            verdicts.append("open" if p[t] > level else "better" if evidence.lead[t] > 0 else "worse")
    share = np.where(seen, 0.5 + evidence.lead / np.maximum(evidence.units, 1) / 2, np.nan)
    return Judged(tuple(verdicts), evidence.units, p_better, share, low, high, np.where(seen, p, np.nan), tail, outside)


def calibrate(
    leads: FloatArray, level: float, seed: int = 0, fewest_flips: int = _FEWEST_FLIPS
) -> tuple[FloatArray, float]:
    """P value of each budget over all budgets, and the largest doubt that is rarer than ``level``; 0 if none is."""
    evidence = Evidence.of(leads)
    flips = min(max(fewest_flips, math.ceil(_FLIPS_BEYOND / level) - 1), _MOST_FLIPS)
    parts = _flipped(np.nan_to_num(leads), flips, seed)
    least = np.sort(np.concatenate([_least_doubt(evidence, sums) for sums in parts]))

    def share_below(doubts: FloatArray) -> FloatArray:
        return np.searchsorted(least, doubts * (1 + _ROUNDING), side="right") / least.size

    rare = least[share_below(least) <= level]
    return share_below(evidence.doubt(evidence.lead.round(_DECIMALS))), float(rare[-1]) if rare.size else 0.0


def _least_doubt(evidence: Evidence, sums: FloatArray) -> FloatArray:
    """Doubt at the surest budget, for each row of sums of leads."""
    least = np.full(len(sums), 0.5)
    for t, column in enumerate(np.abs(sums).T):
        # Few sums differ where every unit has one pair, and the doubt takes much longer than sorting them.
        different, place = np.unique(column.round(_DECIMALS), return_inverse=True)
        np.minimum(least, evidence.at(t).doubt(different)[place], out=least)
    return least


def _flipped(known: FloatArray, flips: int, seed: int) -> Iterator[FloatArray]:
    """``[flip, budget]``: sums of leads with flipped signs, in parts; the first is the observation itself."""
    units = len(known)
    if counts_all(units, flips):
        yield flip_signs(units, flips, seed) @ known
        return
    rng = np.random.default_rng(seed)
    yield known.sum(axis=0)[None]
    rows = max(1, _AT_ONCE // units)
    for start in range(0, flips, rows):
        signs = rng.integers(0, 2, (min(rows, flips - start), units), dtype=np.int8)
        yield (2.0 * signs - 1.0) @ known


def interval(evidence: Evidence, tail: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of the win share beyond each of which its posterior has the probability ``tail``.

    The win share is 1/2 plus the share of units that are no ties times the excess of wins among these over 1/2.
    """
    from scipy.special import betainc, betaincinv

    wins, losses = (count[:, None] + 1 for count in evidence.wins_and_losses(evidence.lead))
    levels, weights = _nodes()
    decided = betaincinv((evidence.size + 2)[:, None], (evidence.units - evidence.size + 1)[:, None], levels)
    ends = []
    for probability in (tail, 1 - tail):
        low, high = np.zeros_like(evidence.lead), np.ones_like(evidence.lead)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            won = np.clip(0.5 + (middle - 0.5)[:, None] / decided, 0.0, 1.0)
            below = betainc(wins, losses, won) @ weights < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        ends.append((low + high) / 2)
    return ends[0], ends[1]


@cache
def _nodes() -> tuple[FloatArray, FloatArray]:
    """Levels between 0 and 1 and their weights in an integral, closer at both ends."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    place = (nodes + 1) / 2
    return place**2 * (3 - 2 * place), 3 * weights * place * (1 - place)
