"""The probability that one algorithm is better than another, in a millisecond and without draws.

The posterior is that of the ``dirichlet`` prior: Plackett-Luce ratings, uniform over the simplex.  Its mode and
curvature there give a first answer for all pairs.  For one pair the tail of the marginal posterior follows from the
best ratings at which neither of the two is favoured, by the formula of Barndorff-Nielsen: its error is a few
thousandths, also where one of the two always wins and a normal approximation at the mode is far off.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from polarbear_plugins.arrays import FloatArray

_LONGEST_STEP = 2.0
_MOST_STEPS = 100
_SMALL_DECREMENT = 1e-6
# This close to the mode the tail formula divides 0 by 0, and the normal approximation is accurate enough.
_NEAR = 0.05


def choices_of(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sets that the places of rankings were chosen from, and how often each algorithm was chosen.

    Parameters
    ----------
    values
        ``values[instance, algorithm]``, small is good, ``nan`` is absent.

    Returns
    -------
    members
        ``members[place, algorithm]``: 1 for algorithms not placed before.  The places of a tie are chosen from the
        remaining shares of its members (Efron's form of ties), which costs no more than without ties.
    wins
        Number of places of each algorithm.

    Examples
    --------
    >>> choices_of(np.array([[1.0, 2.0, np.nan], [3.0, 3.0, 1.0]]))
    (array([[1. , 1. , 0. ],
           [0. , 1. , 0. ],
           [0.5, 0.5, 0. ],
           [1. , 1. , 0. ],
           [1. , 1. , 1. ]]), array([2., 2., 1.]))
    """
    mine, others = values[:, :, None], values[:, None, :]
    tied = mine == others
    size = np.count_nonzero(tied, axis=-1)
    place = np.count_nonzero(tied & np.tri(values.shape[1], dtype=bool), axis=-1)
    members = (others > mine) + tied * (place / np.maximum(size, 1))[:, :, None]
    present = size > 0
    return members[present], np.count_nonzero(present, axis=0).astype(np.float64)


class RatingMode:
    """The mode of the posterior of Plackett-Luce utilities (logarithms of ratings), and the posterior around it.

    Parameters
    ----------
    values
        ``values[instance, algorithm]``, small is good, ``nan`` is absent, equal values are ties.

    Examples
    --------
    Two algorithms, nine wins and one loss: the win probability has the posterior Beta(10, 2).

    >>> mode = RatingMode(np.array([[1.0, 2.0]] * 9 + [[2.0, 1.0]]))
    >>> round(mode.p_better(0, 1), 3)
    0.994
    >>> from scipy.stats import beta
    >>> round(float(beta(10, 2).sf(0.5)), 3)
    0.994
    """

    def __init__(self, values: FloatArray) -> None:
        self._members, wins = choices_of(values)
        # The Dirichlet(1) prior is one more win for each, chosen from all.
        self._wins = wins + 1.0
        # A start: how often each was placed, relative to how often it could have been.
        start = np.log(self._wins / (1.0 + self._members.sum(axis=0)))
        self.utilities, self._value, _, self._information = self._climb(start - start.mean(), None)
        self._covariance = np.linalg.inv(self._information)

    def normal_scores(self, than: int, margin: float = 0.0) -> FloatArray:
        """Standard deviations by which each utility exceeds that of ``than`` by more than ``margin``.

        From the normal approximation at the mode; ``-inf`` for ``than`` itself.
        """
        spread = np.diag(self._covariance) + self._covariance[than, than] - 2 * self._covariance[than]
        spread[than] = np.inf
        scores: FloatArray = (self.utilities - self.utilities[than] - margin) / np.sqrt(spread)
        scores[than] = -np.inf
        return scores

    def p_better(self, who: int, than: int, margin: float = 0.0) -> float:
        """Posterior probability that the utility of ``who`` is above that of ``than`` by more than ``margin``."""
        ahead = float(self.utilities[who] - self.utilities[than]) - margin
        _, value, gradient, information = self._climb(self.utilities.copy(), (who, than, margin))
        root = math.copysign(math.sqrt(max(0.0, 2.0 * (self._value - value))), ahead)
        # The two are opposite at the mode; half their difference, wherever the search has stopped, is the same for the
        # opposite question, so that the two answers sum to 1.
        slope = float(gradient[who] - gradient[than]) / 2
        ratio = slope / root if abs(root) > _NEAR else 0.0
        if ratio <= 0:
            return float(ndtr(self.normal_scores(than, margin)[who]))
        bound = np.delete(np.delete(_merge_pair(information, who, than), than, axis=0), than, axis=1)
        volume = 0.5 * (np.linalg.slogdet(bound)[1] - np.linalg.slogdet(self._information)[1])
        return float(ndtr(root + (math.log(ratio) + volume) / root))

    def _climb(
        self, utilities: FloatArray, tie: tuple[int, int, float] | None
    ) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """Newton's method for the mode; ``tie`` fixes the difference of two utilities at a margin."""
        if tie is not None:
            who, than, margin = tie
            middle = (utilities[who] + utilities[than]) / 2
            utilities[who], utilities[than] = middle + margin / 2, middle - margin / 2
        for _ in range(_MOST_STEPS):
            value, gradient, information = self._derivatives(utilities)
            if tie is None:
                step = np.linalg.solve(information, gradient)
            else:
                pull, curvature = gradient.copy(), _merge_pair(information, who, than)
                pull[who] += pull[than]
                pull[than] = 0.0
                step = np.linalg.solve(curvature, pull)
                step[than] = step[who]
            if gradient @ step < _SMALL_DECREMENT:
                break
            utilities = utilities + step * min(1.0, _LONGEST_STEP / float(np.abs(step).max()))
        return utilities, value, gradient, information

    def _derivatives(self, utilities: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Logarithm of the posterior, its gradient and its negative curvature.

        The level of the utilities is arbitrary; a term of the curvature fixes it and changes nothing else.
        """
        n, highest = utilities.size, float(utilities.max())
        theta = np.exp(utilities - highest)
        sums, total = self._members @ theta, float(theta.sum())
        inverse = 1.0 / sums
        expected = theta * (inverse @ self._members + n / total)
        level = np.log(sums).sum() + n * math.log(total) + (sums.size + n) * highest
        weighted = self._members * inverse[:, None]
        information = 1.0 - np.outer(theta, theta) * (weighted.T @ weighted + n / total**2)
        information.flat[:: n + 1] += expected
        return float(self._wins @ utilities - level), self._wins - expected, information


def _merge_pair(information: FloatArray, who: int, than: int) -> FloatArray:
    """Curvature where two utilities move together: ``who`` stands for both, and ``than`` is left out."""
    merged = information.copy()
    merged[who] += merged[than]
    merged[:, who] += merged[:, than]
    merged[than] = merged[:, than] = 0.0
    merged[than, than] = 1.0
    return merged
