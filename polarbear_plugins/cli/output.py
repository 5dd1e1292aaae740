"""Output of the commands: tables for people, JSON for programs."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from rich import box
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from polarbear_plugins.display.text import amount, few_places, share_text, visible
from polarbear_plugins.plots.style import save_figure
from polarbear_plugins.racing.by_group import GroupPart
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.comparable import instances_seen
from polarbear_plugins.regular_files import naming_output
from polarbear_plugins.report.computed import Computed, compute
from polarbear_plugins.report.next_steps import Kept, next_steps
from polarbear_plugins.report.observations import assumptions, seen_text
from polarbear_plugins.report.rating_words import DIFFERENCE, leader_text
from polarbear_plugins.report.words import conclusion, leaders_text, misfits, reasons

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Command = TypeVar("Command", bound=Callable[..., Any])

WIDE = 120  # columns that a terminal needs for whole tables


def json_option(command: Command) -> Command:
    """Add ``--json`` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def print_json(data: object) -> None:
    """Print data as JSON; fails on nan and inf, which JSON does not have and other programs could not read."""
    click.echo(visible(json.dumps(data, indent=2, allow_nan=False, ensure_ascii=False)))


def save_figures(figures: Mapping[str, Axes], folder: Path) -> list[Path]:
    """Save figures as PNG files of their names in a folder, which is made if need be, and return the files."""
    with naming_output(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return [save_figure(ax.figure, folder / f"{name}.png") for name, ax in figures.items()]


def show_saved(out: Console, paths: Sequence[Path]) -> None:
    """Print which files were written."""
    if paths:
        out.print(f"saved {', '.join(map(str, paths))}", soft_wrap=True)


class PlainConsole(Console):
    """A console that prints text from data verbatim: no markup, and no control characters for the terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render; control characters are shown escaped, as in JSON."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=visible(segment.text))


class Terminal(PlainConsole):
    """A console that wraps lines between words, unless a word such as a path is longer than a line."""

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """Print; ``soft_wrap`` wraps between words if they are short enough."""
        if soft_wrap:
            soft_wrap = any(len(word) > self.width for text in objects for word in str(text).split())
        super().print(*objects, soft_wrap=soft_wrap, **options)


def console() -> Console:
    """Console of standard output; piped output is neither coloured nor truncated."""
    out = Terminal()
    return out if out.is_terminal else PlainConsole(width=200)


class _PlainTable(Table):
    """A table whose columns are as wide as the text that the console shows."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        shown = (Text(visible(str(cell))) if isinstance(cell, str | Text) else cell for cell in cells)
        super().add_row(*shown, **options)


def text_table(*columns: str) -> Table:
    """Empty table in the style of all commands; ``>`` before the name of a column aligns it to the right."""
    table = _PlainTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        # Folded, not truncated: two names may begin with the same characters.
        side: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        table.add_column(visible(column.removeprefix(">")), justify=side, overflow="fold")
    return table


@contextlib.contextmanager
def redirect_stdout_to_stderr() -> Iterator[None]:
    """Send standard output to standard error, including that of C libraries that algorithms use."""
    sys.stdout.flush()
    try:
        ours = os.dup(1)
    except OSError:  # standard output is closed
        ours = None
    try:
        if ours is not None:
            with contextlib.suppress(OSError):
                os.dup2(2, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if ours is not None:
            os.dup2(ours, 1)
            os.close(ours)


def show_result(out: Console, result: RaceResult, unit: str = "", known: Computed | None = None) -> None:
    """Print which algorithms are in, which are out and why, what the numbers mean, and the conclusion.

    ``known`` is what was computed for it already.
    """
    known = compute(result) if known is None else known
    if result.rounds:
        out.print(_heading(result), soft_wrap=True)
        out.print(_table(result, known, narrow=out.width < WIDE))
        if says := leader_text(result, known.robust or result.posterior, unit):
            difference = f" {DIFFERENCE}" if len(result.pareto_set) > 1 else ""
            out.print(f"{says}{difference}", soft_wrap=True)
    out.print(conclusion(result, unit, *known), soft_wrap=True)
    for sentence in assumptions(result):
        out.print(sentence, soft_wrap=True)


def show_next(out: Console, result: RaceResult, known: Computed, kept: Kept) -> None:
    """Print what to do next, each command on a line of its own that can be copied."""
    out.print("\nWhat to do next:")
    for step in next_steps(result, known.forecast, kept):
        out.print(f"- {step.says}", soft_wrap=True)
        if step.command:
            # Not wrapped: the terminal does that, and it is one line for those who copy it.
            out.print(Text(f"  {step.command}"), no_wrap=True, overflow="ignore", crop=False)


def _heading(result: RaceResult) -> str:
    partial = bool((instances_seen(result.state.table) < len(result.state.table.instances)).any())
    seen = " (in brackets, on how many instances it was seen there, if not on all)" if partial else ""
    if misfits(result):
        return (
            "Ratings: the share of new instances on which each would be the best of those left, by first places, since "
            f"the model does not fit{seen}:"
        )
    return (
        "Ratings: the share of new instances on which each would be the best of all, by the mean of the posterior"
        f"{seen}:"
    )


def _table(result: RaceResult, known: Computed, *, narrow: bool) -> Table:
    grid = result.timepoints
    columns = sorted({0, grid.size - 1}) if narrow else few_places(grid.size)
    posterior = known.robust or result.posterior
    mean = dict(zip(posterior.algorithms, posterior.mean_ratings.T, strict=True))
    summary, why = result.summary(), reasons(result, known.robust)
    failed = bool(summary["failed"].any())
    view = text_table(
        "algorithm",
        "status",
        "because",
        *(f">at {grid[t]:,.5g}" for t in columns),
        *([] if narrow else [">instances", ">cost"]),
        *([">failed"] if failed else []),
    )
    seen = seen_text(result)
    for label, row in summary.iterrows():
        name = str(label)
        eliminated = row["status"] == "out"
        status = "in"
        if eliminated:
            status = f"out (round {row['round']})" if len(result.rounds) > 1 else "out"
        cells = [f"{share_text(mean[name][t])}{seen[name][t]}" if name in mean else "-" for t in columns]
        if not narrow:
            cost = "stored" if name in result.state.stored else amount(row["cost"])
            cells += [f"{row['instances']:,}", cost]
        cells += [str(row["failed"])] if failed else []
        because = Text(why[name])
        view.add_row(Text(name), status, because, *cells, style="dim" if eliminated else None)
    return view


def group_table(parts: Sequence[GroupPart], what: str, *, narrow: bool) -> Table:
    """Table of the groups: the algorithm most often first in each at a few timepoints, and its rating there."""
    grid = parts[0].timepoints
    columns = sorted({0, grid.size - 1}) if narrow else range(grid.size)
    view = text_table(what, ">instances", *(f"at {grid[t]:,.5g}" for t in columns))
    for part in parts:
        view.add_row(part.group, f"{part.instances:,}", *(leaders_text(part, t) for t in columns))
    return view
