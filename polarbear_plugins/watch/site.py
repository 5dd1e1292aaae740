"""What every page about a race has: a server, reports, and what is served."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import RaceState
from polarbear_plugins.report.words import WHY_STOPPED
from polarbear_plugins.watch.page import page_of
from polarbear_plugins.watch.reports import Report, Reports
from polarbear_plugins.watch.server import PageServer
from polarbear_plugins.watch.status import Pace, Status, TimeLeft

STOPPING = TimeLeft("- (the race stops after this round)")


class RaceSite(ABC):
    """A page about a race; use it in a ``with`` statement, which ends its server.

    Attributes
    ----------
    address
        Where the page is.  It has a secret token: whoever knows the address can see the race and stop it.
    """

    def __init__(self, port: int, unit: str, title: str | None) -> None:
        self._title = title
        self._pace = Pace()
        self._reports = Reports(unit, title)
        try:
            self._server = PageServer(self, port)
        except BaseException:
            self._reports.close()
            raise
        self.address = self._server.address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()
        self._reports.close()

    def page(self) -> tuple[str, str]:
        """HTML of the page, and its Content-Security-Policy."""
        self._reports.look()
        report = self._reports.newest
        heading = self.heading() if self._title is None else self._title
        return page_of(_with_report(self.current(), report), report, heading)

    def status(self) -> Mapping[str, Any]:
        """What the page polls, ready for JSON."""
        self._reports.look()
        report = self._reports.newest
        status = _with_report(self.current(), report)
        return {
            **status.to_dict(),
            "lines": status.lines(),
            "problem": self._reports.problem,
            "report": "" if report is None else report.key,
            "last": self.is_last(),
        }

    @abstractmethod
    def current(self) -> Status:
        """How the race is doing."""

    @abstractmethod
    def heading(self) -> str:
        """Title of the page, unless one was given."""

    @abstractmethod
    def stop(self) -> str:
        """Have the race stop after its round; returns what to tell whoever asked, if anything."""

    def is_last(self) -> bool:
        """Whether nothing will change any more, the report included."""
        return False

    def _time_left(self, state: RaceState) -> TimeLeft:
        """How long a running race still takes."""
        report = self._reports.newest
        if not state.rounds:
            return TimeLeft("- (no round has finished yet)")
        if report is None:
            return TimeLeft("- (the forecast is being made)")
        if report.forecast is None:
            return TimeLeft(f"- ({report.why})")
        left = self._pace.time_left(report.forecast, report.rounds, report.cost, state, time.monotonic())
        return left or TimeLeft("- (the speed is known when this page has seen a round from end to end)")


def _with_report(status: Status, report: Report | None) -> Status:
    if status.state is None or not status.state.rounds:
        return status
    finished = len(status.state.rounds)
    if report is None:
        says = f"that of round {finished:,} is being made"
    elif report.rounds < finished:
        says = f"below is that of round {report.rounds:,}; newer rounds have finished, and that of one is being made"
    else:
        says = f"below is that of round {report.rounds:,}, the newest"
    return replace(status, report_says=says)


def over_text(result: RaceResult) -> str:
    """Sentence about a race that is over: after which round, and why."""
    rounds = len(result.rounds)
    where = f"after round {rounds:,}" if rounds else "before its first round was over"
    return f"The race is over {where}: {WHY_STOPPED.get(result.stopped, result.stopped)}."
