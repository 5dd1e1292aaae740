"""Sections of a report that consist of text and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from polarbear_plugins.display.html import Markup, definitions, html_table, text
from polarbear_plugins.display.text import amount, few_places, spans, spans_text
from polarbear_plugins.environment import installed_versions, versions_text
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.forecast import Forecast
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.comparable import instances_seen
from polarbear_plugins.report.commands import how_to_repeat
from polarbear_plugins.report.glossary import linked
from polarbear_plugins.report.next_steps import why_no_forecast
from polarbear_plugins.report.observations import assumptions
from polarbear_plugins.report.rating_words import DIFFERENCE, rating_text
from polarbear_plugins.report.stored_words import settled_text
from polarbear_plugins.report.words import error_text, reasons
from polarbear_plugins.selection.stretches import Stretch, stretches
from polarbear_plugins.selection.support import SUPPORTED

_MOST_ROWS = 60
_MOST_SENTENCES = 4
_MEANS = {
    "k_hat": "Pareto shape of the importance weights, the worst one: up to 0.5 is fine, above 0.7 needs moves",
    "effective_draws": "number of independent draws that the draws are worth, the lowest over timepoints",
    "moves": "Markov moves after importance sampling",
    "acceptance": "share of the moves that were accepted",
    "memory": "how strongly a draw still correlates with where its moves began",
    "r_hat": "whether chains agree: 1 if they do",
    "divergences": "where a chain could not follow the posterior",
}


def budgets(result: RaceResult, robust: Posterior, colours: Mapping[str, str], unit: str = "") -> Markup:
    """Which algorithm to choose for which budget, and how sure that is; ``robust`` is the posterior to choose from."""
    posterior, grid = robust, result.timepoints
    found = stretches(posterior, result.pareto_set)
    columns = [posterior.algorithms.index(name) for name in result.pareto_set]
    top = posterior.log_ratings[:, :, columns].argmax(axis=2)
    mean = posterior.mean_ratings

    def row(stretch: Stretch) -> list[object]:
        inside = slice(stretch.first, stretch.last + 1)
        rating = mean[inside, posterior.algorithms.index(stretch.algorithm)]
        sure = (top[:, inside] == result.pareto_set.index(stretch.algorithm)).mean(axis=0)
        # In the same cell: on a narrow page the last columns may be out of sight.
        open_to = f"not supported: {', '.join(stretch.rivals)} may be best"
        doubt = "" if stretch.supported else f' <div class="doubt">{text(open_to)}</div>'
        return [
            spans(grid, (np.arange(grid.size) >= stretch.first) & (np.arange(grid.size) <= stretch.last))[0],
            Markup(f"{with_swatch(stretch.algorithm, colours)}{doubt}"),
            range_text(rating),
            chances_text(sure),
            "> 99%" if stretch.support > 0.995 else f"{stretch.support:.0%}",
        ]

    table = html_table(
        ("budget", "highest", ">rating", ">P(best)", ">support"),
        [row(stretch) for stretch in found],
    )
    of_whom = "of those that are left, by first places" if robust is not result.posterior else "of all"
    told = [rating_text(result, posterior, each.algorithm, each.last, unit) for each in found[:_MOST_SENTENCES]]
    sentences = "".join(f"<p>{text(sentence)}</p>" for sentence in told if sentence)
    return Markup(
        f"{sentences}<p>{DIFFERENCE} With enough instances a lead is sure, however small it is.</p>"
        "<p>The table has the highest ratings among those that are left, with a change only where it gains at least "
        f"0.01 in rating on average over time. The {linked('rating')} is the share of new instances on which it would "
        f"be the best {of_whom}, {linked('P(best)')} the probability that none of those left has a higher rating; "
        f"lowest and highest over the timepoints. {linked('support', 'Support')} is the probability that nothing is "
        "noticeably better (it would beat none of the others in less than 45 of 100 instances), on average over the "
        f"timepoints; below {SUPPORTED:.0%} no choice is supported.</p>"
        f"{wide(table)}"
    )


def observed(result: RaceResult) -> Markup:
    """What was assumed where the data end, and on how many instances each algorithm was seen if not on all."""
    says = "".join(f"<p>{text(sentence)}</p>" for sentence in assumptions(result))
    seen, total = instances_seen(result.state.table), len(result.state.table.instances)
    if (seen == total).all():
        return Markup(says)
    places = few_places(result.timepoints.size)
    rows = [[name, *(f"{seen[at, place]:,}" for at in places)] for place, name in enumerate(result.algorithms)]
    table = html_table(("algorithm", *(f">at {result.timepoints[at]:,.5g}" for at in places)), rows)
    return Markup(f"{says}<p>On how many of the {total:,} instances each algorithm was compared:</p>{wide(table)}")


def algorithms(result: RaceResult, robust: Posterior, colours: Mapping[str, str]) -> Markup:
    """Which algorithms are in, and which were eliminated, when, by which rival and how surely."""
    why, summary = reasons(result, robust), result.summary()
    several, failed = len(result.rounds) > 1, bool(summary["failed"].any())
    # Those that are left first, then the eliminated ones, the latest first.
    order = [*result.pareto_set, *(out.algorithm for out in reversed(result.eliminations))]
    rows = []
    by_name: dict[str, dict[str, Any]] = summary.to_dict("index")  # type: ignore[assignment]
    for name in order:
        row = by_name[name]
        out = row["status"] == "out"
        status = (f"out in round {row['round']}" if several else "out") if out else "in"
        cost = "stored" if name in result.state.stored else amount(row["cost"])
        cells = [with_swatch(name, colours), status, why[name], f"{row['instances']:,}", cost]
        rows.append([*cells, *([str(row["failed"])] if failed else [])])
    columns = ("algorithm", "status", "because", ">instances", ">cost", *([">failed runs"] if failed else []))
    return Markup(f"<p>{_rule(result)}</p>{wide(html_table(columns, rows))}{_errors(result)}{_candidates(result)}")


def _rule(result: RaceResult) -> str:
    """When an algorithm is out."""
    settings = result.settings
    joint = settings.elimination == "joint"
    if settings.rule == "anytime-valid":
        where = "at all timepoints at once" if joint else "the lowest over the timepoints"
        return (
            "An algorithm is out once direct wins alone show that another one beats it on most instances at every "
            f"timepoint; the probability that any elimination is wrong, ever, is at most {1 - settings.alpha:.2g}, "
            f"whatever the model. P is the posterior probability of the higher rating, {where}."
        )
    where = (
        "at all timepoints at once. P is that probability"
        if joint
        else "at each timepoint taken by itself. P is that probability, the lowest over the timepoints"
    )
    guard = " Direct counts of wins and of first places must support it." if settings.guard == "counts" else ""
    return (
        f"An algorithm is out once another one has the higher rating with a {linked('posterior')} probability of at "
        f"least {settings.alpha:g}, {where}.{guard}"
    )


def _errors(result: RaceResult) -> str:
    """How likely an elimination is wrong, and what holds without the model."""
    if not result.eliminations:
        return ""
    return (
        f"<p>{text(error_text(result))} Wrong means that the rival is not the better one. Certain without the model "
        "means that by direct wins alone a rival beats it on most instances at every timepoint; the probability that "
        f"this is wrong for any algorithm, however often one looked, is at most {1 - result.settings.alpha:.2g} if "
        "instances are independent.</p>"
    )


def rounds(result: RaceResult) -> Markup:
    """What happened in each round."""
    rows = [
        [
            finished.number,
            f"{finished.instances:,}",
            amount(finished.cost),
            f"{finished.resolved_share:.0%}",
            ", ".join(out.algorithm for out in finished.eliminations) or "none",
        ]
        for finished in result.rounds
    ]
    return wide(html_table((">round", ">instances so far", ">cost so far", ">pairs settled", "eliminated"), rows))


def open_questions(result: RaceResult, expected: Forecast | None) -> Markup:
    """Open pairs, and what would likely settle them."""
    if not result.open_pairs:
        return Markup("<p>Nothing: every pair is settled.</p>")
    relations, grid, pairs = result.relations, result.timepoints, result.open_pairs
    rows = []
    for one, other, times in pairs[:_MOST_ROWS]:
        i, j = (result.algorithms.index(name) for name in (one, other))
        where = np.isin(grid, times)
        better, equivalent = relations.p_better[where, i, j], relations.p_equivalent[where, i, j]
        rows.append([one, other, spans_text(grid, where), chances_text(better), chances_text(equivalent)])
    columns = ("one", "other", "not settled at", ">P(one is better)", ">P(equivalent)")
    settings = result.settings
    count = len(pairs)
    more_pairs = (
        f"<p>And {count - _MOST_ROWS:,} more pair{'s' * (count > _MOST_ROWS + 1)}.</p>" if count > _MOST_ROWS else ""
    )
    advice = f"A larger epsilon than {settings.epsilon:g} or a smaller alpha than {settings.alpha:g} asks for less"
    if settings.resolution == "strict":
        advice += '; resolution "crossing" also settles a pair once it is sure that neither dominates the other'
    needed = (
        text(settled_text(result))
        if result.resolved
        else f"How many instances it takes is not forecast, since {why_no_forecast(result)}."
        if expected is None
        else f"Likely needed to settle {'them' if count > 1 else 'it'}: <strong>{text(expected)}</strong>, beside the "
        f"{len(result.state.table.instances):,} there are."
    )
    return Markup(
        f"<p>{count:,} pair{'s are' if count > 1 else ' is'} neither surely different nor surely "
        f"{linked('equivalent')} at some timepoints. {needed} {text(advice)}.</p>"
        f"{wide(html_table(columns, rows))}{more_pairs}"
    )


def repeat(result: RaceResult) -> Markup:
    """Settings, versions and seed, and how to repeat the result."""
    says, command = how_to_repeat(result)
    settings, about, grid = result.settings, result.about, result.timepoints
    pairs: list[tuple[object, object]] = [
        ("timepoints", f"{grid.size} from {grid[0]:,.6g} to {grid[-1]:,.6g}" if grid.size > 1 else f"{grid[0]:,.6g}"),
        ("instances", f"{len(result.state.table.instances):,} in {len(result.state.table):,} rows"),
        ("repetitions", result.state.table.repetitions),
    ]
    for name in (field.name for field in fields(settings)):
        value = getattr(settings, name)
        if isinstance(value, Mapping):
            if not value:
                continue
            value = ", ".join(f"{key}={option}" for key, option in value.items())
        if value is not None:
            pairs.append((name.replace("_", " "), f"{value:,.6g}" if isinstance(value, float) else value))
    made_with, later = about.get("versions"), about.get("resumed_with")
    if isinstance(made_with, Mapping):
        pairs.append(("run with", versions_text(made_with)))
    else:  # written by a version that did not record the others
        pairs.append(("run with polarbear-plugins", about.get("version") or "not recorded"))
    if isinstance(later, Mapping):
        pairs.append(("resumed with", versions_text(later)))
    here = installed_versions(settings.engine)
    if here != made_with:
        pairs.append(("this page was written with", versions_text(here)))
    return Markup(f"<p>{text(says)}</p><pre>{text(command)}</pre>{definitions(pairs)}")


def diagnostics(result: RaceResult) -> Markup:
    """Whether the inference can be trusted, and which runs failed."""
    found = result.posterior.diagnostics
    verdict = "The draws are good enough to decide on." if found.good else "The draws are NOT good enough to decide on."
    problems = "".join(f'<p class="warning">{text(problem)}</p>' for problem in found.problems)
    rows = []
    for name, means in _MEANS.items():
        value = getattr(found, name)
        if value is not None:
            rows.append([name.replace("_", " "), amount(value), means])
    if found.dependence is not None and len(found.dependence):
        factor = np.array(found.dependence)
        rows.append(["dependence", range_text(factor), "factor on the evidence, because rankings repeat over time"])
    bad = [str(finished.number) for finished in result.rounds if not finished.good]
    weak = f"<p>No decision was made in the rounds {text(', '.join(bad))}: their posterior was not good enough.</p>"
    draws = f"{result.posterior.draws:,} draws of the engine {found.engine} under the prior {result.posterior.prior}"
    return Markup(
        f"<p>{text(draws)}: {text(found.route)}. {verdict}</p>{problems}"
        f"{wide(html_table(('what', '>value', 'meaning'), rows))}"
        f"{weak if bad else ''}{_failures(result)}"
    )


def _candidates(result: RaceResult) -> str:
    """Parameters of the algorithms, where these are configurations of a study."""
    parameters = result.about.get("candidates")
    if not parameters:
        return ""
    rows = [
        [name, ", ".join(f"{key} = {value}" for key, value in parameters.get(name, {}).items())]
        for name in result.algorithms
    ]
    return f"<h3>Parameters</h3>{wide(html_table(('candidate', 'parameters'), rows))}"


def _failures(result: RaceResult) -> str:
    if not result.failures:
        return ""
    rows = [[failure.algorithm, failure.instance, failure.reason] for failure in result.failures[:_MOST_ROWS]]
    more = len(result.failures) - len(rows)
    return (
        f"<h3>Runs that failed</h3><p>They count as having found nothing: {len(result.failures):,} of them.</p>"
        f"{wide(html_table(('algorithm', 'instance', 'reason'), rows))}"
        + (f"<p>And {more:,} more.</p>" if more else "")
    )


def with_swatch(name: str, colours: Mapping[str, str]) -> Markup:
    """Name of an algorithm beside its colour in the figures."""
    colour = colours.get(name)
    if colour is None:
        return text(name)
    # The swatch is a background image, so that no line breaks between it and the name.
    return Markup(f'<span class="swatch" style="--tone:{text(colour)}">{text(name)}</span>')


def wide(table: str) -> Markup:
    """Table that scrolls by itself where the page is too narrow for it."""
    return Markup(f'<div class="wide">{table}</div>')


def range_text(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """Lowest and highest value, as text."""
    low, high = f"{values.min():.2f}", f"{values.max():.2f}"
    return low if low == high else f"{low} to {high}"


def chances_text(probabilities: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> str:
    """Lowest and highest probability, as text; rounded to 0 or 1 they would be surer than any number of draws.

    >>> chances_text(np.array([0.001, 0.5])), chances_text(np.array([0.999, 1.0]))
    ('< 0.01 to 0.50', '> 0.99')
    """
    return range_text(probabilities).replace("0.00", "< 0.01").replace("1.00", "> 0.99")
