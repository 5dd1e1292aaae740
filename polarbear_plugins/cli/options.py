"""Options that several commands share, and how their values are parsed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.cli.completion import complete_names
from polarbear_plugins.cli.output import Command
from polarbear_plugins.errors import InvalidInputError, UnknownNameError
from polarbear_plugins.inference.fitting import BUILT_IN_ENGINES
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.plugins.manager import installed_plugins
from polarbear_plugins.priors import BUILT_IN_PRIORS
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.trajectories.trajectory import Trajectory

MOST_TIMEPOINTS = 10_000
_DEFAULTS = RaceSettings()


def settings_options(command: Command) -> Command:
    """Add the options that :func:`settings_from` turns into settings."""
    options = [
        click.option(
            "--alpha",
            type=float,
            default=_DEFAULTS.alpha,
            show_default=True,
            help="Posterior probability that a decision needs.",
        ),
        click.option(
            "--epsilon",
            type=float,
            default=_DEFAULTS.epsilon,
            show_default=True,
            help="Two algorithms are equivalent if one beats the other with a probability this close to 1/2.",
        ),
        click.option(
            "--prior",
            default=_DEFAULTS.prior,
            shell_complete=complete_names(BUILT_IN_PRIORS),
            show_default=True,
            help="dirichlet, hierarchical-dirichlet, gp, sparse-gp, hsgp, random-walk, bspline, or one of a plugin.",
        ),
        click.option(
            "--prior-option", "prior_options", multiple=True, metavar="KEY=VALUE", help="An option of the prior."
        ),
        click.option(
            "--engine",
            default=_DEFAULTS.engine,
            shell_complete=complete_names(BUILT_IN_ENGINES),
            show_default=True,
            help="native, or nuts, pathfinder, ... through PyMC.",
        ),
        click.option(
            "--elimination",
            type=click.Choice(["pointwise", "joint"]),
            default=_DEFAULTS.elimination,
            show_default=True,
            help="Dominance at each timepoint separately, or at all timepoints jointly (needs a temporal prior).",
        ),
        click.option(
            "--resolution",
            type=click.Choice(["strict", "crossing"]),
            default=_DEFAULTS.resolution,
            show_default=True,
            help="Settle each pair at each timepoint, or stop earlier for pairs that cross.",
        ),
        click.option(
            "--rule",
            type=click.Choice(["posterior", "anytime-valid"]),
            default=_DEFAULTS.rule,
            show_default=True,
            help="Eliminate by the posterior, or by direct wins alone: no model, and P(any wrong elimination, ever) at "
            "most 1 - alpha if instances are independent draws, for two to three times as many of them.",
        ),
        click.option(
            "--guard",
            type=click.Choice(["counts", "none"]),
            default=_DEFAULTS.guard,
            show_default=True,
            help="Decide nothing that is contradicted by who is first and by direct wins, or trust the model alone.",
        ),
        click.option(
            "--groups",
            type=click.Choice(["auto", "new", "same", "none"]),
            default=_DEFAULTS.groups,
            show_default=True,
            help="What the certainty is about if instances belong to groups: an instance of a new group, further ones "
            "of the same groups, or no regard to groups.",
        ),
        click.option(
            "--draws", type=int, default=_DEFAULTS.draws, show_default=True, help="Number of posterior draws."
        ),
        click.option("--seed", type=int, help="Seed of all random choices."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def settings_from(
    *,
    alpha: float,
    epsilon: float,
    prior: str,
    prior_options: Iterable[str],
    engine: str,
    elimination: Any,
    resolution: Any,
    rule: Any,
    guard: Any,
    groups: Any,
    draws: int,
    seed: int | None,
    **rest: Any,
) -> RaceSettings:
    """Settings from the values of :func:`settings_options`, and further ones."""
    return RaceSettings(
        alpha=alpha,
        epsilon=epsilon,
        prior=prior,
        prior_options={
            key: _parse_value(value) for key, value in parse_key_values(prior_options, "--prior-option").items()
        },
        engine=engine,
        elimination=elimination,
        resolution=resolution,
        rule=rule,
        guard=guard,
        groups=groups,
        draws=draws,
        seed=seed,
        **rest,
    )


def parse_key_values(options: Iterable[str], option: str) -> dict[str, str]:
    """Dict of options given as ``KEY=VALUE``."""
    pairs: dict[str, str] = {}
    for text in options:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise InvalidInputError(f"{option}: expected KEY=VALUE, got {text!r}.")
        if key.strip() in pairs:
            raise InvalidInputError(f"{option}: {key.strip()} is given twice, as {pairs[key.strip()]!r} and {value!r}.")
        pairs[key.strip()] = value
    return pairs


def parse_timepoints(text: str) -> int | list[float]:
    """Number of timepoints, or a list of them."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(
            f"--timepoints: expected a number of timepoints, or timepoints separated by commas, got {text!r}."
        ) from None
    if len(numbers) > 1:
        return numbers
    if not numbers[0].is_integer() or not 1 <= numbers[0] <= MOST_TIMEPOINTS:
        raise InvalidInputError(
            f"--timepoints: expected a whole number of timepoints up to {MOST_TIMEPOINTS}, got {text!r}."
        )
    return int(numbers[0])


def parse_budget(text: str) -> tuple[float, bool]:
    """Last timepoint, and whether it is in multiples of the dimension.

    >>> parse_budget("2000d"), parse_budget("1e4")
    ((2000.0, True), (10000.0, False))
    """
    number = text.strip().removesuffix("d")
    try:
        last = float(number)
    except ValueError:
        raise InvalidInputError(f"--budget: expected a number such as 10000 or 2000d, got {text!r}.") from None
    return as_number(last, "--budget", above=0), number != text.strip()


def parse_numbers(text: str, option: str) -> list[float]:
    """List of numbers from a comma-separated text."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInputError(f"{option}: expected numbers separated by commas, got {text!r}.") from None


def _parse_value(text: str) -> Any:
    """Parse numbers, lists, true and false as JSON; anything else is text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def read_runs(sources: Sequence[str], options: Mapping[str, str]) -> tuple[list[Trajectory], FloatArray | None]:
    """Runs of sources that an adapter reads, or of a race from its journal or saved result.

    Of a race, runs are known only at its timepoints, which are returned with them.
    """
    try:
        return list(installed_plugins().read_trajectories(*sources, **options)), None
    except UnknownNameError:
        if len(sources) == 1 and Path(sources[0]).is_file():
            result = load_result(sources[0])
            return list(result.trajectories()), result.timepoints
        raise
