"""Risk profiles: how a posterior of values becomes a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polarbear_plugins.checks import FloatArray, short
from polarbear_plugins.errors import InvalidInputError

__all__ = ["Risk", "as_risk", "probability_best"]


@dataclass(frozen=True, slots=True)
class Risk:
    """A risk profile.  Made by :func:`as_risk`.

    Attributes
    ----------
    name
        ``best``, ``expected`` or ``quantile:LEVEL``.
    level
        Of a quantile.
    """

    name: str
    level: float | None = None

    def scores(self, values: FloatArray) -> FloatArray:
        """Score of each candidate, larger is better, from ``values[draw, candidate]``."""
        if self.name == "best":
            return probability_best(values)
        scores: FloatArray = values.mean(axis=0) if self.level is None else np.quantile(values, self.level, axis=0)
        return scores


def as_risk(risk: str) -> Risk:
    """Read a risk profile.

    >>> as_risk("quantile:0.05")
    Risk(name='quantile:0.05', level=0.05)
    """
    if isinstance(risk, str):
        name, _, level = risk.partition(":")
        if risk in ("best", "expected"):
            return Risk(risk)
        if name == "quantile":
            try:
                number = float(level)
            except ValueError:
                number = np.nan
            if 0 < number < 1:
                return Risk(f"quantile:{number:g}", number)
    raise InvalidInputError(
        f'risk: expected "best" (the probability of being best), "expected" or a quantile strictly between 0 and 1 as '
        f'in "quantile:0.05", got {short(risk)}.'
    )


def probability_best(values: FloatArray) -> FloatArray:
    """Probability of having the highest value, from ``values[draw, candidate]``; who shares it counts in full.

    >>> probability_best(np.array([[0.6, 0.4], [0.5, 0.5], [0.2, 0.8], [0.7, 0.3]]))
    array([0.75, 0.5 ])
    """
    probabilities: FloatArray = (values >= values.max(axis=1, keepdims=True)).mean(axis=0)
    return probabilities
