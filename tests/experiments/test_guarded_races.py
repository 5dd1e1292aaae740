"""Races of algorithms that are good on different kinds of instances, and races without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import assert_same_result

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, race, resume

Run = Callable[[Any, float, int], Trajectory]
PROBLEMS = [f"p{number}" for number in range(400)]
SETTINGS = RaceSettings(seed=1, draws=200, max_rounds=6, batch_size=32, batch_min=32)


def of_two_kinds(*levels: float) -> Run:
    """An algorithm that finds the first level on odd instances and the second one on even ones."""

    def run(problem: Any, horizon: float, seed: int) -> Trajectory:
        even = int(problem.removeprefix("p")) % 2 == 0
        noise = 0.1 * np.random.default_rng(seed).random()
        times = np.arange(1.0, horizon + 1)
        best = levels[int(even)] + noise - times
        return Trajectory(algorithm="?", instance="?", times=times, best=best, horizon=horizon)

    return run


# a and b are each best on one half of the instances and worst on the other one; c is always second, d always last.
PORTFOLIO = {"a": of_two_kinds(1, 3), "b": of_two_kinds(3, 1), "c": of_two_kinds(2, 2), "d": of_two_kinds(9, 9)}


def raced(journal: Path | None = None, progress: Any = None, **changed: Any) -> RaceResult:
    settings = RaceSettings(**{**SETTINGS.to_json(), **changed})
    return race(PORTFOLIO, PROBLEMS, [1, 2], settings, workers=0, journal=journal, progress=progress)


def test_a_race_keeps_the_best_of_each_kind_and_drops_who_is_always_last() -> None:
    result = raced()
    assert result.pareto_set == ("a", "b", "c")
    assert {one.algorithm for finished in result.rounds for one in finished.held} == {"a", "b"}
    assert result.check is not None
    assert not result.check.fits
    assert not {"a", "b"} <= set(raced(guard="none").pareto_set)


@pytest.mark.parametrize("rounds", [1, 3])
def test_an_interrupted_race_with_a_guard_goes_on_to_the_same_end(rounds: int, tmp_path: Path) -> None:
    def stop(progress: Any) -> None:
        if len(progress.state.rounds) == rounds:
            raise KeyboardInterrupt

    path = tmp_path / "race.db"
    assert raced(path, stop).stopped == "interrupted"
    resumed, whole = resume(path, PORTFOLIO, PROBLEMS, workers=0), raced()
    assert_same_result(resumed, whole)
    assert any(finished.held for finished in whole.rounds)


@pytest.mark.parametrize("guard", ["counts", "none"])
def test_without_a_model_nobody_is_eliminated_who_is_not_beaten_on_most_instances(guard: str) -> None:
    result = raced(rule="anytime-valid", guard=guard, max_rounds=4)
    assert result.pareto_set == ("a", "b", "c")
    [out] = result.eliminations
    assert out.algorithm == "d"
    assert result.second_opinion().certain(0.99).tolist() == [False, False, False, True]
    full = len(result.state.table) * 2
    assert result.state.table.timepoints.tolist() == [1, 2]
    ran = (~np.isnan(result.state.table.values)).sum(axis=(0, 1))
    assert ran[:3].tolist() == [full] * 3  # every run in full
