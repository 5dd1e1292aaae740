"""Logs at fixed evaluations only, from which the best values between them are missing.

ioh does not write by what its logger was triggered.  Rows tell: a logger that is triggered on improvement has a row for
every best value, at evaluations that differ between runs.  One that is triggered at fixed evaluations alone has rows at
the same evaluations in every run, with gaps between them, and some of them are worse than one before.
"""

from __future__ import annotations

import warnings

import numpy as np

from polarbear_plugins.adapters.ioh_logs.rows import Rows
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import PolarBearWarning

_FEWEST = 5  # rows of a run, below which it may be chance that others have the same
_MOST_SINGLE = 50  # files with one run that are compared with each other


class FixedEvaluations:
    """Looks for files that were logged at fixed evaluations only, run by run."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._single: list[tuple[str, FloatArray]] = []
        self._begin("")

    def _begin(self, title: str) -> None:
        self._title = title
        self._longest: FloatArray = np.empty(0)
        self._runs = 0
        self._same, self._worse = True, False

    def add(self, title: str, rows: Rows) -> None:
        """Look at the next run; ``title`` names its file."""
        if title != self._title:
            self._finish()
            self._begin(title)
        # A run ends with a row at its last evaluation, whatever the trigger.
        times = rows.logged[:-1]
        if times.size < _FEWEST:
            return
        self._runs += 1
        self._same = self._same and _agree(times, self._longest)
        self._worse |= rows.worse
        if times.size > self._longest.size:
            self._longest = times

    def _finish(self) -> None:
        """Decide about the file so far."""
        steps = np.diff(self._longest)
        if not self._worse or not (steps > 1).any():
            return
        # Rows at regular distances are no improvements, even if there is no other run to compare with.
        if self._same and (self._runs > 1 or np.ptp(steps[1:]) == 0):
            self._found.append(self._title)
        elif self._runs == 1 and len(self._single) < _MOST_SINGLE:
            self._single.append((self._title, self._longest))

    def warn(self) -> None:
        """Warn once, about all files."""
        self._finish()
        self._begin("")
        singles = [times for _, times in self._single]
        if len(singles) > 1 and all(_agree(times, singles[0]) for times in singles):
            self._found += [title for title, _ in self._single]
        if not self._found:
            return
        count = len(self._found) - 1
        more = f" and {count:,} more file{'s' * (count > 1)}" if count else ""
        warnings.warn(
            f"{self._found[0]}{more}: rows seem to be logged at fixed evaluations only, with the value of that "
            "evaluation and not the best so far. Better values between them are unknown, so that runs look worse than "
            "they are. Log improvements, too (in ioh the trigger OnImprovement), or raw_y_best.",
            PolarBearWarning,
            stacklevel=3,
        )


def _agree(times: FloatArray, others: FloatArray) -> bool:
    """Whether two runs have rows at the same evaluations, as far as both go."""
    common = min(times.size, others.size)
    return np.array_equal(times[:common], others[:common])
