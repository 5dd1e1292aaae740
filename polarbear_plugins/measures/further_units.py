"""How many more units would settle an open budget, estimated from what is known so far."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from polarbear_plugins.measures.paired_verdicts import Evidence

_DRAWS = 400
_CHANCE = 0.8416  # standard deviations that are exceeded with probability 0.2
_MOST_TIMES = 100  # as many units as there are, at most
_STEPS = 100


@dataclass(frozen=True, slots=True)
class FurtherUnits:
    """Units beside those there are that would settle a budget with a chance of 80 %.

    Attributes
    ----------
    low, median, high
        Quantiles 10 %, 50 % and 90 % over what the truth may be; ``None`` for more than 100 times those there are.
    """

    low: int | None
    median: int | None
    high: int | None

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return asdict(self)

    def describe(self) -> str:
        """In words.

        >>> FurtherUnits(20, 40, None).describe()
        'about 40 (20 to more than can be told)'
        """
        if self.median is None:
            return f"more than {_MOST_TIMES} times as many as there are"
        high = "more than can be told" if self.high is None else f"{self.high:,}"
        return f"about {self.median:,} ({self.low:,} to {high})"


def further_units(evidence: Evidence, tail: float, epsilon: float, *, least: int = 1, seed: int = 0) -> FurtherUnits:
    """Estimate for the evidence at one budget.

    Each of 400 draws from the posterior is taken for the truth in turn.  The mean lead after more units is taken as
    normal, and the threshold as that of today.

    Parameters
    ----------
    tail
        What P(better) must leave out for a verdict.
    epsilon
        Win shares this close to 1/2 are equivalent.
    least
        Fewest units with which there is a verdict.

    Examples
    --------
    >>> few = Evidence.of(np.array([[1.0]] * 14 + [[-1.0]] * 6))
    >>> further_units(few, tail=0.001, epsilon=0.05)
    FurtherUnits(low=29, median=80, high=1362)
    """
    from scipy.special import ndtri

    wins, losses = (float(count[0]) for count in evidence.wins_and_losses(evidence.lead))
    units, size = float(evidence.units[0]), float(evidence.size[0])
    rng = np.random.default_rng(seed)
    decided = rng.beta(size + 2, units - size + 1, _DRAWS)
    lead = decided * (2 * rng.beta(wins + 1, losses + 1, _DRAWS) - 1)
    # The square of a lead, relative to its size, is 1 on average unless units count in part.
    square = decided * (float(evidence.squares[0]) / size if size else 1.0)
    more = np.unique(np.geomspace(1, _MOST_TIMES * units, _STEPS).round())[:, None]
    total = units + more
    chance = _CHANCE * np.sqrt(more * np.maximum(square - lead**2, 0.0))
    after = np.abs(evidence.lead[0] + more * lead)
    then = Evidence(total, after, size + more * decided, evidence.squares[0] + more * square)
    half = -float(ndtri(tail)) * np.sqrt(np.maximum(square - lead**2, 0.0) / total)
    settled = then.doubt(np.maximum(after - chance, 0.0)) <= tail
    settled |= (after + chance) / total + half <= 2 * epsilon
    settled &= total >= least
    first = np.where(settled.any(axis=0), more[settled.argmax(axis=0), 0], np.inf)
    quantiles = np.quantile(first, [0.1, 0.5, 0.9], method="higher")
    return FurtherUnits(*(int(count) if math.isfinite(count) else None for count in quantiles))
