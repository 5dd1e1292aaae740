"""A guard on decisions: what direct counts say about a relation that the model sees.

The Plackett-Luce model may not fit.  Who is first on an instance, and who of two is better, can be counted whatever the
model, and both counts have exact posteriors: a Dirichlet distribution for the shares of first places, a Beta
distribution for each pair.  A relation that the model is sure of counts only if these do not contradict it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.rankings.tallies import Tallies

# How sure the counts must be that a dominance is real: of the majority, and of first places.  An equivalence must only
# not be refuted.  Chosen on the data of benchmarks/misfit_cases.py: 0.95 for both lets more than twice as many wrong
# eliminations through on two kinds of instances, and 0.99 costs more than a tenth on data that hardly misfit.
_MAJORITY = 0.985
_FIRST = 0.95
_REFUTED = 0.05
_NODES = 16  # of the integral over the share of first places that two algorithms have together


@dataclass(frozen=True, slots=True, eq=False)
class Support:
    """What counts say about each ordered pair, ``[timepoint, i, j]``.

    Attributes
    ----------
    better
        Whether they support that ``i`` is better: it beats ``j`` on more than half of the instances, and ``j`` is not
        first on more instances by a share above epsilon.
    equivalent
        Whether they leave it possible that the two are equivalent, in both respects.
    worse
        Whether they are sure, with probability alpha, of the opposite of ``better`` in one respect.
    """

    better: BoolArray
    equivalent: BoolArray
    worse: BoolArray


def support_of(counts: Tallies, epsilon: float, alpha: float) -> Support:
    """What the counts say, with ``epsilon`` and ``alpha`` as in the settings of a race."""
    from scipy.special import betainc

    won = counts.wins + counts.ties / 2 + 1  # one of each beforehand
    lost = won.transpose(0, 2, 1)
    majority = betainc(lost, won, 0.5)
    mine = counts.first + 1
    theirs = mine.transpose(0, 2, 1)
    others = np.maximum(counts.compared - counts.first - counts.first.transpose(0, 2, 1), 0.0) + mine.shape[1] - 2
    more_often = betainc(theirs, mine, 0.5)
    # That the difference is at most epsilon is more probable than that it is negative: most need no integral.
    behind = np.array(more_often)
    doubtful = more_often < _FIRST
    behind[doubtful] = difference_at_most(epsilon, theirs[doubtful], mine[doubtful], others[doubtful])
    near = betainc(won, lost, 0.5 + epsilon) - betainc(won, lost, 0.5 - epsilon)
    refuted = (near < _REFUTED) | (behind < _REFUTED) | (behind.transpose(0, 2, 1) < _REFUTED)
    return Support(
        better=(majority >= _MAJORITY) & (behind >= _FIRST),
        equivalent=~refuted,
        worse=(majority <= 1 - alpha) | (more_often <= 1 - alpha),
    )


def difference_at_most(bound: float, one: FloatArray, other: FloatArray, rest: FloatArray) -> FloatArray:
    """Probability that one share minus another, with a Dirichlet(one, other, rest) posterior, is at most ``bound``.

    Given the sum of the two, which has a Beta distribution, the part of the first in it has another one.

    >>> difference_at_most(0.0, np.array([3.0]), np.array([3.0]), np.array([9.0])).round(12)
    array([0.5])
    """
    from scipy.special import betainc, betaincinv

    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    both: FloatArray = np.ones((*one.shape, _NODES))
    some = rest > 0  # without other algorithms the two have all first places
    both[some] = betaincinv((one + other)[some, None], rest[some, None], (nodes + 1) / 2)
    part = np.clip((1 + bound / both) / 2, 0.0, 1.0)
    return betainc(one[..., None], other[..., None], part) @ (weights / 2)
