"""``polarbear campaign``: a classical comparison of mean performance, from its plan to its test."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from polarbear_plugins.cli.completion import complete_registered
from polarbear_plugins.cli.options import parse_budget, parse_key_values
from polarbear_plugins.cli.output import (
    PlainConsole,
    console,
    json_option,
    print_json,
    redirect_stdout_to_stderr,
    text_table,
)
from polarbear_plugins.cli.outputs import FigureFile, InputPath, JournalFile, Saving
from polarbear_plugins.cli.progress import advise_on_interrupt
from polarbear_plugins.cli.race import connect_executor, quiet_suite
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.experiments.campaigns import CampaignResult, CampaignSettings
from polarbear_plugins.experiments.campaigns import campaign as run_campaign
from polarbear_plugins.planning.paired_tests import Comparison
from polarbear_plugins.planning.repetitions import RepetitionSettings, pairs_of
from polarbear_plugins.plugins.manager import installed_plugins
from polarbear_plugins.trajectories.trajectory import Trajectory

_PERCENT_ERROR = 0.05  # of the paper's experiments
_DOUBT = 0.05  # p value of the Shapiro-Wilk test below which normality is doubted


@click.command(short_help="Compare mean performance: plan, run, test.")
@click.argument("portfolio", shell_complete=complete_registered("polarbear_portfolio"))
@click.argument("suite", shell_complete=complete_registered("polarbear_suite"))
@click.option("--budget", metavar="B or Bd", help="How far runs go; 2000d is 2000 times --dimension.")
@click.option(
    "--effect",
    type=float,
    default=0.5,
    show_default=True,
    help="The smallest effect that matters, in standard deviations of the differences over instances.",
)
@click.option("--power", type=float, default=0.8, show_default=True, help="Probability of finding that effect.")
@click.option(
    "--alpha",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability of finding an effect where there is none, all pairs together.",
)
@click.option(
    "--test",
    type=click.Choice(["t", "wilcoxon", "sign"]),
    default="t",
    show_default=True,
    help="The paired test over instances.",
)
@click.option(
    "--alternative",
    type=click.Choice(["two-sided", "less", "greater"]),
    default="two-sided",
    show_default=True,
    help="less: only whether the second of a pair has lower values.",
)
@click.option(
    "--power-target",
    type=click.Choice(["worst-case", "mean", "median"]),
    default="worst-case",
    show_default=True,
    help="Of several pairs: the power of each, or the mean or median over Holm's steps, which promise less.",
)
@click.option("--reference", metavar="ALGORITHM", help="Compare the others with this algorithm, rather than all pairs.")
@click.option("--instances", type=int, help="Number of instances.  [default: what the power needs]")
@click.option(
    "--difference",
    type=click.Choice(["simple", "percent", "percent-of-grand-mean"]),
    default="simple",
    show_default=True,
    help="Of two means on an instance: as it is, as a share of the first mean, or of the mean of all algorithms.",
)
@click.option(
    "--error",
    type=float,
    help="Runs go on until the standard error of the difference on an instance is at most this.  [default: "
    f"{_PERCENT_ERROR} for percent differences]",
)
@click.option(
    "--method",
    type=click.Choice(["delta", "bootstrap", "parametric"]),
    default="delta",
    show_default=True,
    help="How that standard error is estimated; parametric is equation 15 of the paper, often too small.",
)
@click.option(
    "--first",
    type=int,
    default=10,
    show_default=True,
    help="First runs of each algorithm on an instance; more for skewed values.",
)
@click.option(
    "--most", type=int, default=200, show_default=True, help="Most runs on an instance, all algorithms together."
)
@click.option("--balanced", is_flag=True, help="Run all algorithms equally often on an instance.")
@click.option(
    "--log", "logarithms", is_flag=True, help="Compare logarithms (base 10) of values, which must be positive."
)
@click.option("--dry-run", is_flag=True, help="Only print the plan.")
@click.option("--dimension", type=int, help="Dimension of the suite's problems.")
@click.option("--data", type=InputPath(), help="Folder with the data of the suite.")
@click.option(
    "-P", "--portfolio-option", "portfolio_options", multiple=True, metavar="KEY=VALUE", help="For PORTFOLIO."
)
@click.option("-S", "--suite-option", "suite_options", multiple=True, metavar="KEY=VALUE", help="For SUITE.")
@click.option("--seed", type=int, help="Seed of all random choices.")
@click.option(
    "--journal",
    type=JournalFile(),
    help="Keep every finished run in this file; the same command with it goes on where it stopped.",
)
@click.option(
    "--figure",
    type=FigureFile(),
    help="Draw the differences into this file (.png, .pdf, .svg).",
)
@click.option("--workers", type=int, help="Number of local processes; one per core by default, 0 for none.")
@click.option("--executor", metavar="ADDRESS", help="Run elsewhere; `polarbear plugins` lists the executors.")
@click.option(
    "-E", "--executor-option", "executor_options", multiple=True, metavar="KEY=VALUE", help="For the executor."
)
@click.option("--run-timeout", type=float, metavar="SECONDS", help="End a run that takes longer.")
@click.option("--run-memory", type=float, metavar="MB", help="End a run that uses more memory (Linux).")
@click.option("--retries", type=int, default=0, show_default=True, help="How often to repeat a failed run.")
@json_option
def campaign(
    portfolio: str,
    suite: str,
    budget: str | None,
    error: float | None,
    difference: Any,
    logarithms: bool,
    dry_run: bool,
    dimension: int | None,
    data: Path | None,
    portfolio_options: Sequence[str],
    suite_options: Sequence[str],
    journal: Path | None,
    figure: Path | None,
    executor: str | None,
    executor_options: Sequence[str],
    as_json: bool,
    **rest: Any,
) -> None:
    """Compare the mean performance of the algorithms of PORTFOLIO over instances of SUITE by a paired test.

    The power determines the number of instances, the standard error the number of runs on each, as in Campelo and
    Takahashi's method. Differences are of means at the end of the budget, the second algorithm minus the first. For a
    first look: polarbear campaign synthetic synthetic --budget 20 --error 0.5 --effect 1.
    """
    settings = _settings(error, difference, rest)
    of_suite = parse_key_values(suite_options, "--suite-option")
    of_suite |= {} if dimension is None else {"dimension": str(dimension)}
    of_suite |= {} if data is None else {"data": os.path.realpath(data)}
    of_portfolio = parse_key_values(portfolio_options, "--portfolio-option")
    if dry_run:
        _show_plan(settings, _algorithms(portfolio, of_portfolio), as_json)
        return
    horizon = _horizon(budget, dimension, suite, of_suite)
    advice = (
        f"--journal {journal} has every finished run: give the same command again."
        if journal
        else "With --journal FILE, finished runs are kept."
    )
    with (
        connect_executor(executor, executor_options) as connected,
        _progress() as progress,
        redirect_stdout_to_stderr(),
        advise_on_interrupt(advice),
    ):
        result = run_campaign(
            portfolio,
            suite,
            horizon,
            settings,
            rest["workers"],
            connected,
            journal,
            measure=_logarithm if logarithms else None,
            portfolio_options=of_portfolio,
            suite_options=of_suite,
            run_timeout=rest["run_timeout"],
            run_memory=rest["run_memory"],
            retries=rest["retries"],
            progress=progress,
        )
    with Saving() as saving:
        saving.save(figure, lambda path: _draw(result, path))
        if as_json:
            print_json(result.to_dict())
        else:
            _show(result, f"campaign {portfolio} on {suite} · horizon {horizon:g}", [journal, *saving.saved])


def _settings(error: float | None, difference: Any, rest: dict[str, Any]) -> CampaignSettings:
    if error is None and difference == "simple":
        raise InvalidInputError(
            "Give --error, the standard error of a difference on one instance, in the units of the measure: small "
            "against the variation of differences over instances. Or compare --difference percent."
        )
    repetitions = RepetitionSettings(
        error=_PERCENT_ERROR if error is None else error,
        difference=difference,
        **{name: rest[name] for name in ("method", "first", "most", "balanced")},
    )
    names = ("effect", "power", "alpha", "test", "alternative", "power_target", "reference", "instances", "seed")
    return CampaignSettings(repetitions=repetitions, **{name: rest[name] for name in names})


def _horizon(budget: str | None, dimension: int | None, suite: str, options: dict[str, str]) -> float:
    if budget is None:
        found = getattr(quiet_suite(suite, options), "budget", None)
        if found is None:
            raise InvalidInputError(f"Give --budget, how far runs go; the suite {suite!r} has none of its own.")
        return float(found)
    last, in_dimensions = parse_budget(budget)
    if in_dimensions and dimension is None:
        raise InvalidInputError(f"--budget {budget} is in multiples of the dimension: give --dimension.")
    return last * dimension if in_dimensions and dimension is not None else last


def _algorithms(portfolio: str, options: dict[str, str]) -> tuple[str, ...]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolarBearWarning)
        return tuple(algorithm.name for algorithm in installed_plugins().portfolio(portfolio, **options))


def _logarithm(run: Trajectory) -> float:
    """Logarithm of the last value; a campaign refuses infinite ones."""
    last = float(run.best[-1]) if run.best.size else math.inf
    return math.log10(last) if last > 0 else -math.inf


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Bar of the instances whose differences are known, on a terminal."""
    shown = PlainConsole(stderr=True)
    columns = TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), TimeElapsedColumn()
    with Bar(*columns, console=shown, transient=True, disable=not shown.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        total = 0

        def report(runs: int, left: int) -> None:
            nonlocal total
            total = max(total, left)
            text = f"{runs:,} runs · {total - left} of {total} instances known precisely enough"
            bar.update(task, description=text, completed=total - left, total=total)

        yield report


def _draw(result: CampaignResult, path: Path) -> None:
    from polarbear_plugins.plots.differences import save_differences

    save_differences(
        {
            comparison: ([each.difference for each in found], [each.error for each in found])
            for comparison, found in zip(result.comparisons, result.estimates.values(), strict=True)
        },
        path,
    )


def _show_plan(settings: CampaignSettings, algorithms: tuple[str, ...], as_json: bool) -> None:
    pairs = pairs_of(algorithms, settings.reference)
    needed = settings.needed(len(pairs))
    used = settings.instances or needed
    power, first = settings.power_with(used, len(pairs)), len(algorithms) * settings.repetitions.first
    if as_json:
        data = {"algorithms": list(algorithms), "pairs": [list(pair) for pair in pairs], "needed": needed}
        print_json({**data, "instances": used, "power": power, "first_runs": used * first})
        return
    console().print(
        f"{used:,} instances (power {power:.3g} for an effect of {settings.effect:g}{_over(settings, len(pairs))}; "
        f"{settings.power:g} needs {needed:,}), at least {used * first:,} runs and at most "
        f"{used * settings.repetitions.most:,}, {len(algorithms)} algorithms. Nothing was run.",
        soft_wrap=True,
    )


def _show(result: CampaignResult, title: str, saved: list[Path | None]) -> None:
    out, settings = console(), result.settings
    out.print(
        f"{title} · {settings.test} test, {settings.alternative} · alpha {settings.alpha:g} · seed {settings.seed}"
    )
    view = text_table(
        "difference", ">estimate", f">{_level(result):.4g} interval", ">effect", ">p (Holm)", "significant"
    )
    for found in result.comparisons:
        view.add_row(
            Text(f"{found.other} - {found.one}"),
            f"{found.estimate:.4g}",
            f"{found.low:.4g} to {found.high:.4g}",
            "-" if found.effect is None else f"{found.effect:.2f}",
            "-" if found.p_corrected is None else f"{found.p_corrected:.3g}",
            "yes" if found.significant else "no",
        )
    out.print(view)
    runs = sum(sample.size for samples in result.values.values() for sample in samples.values())
    out.print(
        f"{len(result.instances):,} instances, {runs:,} runs. If differences over instances are independent and "
        f"normal, the power for an effect of {settings.effect:g}{_over(settings, len(result.comparisons))} was "
        f"{result.power:.3g}; {settings.power:g} needs {result.needed:,} instances.",
        soft_wrap=True,
    )
    for sentence in _remarks(result):
        out.print(sentence, soft_wrap=True)
    paths = [str(path) for path in saved if path is not None]
    out.print(f"saved {', '.join(paths)}" if paths else "not saved: --journal FILE keeps every run", soft_wrap=True)


def _remarks(result: CampaignResult) -> Iterator[str]:
    settings = result.settings
    if not any(found.significant for found in result.comparisons):
        yield "No difference was found. That is not evidence that there is none: smaller effects may be missed."
    for found in result.comparisons:
        if found.note:
            yield f"{found.other} - {found.one}: {found.note}."
    doubtful = [f"{found.other} - {found.one}" for found in result.comparisons if _is_doubtful(found)]
    if doubtful and settings.test == "t":
        yield (
            f"Not normal by the Shapiro-Wilk test: {', '.join(doubtful)}. With few instances --test wilcoxon, which "
            "only needs symmetry, or sign, or --log, is safer. Choose before looking at p values."
        )
    if result.short_of:
        yield (
            f"On {len(result.short_of)} of {len(result.instances)} instances --most {settings.repetitions.most} runs "
            f"did not reach the standard error {settings.repetitions.error:g}."
        )


def _is_doubtful(found: Comparison) -> bool:
    return found.normality is not None and found.normality.p is not None and found.normality.p < _DOUBT


def _over(settings: CampaignSettings, pairs: int) -> str:
    """Which power is meant, if there are several comparisons."""
    if pairs == 1:
        return ""
    return {
        "worst-case": f" in any one of {pairs} pairs",
        "mean": f", the mean over Holm's {pairs} levels,",
        "median": f", the median over Holm's {pairs} levels,",
    }[settings.power_target]


def _level(result: CampaignResult) -> float:
    return 1 - result.settings.alpha / len(result.comparisons)
