"""How many more instances would likely settle the open pairs of a race."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from polarbear_plugins.posterior import Posterior
from polarbear_plugins.race_state import RaceState
from polarbear_plugins.validation import FloatArray

__all__ = ["Outlook", "outlook"]

_DRAWS = 400  # a forecast needs no more


@dataclass(frozen=True, slots=True)
class Outlook:
    """Instances that are still needed, according to the posterior: a median, and where the middle 80 % lie.

    ``None`` stands for more than 100 times the instances there are.
    """

    median: int | None
    low: int | None
    high: int | None

    def __str__(self) -> str:
        if self.median is None:
            return "more than a hundred times as many instances as there are"
        most = "many" if self.high is None else f"{self.high:,}"
        return f"about {self.median:,} more instances (80 % interval {self.low:,} to {most})"


def outlook(state: RaceState, posterior: Posterior) -> Outlook:
    """Forecast how many more instances settle every open pair.

    Each draw of the posterior is taken for the truth in turn.  The uncertainty of a difference of log-ratings shrinks
    with the square root of the instances, so the truth says when dominance or equivalence would become sure at each
    timepoint, and the rules of the race when that settles each pair.
    """
    names = state.algorithms
    inside = [names.index(name) for name in state.pareto_set]
    observed, weights = ~np.isnan(state.table.values), state.table.weights
    logs = posterior.log_ratings[:: max(1, posterior.draws // _DRAWS)]
    width = math.log((0.5 + state.settings.epsilon) / (0.5 - state.settings.epsilon))
    # For alpha = 1 nothing would ever be sure; the forecast is for what 4,000 draws can tell.
    z = NormalDist().inv_cdf(min(state.settings.alpha, 1 - 1 / 4000))
    need: dict[tuple[int, int], FloatArray] = {}  # instances at which a pair is settled, by draw
    out = {i: np.full(len(logs), np.inf) for i in inside}  # instances at which an algorithm is eliminated
    for i in inside:
        for j in inside:
            if j <= i:
                continue
            together = np.maximum(weights @ (observed[:, :, i] & observed[:, :, j]), 1.0)
            difference = logs[:, :, i] - logs[:, :, j]
            spread = together * (posterior.log_ratings[:, :, i] - posterior.log_ratings[:, :, j]).var(axis=0) * z**2
            with np.errstate(divide="ignore"):
                dominant = spread / difference**2
                equivalent = np.where(
                    np.abs(difference) < width, spread / np.maximum(width - np.abs(difference), 1e-12) ** 2, np.inf
                )
            at_once = np.minimum(dominant, equivalent)
            pair = np.where(state.resolved[:, i, j], 0.0, at_once).max(axis=1)
            if state.settings.resolution == "crossing":
                better = np.where(difference > 0, dominant, np.inf).min(axis=1)
                worse = np.where(difference < 0, dominant, np.inf).min(axis=1)
                kinds = np.sort([better, worse, equivalent.min(axis=1)], axis=0)
                pair = np.minimum(pair, kinds[1])
            need[i, j] = pair
            everywhere = dominant.max(axis=1)
            out[j] = np.where((difference > 0).all(axis=1), np.minimum(out[j], everywhere), out[j])
            out[i] = np.where((difference < 0).all(axis=1), np.minimum(out[i], everywhere), out[i])
    drawn = float(weights.sum())
    total = np.zeros(len(logs))
    for (i, j), pair in need.items():
        if not state.resolved[:, i, j].all():
            total = np.maximum(total, np.minimum(pair, np.minimum(out[i], out[j])))
    low, median, high = np.quantile(np.maximum(total - drawn, 0), [0.1, 0.5, 0.9], method="higher")
    return Outlook(*(None if count > 100 * drawn else math.ceil(count) for count in (median, low, high)))
