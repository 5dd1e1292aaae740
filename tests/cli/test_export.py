from __future__ import annotations

import csv
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_line import Command
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import (
    RaceResult,
    RaceSettings,
    RankingTable,
    Trajectory,
    analyze,
    load_result,
    race,
    read_trajectories,
)
from polarbear_plugins.cli import exported_files
from polarbear_plugins.cli.exported_files import format_of, table_of_runs, write_parquet, write_table
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.journal import replay
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.trajectories.trajectory import UNRANKED

POLARBEAR = Command("export")
ENDINGS = ("runs.csv", "runs.tsv", "runs.csv.gz", "runs.tsv.gz", "runs.parquet", "runs.pq", "runs")
WITH_PARQUET = find_spec("pyarrow") is not None


def writable(*names: str) -> list[str]:
    """Those of some files whose format can be written with what is installed."""
    return [name for name in names if WITH_PARQUET or not name.endswith((".parquet", ".pq"))]


class BoxOfDimension2:
    """A problem of function 3."""

    def __init__(self, instance: int) -> None:
        parameters = {"function": 3, "instance": instance, "dimension": 2}
        self.identity = Identity(f"number {instance}", parameters, group="f3 Rastrigin", fixed_group=True)


def slow(_: Any, horizon: float, seed: int) -> Trajectory:
    value = np.random.default_rng(seed).uniform(0, 1e-12)
    best = [1 + value, value, value / 1000]
    return Trajectory(algorithm="?", instance="?", times=[1, 5, 12], best=best, horizon=max(12, horizon))


