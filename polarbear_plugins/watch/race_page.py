"""A page about a race in this process."""

from __future__ import annotations

import time

from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.page import title_of
from polarbear_plugins.watch.reports import Wanted
from polarbear_plugins.watch.site import STOPPING, RaceSite, over_text
from polarbear_plugins.watch.status import Status, TimeLeft
from polarbear_plugins.watch.words import activity_text

_FAREWELL = 30.0  # seconds that an open page has to fetch the final report
_STEP = 0.1


class RacePage(RaceSite):
    """A page on this computer that shows a race of this process while it runs, and can stop it after a round.

    Pass it to :func:`polarbear_plugins.race` as ``progress``, and give it the result at the end.  Reports are made in
    another process, so they have the sections of installed plugins only.

    Parameters
    ----------
    port
        Port of 127.0.0.1; 0 takes a free one.
    unit
        Unit of time, such as ``evaluations`` or ``seconds``.
    title
        Title of the page; by default what is raced.

    Attributes
    ----------
    address
        Where the page is.  It has a secret token: whoever knows the address can see the race and stop it.

    Examples
    --------
    >>> with RacePage() as page:  # result = race(..., progress=page); page.finish(result)
    ...     address = page.address
    >>> address.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, *, port: int = 0, unit: str = "", title: str | None = None) -> None:
        self._progress: Progress | None = None
        self._newest: RaceResult | None = None
        self._is_over = self._stop_wanted = self._was_served = False
        self._last_run = time.monotonic()
        super().__init__(port, unit, title)

    def __call__(self, progress: Progress) -> bool:
        """Take note of a step of the race; returns whether it is to stop after the round."""
        now, before = time.monotonic(), self._progress
        if before is None or progress.done != before.done:
            self._last_run = now
        if before is None or len(progress.state.rounds) != len(before.state.rounds):
            self._pace.note(now, progress.state.cost)
        self._progress = progress
        if progress.result is not None:
            self._show(progress.result)
        return self._stop_wanted

    def finish(self, result: RaceResult) -> None:
        """Show the result of the race, and that it is over."""
        self._is_over = True
        self._show(result)

    def __exit__(self, *problem: object) -> None:
        """End the server; a page that is open is given some seconds to fetch the final report."""
        try:
            until = time.monotonic() + _FAREWELL
            while not any(problem) and self.is_awaited() and time.monotonic() < until:
                time.sleep(_STEP)
        except KeyboardInterrupt:  # only the page is given up: the result is there
            pass
        finally:
            super().__exit__(*problem)

    def page(self) -> tuple[str, str]:
        """HTML of the page, and its Content-Security-Policy."""
        self._was_served = self.is_last()
        return super().page()

    def stop(self) -> str:
        """Have the race stop after its round."""
        if self._is_over:
            return "The race is over."
        self._stop_wanted = True
        return ""

    def heading(self) -> str:
        """What is raced, if known."""
        return "A race" if self._newest is None else title_of(self._newest)

    def is_last(self) -> bool:
        """Whether the race is over, and its report made."""
        return self._is_over and (self._newest is None or self._reports.is_done(_key(self._newest)))

    def current(self) -> Status:
        """How the race is doing."""
        progress = self._progress
        if self._is_over and self._newest is not None:
            return _final(self._newest)
        if progress is None:
            return Status(phase="waiting", says="The race is about to begin.", stop_says="It has not begun yet.")
        number = len(progress.state.rounds) + 1
        then = "; the race stops after it, as requested" if self._stop_wanted else ""
        return Status(
            phase="stopping" if self._stop_wanted else "running",
            says=f"Round {number:,} is running{then}.",
            state=progress.state,
            round_says=_round_text(progress, number),
            activity=activity_text(progress, time.monotonic() - self._last_run) or "-",
            progress=progress,
            failed=progress.failed,
            recent_failures=progress.recent_failures,
            left=STOPPING if self._stop_wanted else self._time_left(progress.state),
            stop_says="It stops after this round." if self._stop_wanted else "",
        )

    def _show(self, result: RaceResult) -> None:
        self._newest = result
        if result.rounds:
            running = not self._is_over
            self._reports.want(Wanted(_key(result), lambda folder: result.save(folder / "result.npz"), running))

    def is_awaited(self) -> bool:
        """Whether a page is open that has not got the final report, and still can; after ctrl-C nobody waits."""
        newest = self._newest
        if not self._is_over or newest is None or not newest.rounds or not self._reports.is_watched:
            return False
        if newest.stopped == "interrupted":
            return False
        failed = self._reports.is_done(_key(newest)) and bool(self._reports.problem)
        return not (self._was_served or failed)


def _key(result: RaceResult) -> str:
    return f"{len(result.rounds)}-{result.stopped}" if result.rounds else ""


def _round_text(progress: Progress, number: int) -> str:
    if not progress.planned:
        return f"round {number:,} is being planned"
    if progress.done == progress.planned:
        return f"all {progress.planned:,} runs of round {number:,} are done, and its posterior is being inferred"
    return f"{progress.done:,} of {progress.planned:,} runs of round {number:,} are done"


def _final(result: RaceResult) -> Status:
    return Status(
        phase="interrupted" if result.stopped == "interrupted" else "finished",
        says=over_text(result),
        stopped=result.stopped,
        state=result.state,
        round_says=f"{len(result.rounds):,} finished",
        failed=len(result.failures),
        recent_failures=result.failures[-10:],
        left=TimeLeft("- (the race is over)"),
        stop_says="The race is over.",
    )
