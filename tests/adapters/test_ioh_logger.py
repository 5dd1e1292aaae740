from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RankingTable, Trajectory, rank
from polarbear_plugins.adapters import ioh_logger, ioh_logs
from polarbear_plugins.adapters.ioh_logger import RunRecorder
from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.rankings.stream import RankingStream
from polarbear_plugins.trajectories.trajectory import best_at


def meta(instance: int = 1, direction: str = "MIN") -> Any:
    return SimpleNamespace(
        problem_id=1,
        name="Sphere",
        n_variables=5,
        instance=instance,
        optimization_type=SimpleNamespace(name=direction),
    )


def run(recorder: RunRecorder, *values: float) -> None:
    recorder.times.extend(range(1, len(values) + 1))
    recorder.values.extend(values)


# The recorder, which needs no ioh


def test_a_run_becomes_a_trajectory_when_it_is_finished() -> None:
    recorder = RunRecorder("csa", [1, 3])
    recorder.begin(meta())
    run(recorder, 5.0, np.inf, 2.0, 4.0)
    assert recorder.trajectories == ()
    finished = recorder.finish()
    assert finished is not None
    expected = Trajectory(algorithm="csa", instance="f1_d5_i1", times=[1, 3], best=[5, 2], horizon=4, dimension=5)
    assert finished.in_group(None) == expected
    assert recorder.finish() is None
    assert len(recorder.trajectories) == 1


def test_beginning_the_next_run_finishes_the_last_and_repeated_runs_are_numbered() -> None:
    recorder = RunRecorder("csa", [1])
    for instance in (1, 1, 2, 1):
        recorder.begin(meta(instance))
        run(recorder, 1.0)
        recorder.begin(meta(instance))  # without an evaluation, as by a reset
    assert [(r.instance, r.seed) for r in recorder.trajectories] == [
        ("f1_d5_i1", 0),
        ("f1_d5_i1", 1),
        ("f1_d5_i2", 0),
        ("f1_d5_i1", 2),
    ]


def test_changing_the_algorithm_finishes_the_run_of_the_last() -> None:
    recorder = RunRecorder("csa", [1])
    recorder.begin(meta())
    run(recorder, 1.0)
    recorder.algorithm = "msr"
    run(recorder, 2.0)
    recorder.finish()
    assert [(r.algorithm, r.seed) for r in recorder.trajectories] == [("csa", 0), ("msr", 0)]
    assert recorder.algorithm == "msr"


def test_maximised_values_are_turned() -> None:
    recorder = RunRecorder("csa", [1])
    recorder.begin(meta(direction="MAX"))
    run(recorder, 1.0, 3.0, 2.0)
    finished = recorder.finish()
    assert finished is not None
    assert finished.best.tolist() == [-1, -3]


def test_a_run_that_finds_nothing_is_a_run() -> None:
    recorder = RunRecorder("csa", [1])
    recorder.begin(meta())
    run(recorder, np.inf, np.nan)
    finished = recorder.finish()
    assert finished is not None
    assert (finished.times.size, finished.horizon) == (0, 2)


def test_finished_instances_go_to_the_stream_and_come_back_as_rankings() -> None:
    blocks: list[RankingTable] = []
    runs: list[Trajectory] = []
    recorder = RunRecorder(
        "a",
        [1, 2],
        stream=RankingStream(["a", "b"], [1, 2]),
        on_rankings=blocks.append,
        on_trajectory=runs.append,
        keep=False,
        instance=lambda meta_data: f"problem {meta_data.instance}",
    )
    for instance in (7, 8):
        for name, values in (("a", (3.0, 1.0)), ("b", (2.0, 2.0))):
            recorder.algorithm = name
            recorder.begin(meta(instance))
            run(recorder, *values)
    assert recorder.finish() is not None
    assert recorder.trajectories == ()
    assert recorder.rankings == rank(runs, [1, 2])
    assert [block.instances for block in blocks] == [("problem 7",), ("problem 8",)]
    assert blocks[0].ranks[0].tolist() == [[2, 1], [1, 2]]


def test_interleaved_problems_are_refused() -> None:
    recorder = RunRecorder("csa", [1])
    recorder.begin(meta())
    recorder.times += [1, 2, 2]
    recorder.values += [1.0, 2.0, 3.0]
    with pytest.raises(
        InvalidInputError, match=r"evaluation 2 of 'f1_d5_i1' came twice\. A logger follows one problem"
    ):
        recorder.finish()
    assert recorder.finish() is None


