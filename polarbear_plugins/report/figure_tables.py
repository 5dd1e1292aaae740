"""What the figures of a report show as tables, which need neither eyes nor a script."""

from __future__ import annotations

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.html import Markup, html_table, text
from polarbear_plugins.display.text import few_places, timepoint_texts
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.comparable import instances_seen
from polarbear_plugins.report.at_budget import bounded
from polarbear_plugins.selection.choice import ratings_among
from polarbear_plugins.selection.preferences import probability_best

_SOME = "at some timepoints"


def with_table(figure: Markup, table: Markup, says: str) -> Markup:
    """The figure with a table that can be opened; nothing if there is no figure."""
    details = (
        f"<details><summary>Table: {text(says)}</summary>"
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(says)}">{table}</div></details>'
    )
    return Markup(figure.replace("</figure>", f"{details}</figure>"))


def ratings_table(posterior: Posterior) -> tuple[Markup, str]:
    """Ratings with their intervals."""
    low, high = np.quantile(posterior.ratings, [0.05, 0.95], axis=0)
    mean = posterior.mean_ratings
    rows = [
        [
            name,
            *(
                f"{mean[at, place]:.2f} ({low[at, place]:.2f} to {high[at, place]:.2f})"
                if posterior.observed[at, place]
                else "-"
                for at in few_places(posterior.timepoints.size)
            ),
        ]
        for place, name in enumerate(posterior.algorithms)
    ]
    return html_table(_columns(posterior.timepoints), rows), f"mean ratings and 90 % intervals {_SOME}"


def timeline_table(posterior: Posterior, among: tuple[str, ...]) -> tuple[Markup, str]:
    """P(best) of those that are left."""
    ratings, places = ratings_among(posterior, among), few_places(posterior.timepoints.size)
    best = {at: probability_best(ratings[:, at]) for at in places}
    rows = [
        [
            name,
            *(
                bounded(float(best[at][place]), posterior.draws)
                if posterior.observed[at, posterior.algorithms.index(name)]
                else "-"
                for at in places
            ),
        ]
        for place, name in enumerate(among)
    ]
    return html_table(_columns(posterior.timepoints), rows), f"P(best) {_SOME}"


def dominance_table(result: RaceResult) -> tuple[Markup, str]:
    """Probability that the strongest rival dominates each algorithm, in each round while it was open."""
    out = {elimination.algorithm: elimination.round for elimination in result.eliminations}
    draws = result.posterior.draws

    def cell(name: str, number: int) -> str:
        rival = result.rounds[number - 1].rivals.get(name) if number <= out.get(name, number) else None
        return "-" if rival is None else f"{bounded(rival[1], draws)} by {rival[0]}"

    rows = [[str(done.number), *(cell(name, done.number) for name in result.algorithms)] for done in result.rounds]
    return html_table((">round", *result.algorithms), rows), "P(dominated) and by whom, round by round"


def allocation_table(result: RaceResult) -> tuple[Markup, str]:
    """Instances on which each algorithm was seen."""
    seen = instances_seen(result.state.table)
    rows = [
        [name, *(f"{seen[at, place]:,}" for at in few_places(result.timepoints.size))]
        for place, name in enumerate(result.algorithms)
    ]
    return html_table(_columns(result.timepoints), rows), f"instances {_SOME}"


def wins_table(posterior: Posterior) -> tuple[Markup, str]:
    """Probability that one beats another at the last timepoint, the highest rating first."""
    logs, seen = posterior.log_ratings[:, -1], posterior.observed[-1]
    order = np.argsort(-np.exp(logs).mean(axis=0), kind="stable").tolist()
    names = posterior.algorithms

    def cell(one: int, other: int) -> str:
        if one == other or not (seen[one] and seen[other]):
            return "-"
        share = f"{_win(logs[:, one] - logs[:, other]):.2f}"
        return {"0.00": "< 0.01", "1.00": "> 0.99"}.get(share, share)  # no rating is 0

    rows = [[names[one], *(cell(one, other) for other in order)] for one in order]
    return html_table(
        ("winner", *(f">{names[other]}" for other in order)), rows
    ), "who beats whom at the last timepoint"


def model_check_table(check: ModelCheck) -> tuple[Markup, str]:
    """Shares of first places, as observed and by the model."""
    rows = [
        [
            name,
            *(
                f"{check.observed[at, place]:.2f} / {check.modelled[at, place]:.2f}"
                for at in few_places(check.timepoints.size)
            ),
        ]
        for place, name in enumerate(check.algorithms)
    ]
    return html_table(_columns(check.timepoints), rows), f"first places, observed / by the model, {_SOME}"


def _columns(grid: FloatArray) -> tuple[str, ...]:
    texts = timepoint_texts(grid)
    return ("algorithm", *(f">at {texts[at]}" for at in few_places(grid.size)))


def _win(difference: FloatArray) -> float:
    """Mean probability of a win, from the difference of the log-ratings."""
    return float((1 / (1 + np.exp(-difference))).mean())
