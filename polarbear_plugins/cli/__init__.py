"""The command ``polarbear``."""

from __future__ import annotations

import warnings
from typing import Any

import click

from polarbear_plugins.cli.analyze import analyze
from polarbear_plugins.cli.depth import depth
from polarbear_plugins.cli.leaderboard import leaderboard
from polarbear_plugins.cli.measures import measures
from polarbear_plugins.cli.plan import plan
from polarbear_plugins.cli.plugins import plugins
from polarbear_plugins.cli.race import race, resume
from polarbear_plugins.cli.select import select
from polarbear_plugins.errors import PolarBearError, PolarBearWarning

__all__ = ["main"]


class _Failure(click.ClickException):
    """A mistake the user can mend: one line, exit code 2."""

    exit_code = 2


class _Group(click.Group):
    def invoke(self, ctx: click.Context) -> Any:
        show = warnings.showwarning

        def note(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, PolarBearWarning):
                click.echo(f"Note: {message}", err=True)
            else:
                show(message, category, *rest, **more)

        with warnings.catch_warnings():
            warnings.simplefilter("always", PolarBearWarning)
            warnings.showwarning = note
            try:
                return super().invoke(ctx)
            except PolarBearError as problem:
                raise _Failure(" ".join(str(problem).split())) from None


@click.group("polarbear", cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="polarbear-plugins", prog_name="polarbear")
def main() -> None:
    """Find out which optimization algorithms are worth keeping when the later budget is unknown."""


for command in (race, resume, analyze, select, depth, plan, leaderboard, measures, plugins):
    main.add_command(command)
