from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceSettings, Trajectory, race
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.experiments import DryRun, dry_run
from polarbear_plugins.experiments.dry_runs import FirstRun, Timing

PROBLEMS = [f"p{number}" for number in range(40)]
SETTINGS = RaceSettings(seed=4, draws=100, batch_size=3, max_rounds=1)
# Workers import what they run.
ALGORITHMS = """
import time

from polarbear_plugins import Trajectory


def quick(problem, horizon, seed):
    return Trajectory(algorithm="?", instance="?", times=[1], best=[seed % 7], horizon=horizon)


def hangs(problem, horizon, seed):
    time.sleep(600)


def fails(problem, horizon, seed):
    raise RuntimeError("no licence")
"""


class Log:
    """Algorithms that note what they were asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, float, int]] = []

    def portfolio(self) -> dict[str, Any]:
        return {name: self._algorithm(name) for name in ("a", "b")}

    def _algorithm(self, name: str) -> Any:
        def run(problem: str, horizon: float, seed: int) -> Trajectory:
            self.asked.append((name, problem, horizon, seed))
            return Trajectory(algorithm="?", instance="?", times=[1], best=[seed % 7], horizon=horizon)

        return run


def of_timings(*seconds: float | None, workers: int | None = 2, **settings: Any) -> DryRun:
    """A dry run of a, b, ... on four instances, by how long each takes; ``None`` if it fails."""
    names = tuple("abcdef"[: len(seconds)])
    return DryRun(
        settings=replace(SETTINGS, **settings),
        algorithms=names,
        stored=(),
        instances=None,
        timepoints=np.array([1.0, 10.0]),
        first_round=tuple(FirstRun(name, f"p{i}", 10.0) for i in range(4) for name in names),
        timings=tuple(Timing(name, took) for name, took in zip(names, seconds, strict=True)),
        workers=workers,
    )


def test_the_first_round_is_that_of_the_race_and_each_algorithm_is_timed_by_its_first_run() -> None:
    tried, raced = Log(), Log()
    found = dry_run(tried.portfolio(), PROBLEMS, [1, 5], SETTINGS, workers=0)
    race(raced.portfolio(), PROBLEMS, [1, 5], SETTINGS, workers=0)
    assert [(run.algorithm, run.instance, run.until) for run in found.first_round] == [
        asked[:3] for asked in raced.asked
    ]
    # They take no time, so they are timed twice.
    assert tried.asked == raced.asked[:2] * 2
    assert (found.instances, found.first_cost, found.full_cost) == (40, 30.0, 400.0)
    assert list(found.seconds) == ["a", "b"]
    assert found.workers == 1


def test_replications_count() -> None:
    log = Log()
    settings = replace(SETTINGS, replications=2)
    found = dry_run(log.portfolio(), PROBLEMS, [1, 5], settings, workers=0)
    assert len(found.first_round) == 12
    assert len({run.instance for run in found.first_round}) == 3
    assert found.full_cost == 800.0


def test_an_endless_suite_has_no_number_of_instances() -> None:
    found = dry_run("synthetic", "synthetic", [1, 2], SETTINGS, workers=0)
    assert (found.instances, found.full_instances) == (None, 100)


def test_stored_rivals_do_not_run() -> None:
    log = Log()
    stored = [Trajectory(algorithm="old", instance=name, times=[1], best=[3], horizon=5) for name in PROBLEMS[:7]]
    found = dry_run({"a": log.portfolio()["a"]}, PROBLEMS, [1, 5], SETTINGS, workers=0, against=stored)
    assert (found.algorithms, found.stored, found.instances) == (("a",), ("old",), 7)
    assert [run.algorithm for run in found.first_round] == ["a"] * 3
    assert found.full_cost == 35.0


def test_a_race_that_would_stop_at_once_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match=r"would stop before its first run: max_cost\."):
        dry_run("synthetic", "synthetic", [1, 2], replace(SETTINGS, max_cost=1), workers=0)


def test_the_first_round_takes_as_long_as_its_last_run() -> None:
    found = of_timings(1.0, 3.0)
    # Two workers: 1 + 1 + 3 + 1 + 3 and 3 + 1 + 3.
    assert (found.first_seconds, found.utilisation) == (9.0, 16.0 / 18.0)
    assert found.full_seconds == 200.0
    uneven = of_timings(1.0, 1.0, 1.0, 1.0, 29.0, workers=64)
    assert (uneven.first_seconds, uneven.utilisation) == (29.0, 4 * 33.0 / (64 * 29.0))
    assert uneven.would_wait
    assert not of_timings(1.0, 1.0, 1.0, 1.0, 29.0, workers=64, schedule="continuous").would_wait
    assert not found.would_wait


def test_nothing_is_said_about_time_where_workers_or_timings_are_unknown() -> None:
    for found in (of_timings(1.0, 3.0, workers=None), of_timings(None, None)):
        assert (found.first_seconds, found.utilisation, found.full_seconds) == (None, None, None)
        assert not found.would_wait
    assert of_timings(None, 1.0).at_least
    assert not of_timings(1.0, 1.0).at_least


@pytest.mark.slow
def test_a_run_that_fails_says_why_and_one_that_takes_too_long_is_ended(
    worker_module: Callable[[str, str], ModuleType],
) -> None:
    module = worker_module("timed", ALGORITHMS)
    portfolio = {name: getattr(module, name) for name in ("quick", "hangs", "fails")}
    found = dry_run(portfolio, PROBLEMS, [1, 5], SETTINGS, workers=2, longest=2.0)
    quick, hangs, fails = found.timings
    assert quick.failure is None
    assert quick.seconds is not None
    assert hangs == Timing("hangs", 2.0, ended=True)
    assert (fails.seconds, fails.ended) == (None, False)
    assert "no licence" in str(fails.failure)
    assert found.at_least
    assert found.workers == 2
    limited = dry_run(portfolio, PROBLEMS, [1, 5], SETTINGS, workers=2, run_timeout=1.0)
    assert limited.timings[1] == Timing("hangs", None, failure="it ran for more than 1 s and was ended")


def test_a_dry_run_can_be_written_as_json() -> None:
    data = of_timings(1.0, 3.0).to_dict()
    assert data["first_round"]["seconds"] == 9.0
    assert [run["algorithm"] for run in data["first_round"]["runs"][:3]] == ["a", "b", "a"]
    assert data["full"] == {"instances": 100, "cost": 2000.0, "seconds": 200.0}
