"""Sections of a report about what the model rests on: whether it fits, and groups of instances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polarbear_plugins.display.html import Markup, definitions, html_table, text
from polarbear_plugins.display.text import few_places, share_text
from polarbear_plugins.posterior.model_check import ModelCheck
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.by_group import by_group
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.summaries import regroup
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.report.figures import Figures
from polarbear_plugins.report.observations import dimensions_of, pooled_text
from polarbear_plugins.report.sections import wide
from polarbear_plugins.report.words import leaders_text, misfit_text, misfits, other_scope_text

_MOST_GROUPS = 60


def model_fit(result: RaceResult, robust: Posterior, figures: Figures) -> Markup:
    """Whether the rankings look as the model says, where they do not, and the ratings of both if it does not fit."""
    check = result.check
    if check is None:
        return Markup("<p>It was not checked: the result was made by a version that did not.</p>")
    verdict = f'<p class="warning">{text(misfit_text(result))}</p>' if misfits(result) else f"<p>{text(check)}</p>"
    gaps: list[tuple[object, object]] = [
        (f"largest gap, {what}", gap)
        for what, gap in (("first places", check.first_gap), ("pairs", check.pair_gap))
        if gap is not None
    ]
    return Markup(
        f"{verdict}<p>Rankings are simulated from the model and compared with those observed: who is first, and who "
        "beats whom. A p-value says how often simulated rankings lie at least as far from the model as the observed "
        "ones do. A model that fits is not proven by that: few instances can hardly show that it does not.</p>"
        f"{wide(_p_values(check))}{definitions(gaps)}{figures.model_check()}{_both_ratings(result, robust)}"
    )


def _p_values(check: ModelCheck) -> Markup:
    places = few_places(check.timepoints.size)
    rows = [
        [what, *(f"{p[place]:.2g}" for place in places)]
        for what, p in (("first places", check.p_first), ("pairs", check.p_pairs))
    ]
    return html_table(("p-value of", *(f">at {check.timepoints[place]:,.5g}" for place in places)), rows)


def _both_ratings(result: RaceResult, robust: Posterior) -> str:
    """Ratings by the model beside those by first places, among the algorithms that are left."""
    if robust is result.posterior:
        return ""
    places = few_places(result.timepoints.size)
    columns = [result.algorithms.index(name) for name in robust.algorithms]
    by_model = result.posterior.mean_ratings[:, columns]
    by_model /= np.nansum(by_model, axis=1, keepdims=True)
    by_first = robust.mean_ratings
    rows = [
        [name, *(f"{share_text(by_model[at, place])} / {share_text(by_first[at, place])}" for at in places)]
        for place, name in enumerate(robust.algorithms)
    ]
    names = (f">at {result.timepoints[at]:,.5g}" for at in places)
    return (
        "<h3>Ratings by the model / by first places</h3><p>The probability of being the best of those that are left on "
        f"a new instance, at a few timepoints.</p>{wide(html_table(('algorithm', *names), rows))}"
    )


def groups(result: RaceResult, other_scope: RaceResult | None) -> Markup:
    """What the certainty is about, how much groups differ, and each group by itself; empty without groups."""
    table, effect, grid = result.state.table, result.posterior.groups, result.timepoints
    if not table.groups:
        return Markup("")
    places = few_places(grid.size)
    heads = [f">at {grid[place]:,.5g}" for place in places]
    says = (
        "<p>The ratings and the certainty of this page do not regard groups.</p>"
        if effect is None
        else f"<p>{text(effect)}</p>{_scopes(result, other_scope)}"
        + wide(
            html_table(
                ("", *heads),
                [
                    ["variance inflation", *(f"{effect.inflation[place]:.2f}" for place in places)],
                    ["spread between groups", *(f"{effect.spread[place]:.2f}" for place in places)],
                ],
            )
        )
        + "<p>Variance inflation: the variance of the mean over groups as a multiple of what it would be if all "
        "instances were independent. Spread: the standard deviation between groups of the log-rating of an "
        "algorithm.</p>"
    )
    return Markup(f"{says}<h3>Each group by itself</h3>{_each_by_itself(table, places, 'group')}")


def dimensions(result: RaceResult) -> Markup:
    """Each dimension by itself; empty if there is only one, or if they are not known."""
    known = dimensions_of(result)
    if len(set(known.values())) < 2:
        return Markup("")
    table = regroup(result.state.table, {name: f"d = {dimension}" for name, dimension in known.items()})
    says = "".join(f"<p>{text(sentence)}</p>" for sentence in pooled_text(result))
    return Markup(f"{says}{_each_by_itself(table, few_places(result.timepoints.size), 'dimension')}")


def _each_by_itself(table: RankingTable, places: Sequence[int], what: str) -> str:
    parts = by_group(table, places)
    rows = [
        [part.group, f"{part.instances:,}", *(leaders_text(part, at) for at in range(len(places)))]
        for part in parts[:_MOST_GROUPS]
    ]
    more = f"<p>And {len(parts) - _MOST_GROUPS:,} more.</p>" if len(parts) > _MOST_GROUPS else ""
    columns = (what, ">instances", *(f"at {table.timepoints[place]:,.5g}" for place in places))
    return (
        "<p>The algorithm most often first, and its share of the first places; ties are split.</p>"
        f"{wide(html_table(columns, rows))}{more}"
    )


def _scopes(result: RaceResult, other: RaceResult | None) -> str:
    """What an analysis about the other scope says, where it says something else."""
    if other is None or set(other.pareto_set) == set(result.pareto_set):
        return ""
    return f"<p>{text(other_scope_text(other))}</p>"
