"""Pipes, sockets, devices and links that form a cycle: every reader refuses them, and none waits for them."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from builders import synthetic_race
from command_line import Command

from polarbear_plugins import Posterior, RaceResult, Trajectory, read_trajectories, resume
from polarbear_plugins.errors import PolarBearError, SourceError
from polarbear_plugins.integrations.ioh_writer import write_ioh
from polarbear_plugins.integrations.ma_bbob import read_csv_folder
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.measures.results_table import read_results
from polarbear_plugins.partial_orders.criteria import read_criteria

if sys.platform == "win32":
    pytest.skip("needs pipes and devices", allow_module_level=True)

ADVICE = "Save what it gives to a file first, and give that file"
NAMES = [
    *("runs.csv", "runs.tsv", "runs.csv.gz", "runs.parquet", "logs.zip", "data.tgz", "data.tar", "data.info"),
    *("result.npz", "race.db", "studies.log", "plain", "IOHprofiler_f1_Sphere.json"),
]


@pytest.fixture(autouse=True)
def _nobody_waits() -> Iterator[None]:
    """A reader that waits for a pipe fails instead of waiting for ever."""

    def give_up(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("name", NAMES)
def test_a_pipe_is_no_source_of_runs(name: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=ADVICE):
        read_trajectories(str(pipe(tmp_path / name)))


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (RaceResult.load, "result.npz"),
        (Posterior.load, "posterior.npz"),
        (load_result, "race.db"),
        (read_criteria, "criteria.csv"),
        (read_results, "scores.csv"),
    ],
)
def test_a_pipe_is_no_result_and_no_table(read: Callable[[Path], object], name: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=ADVICE):
        read(pipe(tmp_path / name))


def test_a_pipe_is_no_journal(tmp_path: Path) -> None:
    with pytest.raises(SourceError):
        resume(pipe(tmp_path / "race.db"), [], [])


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "pipe", "pipe.csv"])
@pytest.mark.parametrize(
    "command", ["analyze", "select", "report", "plan", "measures", "leaderboard", "resume", "export"]
)
def test_every_command_refuses_pipes_and_devices(name: str, command: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.csv")
    more = ["-o", str(tmp_path / "new.csv")] if command == "export" else []
    says = Command(command).fail(str(tmp_path / name), *more)
    assert ADVICE in says or "cannot be written, since it is a" in says


def test_an_optuna_storage_is_no_pipe(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=ADVICE):
        read_trajectories(f"sqlite:///{pipe(tmp_path / 'studies.db')}")


def logs(folder: Path) -> Path:
    """A folder of IOHprofiler data; returns a file of rows in it."""
    runs = [
        Trajectory(algorithm=name, instance=f"f1_d2_i{number}", times=[1, 4], best=[3.5, 0.25], horizon=10)
        for name in ("csa", "msr")
        for number in (1, 2)
    ]
    write_ioh(runs, folder, suite="mine")
    return min(folder.rglob("*.dat"))


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_rows_of_logs_that_are_no_file_are_damaged(kind: str, tmp_path: Path) -> None:
    rows = logs(tmp_path / "logs")
    rows.unlink()
    if kind == "pipe":
        os.mkfifo(rows)
    else:
        rows.symlink_to(rows.name)
    with pytest.raises(SourceError, match=r"so there is nothing of runs 1 to 2"):
        list(read_trajectories(str(tmp_path / "logs")))


def test_links_that_form_a_cycle_end_in_a_message(tmp_path: Path) -> None:
    rows = logs(tmp_path / "logs")
    (rows.parent / "up").symlink_to(tmp_path / "logs")
    assert len(list(read_trajectories(str(tmp_path / "logs")))) == 4
    for name in ("loop", "loop.csv", "loop.npz", "loop.zip", "loop.tgz", "loop.parquet"):
        (tmp_path / name).symlink_to(name)
        with pytest.raises(PolarBearError):
            list(read_trajectories(str(tmp_path / name)))
    with pytest.raises(SourceError, match="Too many levels of symbolic links"):
        load_result(tmp_path / "loop.npz")


def test_a_log_of_bayesmark_is_no_pipe(write_study: Callable[..., Path]) -> None:
    from polarbear_plugins.adapters.bayesmark.database import read_database

    study = write_study("RandomSearch", "DT_iris_acc", [[1.0], [0.5]])
    database = study.parent.parent
    os.mkfifo(database / "log" / f"{study.stem}.log")
    with pytest.raises(SourceError, match=ADVICE):
        read_database(database).fallbacks()


@pytest.mark.parametrize("name", ["encoding.json", "config_space.json", "model.onnx"])
def test_a_file_of_yahpo_gym_is_no_pipe(name: str, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from polarbear_plugins.adapters.yahpo import load_surrogate
    from polarbear_plugins.adapters.yahpo.files import data_folder

    shutil.copytree(data_folder(None, "demo"), tmp_path / "data")
    [file] = (tmp_path / "data").rglob(name)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(SourceError, match=ADVICE):
        load_surrogate("demo", tmp_path / "data").open()


def test_problems_of_ma_bbob_are_no_pipes(tmp_path: Path) -> None:
    pipe(tmp_path / "weights.csv")
    with pytest.raises(SourceError, match=ADVICE):
        read_csv_folder(tmp_path, 2)


# --- arrays of a shape or type that nobody expects


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("result", np.zeros((2,) * 23, dtype=np.int8)),  # as text, it took minutes
        ("result", np.full((2,) * 16, "x")),
        ("result", np.array(3)),
        ("posterior_about", np.zeros((2,) * 23, dtype=np.int8)),
        ("checksum", np.zeros((2,) * 23, dtype=np.int8)),
        ("values", np.full((2, 2, 2), "x")),
        ("values", np.zeros((1,) * 30)),
        ("resolved", np.zeros((2, 2, 2))),
        ("posterior_log_ratings", np.zeros(3, dtype=bool)),
    ],
)
def test_an_array_of_another_shape_or_type_is_refused_before_it_is_read(
    name: str, array: np.ndarray, tmp_path: Path
) -> None:
    path = tmp_path / "result.npz"
    synthetic_race(draws=100, max_rounds=1).save(path)
    with np.load(path) as arrays:
        content = dict(arrays)
    assert name in content
    np.savez_compressed(path, **{**content, name: array})
    with pytest.raises(SourceError, match=rf"{name}: expected .* in \d dimensions, got"):
        RaceResult.load(path)
