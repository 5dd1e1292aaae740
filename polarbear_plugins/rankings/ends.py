"""Runs that ended before others on the same instance: what counts for them from there on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_whole_number
from polarbear_plugins.names import as_name
from polarbear_plugins.trajectories.given import End
from polarbear_plugins.trajectories.trajectory import Trajectory, sample_staircase

#: What counts for a run past its end: its last value, or nothing.
Ended: TypeAlias = Literal["hold", "cut"]
Rule: TypeAlias = Literal["hold", "cut", "done"]


@dataclass(frozen=True, slots=True)
class EarlyEnds:
    """Runs of an algorithm that ended, or were done, before others on the same instance, where these are compared.

    Attributes
    ----------
    rule
        What counts from there on: the last value (``hold``), nothing (``cut``), or that nothing is better because the
        runs reached their target (``done``).
    runs
        Their number.
    first, last
        When the first and the last of them ended.
    added
        Time that was compared past their ends, in all: nothing ran there, so it cost nothing.
    """

    algorithm: str
    rule: Rule
    runs: int
    first: float
    last: float
    added: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EarlyEnds:
        """Restore from :meth:`to_json`."""
        return cls(
            algorithm=as_name(data["algorithm"], "early end: algorithm"),
            rule=as_choice(data["rule"], Rule, "early end: rule"),
            runs=as_whole_number(data["runs"], "early end: runs", at_least=1),
            first=as_number(data["first"], "early end: first"),
            last=as_number(data["last"], "early end: last"),
            added=as_number(data["added"], "early end: added", at_least=0),
        )


class SampledRun(NamedTuple):
    """A run at the timepoints, and how and when it ended; a whole run would keep its arrays alive."""

    values: FloatArray
    horizon: float
    ended: float
    last: float
    end: End

    @classmethod
    def of(cls, run: Trajectory, grid: FloatArray) -> SampledRun:
        """Sample a run."""
        last = float(run.best[-1]) if run.best.size else np.inf
        ended = float(run.times[-1]) if run.end == "done" else run.horizon
        return cls(sample_staircase(run, grid), run.horizon, ended, last, run.end)


# Runs on one instance: algorithm -> seed -> run.
InstanceRuns: TypeAlias = dict[str, dict[int, SampledRun]]


class EndsOfRuns:
    """Applies the rule for early ends, and counts to whom it was applied.

    With ``rivals_follow`` others will run on the same instances until the last timepoint, and meet what was done there.
    """

    def __init__(self, ended: Ended, grid: FloatArray, *, rivals_follow: bool = False) -> None:
        self._ended = as_choice(ended, Ended, "ended")
        self._grid = grid
        self._rivals_follow = rivals_follow
        self._early: dict[tuple[str, Rule], EarlyEnds] = {}

    @property
    def found(self) -> tuple[EarlyEnds, ...]:
        """Early ends so far."""
        return tuple(self._early.values())

    def settle(self, runs: InstanceRuns) -> dict[str, list[FloatArray]]:
        """Values at the timepoints of the runs on an instance, in the order of their seeds.

        A run that ended keeps its last value for as long as another one was watched.  One that is done reached its
        target there, and so has every other one whose value is as good: from there on they tie.
        """
        every = [run for seeds in runs.values() for run in seeds.values()]
        watched = self._grid <= max((run.horizon for run in every), default=0.0)
        targets = [run.last for run in every if run.end == "done"]
        target = max(targets, default=-np.inf)  # the target itself is no better than this
        return {
            name: [np.maximum(self._extended(name, seeds[seed], watched), target) for seed in sorted(seeds)]
            for name, seeds in runs.items()
        }

    def _extended(self, algorithm: str, run: SampledRun, watched: np.ndarray[Any, np.dtype[np.bool_]]) -> FloatArray:
        if run.end == "done" and self._rivals_follow:
            watched = np.ones_like(watched)
        later = watched & (self._grid > run.horizon)
        if run.end == "stopped" or not (watched & (self._grid > run.ended)).any():
            return run.values
        rule: Rule = "done" if run.end == "done" else self._ended
        added = 0.0
        if rule != "cut" and later.any():
            added = self._grid[later][-1] - max(self._grid[self._grid <= run.horizon], default=0.0)
        found = EarlyEnds(algorithm, rule, 1, run.ended, run.ended, float(added))
        known = self._early.get((algorithm, rule))
        self._early[algorithm, rule] = found if known is None else _joined(known, found)
        return run.values if rule == "cut" else np.where(later, run.last, run.values)


def join_ends(one: Sequence[EarlyEnds], other: Sequence[EarlyEnds]) -> tuple[EarlyEnds, ...]:
    """Early ends of two tables together."""
    joined: dict[tuple[str, Rule], EarlyEnds] = {}
    for each in (*one, *other):
        key = each.algorithm, each.rule
        joined[key] = _joined(joined[key], each) if key in joined else each
    return tuple(joined.values())


def _joined(one: EarlyEnds, other: EarlyEnds) -> EarlyEnds:
    span = min(one.first, other.first), max(one.last, other.last)
    return EarlyEnds(one.algorithm, one.rule, one.runs + other.runs, *span, one.added + other.added)
