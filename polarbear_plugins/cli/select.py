"""``polarbear select``: choose an algorithm or a portfolio for a time preference and a risk profile."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from polarbear_plugins.cli.completion import complete_names
from polarbear_plugins.cli.output import console, json_option, print_json, text_table
from polarbear_plugins.cli.outputs import InputPath
from polarbear_plugins.errors import InvalidInputError, ModelWarning
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.rating_words import choice_text, of_hundred
from polarbear_plugins.report.words import misfits
from polarbear_plugins.selection.choice import Choice, as_candidates
from polarbear_plugins.selection.choice import select as select_one
from polarbear_plugins.selection.portfolio import PortfolioChoice, select_portfolio

_MOST_ROWS = 20
_SHARE = (
    "The value of a candidate is its share of new instances on which it would be the best of the candidates, over the "
    "budgets of the preference."
)
_OTHER_VALUE = "The value of a candidate is what the preference makes of its ratings over time."
_COLUMNS_ARE = (
    "Mean, sd, low and high (95 % interval) are those of the value; the score is what the risk asks for, p best the "
    "probability that no other has a higher value:"
)
_SCORES_ARE = "Score of each portfolio: what the risk asks for, of its value under the preference:"


@click.command(short_help="Choose an algorithm or a portfolio from a result.")
@click.argument("result", type=InputPath())
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
    candidates = as_candidates(found.posterior, _candidates(found, everyone, among))
    wanted = _preference(preference)

    def choose(posterior: Posterior) -> Choice | PortfolioChoice:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # this command says it in its own words
            if size == 1:
                return select_one(posterior, candidates, wanted, risk)
            return select_portfolio(posterior, size, candidates, wanted, risk, repeat=not different)

    by_model = choice = choose(found.posterior)
    from_first_places = misfits(found) and len(candidates) > 1
    if from_first_places:
        choice = choose(found.robust_posterior(candidates))
    if as_json:
        likelihood = "first-places" if from_first_places else "rankings"
        print_json({**choice.to_dict(), "likelihood": likelihood, "by_model": _chosen(by_model)})
        return
    _show(choice, preference, risk, found)
    out = console()
    if from_first_places:
        otherwise = _otherwise(choice, by_model)
        out.print(f"{found.check} The choice follows from first places instead.{otherwise}", soft_wrap=True)
    if not found.posterior.joint and found.timepoints.size > 1:
        out.print(
            f"The prior {found.settings.prior} treats timepoints as independent: probabilities of values that span "
            "several timepoints are too sure. Use a temporal prior, such as bspline, for them.",
            soft_wrap=True,
        )


def _chosen(choice: Choice | PortfolioChoice) -> str | list[str]:
    return list(choice.algorithms) if isinstance(choice, PortfolioChoice) else choice.algorithm


def _otherwise(choice: Choice | PortfolioChoice, by_model: Choice | PortfolioChoice) -> str:
    """Sentence about the choice that the model alone would have made, if it is another one."""
    other = _chosen(by_model)
    if other == _chosen(choice):
        return " The model would choose the same."
    return f" The model would choose {other if isinstance(other, str) else ' and '.join(other)}."


def _show(choice: Choice | PortfolioChoice, preference: str, risk: str, result: RaceResult) -> None:
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
        if not choice.supported:
            text = (
                f"No choice is supported: nothing is noticeably better than {choice.algorithm} with probability "
                f"{choice.support:.0%} only, and {', '.join(choice.rivals)} may be better. More instances would tell. "
                f"{choice.algorithm} is the highest"
            )
    out = console()
    shares = isinstance(choice, Choice) and choice.weights is not None
    columns = f"{_SHARE if shares else _OTHER_VALUE} {_COLUMNS_ARE}" if isinstance(choice, Choice) else _SCORES_ARE
    out.print(columns, soft_wrap=True)
    out.print(view)
    if isinstance(choice, Choice) and (says := choice_text(choice, result)):
        out.print(says, soft_wrap=True)
    lost = f"Expected regret {choice.expected_regret:.3g}: the value lost on average against the best choice"
    if shares:
        lost += f", which would be the best on {of_hundred(choice.expected_regret)} more of 100 instances"
    out.print(f"{text}: preference {preference}, risk {risk}. {lost}.", soft_wrap=True)


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
