"""A result that is made by hand, without a race or a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import posterior_of, table_of

from polarbear_plugins import RaceResult, RaceSettings
from polarbear_plugins.racing.state import Elimination, Failure, RaceState, Round

NAMES = ("d", "a", "c", "b", "e")
GRID = [10.0, 100.0, 2000.0]
# Ratings of a and b at each timepoint, in four draws.  The others are below, but d, which is out, leads in the last.
A_AND_B = [
    [(0.6, 0.1), (0.1, 0.6), (0.1, 0.6)],
    [(0.6, 0.1), (0.1, 0.6), (0.1, 0.6)],
    [(0.6, 0.1), (0.351, 0.349), (0.1, 0.6)],
    [(0.1, 0.35), (0.3, 0.15), (0.1, 0.35)],
]


def finished_round(number: int, *out: Elimination, **more: Any) -> Round:
    record: dict[str, Any] = {
        "batch": 2,
        "instances": 2 * number,
        "cost": 1500.0 * number,
        "resolved": (),
        "resolved_share": 0.3 * number,
        "rivals": {},
        "good": True,
        "next_batch": 2,
    }
    return Round(number=number, eliminations=out, **{**record, **more})


@pytest.fixture(scope="module")
def told() -> RaceResult:
    """A race of five algorithms: d is out in round 2, e and c are in round 3, and a and b are not settled."""
    ratings = np.full((4, 3, 5), 0.02)
    for draw, row in enumerate(A_AND_B):
        for at, (a, b) in enumerate(row):
            ratings[draw, at, [1, 3]] = a, b
            ratings[draw, at, 0] = 0.5 if draw == 3 else 0.25
    posterior = posterior_of(ratings, algorithms=NAMES, timepoints=GRID, joint=False)
    values = np.tile([5.0, 1.0, 3.0, 2.0, 4.0], (6, 3, 1))
    values[3:, :, 0] = np.nan  # d did not run any more
    resolved = np.ones((3, 5, 5), dtype=bool)
    resolved[:2, 1, 3] = resolved[:2, 3, 1] = False
    rounds = (
        finished_round(1, good=False),
        finished_round(2, Elimination("d", "a", 0.93, 2)),
        finished_round(3, Elimination("e", "b", 0.96, 3), Elimination("c", "a", 0.91, 3)),
    )
    state = RaceState(
        settings=RaceSettings(alpha=0.9, epsilon=0.05, seed=3, max_rounds=3),
        table=table_of(values, algorithms=NAMES, timepoints=GRID, instances=[f"f{i}" for i in range(1, 7)]),
        resolved=resolved,
        rounds=rounds,
        batch=2,
        cost=4500.0,
    )
    failures = (Failure("c", "f2", "it broke"), Failure("c", "f3", "too slow"))
    return RaceResult(state=state, stopped="max_rounds", _posterior=posterior, failures=failures)
