"""One race with everybody who misbehaves: their runs fail, or not, and the others do not notice."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceResult, RaceSettings, race
from polarbear_plugins.errors import STORED, RunWarning, visible
from polarbear_plugins.journal import load_result
from polarbear_plugins.seeds import derived_seed

if sys.platform == "win32":
    pytest.skip("needs signals and limits", allow_module_level=True)

from hostile.misbehaving import (
    DEADLY,
    FAILING,
    FINE,
    HONEST,
    cancelled,
    curve,
    exits,
    generator_exit,
    mute,
    surrogates,
    unpicklable,
)

TIMES = [1, 2, 3]
PROBLEMS = ["p0", "p1"]
SETTINGS = RaceSettings(seed=5, draws=100, max_rounds=1, batch_size=2, batch_min=2)
Kind = Callable[..., Any]


def together(kinds: list[Kind], **where: Any) -> RaceResult:
    """Race the honest ones with others, who stand between them."""
    portfolio: dict[str, Kind] = {}
    for place, kind in enumerate(kinds):
        portfolio[kind.__name__] = kind
        if place < len(HONEST):
            name = f"honest{place}"
            portfolio[name] = HONEST[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RunWarning)
        return race(portfolio, PROBLEMS, TIMES, SETTINGS, **where)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journals") / "race.db"


@pytest.fixture(scope="module")
def here(journal: Path) -> RaceResult:
    return together([*FINE, *FAILING], workers=0, journal=journal)


@pytest.fixture(scope="module")
def in_workers() -> RaceResult:
    return together([*DEADLY, *FINE, *FAILING], workers=2, run_timeout=5)


@pytest.fixture(scope="module")
def in_peace() -> RaceResult:
    return race(HONEST, PROBLEMS, TIMES, SETTINGS, workers=0)


@pytest.fixture(params=["here", "in_workers"])
def result(request: pytest.FixtureRequest) -> RaceResult:
    found: RaceResult = request.getfixturevalue(request.param)
    return found


def values(result: RaceResult, name: str) -> Any:
    """Best values of an algorithm, problem by problem; their order belongs to the race."""
    column = result.state.table.values[:, :, result.algorithms.index(name)]
    return column[np.argsort(result.state.table.instances)]


def test_the_runs_of_the_others_are_those_of_a_race_in_peace(result: RaceResult, in_peace: RaceResult) -> None:
    for name in HONEST:
        np.testing.assert_array_equal(values(result, name), values(in_peace, name))
        assert np.isfinite(values(result, name)).all()


def test_who_does_no_harm_to_the_result_does_not_fail(result: RaceResult) -> None:
    assert not {failure.algorithm for failure in result.failures} & {kind.__name__ for kind in FINE}
    runs = [run for run in result.trajectories() if run.algorithm in {kind.__name__ for kind in FINE}]
    assert len(runs) == 2 * len(FINE)
    for run in runs:
        expected = curve(0, 3, derived_seed(5, "run", run.algorithm, run.instance))
        np.testing.assert_array_equal(run.best, expected.best)


@pytest.mark.parametrize("kind", FAILING, ids=lambda kind: kind.__name__)
def test_nonsense_and_what_is_raised_is_the_failure_of_the_run(result: RaceResult, kind: Kind) -> None:
    reasons = [failure.reason for failure in result.failures if failure.algorithm == kind.__name__]
    assert len(reasons) == 2
    assert all(FAILING[kind] in reason for reason in reasons), reasons
    assert np.isposinf(values(result, kind.__name__)).all()


@pytest.mark.parametrize("kind", DEADLY, ids=lambda kind: kind.__name__)
def test_a_worker_that_is_lost_costs_its_own_run(in_workers: RaceResult, kind: Kind) -> None:
    reasons = [failure.reason for failure in in_workers.failures if failure.algorithm == kind.__name__]
    assert len(reasons) == (1 if kind.__name__ == "ignores_sigterm" else 2)
    assert all(DEADLY[kind] in reason for reason in reasons), reasons


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_whatever_is_raised_on_an_executor_of_python_is_the_failure_of_the_run(pool: Kind) -> None:
    kinds: list[Kind] = [exits, cancelled, generator_exit, surrogates, mute, unpicklable]
    how = {"mp_context": get_context("spawn")} if pool is ProcessPoolExecutor else {}
    with pool(1, **how) as executor:
        result = together(kinds, executor=executor)
    for kind in kinds:
        reasons = [failure.reason for failure in result.failures if failure.algorithm == kind.__name__]
        assert len(reasons) == 2
        assert all(FAILING[kind] in reason for reason in reasons), reasons


def test_what_a_run_raises_can_be_stored_read_and_shown_and_is_not_long(here: RaceResult, journal: Path) -> None:
    stored = load_result(journal).failures
    assert stored == here.failures
    assert max(len(failure.reason) for failure in stored) <= STORED
    assert all(visible(failure.reason) == failure.reason for failure in stored)
    assert journal.stat().st_size < 1_000_000


def test_nobody_else_fails(result: RaceResult, in_workers: RaceResult) -> None:
    expected = {kind.__name__ for kind in (*FAILING, *(DEADLY if result is in_workers else ()))}
    assert {failure.algorithm for failure in result.failures} == expected