def quick(_: Any, horizon: float, seed: int) -> Trajectory:
    value = np.random.default_rng(seed).uniform(0, 1e-12)
    return Trajectory(algorithm="?", instance="?", times=[1, 5], best=[0.5, value], horizon=max(12, horizon))


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A race in which later runs of one algorithm are short, since only its middle is not settled."""
    path = tmp_path_factory.mktemp("export") / "race.db"
    settings = RaceSettings(seed=1, draws=300, max_rounds=3, guard="none")
    problems = [BoxOfDimension2(instance) for instance in range(1, 30)]
    race({"a": slow, "b": slow, "quick": quick}, problems, [2, 5, 12], settings, workers=0, journal=path)
    return path


def facts(run: Trajectory) -> tuple[Any, ...]:
    """Everything about a run; a step to the same value is none."""
    changed = run.best != np.concatenate(([np.inf], run.best[:-1]))
    curve = run.times[changed].tolist(), run.best[changed].tolist()
    labels = run.algorithm, run.instance, run.seed, str(run.group), run.fixed_group, str(run.dimension), run.end
    return *labels, run.horizon, curve


def read(path: Path, **options: object) -> list[tuple[Any, ...]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return sorted(map(facts, read_trajectories(path, **options)))


@pytest.mark.parametrize("name", writable(*ENDINGS))
def test_the_runs_of_a_race_are_read_again_as_they_are(tmp_path: Path, journal: Path, name: str) -> None:
    told = POLARBEAR.data(str(journal), "-o", str(tmp_path / name))
    result = load_result(journal)
    runs = list(result.trajectories())
    assert {run.end for run in runs} == {"stopped"}
    assert len({run.horizon for run in runs}) > 1
    assert read(tmp_path / name, **told["read_with"]) == sorted(map(facts, runs))
    assert told["stopped"] == told["runs"] == len(runs)
    assert told["timepoints"] == [2, 5, 12]
    assert (told["algorithms"], told["instances"]) == (["a", "b", "quick"], len(result.state.table.instances))


def test_a_saved_result_and_its_journal_give_the_same_file(tmp_path: Path, journal: Path) -> None:
    saved = load_result(journal).save(tmp_path / "race.npz")
    for name, source in (("one.csv", saved), ("other.csv", journal)):
        POLARBEAR.succeed(str(source), "-o", str(tmp_path / name))
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "other.csv").read_bytes()


def test_no_posterior_is_computed_for_it(tmp_path: Path, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "checked", None)
    assert "saved" in POLARBEAR.succeed(str(journal), "-o", str(tmp_path / "runs.csv"))
    monkeypatch.undo()
    assert load_result(journal).posterior.algorithms == ("a", "b", "quick")


def test_it_says_what_is_known_of_the_runs_of_a_race(tmp_path: Path, journal: Path) -> None:
    said = POLARBEAR.succeed(str(journal), "-o", str(tmp_path / "runs.csv"))
    assert "Values are known at 3 timepoints, 2 to 12, and not between them." in said
    assert "runs were cut off where they end and would have gone on: they are marked as stopped" in said
    assert "runs.csv -o fixed_groups=true\n" in said


def test_runs_of_existing_data_are_not_called_stopped(tmp_path: Path) -> None:
    runs = [Trajectory(algorithm=name, instance="i", times=[1], best=[2.0], horizon=2) for name in "ab"]
    write_table(runs, tmp_path / "runs.csv")
    Command("analyze").run(str(tmp_path / "runs.csv"), "--timepoints", "1,2", "--output", str(tmp_path / "result.npz"))
    assert {run.end for run in RaceResult.load(tmp_path / "result.npz").trajectories()} == {"unknown"}
    told = POLARBEAR.data(str(tmp_path / "runs.csv"), "-o", str(tmp_path / "again.tsv"))
    assert (told["stopped"], told["timepoints"], told["read_with"]) == (0, None, {})
    assert read(tmp_path / "again.tsv") == sorted(map(facts, runs))


NAMES = st.text("aB ,;\"'\N{SNOWMAN}\n", min_size=1, max_size=4).filter(lambda name: name.strip())


@st.composite
def drawn_runs(draw: st.DrawFn) -> list[Trajectory]:
    grouped, dimension = draw(st.booleans()), draw(st.booleans())
    runs = {}
    for algorithm, instance, seed in draw(
        st.lists(st.tuples(NAMES, st.integers(0, 3), st.integers(-(2**50), 2**50)), min_size=1, max_size=6)
    ):
        values = draw(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=5))
        times = np.cumsum(draw(st.lists(st.floats(1e-3, 9), min_size=len(values), max_size=len(values))))
        runs[algorithm, instance, seed] = Trajectory.from_evaluations(
            values,
            times=times,
            algorithm=algorithm,
            instance=instance,
            seed=seed,
            horizon=draw(st.floats(46, 1e6)),
            group=f"{instance} g" if grouped else None,
            fixed_group=grouped,
            dimension=instance + 1 if dimension else None,
            end=draw(st.sampled_from(["unknown", "stopped", *(["done"] if values else [])])),
        )
    return list(runs.values())


@settings(max_examples=100)
@given(drawn_runs(), st.booleans(), st.sampled_from(writable("runs.csv", "runs.tsv.gz", "runs.parquet")))
def test_a_table_is_read_again_as_the_same_runs(
    tmp_path_factory: pytest.TempPathFactory, runs: list[Trajectory], maximize: bool, name: str
) -> None:
    path = tmp_path_factory.mktemp("table") / name
    write = write_parquet if name.endswith("parquet") else write_table
    assert write(runs, path, maximize=maximize) == []
    options = {"fixed_groups": True} if runs[0].group else {}
    assert read(path, maximize=maximize, **options) == sorted(map(facts, runs))


def test_a_table_has_the_columns_of_each_run() -> None:
    run = Trajectory(algorithm="a", instance="i", times=[1, 3], best=[4.0, 2.0], horizon=9, group="g", end="stopped")
    for one in (run, run.in_group(None), run.described(dimension=5, end="unknown")):
        frame, incomplete = table_of_runs([one])
        pd.testing.assert_frame_equal(frame, one.to_pandas(), check_dtype=False)
        assert incomplete == []


def test_columns_that_only_some_runs_have_are_left_out_and_named(tmp_path: Path) -> None:
    run = Trajectory(algorithm="a", instance="i", times=[1], best=[4.0], group="g", dimension=2)
    other = Trajectory(algorithm="a", instance="j", times=[1], best=[4.0])
    frame, incomplete = table_of_runs([run, other])
    assert list(frame) == ["algorithm", "instance", "seed", "time", "value", "horizon"]
    assert incomplete == ["group", "dimension"]
    pooled, incomplete = table_of_runs([run, run.described(dimension=3, end="unknown")])
    assert ("dimension" in pooled, "group" in pooled, incomplete) == (False, True, ["dimension"])
    (tmp_path / "one.csv").write_text("algorithm,instance,time,value,group\na,i,1,2,g\n")
    (tmp_path / "two.csv").write_text("algorithm,instance,time,value\na,j,1,2\n")
    sources = [str(tmp_path / name) for name in ("one.csv", "two.csv")]
    assert POLARBEAR.data(*sources, "-o", str(tmp_path / "runs.csv"))["without"] == ["group"]
    said = POLARBEAR.succeed(*sources, "-o", str(tmp_path / "more.csv"))
    assert "Without the column group, since not every instance has exactly one." in said


def test_unranked_values_are_a_word_in_text(tmp_path: Path) -> None:
    runs = [Trajectory(algorithm="a", instance="i", times=[1], best=[UNRANKED], horizon=3)]
    for name in writable("runs.csv", "runs.parquet"):
        write = write_parquet if name.endswith("parquet") else write_table
        write(runs, tmp_path / name)
        assert read(tmp_path / name) == sorted(map(facts, runs))
    assert "unranked" in (tmp_path / "runs.csv").read_text()


def test_values_that_increase_are_named(tmp_path: Path) -> None:
    values = [[[1.0, 2.0], [3.0, 4.0]]]  # one instance, two timepoints that get worse, two algorithms
    table = RankingTable.from_values(values, algorithms=["a", "b"], timepoints=[1, 2])
    saved = analyze(table, RaceSettings(seed=1, draws=200)).save(tmp_path / "result.npz")
    said = POLARBEAR.succeed(str(saved), "-o", str(tmp_path / "runs.csv"))
    assert "Some values increase, as those of an incumbent may: read again, they count as best so far." in said
    assert "this value increases at time 2" in POLARBEAR.fail(str(saved), "-o", str(tmp_path / "ioh"))
    assert not (tmp_path / "ioh").exists()


# Nothing is overwritten, and nothing is half written


@pytest.mark.parametrize("name", writable("runs.csv", "runs.parquet", "ioh"))
def test_nothing_is_replaced_without_force(tmp_path: Path, journal: Path, name: str) -> None:
    path = tmp_path / name
    POLARBEAR.succeed(str(journal), "-o", str(path))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert f"{path} exists. Choose another name, or replace it with --force." in POLARBEAR.fail(
        str(journal), "-o", str(path)
    )
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    POLARBEAR.succeed(str(journal), "-o", str(path), "--force")
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_an_empty_folder_is_filled(tmp_path: Path, journal: Path) -> None:
    (tmp_path / "ioh").mkdir()
    POLARBEAR.succeed(str(journal), "-o", str(tmp_path / "ioh"))
    assert (tmp_path / "ioh" / "instances.csv").is_file()


def test_a_folder_with_other_files_is_never_replaced(tmp_path: Path, journal: Path) -> None:
    (tmp_path / "ioh" / "mine").mkdir(parents=True)
    (tmp_path / "ioh" / "mine" / "thesis.tex").write_text("all")
    error = POLARBEAR.fail(str(journal), "-o", str(tmp_path / "ioh"), "--force")
    assert "holds other files than IOHprofiler data, such as mine/thesis.tex" in error
    assert (tmp_path / "ioh" / "mine" / "thesis.tex").read_text() == "all"


@pytest.mark.parametrize(("name", "kind"), [("folder", "table"), ("file", "ioh")])
def test_a_file_does_not_replace_a_folder_nor_a_folder_a_file(
    tmp_path: Path, journal: Path, name: str, kind: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    error = POLARBEAR.fail(str(journal), "-o", str(tmp_path / name), "--format", kind, "--force")
    assert f"is a {name}" in error
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("name", ["runs.csv", "ioh"])
def test_what_breaks_leaves_the_old_files(
    tmp_path: Path, journal: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    POLARBEAR.succeed(str(journal), "-o", str(tmp_path / name))
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    monkeypatch.setattr(exported_files, "write_ioh", full)
    error = POLARBEAR.fail(str(journal), "-o", str(tmp_path / name), "--force")
    assert f"{tmp_path / name}: cannot be written (No space left on device" in error
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


# Formats


def test_the_ending_stands_for_a_format(tmp_path: Path) -> None:
    found = {name: format_of(tmp_path / name) for name in ENDINGS}
    assert list(found.values()) == ["table"] * 4 + ["parquet"] * 2 + ["ioh"]
    (tmp_path / "data.v2").mkdir()
    assert format_of(tmp_path / "data.v2") == "ioh"
    with pytest.raises(InvalidInputError, match=r"the ending '\.xlsx' stands for no format"):
        format_of(tmp_path / "runs.xlsx")


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    error = POLARBEAR.fail(str(journal), "-o", str(tmp_path / "runs.parquet"))
    assert "Writing runs.parquet needs" in error
    assert "polarbear-plugins[parquet]" in error


def test_a_table_for_coco_has_its_numbers(tmp_path: Path, journal: Path) -> None:
    path = tmp_path / "coco.csv"
    told = POLARBEAR.data(str(journal), "-o", str(path), "--format", "coco", "--suite", "mine")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == [
        *("suite", "function", "dimension", "instance", "algorithm", "run", "evaluations", "precision", "end")
    ]
    assert {(row["suite"], row["function"], row["dimension"], row["end"]) for row in rows} == {
        ("mine", "3", "2", "stopped")
    }
    runs = {(run.algorithm, run.instance): run for run in load_result(journal).trajectories()}
    last = {(row["algorithm"], f"number {row['instance']}"): row for row in rows}
    assert {key: int(row["evaluations"]) for key, row in last.items()} == {
        key: run.horizon for key, run in runs.items()
    }
    assert {key: float(row["precision"]) for key, row in last.items()} == {
        key: run.best[-1] for key, run in runs.items()
    }
    again = list(read_trajectories(path, **told["read_with"]))
    assert len(again) == len(runs)
    assert {run.instance for run in again} >= {"function=3,dimension=2,instance=1"}


def test_logged_data_are_exported_for_coco_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text(
        "algorithm,instance,time,value,group,dimension,horizon\na,f1_d2_i7,3,0.5,f1 Sphere,2,10.5\n"
    )
    POLARBEAR.succeed(str(tmp_path / "runs.csv"), "-o", str(tmp_path / "coco.csv"), "--format", "coco")
    assert (tmp_path / "coco.csv").read_text().splitlines()[1:] == [
        "unknown_suite,1,2,7,a,0,3,0.5,unknown",
        "unknown_suite,1,2,7,a,0,10,0.5,unknown",
    ]


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ("a,mine,3,0.5,g,2", [], "'mine' has no number of a function, so that a table for COCO cannot name it"),
        ("a,f1_d2_i7,3,-0.5,f1 Sphere,2", [], "a precision is a difference from the optimum, got -0.5"),
        ("a,f1_d2_i7,3.5,0.5,f1 Sphere,2", [], "COCO counts evaluations, got the time 3.5"),
        ("a,f1_d2_i7,3,unranked,f1 Sphere,2", [], "is unranked at some time"),
        ("a,f1_d2_i7,3,0.5,f1 Sphere,2", ["--maximize"], "differences from the optimum, which are minimised"),
    ],
)
def test_what_coco_cannot_hold_is_refused(tmp_path: Path, row: str, options: list[str], message: str) -> None:
    (tmp_path / "runs.csv").write_text(f"algorithm,instance,time,value,group,dimension\n{row}\n")
    target = ["-o", str(tmp_path / "coco.csv"), "--format", "coco"]
    assert message in POLARBEAR.fail(str(tmp_path / "runs.csv"), *target, *options)
    assert not (tmp_path / "coco.csv").exists()


def test_maximised_values_keep_their_sign(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("algorithm,instance,time,value\na,i,1,3\na,i,2,5\n")
    for name in ("again.csv", "ioh"):
        options = ["-O", "maximize=true", "--maximize", "-o", str(tmp_path / name)]
        told = POLARBEAR.data(str(tmp_path / "runs.csv"), *options)
        [run] = read_trajectories(tmp_path / name, **told["read_with"])
        assert run.best.tolist() == [-3, -5]
    assert "a,i,0,2.0,5.0,2.0" in (tmp_path / "again.csv").read_text()
    assert "2 5.0000000000" in next((tmp_path / "ioh").rglob("*.dat")).read_text()


def test_runs_without_a_value_are_kept_in_tables_and_counted_where_they_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("algorithm,instance,time,value\na,i,1,3\nb,i,9,inf\n")
    told = POLARBEAR.data(str(tmp_path / "runs.csv"), "-o", str(tmp_path / "again.csv"))
    assert (told["runs"], told["left_out"]) == (2, 0)
    assert [(run.times.size, run.horizon) for run in read_trajectories(tmp_path / "again.csv")] == [(1, 1), (0, 9)]
    result = POLARBEAR.run(str(tmp_path / "runs.csv"), "-o", str(tmp_path / "ioh"))
    assert result.stdout.startswith("1 runs of 2 algorithms on 1 instances")
    assert "Left out 'b' on 'i'" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "there is no such file"),
        (["RACE", "-O", "maximize=true"], "--option is for adapters"),
        (["RACE", "--format", "ioh", "-O", "x"], "expected KEY=VALUE"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, journal: Path, arguments: list[str], message: str) -> None:
    given = [str(journal) if argument == "RACE" else argument for argument in arguments]
    assert message in POLARBEAR.fail(*given, "-o", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
