"""What the charts and controls of the page need: numbers and sentences, all computed from the result."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.text import timepoint_texts, visible
from polarbear_plugins.plots.rounds import rounds_of_settling
from polarbear_plugins.plots.style import log_spaced
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.at_budget import choices_at_timepoints
from polarbear_plugins.report.chart_words import captions, notes, summaries
from polarbear_plugins.selection.choice import ratings_among
from polarbear_plugins.selection.preferences import as_preference
from polarbear_plugins.selection.support import ABOUT_AS_GOOD, SUPPORTED, WORTH_NAMING

MOST_NAMES = 40  # a chart of more algorithms is unreadable
_LEVEL = 0.9  # probability of the bands
_MOST_PAIRS = 200  # more would make the page large
_KNOTS = 8  # timepoints at which a preference is drawn
_SAMPLE = 1000  # draws that are put into the page
_NUMBERS = 120_000  # of the sample, 3 bytes each
_SOLID = 8  # lines that are told apart by their colour alone


def explorer_data(result: RaceResult, robust: Posterior, unit: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """JSON-ready data; ``robust`` is the posterior to choose from.

    Algorithms are named as the page shows them, and meant by their place everywhere else.
    """
    posterior, grid = result.posterior, result.timepoints
    left = [place for place, name in enumerate(result.algorithms) if name in result.pareto_set]
    chosen = choices_at_timepoints(result, robust, unit)
    found: dict[str, Any] = {
        "unit": visible(unit),
        "names": [visible(name) for name in result.algorithms],
        "colours": [colours[name] for name in result.algorithms],
        "dashes": [place // _SOLID % 4 for place in range(len(result.algorithms))],
        "left": left,
        "times": grid.tolist(),
        "timeTexts": timepoint_texts(grid),
        "log": log_spaced(grid),
        "canLog": bool(grid.size > 1 and grid[0] > 0),
        "draws": posterior.draws,
        "supported": SUPPORTED,
        "worthNaming": WORTH_NAMING,
        "aboutAsGood": ABOUT_AS_GOOD,
        "ratings": _ratings(posterior),
        "best": [[_number(at["p_best"].get(result.algorithms[place])) for at in chosen] for place in left],
        "budgets": [{key: at[key] for key in ("says", "supported")} for at in chosen],
        "pairs": _pairs(result, left),
        "rounds": _rounds(result),
        "own": _own_preference(robust, [result.algorithms[place] for place in left]),
        "notes": notes(result, robust),
    }
    return found | {"captions": captions(result, min(posterior.draws, _SAMPLE)), "summaries": summaries(found)}


def _ratings(posterior: Posterior) -> dict[str, list[list[float | None]]]:
    """Mean and band of each algorithm at each timepoint, nothing where it was not observed."""
    ratings = posterior.ratings
    low, high = np.quantile(ratings, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0)
    bands = {"mean": ratings.mean(axis=0), "low": low, "high": high}
    return {
        name: [[_number(x) for x in column] for column in np.where(posterior.observed, band, np.nan).T]
        for name, band in bands.items()
    }


def _pairs(result: RaceResult, left: list[int]) -> dict[str, Any] | None:
    """Wins of one over the other, with a band, and P(one has the higher rating), of all pairs or of those left."""
    posterior, everyone = result.posterior, list(range(len(result.algorithms)))
    for places in (everyone, left):
        pairs = list(combinations(places, 2))
        if 0 < len(pairs) <= _MOST_PAIRS:
            break
    else:
        return None
    few = posterior.log_ratings[_thinned(posterior.draws, _SAMPLE)]
    p_better, wins = result.relations.p_better, []
    for i, j in pairs:
        both = posterior.observed[:, i] & posterior.observed[:, j]
        mean = _win(posterior.log_ratings[:, :, i] - posterior.log_ratings[:, :, j]).mean(axis=0)
        # Quantiles of the difference are those of the win, which grows with it.
        band = _win(np.quantile(few[:, :, i] - few[:, :, j], [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2], axis=0))
        wins.append(np.where(both, np.stack([mean, *band, p_better[:, i, j]]), np.nan))
    return {
        "algorithms": places,
        "pairs": pairs,
        "shares": encode_shares(np.stack(wins)),  # [pair][mean, low, high, better][timepoint]
    }


def _win(difference: FloatArray) -> FloatArray:
    """Probability of a win of the first, from the difference of the log-ratings."""
    return np.asarray(1 / (1 + np.exp(-difference)))


def _rounds(result: RaceResult) -> dict[str, Any] | None:
    """Probability that the strongest rival dominates each algorithm, round by round; ``None`` for a single round."""
    if len(result.rounds) < 2:
        return None
    out = {elimination.algorithm: elimination.round for elimination in result.eliminations}
    settled = rounds_of_settling(result.rounds)
    places = {name: place for place, name in enumerate(result.algorithms)}

    def rivals(name: str) -> list[tuple[str, float] | None]:
        end = out.get(name, settled.get(name, len(result.rounds)))
        return [done.rivals.get(name) if done.number <= end else None for done in result.rounds]

    return {
        "numbers": [done.number for done in result.rounds],
        "instances": [done.instances for done in result.rounds],
        "alpha": result.settings.alpha,
        "p": [[_number(rival and rival[1]) for rival in rivals(name)] for name in result.algorithms],
        "rivals": [[places.get(rival[0]) if rival else None for rival in rivals(name)] for name in result.algorithms],
        "out": [out.get(name) for name in result.algorithms],
        "settled": [settled.get(name) for name in result.algorithms],
    }


def _own_preference(robust: Posterior, candidates: list[str]) -> dict[str, Any] | None:
    """What the value under a preference that is drawn at a few knots follows from; ``None`` for a single timepoint.

    A preference that is linear between knots is a sum of hats around them, so that its value is a weighted mean of the
    values under each hat: exact, and with no need of the ratings at all timepoints.
    """
    grid = robust.timepoints
    if grid.size == 1:
        return None
    by_log = log_spaced(grid)
    positions = np.log(grid) if by_log else grid
    evenly = np.linspace(positions[0], positions[-1], _KNOTS)
    knots = sorted({int(np.abs(positions - at).argmin()) for at in evenly})
    weights = as_preference("log-uniform" if by_log else "uniform", grid).values(np.eye(grid.size))
    hats = np.stack([np.interp(positions, positions[knots], unit) for unit in np.eye(len(knots))]) * weights
    spans = hats.sum(axis=1)
    ratings = ratings_among(robust, candidates)
    values = np.einsum("kt,dtc->dkc", hats / spans[:, None], ratings)
    most = max(50, min(_SAMPLE, _NUMBERS // (len(knots) * len(candidates))))
    kept = _thinned(robust.draws, most)
    worth = robust.diagnostics.effective_draws
    return {
        "knots": knots,
        "base": weights.tolist(),
        "spans": spans.tolist(),
        "means": values.mean(axis=0).tolist(),  # [knot][candidate], of all draws
        "sample": encode_shares(values[kept]),  # [draw][knot][candidate]
        "draws": len(kept),
        "worth": len(kept) if worth is None else min(len(kept), float(f"{worth:.4g}")),
    }


def encode_shares(shares: FloatArray) -> str:
    """Numbers from 0 to 1 in 16 bits each, in base64; those that are missing are the highest.

    >>> encode_shares(np.array([0.0, 1.0, np.nan]))
    'AAD+////'
    """
    missing = np.isnan(shares)
    steps = np.where(missing, 65535, np.rint(np.clip(np.where(missing, 0, shares), 0, 1) * 65534))
    return base64.b64encode(steps.astype("<u2").tobytes()).decode()


def _thinned(draws: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Places of draws, evenly spread, at most so many."""
    return np.linspace(0, draws - 1, min(draws, most)).round().astype(np.int64)


def _number(value: float | None) -> float | None:
    """Five digits are more than draws can tell; nothing for what is not known."""
    return None if value is None or np.isnan(value) else float(f"{value:.5g}")
