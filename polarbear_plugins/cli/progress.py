"""Progress on a terminal."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import click
from rich.console import RenderableType
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.text import Text

from polarbear_plugins.cli.output import WIDE, PlainConsole
from polarbear_plugins.display.text import format_duration, probability_text, visible
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.racing.forecast import forecast
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Round
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.watch.words import activity_text

Result = TypeVar("Result")

_SIMULATIONS = 40  # enough for a median, and rounds may be short


@contextlib.contextmanager
def spinner(text: str) -> Iterator[None]:
    """Show a text and the elapsed time during the block; silent unless standard error is a terminal."""
    shown = PlainConsole(stderr=True)
    if not shown.is_terminal:  # earlier versions of rich print an empty line there
        yield
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Bar(*columns, console=shown, transient=True) as bar:
        bar.add_task(text, total=None)
        yield


@contextlib.contextmanager
def share_bar(text: str) -> Iterator[Callable[[float, float], None]]:
    """Show a text and the elapsed time during the block, and what it is told: the share that is done and seconds left.

    Silent unless standard error is a terminal.
    """
    shown = PlainConsole(stderr=True)
    if not shown.is_terminal:
        yield lambda *_: None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Bar(*columns, console=shown, transient=True) as bar:
        task = bar.add_task(text, total=None, left="")
        yield lambda share, seconds: bar.update(
            task, completed=share, total=1.0, left=f"about {format_duration(seconds)} left"
        )


def compute_unless_interrupted(compute: Callable[[], Result], what: str) -> Result | None:
    """Compute an optional part of a command: ctrl-C skips it with a note, and the command goes on."""
    try:
        return compute()
    except KeyboardInterrupt:
        click.echo(f"Note: interrupted before {what} was ready; the rest follows.", err=True)
        return None


@contextlib.contextmanager
def advise_on_interrupt(advice: str) -> Iterator[None]:
    """Print advice on how to take less time if ctrl-C ends the block, without which the command has no result."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"Note: interrupted before there was a result. {advice}", err=True)
        raise


def inference_spinner(table: RankingTable, settings: RaceSettings) -> contextlib.AbstractContextManager[None]:
    """Show during the block what is being inferred, and with which prior and engine."""
    return spinner(
        f"inferring ratings of {len(table.algorithms)} algorithms at {table.timepoints.size} timepoints: prior "
        f"{settings.prior}, engine {settings.engine}"
    )


class _BarWithText(Bar):
    """A bar with a line of text below it, made whenever the bar is drawn, and cut where the terminal ends."""

    def __init__(self, *columns: TextColumn | BarColumn, text: Callable[[], str], **options: Any) -> None:
        self._text = text
        super().__init__(*columns, **options)

    def get_renderables(self) -> Iterable[RenderableType]:
        """Bar and text."""
        yield from super().get_renderables()
        if text := self._text():
            yield Text(visible(f"  {text}"), no_wrap=True, overflow="ellipsis")


class ProgressView:
    """Shows the progress of a race; silent unless standard error is a terminal.

    It prints a line for each finished round, a bar for the runs of the current one, and what the workers are doing.
    """

    def __init__(self) -> None:
        self._console = PlainConsole(stderr=True)
        self._progress: Progress | None = None
        self._began = self._last_run = time.monotonic()
        self._bar = _BarWithText(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TextColumn("{task.completed}/{task.total} runs{task.fields[left]}", markup=False),
            text=self._activity,
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task: TaskID | None = None
        self._cost_at_start: float | None = None
        self._left = ""

    def __enter__(self) -> ProgressView:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:  # rich 14.2 prints an empty line even for a bar that was never shown
            self._bar.stop()

    def __call__(self, progress: Progress) -> None:
        """Show a step of the race."""
        if not self._console.is_terminal:
            return
        state = progress.state
        if self._cost_at_start is None:
            self._cost_at_start = state.cost
        if self._progress is None or progress.done != self._progress.done:
            self._last_run = time.monotonic()
        self._progress = progress
        if not progress.planned:
            self._round_finished(progress)
            return
        wide = self._console.width >= WIDE
        batch = f" · batch {state.batch}" if wide else ""
        share = f" · {state.cost / state.full_cost:.0%} of full cost" if state.full_cost and wide else ""
        failed = f" · {progress.failed} failed" if progress.failed else ""
        text = (
            f"round {len(state.rounds) + 1}{batch} · {len(state.pareto_set)} of {len(state.algorithms)} in · "
            f"{state.resolved_share:.0%} settled{share}{failed}"
        )
        if self._task is None:
            self._task = self._bar.add_task(text, total=progress.planned, left=self._left)
        self._bar.update(self._task, description=text, completed=progress.done, total=progress.planned, left=self._left)

    def _activity(self) -> str:
        if self._progress is None:
            return ""
        wide = self._console.width >= WIDE
        return activity_text(self._progress, time.monotonic() - self._last_run, wide=wide)

    def _round_finished(self, progress: Progress) -> None:
        self._left = self._time_left(progress)
        self._bar.console.print(Text(round_text(progress.state.rounds[-1])))

    def _time_left(self, progress: Progress) -> str:
        """Time left at the speed so far, for the median of the forecast cost; empty if there is no forecast."""
        state = progress.state
        spent = state.cost - (self._cost_at_start or 0.0)
        if progress.posterior is None or not spent or state.settled:
            return ""
        cost = forecast(state, progress.posterior, _SIMULATIONS).quantile(0.5, cost=True)
        if cost is None:
            return ""
        seconds = cost * (time.monotonic() - self._began) / spent
        return f" · about {format_duration(seconds)} left"


def round_text(finished: Round) -> str:
    """Line about a finished round."""
    out = "".join(
        f" · {elimination.algorithm} out ({elimination.by} better, {probability_text(elimination.probability)})"
        for elimination in finished.eliminations
    )
    return f"round {finished.number}: {finished.instances:,} instances · {finished.resolved_share:.0%} settled{out}"
