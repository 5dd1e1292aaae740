"""Reports and pages in a browser: a link to click, and opening it where there is a display."""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click
from rich.style import Style
from rich.text import Text

from polarbear_plugins.cli.output import console

Command = TypeVar("Command", bound=Callable[..., Any])

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")


def open_option(command: Command) -> Command:
    """Add ``--open/--no-open`` to a command that writes a report or serves a page."""
    return click.option(
        "--open/--no-open",
        "wanted",
        default=None,
        help="Open it in a browser.  [default: on a terminal with a display]",
    )(command)


def show_report(path: Path, wanted: bool | None, *, quiet: bool = False) -> None:
    """Print a link to the report and open it: if wanted, or by default if it can be seen.

    ``quiet`` prints nothing, and opens it only if wanted.  That there is no browser is not an error.
    """
    address = path.resolve().as_uri()
    if not quiet:
        out = console()
        # Terminals that know hyperlinks make one of it; elsewhere it is plain text.
        link = Text(address, Style(link=address) if out.is_terminal else "")
        out.print(Text("Open ").append_text(link).append(" in a browser."), soft_wrap=True)
    if wanted or (wanted is None and not quiet and can_be_seen(sys.stdout)):
        open_address(address)


def open_address(address: str) -> bool:
    """Open an address in a browser; whether there is one."""
    with contextlib.suppress(webbrowser.Error, OSError):
        return webbrowser.open(address)
    return False


def can_be_seen(stream: TextIO) -> bool:
    """Whether somebody sits at a terminal with a display, and no build server runs the command."""
    if os.environ.get("CI", "").lower() in ("true", "1") or not stream.isatty():
        return False
    return sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in _DISPLAYS)
