from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from builders import assert_same_result, change_journal

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, hookimpl, load_plugins, race, resume
from polarbear_plugins.errors import InvalidInputError, PluginWarning, PolarBearError, RunWarning
from polarbear_plugins.experiments import driver
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.plugins.synthetic import SyntheticAlgorithm, SyntheticSuite, synthetic_portfolio
from polarbear_plugins.problems.given import FunctionAlgorithm
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.seeds import derived_seed

# For what goes on with other functions, or with objects that have run meanwhile.
other_code = pytest.mark.filterwarnings(
    "ignore:.*not everything is as it was:polarbear_plugins.errors.PolarBearWarning"
)
TIMES = [1, 2, 3]
PROBLEMS = [f"p{number}" for number in range(40)]
OPTIONS = {"log_ratings": [[2.0, 0.0, 1.0, -9.0], [1.0, 1.0, 1.0, -9.0], [0.0, 2.0, 6.0, -9.0]]}
# Three rounds with batches of 6, 3 and 6 instances; one algorithm is eliminated, the others run less and less far, and
# at the end some pairs are open.  Without a guard, which would keep more of them open after so few instances.
SETTINGS = RaceSettings(seed=4, draws=200, max_rounds=3, batch_size=6, batch_min=2, guard="none")

# Workers import what they run; test modules are not importable, so this one is written to a file.
ALGORITHMS = """
import os
import signal
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from polarbear_plugins import Trajectory
from polarbear_plugins.plugins.synthetic import SyntheticAlgorithm, synthetic_portfolio

HERE = Path(__file__).parent
SLOW = float(os.environ.get("SLOW", "0"))
LAST = int(os.environ.get("LAST", "1000000"))


def curve(level, seed, horizon, algorithm="?", instance="?"):
    noise = np.random.default_rng(seed).random()
    times = np.arange(1.0, horizon + 1)
    return Trajectory(algorithm=algorithm, instance=instance, times=times, best=level + noise - times, horizon=horizon)


def good(problem, horizon, seed):
    return curve(0, seed, horizon)


def better(problem, horizon, seed):
    return curve(-5, seed, horizon)


def middling(problem, horizon, seed):
    return curve(0.3, seed, horizon)


def bad(problem, horizon, seed):
    return curve(5, seed, horizon)


def raises(problem, horizon, seed):
    raise ValueError("it does not  converge\\non " + problem)


def hangs(problem, horizon, seed):
    time.sleep(600)


def crashes(problem, horizon, seed):
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(600)


def too_short(problem, horizon, seed):
    return curve(0, seed, horizon - 1)


def no_trajectory(problem, horizon, seed):
    return [1.0, 2.0]


def fails_at_first(problem, horizon, seed):
    marker = HERE / f"tried-{problem}"
    if not marker.exists():
        marker.touch()
        raise RuntimeError("not at the first try")
    return curve(-1, seed, horizon)


def many_threads(problem, horizon, seed):
    pools = [pool["num_threads"] for pool in threadpool_info()]
    if not pools or max(pools) > 1:
        raise RuntimeError(f"threads: {pools}")
    return curve(-1, seed, horizon)


class WrongLabel:
    name = "wrong label"

    def run(self, problem, horizon, seed):
        return curve(0, seed, horizon, "somebody else", problem.identity.name)


class WrongInstance:
    name = "wrong instance"

    def run(self, problem, horizon, seed):
        return curve(0, seed, horizon, self.name, "another one")


class WrongKind:
    name = "wrong kind"

    def run(self, problem, horizon, seed):
        return "done"


class Logged:
    '''A synthetic algorithm that takes its time and writes down each run; after so many it takes for ever.'''

    def __init__(self, algorithm):
        self.name, self.algorithm = algorithm.name, algorithm

    def run(self, problem, horizon, seed):
        done = HERE / "runs.log"
        time.sleep(SLOW if not done.exists() or len(done.read_text().splitlines()) < LAST else 600)
        with open(done, "a") as log:
            log.write(f"{self.name} {problem.identity.name} {horizon:g}\\n")
        return self.algorithm.run(problem, horizon, seed)


def logged(**options):
    return [Logged(algorithm) for algorithm in synthetic_portfolio(**options)]
"""

DRIVER = """
import json
import os
import sys
from polarbear_plugins import RaceSettings, race
from polarbear_plugins.plugins.synthetic import SyntheticSuite
import algorithms

if __name__ == "__main__":
    race(
        algorithms.logged(**json.loads(sys.argv[2])),
        SyntheticSuite(),
        [1, 2, 3],
        RaceSettings(**json.loads(sys.argv[3])),
        workers=2,
        journal=sys.argv[1],
    )
"""


@pytest.fixture
def algorithms(worker_module: Callable[[str, str], ModuleType]) -> ModuleType:
    """Algorithms that processes can run."""
    return worker_module("algorithms", ALGORITHMS)


class Counting:
    """A synthetic algorithm that knows how often it has run, and where."""

    def __init__(self, algorithm: SyntheticAlgorithm) -> None:
        self.name, self.algorithm = algorithm.name, algorithm
        self.ran: list[str] = []
        self.horizons: list[float] = []

    def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
        self.ran.append(problem.identity.name)
        self.horizons.append(horizon)
        return self.algorithm.run(problem, horizon, seed)


