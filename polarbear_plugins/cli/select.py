"""``polarbear select``: choose an algorithm or a portfolio for a time preference and a risk profile."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from polarbear_plugins.cli.completion import complete_names
from polarbear_plugins.cli.output import console, json_option, print_json, text_table
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.selection.choice import Choice
from polarbear_plugins.selection.choice import select as select_one
from polarbear_plugins.selection.portfolio import PortfolioChoice, select_portfolio

_MOST_ROWS = 20


@click.command(short_help="Choose an algorithm or a portfolio from a result.")
@click.argument("result", type=click.Path(path_type=Path))
@click.option(
    "--preference",
    default="uniform",
    shell_complete=complete_names(("uniform", "log-uniform", "final", "worst")),
    show_default=True,
    help="What the later budget may be: uniform, log-uniform, final, worst, a weight for each timepoint (1,2,...), or "
    "a distribution of scipy.stats with its parameters (lognorm:0.5,0,90).",
)
@click.option(
    "--risk",
    default="expected",
    shell_complete=complete_names(("expected", "best", "quantile:0.05")),
    show_default=True,
    help="What to maximize: expected, best (the probability of being best), or a quantile (quantile:0.05).",
)
@click.option("--size", type=int, default=1, show_default=True, help="Number of algorithms to run in parallel.")
@click.option("--different", is_flag=True, help="Choose no algorithm twice.")
@click.option("--all", "everyone", is_flag=True, help="Choose among all algorithms, including eliminated ones.")
@click.option("--among", help="Choose among these, separated by commas.")
@json_option
def select(
    result: Path,
    preference: str,
    risk: str,
    size: int,
    different: bool,
    everyone: bool,
    among: str | None,
    as_json: bool,
) -> None:
    """Choose from RESULT what to run, given a preference about the later budget and a risk profile.

    RESULT is what `polarbear race` or `polarbear analyze` saved with --output, or the journal of a race. Candidates are
    the algorithms that are not eliminated.
    """
    found = load_result(result)
    candidates = _candidates(found, everyone, among)
    wanted = _preference(preference)
    choice: Choice | PortfolioChoice
    if size == 1:
        choice = select_one(found.posterior, candidates, wanted, risk)
    else:
        choice = select_portfolio(found.posterior, size, candidates, wanted, risk, repeat=not different)
    if as_json:
        print_json(choice.to_dict())
        return
    _show(choice, preference, risk)
    if not found.posterior.joint and found.timepoints.size > 1:
        console().print(
            f"The prior {found.settings.prior} treats timepoints as independent: probabilities of values that span "
            "several timepoints are too sure. Use a temporal prior, such as bspline, for them.",
            soft_wrap=True,
        )


def _show(choice: Choice | PortfolioChoice, preference: str, risk: str) -> None:
    if isinstance(choice, PortfolioChoice):
        view = text_table("portfolio", ">score")
        for members, score in itertools.islice(choice.scores.items(), _MOST_ROWS):
            view.add_row(Text(" + ".join(members)), f"{score:.3g}")
        text = f"Run {' and '.join(choice.algorithms)} in parallel ({choice.method} of {len(choice.scores):,})"
    else:
        summary = choice.summary()
        view = text_table("algorithm", *(f">{str(column).replace('_', ' ')}" for column in summary))
        for name, row in summary.head(_MOST_ROWS).iterrows():
            view.add_row(Text(str(name)), *(f"{value:.3g}" for value in row))
        text = f"Choose {choice.algorithm}"
    out = console()
    out.print(view)
    out.print(
        f"{text}: preference {preference}, risk {risk}. Expected regret {choice.expected_regret:.3g}: the rating lost "
        "on average against the best choice.",
        soft_wrap=True,
    )


def _candidates(result: RaceResult, everyone: bool, among: str | None) -> list[str] | None:
    if among is not None:
        return [name.strip() for name in among.split(",")]
    return None if everyone else list(result.pareto_set)


def _preference(text: str) -> Any:
    """Preference from text: a name, weights, or a distribution of scipy.stats."""
    name, colon, arguments = text.partition(":")
    try:
        numbers = [float(part) for part in (arguments if colon else text).split(",")]
    except ValueError:
        numbers = []
    if not colon:
        return numbers or text
    from scipy import stats

    distribution = getattr(stats, name, None)
    if not isinstance(distribution, stats.rv_continuous | stats.rv_discrete) or not numbers:
        raise InvalidInputError(
            f"--preference: expected a distribution of scipy.stats and its parameters, such as lognorm:0.5,0,90; got "
            f"{text!r}."
        )
    try:
        return distribution(*numbers)
    except (TypeError, ValueError) as problem:
        raise InvalidInputError(f"--preference: {name} does not take {arguments!r} ({problem}).") from None
