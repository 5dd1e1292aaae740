"""The page: its sections and the HTML around them, self-contained."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from polarbear_plugins.display.html import Markup, text
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.plugins.hookspecs import ReportSection
from polarbear_plugins.plugins.manager import Plugins, installed_plugins
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.regular_files import check_output, open_regular, write_whole
from polarbear_plugins.report import sections
from polarbear_plugins.report.choices import choices_of, preferences_of, selection_section
from polarbear_plugins.report.computed import Computed, compute
from polarbear_plugins.report.explorer import MOST_NAMES, explorer_data
from polarbear_plugins.report.figures import Figures
from polarbear_plugins.report.glossary import words_section
from polarbear_plugins.report.model_sections import dimensions, groups, model_fit
from polarbear_plugins.report.next_steps import NOWHERE, Kept, next_section
from polarbear_plugins.report.style import LIBRARY, SCRIPT, STYLE
from polarbear_plugins.report.words import conclusion, misfits

_GENERATOR = '<meta name="generator" content="polarbear-plugins'
_BAR = (
    '<div class="explore" id="explore-bar" role="region" aria-label="Controls of the charts"></div>'
    '<div class="unseen" id="explore-live" aria-live="polite"></div>\n'
)
_HEAD = 2000  # bytes at the start of a report, which contain that line


def write_report(
    result: RaceResult,
    path: str | Path,
    *,
    title: str | None = None,
    unit: str = "",
    force: bool = False,
    plugins: Plugins | None = None,
    known: Computed | None = None,
    kept: Kept = NOWHERE,
) -> Path:
    """Write the report of a result to a file; returns its path.

    Parameters
    ----------
    title
        Title of the report; by default what was raced or analyzed.
    unit
        Unit of time, such as ``evaluations`` or ``seconds``.
    force
        Also replace a file that is not a report.
    plugins
        Plugins whose sections to add; by default all that are installed.
    known
        What was computed of the result already, for other words about it.
    kept
        Files that hold the result, for the commands in the page.

    Raises
    ------
    InvalidInputError
        A file of that name exists and is not a report.
    SourceError
        The file cannot be written.
    """
    path = check_output(path)
    if not force:
        check_replaceable(path)
    page = render(result, title=title, unit=unit, plugins=plugins, known=known, kept=kept)
    return write_whole(path, lambda file: file.write(page.encode()))


def check_replaceable(path: Path) -> None:
    """Refuse to replace a file that is not a report."""
    try:
        with open_regular(path) as file:
            ours = _GENERATOR.encode() in file.read(_HEAD)
    except FileNotFoundError:
        return
    except OSError as problem:
        raise SourceError(f"{path}: cannot be written ({problem.strerror or problem}).") from None
    if not ours:
        raise InvalidInputError(f"{path}: the file exists and is not a report. Use another name, or force it.")


def render(
    result: RaceResult,
    *,
    title: str | None = None,
    unit: str = "",
    plugins: Plugins | None = None,
    known: Computed | None = None,
    kept: Kept = NOWHERE,
) -> str:
    """HTML text of the report; the same result gives the same text.

    Parameters are those of :func:`write_report`.  Where a program replaces what is inside a page that is open, the call
    ``polarbearReport.start()`` in the page starts its charts and controls again.
    """
    heading = title_of(result) if title is None else title
    body: list[tuple[str, str, str]] = []  # id, title, HTML
    data: dict[str, Mapping[str, Any]] = {}
    known = compute(result) if known is None else known
    if result.rounds:
        body, data = _findings(result, Figures(result, unit, known.robust), unit, known)
    body.append(("next", "What to do next", next_section(result, known.forecast, kept)))
    body.append(("repeat", "Settings, and how to repeat this", sections.repeat(result)))
    added = (plugins or installed_plugins()).manager.hook.polarbear_report_sections(result=result)
    # pluggy calls the last registered plugin first; the page shows them in the order of registration.
    for place, section in enumerate(_sections(reversed(added))):
        body.append((f"section-{place + 1}", section.title, f'<div class="plugin">{section.html}</div>'))
    body.append(("words", "Words", words_section()))
    scripts = [*([LIBRARY] if "explorer" in data else []), SCRIPT] if data else []
    links = "".join(f'<li><a href="#{name}">{text(says)}</a></li>' for name, says, _ in body)
    parts = "".join(f'<section id="{name}"><h2>{text(says)}</h2>{html}</section>\n' for name, says, html in body)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n'
        f'{_GENERATOR} {text(version("polarbear-plugins"))}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(heading)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<header><h1>{text(heading)}</h1><p class="quiet">{text(_subtitle(result, unit))}</p></header>\n<main>\n'
        f'<p class="conclusion">{text(conclusion(result, unit, *known))}</p>{_warnings(result)}\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n{_BAR if "explorer" in data else ""}{parts}</main>\n'
        f"<footer>Written by polarbear-plugins. {_ratings_are(result)} Everything here follows from rankings, not from "
        "how far values lie apart.</footer>\n"
        + "".join(f'<script type="application/json" id="{name}">{_json(of)}</script>\n' for name, of in data.items())
        + "".join(f"<script>{script}</script>\n" for script in scripts)
        + "</body>\n</html>\n"
    )


def title_of(result: RaceResult) -> str:
    """Title that says what was raced or analyzed."""
    about = result.about
    if result.stopped == "analyzed":
        sources = about.get("sources") or []
        names = ", ".join(Path(source).name or source for source in map(str, sources[:3]))
        return f"Analysis of {names}{' ...' if len(sources) > 3 else ''}" if sources else "Analysis of existing data"
    if "study" in about:
        return f"Race in the study {about['study']}"
    portfolio, suite = (about.get(what) for what in ("portfolio", "suite"))
    who = portfolio["name"] if portfolio else f"{len(result.algorithms)} algorithms"
    where = f" on {suite['name']}" if suite else ""
    return f"Race of {who}{where}{' against an archive' if result.state.stored else ''}"


def _findings(
    result: RaceResult, figures: Figures, unit: str, known: Computed
) -> tuple[list[tuple[str, str, str]], dict[str, Mapping[str, Any]]]:
    """Sections, and the data of the scripts by the names of their elements."""
    robust = known.robust or result.posterior
    choices = choices_of(result, robust, unit)
    # A single budget is a timepoint of the figures above.
    preferences = preferences_of(result, unit)
    named = {key: (says, taken) for key, (says, taken) in preferences.items() if isinstance(taken, str)}
    several = len(result.rounds) > 1
    selection = selection_section(result, choices, figures.values(named), unit)
    data: dict[str, Mapping[str, Any]] = {"choices": choices}
    if len(result.algorithms) <= MOST_NAMES:
        data["explorer"] = explorer_data(result, robust, unit, figures.colours)
    body: list[tuple[str, str, str]] = [
        (
            "budgets",
            "What to choose for which budget",
            sections.budgets(result, robust, figures.colours, unit) + _place("budget", "best") + figures.timeline(),
        ),
        (
            "algorithms",
            "Algorithms in and out",
            sections.algorithms(result, robust, figures.colours) + _place("rounds") + figures.dominance(),
        ),
        (
            "ratings",
            "Ratings over time",
            figures.note() + _place("ratings") + figures.ratings() + _place("pair") + figures.wins(),
        ),
        ("observed", "What was observed, and what was assumed", sections.observed(result)),
        ("selection", "Choose", selection + _place("own", "portfolio")),
        ("open", "What is not settled", sections.open_questions(result, known.forecast)),
    ]
    if several:
        body.append(("rounds", "Round by round", sections.rounds(result) + figures.allocation()))
    body += [
        ("fit", "Does the model fit?", model_fit(result, robust, figures)),
        ("groups", "Groups", groups(result, known.other_scope)),
        ("dimensions", "Dimensions", dimensions(result)),
        ("diagnostics", "Can the inference be trusted?", sections.diagnostics(result)),
    ]
    return [part for part in body if part[2]], data


def _place(*names: str) -> str:
    """Elements that the script fills."""
    return "".join(f'<div class="explore" id="explore-{name}"></div>' for name in names)


def _ratings_are(result: RaceResult) -> str:
    """What the ratings in the page are, in a sentence."""
    where = "a new instance"
    if result.rounds and result.posterior.groups is not None:
        scope = result.posterior.groups.scope
        where += " of a new group" if scope == "new" else " of the same groups"
    if result.rounds and misfits(result):
        return (
            f"Ratings are probabilities of being the best on {where}: of all algorithms where they are those of the "
            "model, which does not fit, and of those that are left where they follow from first places."
        )
    return f"Ratings are probabilities of being the best of all algorithms on {where}."


def _subtitle(result: RaceResult, unit: str) -> str:
    grid, settings = result.timepoints, result.settings
    unit = f" {unit}" if unit else ""
    times = (
        f"{grid.size} timepoints {grid[0]:,.5g} to {grid[-1]:,.5g}" if grid.size > 1 else f"timepoint {grid[0]:,.5g}"
    )
    return (
        f"{len(result.algorithms)} algorithms · {len(result.state.table.instances):,} instances · {times}{unit} · "
        f"alpha {settings.alpha:g} · epsilon "
        f"{settings.epsilon:g} · seed {settings.seed}"
    )


def _warnings(result: RaceResult) -> str:
    found = []
    if result.rounds and not result.posterior.diagnostics.good:
        found.append("The posterior is not good enough to decide on: see the diagnostics below.")
    if result.failures:
        found.append(f"{len(result.failures):,} runs failed and count as having found nothing: see below.")
    return "".join(f'<p class="warning">{text(says)}</p>' for says in found)


def _sections(answers: Any) -> list[ReportSection]:
    found = [section for answer in answers for section in answer]
    for section in found:
        if not isinstance(section, ReportSection):
            raise InvalidInputError(
                f"polarbear_report_sections: expected ReportSection objects, got {type(section).__name__}."
            )
    return found


def _policy(scripts: Sequence[str]) -> str:
    """Content-Security-Policy: nothing is loaded, and only our own scripts run, not those in sections."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; script-src {allowed}; "
        "base-uri 'none'; form-action 'none'"
    )


def _json(data: Mapping[str, Any]) -> Markup:
    """JSON that cannot end the element it is in."""
    plain = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
