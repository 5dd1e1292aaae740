"""Relations between pairs of algorithms under a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.display.frames import pair_frame
from polarbear_plugins.display.html import html_table, text
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plackett_luce.likelihood import margin_of
from polarbear_plugins.posterior.posterior import Posterior

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Relations:
    """Probabilities of relations between algorithms.  Made by :func:`polarbear_plugins.compare`.

    Attributes
    ----------
    p_better
        ``p_better[t, i, j]``: probability that ``i`` has the higher rating than ``j`` at timepoint ``t``.
    p_equivalent
        ``p_equivalent[t, i, j]``: probability that ``i`` beats ``j`` with a probability within ``epsilon`` of 1/2.
    """

    algorithms: tuple[str, ...]
    timepoints: FloatArray
    epsilon: float
    p_better: FloatArray
    p_equivalent: FloatArray
    prior: str
    _p_anytime: FloatArray | None

    @property
    def p_anytime(self) -> FloatArray:
        """``p_anytime[i, j]``: probability that ``i`` has the higher rating than ``j`` at *all* timepoints.

        Raises
        ------
        InvalidInputError
            The prior treats timepoints as independent, so there is no joint posterior over them.
        """
        if self._p_anytime is None:
            raise InvalidInputError(
                f"The probability of being better at all timepoints needs a joint posterior over time, and prior "
                f"{self.prior!r} has none. Use a temporal prior (bspline, hsgp, gp, sparse-gp, random-walk) or the "
                "pointwise p_better."
            )
        return self._p_anytime

    @property
    def joint(self) -> bool:
        """Whether there is a ``p_anytime``."""
        return self._p_anytime is not None

    def to_pandas(self) -> pd.DataFrame:
        """Table of the probabilities in long form: a row for each timepoint and ordered pair.

        Columns: ``timepoint``, ``algorithm``, ``other``, ``p_better`` (that the algorithm has the higher rating),
        ``p_equivalent``, and ``p_anytime``, which is the same at all timepoints, and ``nan`` without a joint posterior.
        """
        anytime = np.nan if self._p_anytime is None else self._p_anytime
        columns = {"p_better": self.p_better, "p_equivalent": self.p_equivalent, "p_anytime": anytime}
        return pair_frame(self.algorithms, "algorithm", "other", columns, timepoint=self.timepoints)

    def _repr_html_(self) -> str:
        everywhere = self._p_anytime if self._p_anytime is not None else self.p_better.min(axis=0)
        where = "all timepoints at once" if self.joint else "the least sure timepoint"
        rows = [
            [name, *("" if i == j else f"{everywhere[i, j]:.3f}" for j in range(len(self.algorithms)))]
            for i, name in enumerate(self.algorithms)
        ]
        columns = ("better than", *(f">{name}" for name in self.algorithms))
        caption = f"Probability that the row has the higher rating than the column: {where}"
        return f"<p>{text(self)}</p>{html_table(columns, rows, caption)}"

    def __repr__(self) -> str:
        return (
            f"Relations({len(self.algorithms)} algorithms, {self.timepoints.size} timepoints, epsilon {self.epsilon:g})"
        )


def compare(posterior: Posterior, epsilon: float = 0.05) -> Relations:
    """Probabilities of dominance and equivalence for each pair of algorithms at each timepoint.

    Parameters
    ----------
    epsilon
        Two algorithms are equivalent if each beats the other with a probability in [0.5 - epsilon, 0.5 + epsilon].
    """
    epsilon = as_number(epsilon, "epsilon", at_least=0, below=0.5)
    draws, timepoints, n = posterior.log_ratings.shape
    # Contiguous by algorithm: each is read many times.
    columns = np.ascontiguousarray(posterior.log_ratings.transpose(2, 0, 1))
    width = margin_of(epsilon)
    better = np.zeros((timepoints, n, n))
    equivalent = np.ones((timepoints, n, n))
    anytime = np.zeros((n, n)) if posterior.joint else None
    for i in range(n):
        for j in range(i):
            difference = columns[i] - columns[j]
            above, below = difference > 0, difference < 0
            # Draws that are exactly equal count half for each, so that the two probabilities sum to 1.
            ahead, behind = above.sum(axis=0), below.sum(axis=0)
            equal = draws - ahead - behind
            better[:, i, j], better[:, j, i] = (ahead + equal / 2) / draws, (behind + equal / 2) / draws
            equivalent[:, i, j] = equivalent[:, j, i] = (np.abs(difference) <= width).mean(axis=0)
            if anytime is not None:
                anytime[i, j], anytime[j, i] = above.all(axis=1).mean(), below.all(axis=1).mean()
    return Relations(posterior.algorithms, posterior.timepoints, epsilon, better, equivalent, posterior.prior, anytime)
