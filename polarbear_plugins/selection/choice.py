"""Selection of one algorithm under a time preference and a risk profile."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.display.html import summary_table, text
from polarbear_plugins.errors import InvalidInputError, ModelWarning, short
from polarbear_plugins.names import as_name, distinct_names
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.preferences import (
    Preference,
    PreferenceLike,
    Risk,
    as_preference,
    as_risk,
    probability_best,
)
from polarbear_plugins.selection.support import SUPPORTED, WORTH_NAMING, about_best

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Choice:
    """The algorithm to use, and why.  Returned by :func:`polarbear_plugins.select`.

    Attributes
    ----------
    algorithm
        The algorithm chosen.
    candidates
        The algorithms to choose from, in the order of the posterior.
    preference, risk
        Their names; ``weights`` holds the weight of each timepoint if the preference is a weighted mean, else ``None``.
    scores
        Score of each candidate under the risk profile; the choice has the highest.
    values
        ``values[draw, candidate]``: posterior of the value of each candidate.
    expected_regret
        Expected difference between the value of the best candidate and that of the choice.
    """

    algorithm: str
    candidates: tuple[str, ...]
    preference: str
    risk: str
    weights: FloatArray | None
    scores: Mapping[str, float]
    values: FloatArray
    expected_regret: float

    @property
    def support(self) -> float:
        """Probability that nothing is noticeably better: about the best value, as good as a win in 45 of 100.

        As sure as the draws: too sure if the preference spans several timepoints and the posterior is not joint.
        """
        return float(about_best(self.values, self.candidates.index(self.algorithm)).mean())

    @property
    def supported(self) -> bool:
        """Whether the data support the choice: :attr:`support` is at least 0.95."""
        return self.support >= SUPPORTED

    @property
    def rivals(self) -> tuple[str, ...]:
        """Others that may be the best instead, the likeliest first; none if the choice is supported."""
        if self.supported:
            return ()
        p_best = dict(zip(self.candidates, probability_best(self.values).tolist(), strict=True))
        others = [name for name in self.candidates if name != self.algorithm and p_best[name] >= WORTH_NAMING]
        return tuple(sorted(others, key=lambda name: -p_best[name]))

    def summary(self, probability: float = 0.95) -> pd.DataFrame:
        """Score, value and regret of each candidate, the best first.

        Columns: the score; mean, standard deviation and central interval of the value; the probability of being best;
        the expected regret of choosing this candidate.
        """
        import pandas as pd

        columns = self._columns(probability)
        # Stable; the mean breaks ties between scores, as in the choice itself.
        order = np.lexsort((-columns["mean"], -columns["score"]))
        index = pd.Index([self.candidates[place] for place in order], name="algorithm")
        return pd.DataFrame({name: column[order] for name, column in columns.items()}, index=index)

    def to_pandas(self) -> pd.DataFrame:
        """The posterior of the values in long form, with columns ``draw``, ``algorithm`` and ``value``."""
        axes = {"draw": np.arange(len(self.values)), "algorithm": self.candidates}
        return long_frame(axes, {"value": self.values})

    def to_dict(self, probability: float = 0.95) -> dict[str, Any]:
        """JSON-ready dict of everything but the draws."""
        columns = self._columns(probability)
        return {
            "algorithm": self.algorithm,
            "preference": self.preference,
            "weights": None if self.weights is None else self.weights.tolist(),
            "risk": self.risk,
            "support": self.support,
            "supported": self.supported,
            "expected_regret": self.expected_regret,
            "candidates": {
                candidate: {name: float(column[place]) for name, column in columns.items()}
                for place, candidate in enumerate(self.candidates)
            },
        }

    def _columns(self, probability: float) -> dict[str, FloatArray]:
        low, high = np.quantile(self.values, [(1 - probability) / 2, (1 + probability) / 2], axis=0)
        return {
            "score": np.array([self.scores[candidate] for candidate in self.candidates]),
            "mean": self.values.mean(axis=0),
            "sd": self.values.std(axis=0),
            "low": low,
            "high": high,
            "p_best": probability_best(self.values),
            "expected_regret": (self.values.max(axis=1, keepdims=True) - self.values).mean(axis=0),
        }

    def _repr_html_(self) -> str:
        return f"<p>{text(self)}</p>{summary_table(self.summary(), 'Value under the preference, 95 % interval')}"

    def __repr__(self) -> str:
        doubt = "" if self.supported else f", not supported: {', '.join(self.rivals)} may be better"
        return (
            f"Choice({self.algorithm!r} of {len(self.candidates)}, preference {self.preference!r}, risk {self.risk!r}, "
            f"score {self.scores[self.algorithm]:.3g}, expected regret {self.expected_regret:.3g}{doubt})"
        )


def select(
    posterior: Posterior,
    among: Iterable[str] | None = None,
    preference: PreferenceLike = "uniform",
    risk: str = "expected",
) -> Choice:
    """Choose an algorithm under a time preference and a risk profile, without further experiments.

    The preference turns the ratings of a candidate over time into one value, draw by draw; the risk profile turns
    the posterior of that value into a score; the highest score wins, and the mean breaks ties.

    Parameters
    ----------
    among
        The candidates, all algorithms by default; after a race, its Pareto set.  Ratings are those among the
        candidates: the probability of being the best *of them*, which sums to 1 at each timepoint.
    preference
        ``"uniform"``
            Mean rating over the time from the first to the last timepoint: any budget in between is equally likely.
        ``"log-uniform"``
            The same over the logarithm of time: equal ratios of budgets weigh the same, so early times weigh more.
        ``"final"``
            Rating at the last timepoint.
        ``"worst"``
            Lowest rating at any timepoint.
        a weight for each timepoint
            Weighted mean; only ratios between the weights matter.
        a distribution of the budget
            A frozen scipy distribution, or anything with ``cdf`` (and ``pmf`` if it is discrete).  A budget counts at
            the last timepoint that it reaches; budgets below the first timepoint count at the first.
        a function
            Takes the ratings of one algorithm, an array over the timepoints, and returns its value.  It should
            increase with the ratings, or a dominated algorithm may win.  See
            :func:`polarbear_plugins.selection.preferences.vectorized`.
    risk
        ``"best"`` (probability of having the highest value, P2BB), ``"expected"`` (mean value), or
        ``"quantile:0.05"`` (the value that is exceeded with probability 0.95).

    Notes
    -----
    Where the posterior is not joint over time, its timepoints are independent and so are their draws: a mean over time
    then varies as little as that model implies.  Use a temporal prior for ``"best"``, quantiles and ``"worst"``;
    expected values of weighted means do not depend on it.

    Examples
    --------
    >>> from polarbear_plugins import RankingTable, fit
    >>> early, late = [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]
    >>> table = RankingTable.from_values([[early, late]] * 30, algorithms=["a", "b", "c"], timepoints=[1, 100])
    >>> posterior = fit(table, seed=1)
    >>> select(posterior, preference="final").algorithm
    'c'
    >>> choice = select(posterior, preference=[3, 1], risk="best")
    >>> choice.algorithm, choice.scores["b"]
    ('a', 0.0)
    """
    [[choice]] = select_each(posterior, among, [preference], [risk])
    warn_of_misfit(posterior, "select")
    return choice


def warn_of_misfit(posterior: Posterior, who: str) -> None:
    """Warn if a choice rests on ratings of a model that does not fit."""
    if posterior.check is not None and not posterior.check.fits:
        warnings.warn(
            f"{who}: {posterior.check} Choose from the first places instead: select(result.robust_posterior(among), "
            'among), or fit(table, likelihood="first-places").',
            ModelWarning,
            stacklevel=3,
        )


def select_each(
    posterior: Posterior, among: Iterable[str] | None, preferences: Iterable[PreferenceLike], risks: Iterable[str]
) -> list[list[Choice]]:
    """Choices ``[preference][risk]`` under each preference with each risk profile."""
    candidates = as_candidates(posterior, among)
    checked = [as_preference(preference, posterior.timepoints) for preference in preferences]
    profiles = [as_risk(risk) for risk in risks]
    ratings = np.moveaxis(ratings_among(posterior, candidates), 1, -1)
    found = []
    for preference in checked:
        values = preference.values(ratings)
        found.append([_choose(candidates, preference, risk, values) for risk in profiles])
    return found


def select_at_timepoints(posterior: Posterior, among: Iterable[str] | None) -> list[Choice]:
    """The choice by expected value for a budget of exactly each timepoint."""
    candidates, risk, size = as_candidates(posterior, among), as_risk("expected"), posterior.timepoints.size
    ratings = ratings_among(posterior, candidates)
    return [
        _choose(candidates, as_preference(weights, posterior.timepoints), risk, np.ascontiguousarray(ratings[:, place]))
        for place, weights in enumerate(np.eye(size))
    ]


def _choose(candidates: tuple[str, ...], preference: Preference, risk: Risk, values: FloatArray) -> Choice:
    scores = risk.scores(values)
    # Stable: remaining ties follow the order of the candidates.
    chosen = int(np.lexsort((-values.mean(axis=0), -scores))[0])
    return Choice(
        algorithm=candidates[chosen],
        candidates=candidates,
        preference=preference.name,
        risk=risk.name,
        weights=preference.weights,
        scores=dict(zip(candidates, scores.tolist(), strict=True)),
        values=values,
        expected_regret=float((values.max(axis=1) - values[:, chosen]).mean()),
    )


def as_candidates(posterior: Posterior, among: Iterable[str] | None) -> tuple[str, ...]:
    """Check the names to choose from; returned in the order of the posterior."""
    if among is None:
        return posterior.algorithms
    if isinstance(among, str) or not isinstance(among, Iterable):
        raise InvalidInputError(f"among: expected a list of algorithms, got {short(among)}.")
    names = [as_name(name, f"among[{place}]") for place, name in enumerate(among)]
    if not names:
        raise InvalidInputError("among: expected at least one algorithm, got none.")
    unknown = [name for name in names if name not in posterior.algorithms]
    if unknown:
        raise InvalidInputError(
            f"among: there is no {', '.join(map(repr, unknown))} in the posterior; it has "
            f"{', '.join(posterior.algorithms)}."
        )
    distinct_names(names, "among")
    return tuple(name for name in posterior.algorithms if name in names)


def ratings_among(posterior: Posterior, candidates: Iterable[str]) -> FloatArray:
    """``ratings[draw, timepoint, candidate]``: the probability of being the best of the candidates.

    By the independence of irrelevant alternatives, each rating divided by the sum of the candidates' ratings.  Where a
    candidate was never observed it is not a candidate: its rating is 0.
    """
    columns = [posterior.algorithms.index(name) for name in candidates]
    observed = posterior.observed[:, columns]
    log_ratings = posterior.log_ratings[:, :, columns]
    if not observed.all():
        log_ratings = np.where(observed, log_ratings, -np.inf)
    highest = log_ratings.max(axis=-1, keepdims=True)
    # Relative to the highest, so that tiny ratings do not underflow.
    ratings: FloatArray = np.exp(log_ratings - np.where(np.isfinite(highest), highest, 0.0))
    ratings /= np.maximum(ratings.sum(axis=-1, keepdims=True), 1.0)
    return ratings
