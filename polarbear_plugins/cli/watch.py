"""``polarbear watch``, and ``--watch`` of races: a page in the browser about a race that is running."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from polarbear_plugins.cli.browser import can_be_seen, open_address, open_option
from polarbear_plugins.cli.output import json_option, print_json
from polarbear_plugins.cli.outputs import InputPath
from polarbear_plugins.errors import SourceError
from polarbear_plugins.experiments.watching import Progress, Watcher
from polarbear_plugins.journal.replay import is_journal
from polarbear_plugins.watch import JournalPage, RacePage
from polarbear_plugins.watch.journal_page import look_at, status_of

Command = TypeVar("Command", bound=Callable[..., Any])


def page_options(command: Command) -> Command:
    """Add the options of a page: its port, and whether to open it."""
    port = click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        show_default="a free one",
        help="Port of the page, on this computer (127.0.0.1) only.",
    )
    return port(open_option(command))


@contextlib.contextmanager
def race_page(watched: bool, port: int, wanted: bool | None) -> Iterator[RacePage | None]:
    """Page about the race inside the block, if it is watched; at the end an open page gets the final report."""
    if not watched:
        yield None
        return
    with RacePage(port=port) as page:
        _announce(page.address, wanted)
        yield page
        if page.is_awaited():
            click.echo("making the final report for the open page; ctrl-C skips that", err=True)


def both(view: Watcher, page: RacePage | None) -> Watcher:
    """What tells a view and a page, if there is one, how far a race is."""

    def tell(progress: Progress) -> object:
        view(progress)
        return page is not None and page(progress)

    return tell


@click.command(short_help="Show the race of a journal on a page in the browser.")
@click.argument("journal", type=InputPath())
@click.option("--unit", default="", help="Unit of time, such as evaluations or seconds.")
@page_options
@json_option
def watch(journal: Path, unit: str, port: int, wanted: bool | None, as_json: bool) -> None:
    """Show the race in JOURNAL on a page, while another process runs it, or after it has ended.

    The page has the report of the last finished round, and above it what is going on now. It is only for this computer
    and for whoever knows its address. The journal is not changed; a running race can be asked to stop after its round.
    Ctrl-C ends the page and not the race. With --json, the state of the race is printed once, and there is no page.
    """
    if not is_journal(journal):
        missing = "" if journal.exists() else " (there is no such file)"
        raise SourceError(
            f"{journal} is not the journal of a race{missing}. `polarbear race --journal FILE` keeps one; `polarbear "
            "report` shows a saved result."
        )
    if as_json:
        look = look_at(journal)
        if look.now is None:
            raise SourceError(look.problem)
        print_json(status_of(journal, look).to_dict())
        return
    with JournalPage(journal, port=port, unit=unit) as page, contextlib.suppress(KeyboardInterrupt):
        _announce(page.address, wanted)
        click.echo("ctrl-C ends the page, and not the race", err=True)
        threading.Event().wait()


def _announce(address: str, wanted: bool | None) -> None:
    click.echo(f"watch the race at {address}", err=True)
    if (can_be_seen(sys.stderr) if wanted is None else wanted) and not open_address(address):
        click.echo("Note: no browser could be opened; open that address in one.", err=True)
