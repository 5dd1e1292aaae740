"""The command ``polarbear``."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import click

from polarbear_plugins.cli.analyze import analyze
from polarbear_plugins.cli.campaign import campaign
from polarbear_plugins.cli.demo import demo
from polarbear_plugins.cli.depth import depth
from polarbear_plugins.cli.export import export
from polarbear_plugins.cli.failures import (
    INTERRUPTED,
    Failure,
    OutputError,
    Unexpected,
    describe_output_error,
    exit_code_of,
    prepare_streams,
    wants_traceback,
)
from polarbear_plugins.cli.figures import figures
from polarbear_plugins.cli.gate import gate
from polarbear_plugins.cli.leaderboard import leaderboard
from polarbear_plugins.cli.measures import measures
from polarbear_plugins.cli.plan import plan
from polarbear_plugins.cli.plugins import plugins
from polarbear_plugins.cli.race import race, resume
from polarbear_plugins.cli.report import report
from polarbear_plugins.cli.select import select
from polarbear_plugins.cli.table import table
from polarbear_plugins.cli.watch import watch
from polarbear_plugins.display.text import visible
from polarbear_plugins.errors import PolarBearError, PolarBearWarning

__all__ = ["main"]


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the arguments are click's
        return list(self.commands)  # in the order of use, not of the alphabet

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            prepare_streams()
            returned: object = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            code = returned if isinstance(returned, int) else 0
            sys.stdout.flush()
        except click.ClickException as problem:
            code = exit_code_of(problem)
        except click.Abort:
            click.echo("Interrupted.", err=True)
            code = INTERRUPTED
        except OutputError as problem:
            code = exit_code_of(describe_output_error(problem))
        sys.exit(code)

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("always", PolarBearWarning)
            warnings.showwarning = _note_of(warnings.showwarning)
            try:
                return super().invoke(ctx)
            except PolarBearError as problem:
                raise Failure(str(problem)) from None
            except (click.exceptions.Exit, click.Abort, click.ClickException, KeyboardInterrupt, SystemExit):
                raise
            except OutputError as problem:
                raise describe_output_error(problem) from None
            except BaseException as problem:  # some libraries have errors that are not even an Exception
                if wants_traceback():
                    raise
                raise Unexpected(problem, ctx) from None


def _note_of(show: Callable[..., None]) -> Callable[..., None]:
    """What shows a warning: ours as a note, others as before."""

    def note(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
        with contextlib.suppress(OSError):
            if issubclass(category, PolarBearWarning):
                click.echo(visible(f"Note: {message}"), err=True)
            else:
                show(message, category, *rest, **more)

    return note


_WAYS = """\b
A first look, in under a minute:
  polarbear demo

\b
From data (CSV, IOHprofiler, Bayesmark ...):
  polarbear analyze runs.csv --output result.npz
  polarbear report result.npz -o result.html

\b
From a race:
  polarbear race modcma-ssa ma-bbob --dimension 5 --budget 10000 \\
    --journal race.db
  polarbear watch race.db
  polarbear select race.db --preference log-uniform
  polarbear report race.db -o race.html
  polarbear figures race.db -o figures
  polarbear export race.db -o runs.csv

\b
From Optuna (studies of several samplers, in a storage):
  polarbear analyze sqlite:///studies.db --output result.npz
  (a race inside a study: race_result(study).report("race.html") in Python)

\b
Shell completion: add one of these lines to the startup file of your shell
  eval "$(_POLARBEAR_COMPLETE=bash_source polarbear)"     (~/.bashrc)
  eval "$(_POLARBEAR_COMPLETE=zsh_source polarbear)"      (~/.zshrc)
  _POLARBEAR_COMPLETE=fish_source polarbear | source      (config.fish)
"""


@click.group("polarbear", cls=_Group, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_WAYS)
@click.version_option(package_name="polarbear-plugins", prog_name="polarbear")
def main() -> None:
    """Find out which optimization algorithms are worth keeping when the later budget is unknown."""


for command in (
    demo,
    race,
    resume,
    watch,
    analyze,
    select,
    report,
    figures,
    table,
    export,
    measures,
    gate,
    depth,
    plan,
    campaign,
    leaderboard,
    plugins,
):
    main.add_command(command)