@pytest.mark.parametrize(
    ("timepoints", "options", "message"),
    [
        ([0.5, 2], {}, "a logger counts evaluations"),
        ([0, 2], {}, "a logger counts evaluations"),
        ([], {}, "timepoints"),
        ([1], {"on_rankings": print}, "rankings need a stream"),
    ],
)
def test_what_makes_no_sense_is_refused_at_once(timepoints: Any, options: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        RunRecorder("csa", timepoints, **options)
    with pytest.raises(InvalidInputError, match="algorithm of a logger"):
        RunRecorder("", [1])


def test_without_ioh_the_logger_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ioh_logger._ranking_logger.cache_clear()
    monkeypatch.setitem(sys.modules, "ioh", None)
    with pytest.raises(MissingExtraError, match=r"RankingLogger needs 'ioh'.*polarbear-plugins\[ioh\]"):
        ioh_logger.RankingLogger  # noqa: B018
    monkeypatch.undo()
    with pytest.raises(AttributeError, match="no attribute 'Other'"):
        ioh_logger.Other  # noqa: B018


# The logger


@pytest.fixture
def ioh() -> Any:
    return pytest.importorskip("ioh", reason="needs ioh")


def test_a_logger_gives_the_best_values_of_the_evaluations_at_the_timepoints(ioh: Any) -> None:
    grid = [1, 2, 5, 17, 40]
    logger = ioh_logger.RankingLogger("mine", grid)
    rng = np.random.default_rng(1)
    recorded = []
    for instance in (1, 2):
        problem = ioh.get_problem(3, instance, 2)
        problem.attach_logger(logger)
        for _ in range(2):
            values = []
            for x in rng.uniform(-5, 5, (45, 2)):
                problem(x.tolist())
                values.append(problem.log_info.raw_y)
            recorded.append(values)
            problem.reset()
    assert [(r.instance, r.seed) for r in logger.trajectories] == [
        (f"f3_d2_i{instance}", seed) for instance in (1, 2) for seed in (0, 1)
    ]
    for trajectory, values in zip(logger.trajectories, recorded, strict=True):
        assert best_at(trajectory, grid).tolist() == np.minimum.accumulate(values)[np.array(grid) - 1].tolist()
        assert 40 <= trajectory.horizon <= 45


def test_a_logger_and_the_files_of_ioh_tell_the_same(ioh: Any, tmp_path: Path) -> None:
    trigger = ioh.logger.trigger.OnImprovement()
    analyzer = ioh.logger.Analyzer(root=str(tmp_path), algorithm_name="mine", triggers=[trigger])
    logger = ioh_logger.RankingLogger("mine", [1, 10, 30])
    rng = np.random.default_rng(1)
    for attached in (analyzer, logger):
        rng = np.random.default_rng(1)
        for instance in (1, 2):
            problem = ioh.get_problem(1, instance, 3)
            problem.attach_logger(attached)
            for x in rng.uniform(-5, 5, (30, 3)):
                problem(x.tolist())
            problem.reset()
    analyzer.close()
    plugins = Plugins()
    plugins.register(ioh_logs, "ioh-logs")
    for live, read in zip(logger.trajectories, plugins.read_trajectories(tmp_path), strict=True):
        assert (live.algorithm, live.instance, live.seed) == (read.algorithm, read.instance, read.seed)
        assert (live.times.tolist(), live.horizon) == (read.times.tolist(), read.horizon)
        np.testing.assert_allclose(live.best, read.best, atol=1e-10)
        assert live.best[-1] == read.best[-1]


def test_a_logger_knows_maximisation_and_the_end_of_a_run_that_does_not_improve(ioh: Any) -> None:
    logger = ioh_logger.RankingLogger("mine", [2, 4, 8])
    problem = ioh.get_problem(1, 1, 4, ioh.ProblemClass.PBO)
    problem.attach_logger(logger)
    for x in ([1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]):
        problem(x)
    finished = logger.finish()
    assert (finished.times.tolist(), finished.best.tolist(), finished.horizon) == ([1, 3], [-2, -3], 4)


def test_a_run_that_finds_no_finite_value_is_not_lost(ioh: Any) -> None:
    problem = ioh.wrap_problem(lambda _: float("inf"), name="polarbear_never_finite", dimension=1, lb=-5, ub=5)
    logger = ioh_logger.RankingLogger("mine", [3])
    problem.attach_logger(logger)
    problem([0.0])
    problem.reset()
    [trajectory] = logger.trajectories
    assert (trajectory.times.size, trajectory.horizon) == (0, 1)


def test_a_logger_ranks_live_and_names_algorithms(ioh: Any) -> None:
    logger = ioh_logger.RankingLogger("center", [1, 3], stream=RankingStream(["center", "corner"], [1, 3]))
    for instance in (1, 2, 3):
        problem = ioh.get_problem(1, instance, 2)
        problem.attach_logger(logger)
        for name, x in (("center", [0.0, 0.0]), ("corner", [5.0, 5.0])):
            logger.algorithm = name
            for _ in range(3):
                problem(x)
            problem.reset()
    assert logger.algorithm == "corner"
    assert logger.rankings.ranks.tolist() == [[[1, 2], [1, 2]]] * 3


def test_a_logger_that_nobody_holds_stays_alive_until_it_is_closed(ioh: Any) -> None:
    # In a process of its own: ioh crashes when it calls a logger that is gone.
    del ioh
    code = """
import gc, ioh, weakref
from polarbear_plugins.adapters.ioh_logger import RankingLogger
found = []
problem = ioh.get_problem(1, 1, 2)
problem.attach_logger(RankingLogger("mine", [1, 5], on_trajectory=found.append))
gc.collect()
rubbish = [bytearray(1000) for _ in range(10000)]
for k in range(6):
    problem([k / 10, 0.0])
problem.reset()
print(found)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "watched until 5" in done.stdout


def test_closing_finishes_the_run_and_lets_the_logger_go(ioh: Any) -> None:
    logger = ioh_logger.RankingLogger("mine", [1])
    problem = ioh.get_problem(1, 1, 2)
    problem.attach_logger(logger)
    problem([0.0, 0.0])
    assert logger in ioh_logger._ATTACHED
    logger.close()
    assert len(logger.trajectories) == 1
    assert logger not in ioh_logger._ATTACHED
    problem.detach_logger()
    del logger
    gc.collect()
    problem([0.0, 0.0])
