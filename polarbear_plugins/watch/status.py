"""How a race is doing at a moment: what the page polls, and what ``polarbear watch --json`` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.racing.state import Failure, RaceState
from polarbear_plugins.watch import words

Phase = Literal["waiting", "running", "stopping", "finished", "interrupted", "unknown", "unreadable"]


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds that a race still takes: the ends of an 80 % interval and the median, if known; and a sentence."""

    says: str
    low: float | None = None
    median: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Status:
    """How a race is doing.

    Attributes
    ----------
    phase
        ``waiting`` for its first news, ``running``, ``stopping`` after this round, ``finished``, ``interrupted``,
        ``unknown`` (it cannot be told whether it is running), or ``unreadable``.
    says
        One sentence about that.
    stopped
        Why it stopped, as in a result; ``None`` while it runs.
    state
        The race after its last finished round, if known.
    round_says
        How far the current round is.
    activity
        What the workers do.
    report_says
        Which round the report is of, if there is one.
    stop_says
        Why it cannot be stopped from here; empty if it can.
    """

    phase: Phase
    says: str
    stopped: str | None = None
    state: RaceState | None = None
    round_says: str = "-"
    activity: str = "-"
    progress: Progress | None = None
    waiting_runs: int | None = None
    failed: int = 0
    recent_failures: tuple[Failure, ...] = ()
    left: TimeLeft = TimeLeft("-")
    report_says: str = ""
    stop_says: str = ""

    def lines(self) -> list[tuple[str, str]]:
        """Labels and texts, for people."""
        state = self.state
        if state is None:
            return []
        return [
            ("Round", self.round_says),
            ("In", words.inside_text(state)),
            ("Out", words.out_text(state.eliminations)),
            ("Settled", words.settled_text(state) if state.rounds else "- (no round has finished yet)"),
            ("Runs", self.activity),
            ("Time left", self.left.says),
            ("Failed", words.failures_text(self.failed, self.recent_failures)),
            ("Cost", words.cost_text(state)),
            *([("Report", self.report_says)] if self.report_says else []),
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict; ``None`` where something is not known."""
        state, progress = self.state, self.progress
        known: dict[str, Any] = dict.fromkeys(
            ("rounds", "instances", "algorithms", "pareto_set", "eliminations", "resolved_share", "cost", "full_cost")
        )
        if state is not None:
            known |= {
                "rounds": len(state.rounds),
                "instances": len(state.table.instances),
                "algorithms": list(state.algorithms),
                "pareto_set": list(state.pareto_set),
                "eliminations": [asdict(out) for out in state.eliminations],
                "resolved_share": state.resolved_share,
                "cost": state.cost,
                "full_cost": state.full_cost,
            }
        names = ("done", "planned", "under_way", "ahead", "utilisation")
        runs = None if progress is None else {name: getattr(progress, name) for name in names}
        if progress is not None and runs is not None:
            runs["waited_for"] = dict(progress.waited_for)
        return {
            "phase": self.phase,
            "says": self.says,
            "stopped": self.stopped,
            **known,
            "runs": runs,
            "waiting_runs": self.waiting_runs,
            "failed": self.failed,
            "recent_failures": [asdict(failure) for failure in self.recent_failures],
            "time_left": asdict(self.left),
            "can_stop": not self.stop_says,
            "stop_says": self.stop_says,
        }


class Pace:
    """Speed of a race: the cost of its rounds, and when they ended."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None
        self._last: tuple[float, float] | None = None

    def note(self, when: float, cost: float) -> None:
        """Note what the finished rounds cost at a time, in seconds of some clock; only changes count."""
        if self._first is None:
            self._first = self._last = when, cost
        elif self._last is not None and cost > self._last[1]:
            self._last = when, cost

    def time_left(
        self, forecast: Mapping[str, float | None], rounds: int, cost: float, state: RaceState, now: float
    ) -> TimeLeft | None:
        """Time that is left; ``None`` if no round has ended since the first note.

        Parameters
        ----------
        forecast
            Ends and median of the cost still to come, made after ``rounds`` rounds that cost ``cost``.
        """
        if self._first is None or self._last is None or self._last == self._first:
            return None
        rate = (self._last[1] - self._first[1]) / max(self._last[0] - self._first[0], 1e-9)
        spent, passed = state.cost - cost, now - self._last[0]
        seconds = {
            name: None if more is None else max(0.0, (more - spent) / rate - passed) for name, more in forecast.items()
        }
        return TimeLeft(words.time_left_text(seconds, state.settings, rounds), **seconds)