def counting() -> list[Counting]:
    return [Counting(algorithm) for algorithm in synthetic_portfolio(**OPTIONS)]


def newcomer(name: str, level: float) -> Counting:
    return Counting(SyntheticAlgorithm(name, np.full(3, level)))


def synthetic(settings: RaceSettings = SETTINGS, **options: Any) -> RaceResult:
    """Race registered algorithms."""
    options = {"workers": 0, **options}
    return race("synthetic", "synthetic", TIMES, settings, portfolio_options=OPTIONS, **options)


def level(value: float) -> Callable[[Any, float, int], Trajectory]:
    """An algorithm whose values are around a level."""

    def run(_: object, horizon: float, seed: int) -> Trajectory:
        times = np.arange(1.0, horizon + 1)
        best = value + np.random.default_rng(seed).random() - times
        return Trajectory(algorithm="?", instance="?", times=times, best=best, horizon=horizon)

    return run


def rows(path: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    """Finished runs in a journal, read without changing it."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT {columns} FROM runs ORDER BY place").fetchall()  # noqa: S608
    finally:
        connection.close()


class InterruptAt:
    """Ctrl-C at the n-th report of progress."""

    def __init__(self, report: int) -> None:
        self.left = report

    def __call__(self, _: Progress) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def uninterrupted() -> RaceResult:
    return synthetic()


@pytest.fixture(scope="module")
def reports() -> list[Progress]:
    """All reports of progress of that race."""
    seen: list[Progress] = []
    synthetic(progress=seen.append)
    return seen


# --- what can be raced


def test_plain_functions_over_a_list_of_problems() -> None:
    result = race({"good": level(0), "bad": level(5)}, PROBLEMS, TIMES, SETTINGS, workers=0)
    assert result.pareto_set == ("good",)
    assert result.stopped == "resolved"
    assert set(result.state.table.instances) <= set(PROBLEMS)
    assert result.failures == ()


def test_plain_functions_receive_the_problem_the_horizon_and_their_seed() -> None:
    calls: list[tuple[object, float, int]] = []

    def run(problem: object, horizon: float, seed: int) -> Trajectory:
        calls.append((problem, horizon, seed))
        return level(0)(problem, horizon, seed)

    result = race({"a": run, "b": level(1)}, PROBLEMS, TIMES, SETTINGS, workers=0)
    instances = result.state.table.instances
    assert [problem for problem, _, _ in calls] == list(instances)
    assert calls[0][1] == 3
    assert [seed for _, _, seed in calls] == [derived_seed(4, "run", "a", name) for name in instances]


def test_a_function_that_draws_problems_is_a_suite_without_end() -> None:
    problems = []

    def run(problem: float, horizon: float, seed: int) -> Trajectory:
        problems.append(problem)
        return level(0)(problem, horizon, seed)

    result = race({"a": run, "b": run}, lambda rng: rng.random(), TIMES, SETTINGS, workers=0)
    assert result.stopped == "max_rounds"
    assert len(problems) == 2 * len(set(problems)) == 2 * len(result.state.table)


def test_registered_names_are_the_algorithms_themselves(uninterrupted: RaceResult) -> None:
    result = race(synthetic_portfolio(**OPTIONS), SyntheticSuite(), TIMES, SETTINGS, workers=0)
    assert_same_result(result, uninterrupted, about=False)
    assert uninterrupted.about["portfolio"]["name"] == "synthetic"
    assert result.about["portfolio"] is None


def test_a_race_without_a_seed_draws_one_and_can_be_repeated() -> None:
    one, other = (synthetic(RaceSettings(draws=200, max_rounds=1)) for _ in range(2))
    assert one.settings.seed != other.settings.seed
    assert_same_result(synthetic(one.settings), one)


def test_the_order_of_the_portfolio_changes_no_run(uninterrupted: RaceResult) -> None:
    portfolio = synthetic_portfolio(**OPTIONS)
    result = race(portfolio[::-1], SyntheticSuite(), TIMES, SETTINGS, workers=0)
    assert result.state.table.instances[:6] == uninterrupted.state.table.instances[:6]
    first_round = slice(0, 6)
    np.testing.assert_array_equal(
        result.state.table.values[first_round, :, ::-1], uninterrupted.state.table.values[first_round]
    )


def test_seeds_come_from_the_seed_of_the_race_the_algorithm_and_the_instance(tmp_path: Path) -> None:
    synthetic(journal=tmp_path / "race.db")
    seeds = rows(tmp_path / "race.db", "seed, algorithm, instance")
    assert len({seed for seed, _, _ in seeds}) == len(seeds)
    assert all(seed == derived_seed(4, "run", algorithm, instance) for seed, algorithm, instance in seeds)


# --- where it runs


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_changes_nothing(uninterrupted: RaceResult, workers: int) -> None:
    assert_same_result(synthetic(workers=workers), uninterrupted)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: ThreadPoolExecutor(3), id="threads"),
        pytest.param(lambda: ProcessPoolExecutor(2, mp_context=get_context("spawn")), id="processes"),
    ],
)
def test_any_executor_gives_the_same_result(uninterrupted: RaceResult, make: Callable[[], Executor]) -> None:
    with make() as executor:
        assert_same_result(synthetic(workers=None, executor=executor), uninterrupted)
        assert executor.submit(abs, -1).result() == 1  # the race leaves it to the caller to shut it down


def test_problems_of_a_list_are_sent_to_the_workers(algorithms: ModuleType) -> None:
    portfolio = {"good": algorithms.good, "middling": algorithms.middling, "bad": algorithms.bad}
    result = race(portfolio, PROBLEMS, TIMES, SETTINGS, workers=2)
    assert_same_result(result, race(portfolio, PROBLEMS, TIMES, SETTINGS, workers=0))
    assert "bad" not in result.pareto_set


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_has_one_thread(algorithms: ModuleType, workers: int) -> None:
    portfolio = {"threads": algorithms.many_threads, "good": algorithms.good}
    result = race(portfolio, PROBLEMS, TIMES, SETTINGS, workers=workers)
    assert result.failures == ()


def test_an_algorithm_that_cannot_be_sent_is_named_before_anything_runs(algorithms: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"algorithm 'mine' cannot be sent.*workers=0"):
        race({"good": algorithms.good, "mine": level(0)}, PROBLEMS, TIMES, SETTINGS, 2, journal=tmp_path / "race.db")
    assert not (tmp_path / "race.db").exists()


def test_a_suite_that_cannot_be_sent_is_named(algorithms: ModuleType) -> None:
    with pytest.raises(InvalidInputError, match=r"suite '<lambda>' cannot be sent"):
        race({"good": algorithms.good, "bad": algorithms.bad}, lambda rng: rng.random(), TIMES, SETTINGS, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0, "run_timeout": 1}, "run_timeout needs processes"),
        ({"workers": 1, "run_timeout": 0}, "run_timeout"),
        ({"workers": -1}, "workers"),
        ({"workers": 1, "executor": ThreadPoolExecutor()}, "workers or an executor"),
        ({"workers": 0, "retries": -1}, "retries"),
        ({"workers": 0, "portfolio_options": {"a": 1}}, "portfolio_options"),
        ({"workers": 0, "suite_options": {"a": 1}}, "suite_options"),
    ],
)
def test_options_without_meaning_are_refused(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        race({"a": level(0), "b": level(1)}, PROBLEMS, TIMES, SETTINGS, **options)


@other_code
def test_registered_portfolios_functions_and_algorithms_race_together(tmp_path: Path) -> None:
    mixed = ["synthetic", {"mine": level(0.5)}, newcomer("late", 0.0)]
    settings = RaceSettings(seed=1, draws=200, max_rounds=2)
    path = tmp_path / "race.db"
    result = race(mixed, SyntheticSuite(), TIMES, settings, workers=0, journal=path)
    assert result.algorithms == ("A", "B", "C", "D", "E", "mine", "late")
    assert result.about["portfolio"] is None  # no single registered name covers all of them
    assert resume(path, mixed, SyntheticSuite(), workers=0, max_rounds=3).algorithms == result.algorithms
    with pytest.raises(InvalidInputError, match="algorithms of the portfolio: 'B' is named more than once"):
        race(["synthetic", {"B": level(0.5)}], SyntheticSuite(), TIMES, settings, workers=0)


# --- when it stops


def test_a_finite_list_of_problems_ends_the_race(tmp_path: Path) -> None:
    portfolio, settings, path = {"a": level(0), "b": level(0.01)}, RaceSettings(seed=1, draws=200), tmp_path / "race.db"
    result = race(portfolio, PROBLEMS[:9], TIMES, settings, workers=0, journal=path)
    assert result.stopped == load_result(path).stopped == "instances"
    assert sorted(result.state.table.instances) == sorted(PROBLEMS[:9])
    assert result.open_pairs


@pytest.mark.parametrize("max_cost", [12, 65, 100.5, 130])
def test_the_cost_is_never_exceeded(max_cost: float) -> None:
    portfolio = counting()
    result = race(portfolio, SyntheticSuite(), TIMES, RaceSettings(seed=4, draws=200, max_cost=max_cost), workers=0)
    assert 0 < result.cost <= max_cost
    assert result.stopped == "max_cost"
    assert result.cost == result.summary()["cost"].sum()
    assert sum(len(algorithm.ran) for algorithm in portfolio) == result.summary()["instances"].sum()


def test_a_cost_too_small_for_anything_runs_nothing() -> None:
    portfolio = counting()
    result = race(portfolio, SyntheticSuite(), TIMES, RaceSettings(seed=4, max_cost=11), workers=0)
    assert (result.stopped, result.cost, result.rounds) == ("max_cost", 0, ())
    assert not any(algorithm.ran for algorithm in portfolio)


@pytest.mark.parametrize("limit", [1, 2])
def test_going_on_with_more_rounds_equals_a_race_that_had_them_from_the_start(
    uninterrupted: RaceResult, tmp_path: Path, limit: int
) -> None:
    path = tmp_path / "race.db"
    stopped = synthetic(replace(SETTINGS, max_rounds=limit), journal=path)
    assert (stopped.stopped, len(stopped.rounds)) == ("max_rounds", limit)
    before = rows(path)
    assert_same_result(resume(path, workers=0, max_rounds=3), uninterrupted)
    assert rows(path)[: len(before)] == before


def test_a_race_that_is_over_is_read_again(uninterrupted: RaceResult, tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    assert_same_result(synthetic(journal=path), uninterrupted)
    before = path.read_bytes()
    assert_same_result(resume(path, workers=0), uninterrupted)
    assert path.read_bytes() == before


def test_a_journal_is_not_started_where_there_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    path.write_text("precious")
    with pytest.raises(PolarBearError, match="not overwritten"):
        synthetic(journal=path)
    assert path.read_text() == "precious"


# --- interruptions


@pytest.mark.parametrize("moment", [1, 2, 15, 25, 26, 27, 30, -2, -1])
def test_an_interruption_leaves_a_valid_result_and_loses_nothing(
    uninterrupted: RaceResult, reports: list[Progress], tmp_path: Path, moment: int
) -> None:
    path = tmp_path / "race.db"
    report = moment if moment > 0 else len(reports) + 1 + moment
    result = synthetic(journal=path, progress=InterruptAt(report))
    finished = len(reports[report - 1].state.rounds)
    assert result.stopped == "interrupted"
    assert result.rounds == uninterrupted.rounds[:finished]
    assert result.to_json()
    if finished:
        assert result.posterior.log_ratings.shape[-1] == 4
    else:
        with pytest.raises(InvalidInputError, match="no posterior yet"):
            _ = result.posterior
    before = rows(path)
    assert len(before) == sum(1 for seen in reports[1:report] if seen.planned and seen.done)
    seen: list[Progress] = []
    assert_same_result(resume(path, workers=0, progress=seen.append), uninterrupted)
    assert rows(path)[: len(before)] == before
    assert len(rows(path)) == uninterrupted.summary()["instances"].sum()
    assert_same_result(resume(path, workers=0), uninterrupted)


def test_interruptions_again_and_again_change_nothing(uninterrupted: RaceResult, tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    result = synthetic(journal=path, progress=InterruptAt(7))
    pauses = 0
    while result.stopped == "interrupted":
        pauses += 1
        result = resume(path, workers=0, progress=InterruptAt(7))
    assert pauses > 5
    assert_same_result(result, uninterrupted)


def test_an_interruption_of_workers_loses_nothing(uninterrupted: RaceResult, tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    result = synthetic(journal=path, workers=2, progress=InterruptAt(8))
    assert result.stopped == "interrupted"
    before = rows(path)
    assert before
    assert_same_result(resume(path, workers=2), uninterrupted)
    assert rows(path)[: len(before)] == before


@pytest.mark.parametrize("function", ["infer", "decide", "observe"])
def test_an_interrupted_inference_leaves_the_result_of_the_round_before(
    uninterrupted: RaceResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    original, calls = getattr(driver, function), itertools.count(1)

    def interrupted_in_the_second_round(*arguments: Any) -> Any:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    path = tmp_path / "race.db"
    with monkeypatch.context() as patch:
        patch.setattr(driver, function, interrupted_in_the_second_round)
        result = synthetic(journal=path)
    assert result.stopped == "interrupted"
    first = synthetic(replace(SETTINGS, max_rounds=1))
    assert result.rounds == first.rounds
    np.testing.assert_array_equal(result.posterior.log_ratings, first.posterior.log_ratings)
    assert_same_result(resume(path, workers=0), uninterrupted)


def wait_for_rows(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the log of runs is that long, or the process has ended."""
    for _ in range(60_000):
        if process.poll() is not None or (path.exists() and len(path.read_text().splitlines()) >= count):
            return
        time.sleep(0.01)
    raise AssertionError("the driver does nothing")


@other_code
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("schedule", ["rounds", "continuous"])
@pytest.mark.parametrize("moment", [0, 1, *(pytest.param(moment, marks=pytest.mark.long) for moment in (2, 3))])
def test_a_killed_driver_loses_and_repeats_no_finished_run(
    uninterrupted: RaceResult, algorithms: ModuleType, tmp_path: Path, moment: int, schedule: Any
) -> None:
    script, path, log = tmp_path / "driver.py", tmp_path / "race.db", tmp_path / "runs.log"
    script.write_text(DRIVER)
    chance = random.Random(moment)  # noqa: S311
    count = chance.randrange(1, 40)
    settings = replace(SETTINGS, schedule=schedule)
    driver = subprocess.Popen(
        [sys.executable, script, path, json.dumps(OPTIONS), json.dumps(settings.to_json())],
        env={**os.environ, "SLOW": "0.03", "LAST": str(count + 4)},  # the race does not end before it is killed
    )
    wait_for_rows(log, count, driver)
    time.sleep(chance.random() * 0.04)
    driver.send_signal(signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    time.sleep(0.5)  # running workers end with their driver, or write their line now
    # Without barriers a run may have gone on for longer than it was needed, and is then stored until there.
    columns = slice(3 if schedule == "rounds" else 2)
    ran = [tuple(line.split()[columns]) for line in log.read_text().splitlines()]
    with Journal.open(path) as journal:
        stored = [run.trajectory for run in journal.runs()]
    finished = [(run.algorithm, run.instance, f"{run.horizon:g}")[columns] for run in stored]
    before = rows(path)
    assert set(finished) <= set(ran)
    result = resume(path, algorithms.logged(**OPTIONS), SyntheticSuite(), workers=2)
    assert result.settings == replace(uninterrupted.settings, schedule=schedule)
    state = replace(result.state, settings=uninterrupted.settings)
    assert_same_result(replace(result, state=state, unused_cost=0.0), uninterrupted, about=False)
    after = log.read_text().splitlines()[len(ran) :]
    assert not set(finished) & {tuple(line.split()[columns]) for line in after}
    if schedule == "rounds":
        assert rows(path)[: len(before)] == before


# --- runs that fail


FAILING = {
    "raises": "ValueError: it does not converge on p",
    "too_short": "was asked to run until 3, and returned a trajectory with horizon 2",
    "no_trajectory": "must return a Trajectory, got list",
    "WrongLabel": "returned a trajectory of 'somebody else'",
    "WrongInstance": "on 'another one'; labels must agree",
    "WrongKind": "must return a Trajectory, got 'done'",
    "hangs": "it ran for more than 3 s and was ended",
    "crashes": "its process died (killed by SIGKILL)",
}


@pytest.mark.parametrize(
    ("kind", "workers"),
    [
        pytest.param(kind, workers, marks=[pytest.mark.slow] if kind == "hangs" else [])
        for kind in FAILING
        for workers in (0, 2)
        if workers or kind not in {"hangs", "crashes"}
    ],
)
def test_a_run_that_fails_counts_as_having_found_nothing(algorithms: ModuleType, kind: str, workers: int) -> None:
    function = getattr(algorithms, kind)
    portfolio = [
        FunctionAlgorithm("good", algorithms.good),
        function() if isinstance(function, type) else FunctionAlgorithm(kind, function),
    ]
    name = portfolio[1].name
    settings = RaceSettings(seed=5, draws=200, max_rounds=1, batch_size=2, batch_min=2)
    timeout = 3 if kind == "hangs" else None  # enough for a run of the other, however busy the machine is
    with pytest.warns(RunWarning, match=f"A run of '{name}' on 'p.*' failed") as warned:
        result = race(portfolio, PROBLEMS, TIMES, settings, workers, run_timeout=timeout)
    assert len(warned) == 1
    assert [failure.algorithm for failure in result.failures] == [name, name]
    assert [failure.instance for failure in result.failures] == list(result.state.table.instances)
    assert all(FAILING[kind] in failure.reason and "\n" not in failure.reason for failure in result.failures)
    assert (result.state.table.values[:, :, 1] == np.inf).all()
    assert (result.state.table.ranks[:, :, 1] == 2).all()
    assert result.summary()["failed"].tolist() == [0, 2]


@pytest.mark.parametrize("executor", [False, True])
@pytest.mark.parametrize("retries", [0, 1])
def test_a_run_is_repeated_as_often_as_asked(algorithms: ModuleType, retries: int, executor: bool) -> None:
    portfolio = {"flaky": algorithms.fails_at_first, "good": algorithms.good}
    settings = RaceSettings(seed=5, draws=200, max_rounds=1, batch_size=3, batch_min=3)
    workers = 2 if executor else 0
    if retries:
        result = race(portfolio, PROBLEMS, TIMES, settings, workers, retries=retries)
        assert result.failures == ()
        assert np.isfinite(result.state.table.values).all()
    else:
        with pytest.warns(RunWarning, match="not at the first try"):
            result = race(portfolio, PROBLEMS, TIMES, settings, workers)
        assert len(result.failures) == 3


def test_no_run_is_repeated_more_often_than_asked() -> None:
    calls: list[object] = []

    def fails(problem: object, *_: object) -> Trajectory:
        calls.append(problem)
        raise RuntimeError("never")

    settings = RaceSettings(seed=5, draws=200, max_rounds=1, batch_size=2, batch_min=2)
    with pytest.warns(RunWarning):
        race({"a": fails, "b": level(0)}, PROBLEMS, TIMES, settings, workers=0, retries=3)
    assert len(calls) == 2 * 4


def test_a_race_that_only_fails_says_why(algorithms: ModuleType) -> None:
    with (
        pytest.warns(RunWarning),
        pytest.raises(PolarBearError, match=r"Every run of the first round failed.*ValueError: it does not converge"),
    ):
        race({"a": algorithms.raises, "b": algorithms.raises}, PROBLEMS, TIMES, SETTINGS, workers=0)


@other_code
def test_a_race_that_only_failed_continues_when_the_cause_is_fixed(tmp_path: Path) -> None:
    path = tmp_path / "race.db"

    def fails(*_: object) -> Trajectory:
        raise ValueError

    with pytest.warns(RunWarning), pytest.raises(PolarBearError, match="Every run"):
        race({"a": fails, "b": fails}, PROBLEMS, TIMES, SETTINGS, workers=0, journal=path)
    mended = {"a": level(0), "b": level(1)}
    resumed = resume(path, mended, PROBLEMS, workers=0)
    assert_same_result(resumed, race(mended, PROBLEMS, TIMES, SETTINGS, workers=0))
    assert resumed.failures == ()


def test_an_algorithm_that_exits_only_fails() -> None:
    def leaves(*_: object) -> Trajectory:
        sys.exit(3)

    with pytest.warns(RunWarning, match="SystemExit: 3"):
        result = race({"a": leaves, "b": level(0)}, PROBLEMS, TIMES, SETTINGS, workers=0)
    assert result.pareto_set == ("b",)


def test_threads_run_closures() -> None:
    with ThreadPoolExecutor(2) as threads:
        result = race({"a": level(0), "b": level(1)}, PROBLEMS, TIMES, SETTINGS, executor=threads)
    assert_same_result(result, race({"a": level(0), "b": level(1)}, PROBLEMS, TIMES, SETTINGS, workers=0))


@other_code
def test_failures_are_remembered_and_not_repeated(tmp_path: Path) -> None:
    calls: list[object] = []

    def fails_sometimes(problem: str, horizon: float, seed: int) -> Trajectory:
        calls.append(problem)
        if seed % 2:
            raise RuntimeError("odd")
        return level(0.2)(problem, horizon, seed)

    path, portfolio = tmp_path / "race.db", {"sometimes": fails_sometimes, "good": level(0)}
    with pytest.warns(RunWarning):
        expected = race(portfolio, PROBLEMS, TIMES, SETTINGS, workers=0)
    assert expected.failures
    once = len(calls)
    with pytest.warns(RunWarning):
        stopped = race(portfolio, PROBLEMS, TIMES, SETTINGS, workers=0, journal=path, progress=InterruptAt(14))
    assert stopped.stopped == "interrupted"
    with pytest.warns(RunWarning):
        assert_same_result(resume(path, portfolio, PROBLEMS, workers=0), expected)
    assert len(calls) == 2 * once
    assert_same_result(resume(path, portfolio, PROBLEMS, workers=0), expected)  # nothing fails again, no warning
    assert len(calls) == 2 * once


def test_a_failure_is_forgotten_when_the_run_is_repeated_to_be_watched_longer(tmp_path: Path) -> None:
    class FailsOnShortRuns(Counting):
        def run(self, problem: Any, horizon: float, seed: int, /) -> Trajectory:
            trajectory = super().run(problem, horizon, seed)
            if horizon < TIMES[-1]:
                raise RuntimeError("too little time")
            return trajectory

    def portfolio() -> list[Counting]:
        return [FailsOnShortRuns(one.algorithm) if one.name == "A" else one for one in counting()]

    path, first = tmp_path / "race.db", portfolio()
    with pytest.warns(RunWarning):
        stopped = race(first, SyntheticSuite(), TIMES, SETTINGS, workers=0, journal=path, progress=InterruptAt(50))
    assert stopped.stopped == "interrupted"
    short = [name for name, horizon in zip(first[0].ran, first[0].horizons, strict=True) if horizon < TIMES[-1]]
    entered = stopped.enter(newcomer("late", 0.0), workers=0, max_rounds=6)
    assert any(first[0].ran.count(name) == 2 for name in short)
    nothing = np.isinf(entered.state.table.values[:, 0, 0])
    assert {failure.instance for failure in entered.failures} == set(np.array(entered.state.table.instances)[nothing])
    assert_same_result(resume(path, [*portfolio(), newcomer("late", 0.0)], SyntheticSuite(), workers=0), entered)


def test_an_error_in_the_users_progress_is_not_hidden(tmp_path: Path) -> None:
    def broken(_: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        synthetic(journal=tmp_path / "race.db", progress=broken)
    assert resume(tmp_path / "race.db", workers=0).stopped == "max_rounds"


@pytest.mark.parametrize("report", [3, 30, 1000])
def test_a_journal_can_be_read_without_running_anything(uninterrupted: RaceResult, tmp_path: Path, report: int) -> None:
    path = tmp_path / "race.db"
    result = synthetic(journal=path, progress=InterruptAt(report))
    before = rows(path)
    read = load_result(path)
    assert rows(path) == before
    assert read.to_json() == result.to_json()
    if read.rounds:
        np.testing.assert_array_equal(read.posterior.log_ratings, result.posterior.log_ratings)
    assert_same_result(resume(path, workers=0), uninterrupted)


def test_the_order_in_which_runs_fail_changes_nothing(algorithms: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    portfolio = {"raises": algorithms.raises, "good": algorithms.good, "short": algorithms.too_short}
    settings = replace(SETTINGS, max_rounds=1)
    with pytest.warns(RunWarning):
        result = race(portfolio, PROBLEMS, TIMES, settings, workers=2, journal=path)
    change_journal(path, "UPDATE runs SET place = -place - 1", "UPDATE runs SET place = place + 1000")
    assert_same_result(resume(path, portfolio, PROBLEMS, workers=0), result)
    assert load_result(path).failures == result.failures


# --- resuming with Python


def test_what_a_journal_cannot_store_must_be_given_again(tmp_path: Path) -> None:
    path, portfolio = tmp_path / "race.db", {"good": level(0), "bad": level(0.5)}
    expected = race(portfolio, PROBLEMS, TIMES, SETTINGS, workers=0, journal=path)
    with pytest.raises(InvalidInputError, match=r"the portfolio of this race was given as Python.*portfolio=\.\.\."):
        resume(path, workers=0)
    with pytest.raises(InvalidInputError, match=r"the suite of this race was given as Python.*suite=\.\.\."):
        resume(path, portfolio, workers=0)
    with pytest.raises(InvalidInputError, match=r"race\.db: the portfolio lacks bad, which this race has"):
        resume(path, {"good": level(0), "else": level(1)}, PROBLEMS, workers=0)
    assert_same_result(resume(path, portfolio, PROBLEMS, workers=0), expected)


@pytest.mark.parametrize("problems", [PROBLEMS[:-1], [*PROBLEMS, "more"], [*PROBLEMS[1:], "else"]])
def test_a_suite_that_changed_is_refused(tmp_path: Path, problems: list[str]) -> None:
    path, portfolio = tmp_path / "race.db", {"good": level(0), "bad": level(0.5)}
    race(portfolio, PROBLEMS, TIMES, SETTINGS, workers=0, journal=path)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match="another suite, or another version of it"):
        resume(path, portfolio, problems, workers=0)
    assert path.read_bytes() == before


def test_two_instances_of_one_name_are_refused() -> None:
    class Twice(SyntheticSuite):
        def identities(self, _: int, /) -> Iterator[Identity]:
            return itertools.repeat(Identity("f1"))

    with pytest.raises(InvalidInputError, match="two instances named 'f1'"):
        race(synthetic_portfolio(**OPTIONS), Twice(), TIMES, SETTINGS, workers=0)


# --- late entry


@pytest.mark.parametrize("with_journal", [False, True])
def test_a_newcomer_catches_up_and_no_other_algorithm_runs_again(tmp_path: Path, with_journal: bool) -> None:
    path = tmp_path / "race.db" if with_journal else None
    portfolio, late = counting(), newcomer("late", 8.0)
    before = race(portfolio, SyntheticSuite(), TIMES, SETTINGS, workers=0, journal=path)
    ran = {algorithm.name: list(algorithm.ran) for algorithm in portfolio}
    after = before.enter(late, workers=0, max_rounds=12)
    assert set(late.ran) & set(before.state.table.instances)
    assert late.ran[:2] == list(before.state.table.instances[:2])
    for algorithm in portfolio:
        assert algorithm.ran[: len(ran[algorithm.name])] == ran[algorithm.name]
        assert len(algorithm.ran) == len(set(algorithm.ran))
    assert len(late.ran) == len(set(late.ran))
    assert after.pareto_set == ("late",)
    assert after.stopped == "resolved"
    assert after.rounds[:3] == before.rounds
    assert before.algorithms == ("A", "B", "C", "D")


def test_a_worse_newcomer_is_eliminated() -> None:
    before = race(counting(), SyntheticSuite(), TIMES, SETTINGS, workers=0)
    after = before.enter(newcomer("late", -12.0), workers=0, max_rounds=12)
    assert "late" in {elimination.algorithm for elimination in after.eliminations}
    assert "late" not in after.pareto_set


def test_a_newcomer_may_be_a_function_and_run_in_a_worker(algorithms: ModuleType) -> None:
    before = race({"good": algorithms.good, "bad": algorithms.bad}, PROBLEMS, TIMES, SETTINGS, workers=0)
    assert before.stopped == "resolved"
    after = before.enter({"better": algorithms.better}, workers=2, max_rounds=9)
    assert after.pareto_set == ("better",)
    assert after.stopped == "resolved"
    assert_same_result(before.enter({"better": algorithms.better}, workers=0, max_rounds=9), after)
    with pytest.raises(InvalidInputError, match="algorithm 'mine' cannot be sent"):
        before.enter({"mine": level(0)}, workers=2)


def test_no_algorithm_enters_twice(uninterrupted: RaceResult) -> None:
    with pytest.raises(InvalidInputError, match="'A' is already in the race"):
        uninterrupted.enter(newcomer("A", 0.0), workers=0)


def test_a_race_with_a_newcomer_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    before = race(counting(), SyntheticSuite(), TIMES, SETTINGS, workers=0, journal=path)
    entered = before.enter(newcomer("late", 0.0), workers=0, max_rounds=6)
    assert entered.stopped == "max_rounds"
    kept = rows(path)
    everybody = [*counting(), newcomer("late", 0.0)]
    resumed = resume(path, everybody, SyntheticSuite(), workers=0)
    assert_same_result(resumed, entered)
    assert not any(algorithm.ran for algorithm in everybody)
    assert rows(path) == kept
    with pytest.raises(InvalidInputError, match="the portfolio lacks late, which this race has"):
        resume(path, counting(), SyntheticSuite(), workers=0)
    further = resume(path, everybody, SyntheticSuite(), workers=0, max_rounds=8)
    assert_same_result(before_without_journal().enter(newcomer("late", 0.0), workers=0, max_rounds=8), further)


def before_without_journal() -> RaceResult:
    return race(counting(), SyntheticSuite(), TIMES, SETTINGS, workers=0)


def test_a_newcomer_of_a_registered_portfolio_is_resumed_with_everybody_given(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    entered = synthetic(journal=path).enter(newcomer("late", 0.0), workers=0, max_rounds=5)
    everybody = [*synthetic_portfolio(**OPTIONS), newcomer("late", 0.0)]
    assert_same_result(resume(path, everybody, workers=0), entered, about=False)
    assert_same_result(resume(path, [newcomer("late", 0.0)], workers=0), entered)  # the journal names the others


@pytest.mark.parametrize("report", [1, 5, 16])
def test_an_interruption_while_a_newcomer_catches_up_loses_nothing(tmp_path: Path, report: int) -> None:
    path = tmp_path / "race.db"
    expected = before_without_journal().enter(newcomer("late", 0.0), workers=0, max_rounds=6)
    before = race(counting(), SyntheticSuite(), TIMES, SETTINGS, workers=0, journal=path)
    stopped = before.enter(newcomer("late", 0.0), workers=0, max_rounds=6, progress=InterruptAt(report))
    assert stopped.stopped == "interrupted"
    kept = rows(path)
    assert_same_result(resume(path, [*counting(), newcomer("late", 0.0)], SyntheticSuite(), workers=0), expected)
    assert rows(path)[: len(kept)] == kept


@pytest.mark.parametrize("with_journal", [False, True])
@pytest.mark.parametrize("report", [1, 5, 30, 50])
def test_a_newcomer_to_an_interrupted_race_makes_no_other_algorithm_run_again(
    tmp_path: Path, report: int, with_journal: bool
) -> None:
    path, portfolio = tmp_path / "race.db", counting()
    stopped = race(
        portfolio,
        SyntheticSuite(),
        TIMES,
        SETTINGS,
        workers=0,
        journal=path if with_journal else None,
        progress=InterruptAt(report),
    )
    assert stopped.stopped == "interrupted"
    entered = stopped.enter(newcomer("late", 0.0), workers=0)
    assert entered.stopped == "max_rounds"
    for algorithm in portfolio:  # unless it has to run further than before
        runs = list(zip(algorithm.ran, algorithm.horizons, strict=True))
        assert len(runs) == len(set(runs))
    if with_journal:
        everybody = [*counting(), newcomer("late", 0.0)]
        assert_same_result(resume(path, everybody, SyntheticSuite(), workers=0), entered)
        assert not any(algorithm.ran for algorithm in everybody)
        longer = resume(path, everybody, SyntheticSuite(), workers=0, max_rounds=4)
        assert len(longer.rounds) == 4


def test_no_newcomer_enters_a_result_whose_journal_has_advanced(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    before = race(counting(), SyntheticSuite(), TIMES, SETTINGS, workers=0, journal=path)
    after = before.enter(newcomer("late", 0.0), workers=0, max_rounds=5)
    content = path.read_bytes()
    with pytest.raises(InvalidInputError, match=r"race\.db: the race has advanced since this result"):
        before.enter(newcomer("later", 0.0), workers=0)
    assert path.read_bytes() == content
    assert after.enter(newcomer("later", 0.0), workers=0, max_rounds=6).algorithms[-2:] == ("late", "later")


def test_several_newcomers_enter_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    first = race(counting(), SyntheticSuite(), TIMES, SETTINGS, workers=0, journal=path)
    second = first.enter(newcomer("x", 0.0), workers=0, max_rounds=4)
    third = second.enter(newcomer("y", 0.5), workers=0, max_rounds=7)
    everybody = [*counting(), newcomer("x", 0.0), newcomer("y", 0.5)]
    assert_same_result(resume(path, everybody, SyntheticSuite(), workers=0), third)


# --- notifications


class Audience:
    def __init__(self, problem: Exception | None = None) -> None:
        self.states: list[Any] = []
        self.problem = problem

    @hookimpl
    def polarbear_round_finished(self, state: object) -> None:
        """Note the state."""
        self.states.append(state)
        if self.problem is not None:
            raise self.problem


def with_audience(audience: Audience) -> Plugins:
    plugins = load_plugins()
    plugins.register(audience, "audience")
    return plugins


def test_plugins_are_notified_of_each_round_once(uninterrupted: RaceResult) -> None:
    audience = Audience()
    result = race(
        synthetic_portfolio(**OPTIONS), SyntheticSuite(), TIMES, SETTINGS, workers=0, plugins=with_audience(audience)
    )
    assert_same_result(result, uninterrupted, about=False)
    assert [len(state.rounds) for state in audience.states] == [1, 2, 3]


def test_a_plugin_that_fails_when_notified_only_warns(uninterrupted: RaceResult) -> None:
    audience = Audience(RuntimeError("dashboard on fire"))
    with pytest.warns(PluginWarning, match="polarbear_round_finished.*dashboard on fire"):
        result = race(
            synthetic_portfolio(**OPTIONS),
            SyntheticSuite(),
            TIMES,
            SETTINGS,
            workers=0,
            plugins=with_audience(audience),
        )
    assert len(audience.states) == 3
    assert_same_result(result, uninterrupted, about=False)


def test_progress_counts_every_run_and_every_round(reports: list[Progress], uninterrupted: RaceResult) -> None:
    ends = [seen for seen in reports if not seen.planned]
    assert [len(seen.state.rounds) for seen in ends] == [1, 2, 3]
    for number in range(3):
        during = [seen for seen in reports if seen.planned and len(seen.state.rounds) == number]
        assert [seen.done for seen in during] == list(range(during[0].planned + 1))
    assert ends[-1].state.cost == uninterrupted.cost
