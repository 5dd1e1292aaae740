"""What is written as IOHprofiler data is read again as the same runs."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import RaceResult, Trajectory, load_plugins, race, read_trajectories
from polarbear_plugins.cli.exported_files import write_ioh_runs
from polarbear_plugins.errors import SourceError
from polarbear_plugins.integrations.ioh_writer import Scenario, scenario_of, write_ioh
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.settings import RaceSettings

POLARBEAR = Command()


def same_runs(folder: Path, runs: Iterable[Trajectory], **options: object) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = list(read_trajectories(folder, **options))
    assert sorted(map(facts, found)) == sorted(map(facts, runs))


def facts(run: Trajectory) -> tuple[Any, ...]:
    """Everything about a run; a step to the same value is none."""
    improved = run.best < np.concatenate(([np.inf], run.best[:-1]))
    curve = run.times[improved].tolist(), run.best[improved].tolist()
    labels = run.algorithm, run.instance, run.seed, str(run.group), run.fixed_group, str(run.dimension), run.end
    return *labels, run.horizon, curve


VALUES = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6)
TINY = st.lists(st.floats(0, 1e-9), min_size=1, max_size=6)


@st.composite
def drawn_runs(draw: st.DrawFn) -> tuple[list[Trajectory], dict[str, Scenario], bool]:
    """Runs on instances of one kind of suite, and the scenarios that the suite knows."""
    kind = draw(st.sampled_from(["bbob", "ma-bbob", "gp-bbob", "custom", "grouped", "logs"]))
    maximize = draw(st.booleans())
    identities = [
        {
            "bbob": Identity(
                f"f{number}-i{place}-d{dimension}",
                {"function": number, "instance": place, "dimension": dimension, "maximize": maximize},
                group=f"f{number} Function{number}",
                fixed_group=True,
            ),
            "ma-bbob": Identity(f"d{dimension}-0-{place}", {"xopt": [0.5] * dimension}),
            "gp-bbob": Identity(f"d{dimension}-0-{place}", {"dimension": dimension}),
            "custom": Identity(f"{place}/any, \N{SNOWMAN}"),
            "grouped": Identity(f"{number} {dimension} {place}", group=f"dataset {number}"),
            "logs": Identity(f"f{number}_d{dimension}_i{place}", {"dimension": dimension}, group=f"f{number} Name"),
        }[kind]
        for place, (number, dimension) in enumerate(
            draw(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 40)), min_size=1, max_size=4)), start=1
        )
    ]
    runs = []
    for identity in identities:
        for algorithm in draw(st.lists(st.sampled_from(["a", "A", "b/c", "d e"]), max_size=3, unique=True)):
            for seed in draw(st.lists(st.integers(0, 2**40), min_size=1, max_size=3, unique=True)):
                values = draw(st.one_of(VALUES, TINY))
                run = Trajectory.from_evaluations(
                    values,
                    times=np.cumsum(draw(st.lists(st.integers(1, 9), min_size=len(values), max_size=len(values)))),
                    horizon=draw(st.one_of(st.integers(60, 70), st.floats(60, 70))),
                    algorithm=algorithm,
                    instance=identity.name,
                    seed=seed,
                    end=draw(st.sampled_from(["unknown", "stopped", "done"])),
                )
                runs.append(identity.label(run))
    known = {identity.name: scenario_of(identity) for identity in identities}
    return runs, {name: scenario for name, scenario in known.items() if scenario is not None}, maximize


@settings(max_examples=150)
@given(drawn_runs())
def test_the_runs_come_back(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[list[Trajectory], dict[str, Scenario], bool]
) -> None:
    runs, scenarios, maximize = drawn
    if not runs:
        return
    folder = tmp_path_factory.mktemp("ioh") / "data"
    write_ioh(runs, folder, scenarios=scenarios, suite="my suite", maximize=maximize)
    same_runs(folder, runs)
    said = {json.loads(path.read_text())["maximization"] for path in folder.rglob("*.json")}
    assert said == {maximize}
    shutil.make_archive(str(folder), "zip", folder)
    same_runs(folder.with_suffix(".zip"), runs)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bbob", {"functions": "1-3", "instances": "1-2", "dimension": "2,5"}),
        ("ma-bbob", {"dimension": 3}),
        ("gp-bbob", {"dimension": 2}),
        ("synthetic", {}),
    ],
)
def test_the_runs_of_a_race_come_back(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    if name != "synthetic":
        pytest.importorskip("ioh")
    suite = load_plugins().suite(name, **options)

    def run(problem: Any, horizon: float, seed: int) -> Trajectory:
        values = np.random.default_rng(seed).uniform(0, 1e-11, int(horizon))
        return Trajectory.from_evaluations(values, algorithm="?", instance=problem.identity.name)

    def problem_of(identity: Identity) -> Any:
        return type("Problem", (), {"identity": identity, "name": identity.name})()

    drawn = [identity for identity, _ in zip(suite.identities(0), range(12), strict=False)]
    result = race(
        {"a": run, "b": run, "c": run},
        [problem_of(identity) for identity in drawn],
        [5, 10, 20],
        RaceSettings(seed=1, draws=200, max_rounds=1),
        workers=0,
    )
    runs = list(result.trajectories())
    assert {run.end for run in runs} == {"stopped"}
    assert {(run.instance, run.dimension, run.group) for run in runs} <= {
        (identity.name, identity.dimension, identity.group) for identity in drawn
    }
    assert {run.dimension for run in runs} == {"bbob": {2, 5}, "ma-bbob": {3}, "gp-bbob": {2}}.get(name, {None})
    write_ioh_runs(runs, tmp_path / "data", identities=result.identities, suite=name)
    same_runs(tmp_path / "data", runs)
    functions = {json.loads(path.read_text())["function_name"] for path in (tmp_path / "data").rglob("*.json")}
    assert functions == ({"Sphere", "Ellipsoid", "Rastrigin"} if name == "bbob" else {name})


def test_the_command_line_writes_the_same(tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    pytest.importorskip("modcma")
    folder, saved = tmp_path / "ioh", tmp_path / "race.npz"
    options = ["--budget", "40", "--timepoints", "3", "--max-rounds", "1", "--seed", "1", "--draws", "200"]
    suite = ["-S", "functions=1-2", "-S", "instances=1-4", "--dimension", "2"]
    outputs = ["--workers", "0", "--ioh-output", str(folder), "--output", str(saved)]
    assert POLARBEAR.run("race", "modcma-ssa", "bbob", *suite, *options, *outputs).exit_code == 0
    runs = list(RaceResult.load(saved).trajectories())
    assert {(run.group, run.fixed_group, run.dimension, run.end) for run in runs} == {
        ("f1 Sphere", True, 2, "stopped"),
        ("f2 Ellipsoid", True, 2, "stopped"),
    }
    same_runs(folder, runs)
    POLARBEAR.run("export", str(saved), "-o", str(tmp_path / "again"))
    assert files(tmp_path / "again") == files(folder)


def test_a_suite_that_maximises_is_written_so(tmp_path: Path) -> None:
    identities = [Identity(name, {"maximize": True}) for name in "xy"]
    runs = [
        Trajectory.from_evaluations([3, 5], maximize=True, algorithm="a", instance=identity.name)
        for identity in identities
    ]
    write_ioh_runs(runs, tmp_path / "data", identities=identities, suite="mine")
    [index] = (tmp_path / "data").rglob("*.json")
    described = json.loads(index.read_text())
    assert described["maximization"] is True
    assert described["scenarios"][0]["runs"][0]["best"]["y"] == 5
    same_runs(tmp_path / "data", runs)
    write_ioh_runs(runs, tmp_path / "other", identities=[*identities, Identity("z")], suite="mine")
    same_runs(tmp_path / "other", runs)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


# The notes of our writer, read with care


@pytest.fixture
def written(tmp_path: Path) -> Path:
    run = Trajectory(algorithm="a", instance="mine", times=[1, 4], best=[2.0, 0.5], horizon=9, seed=7)
    write_ioh([run], tmp_path / "data", suite="suite")
    return tmp_path / "data"


def edit_notes(folder: Path, **changes: object) -> None:
    [path] = folder.rglob("*.json")
    data = json.loads(path.read_text())
    run = data["scenarios"][0]["runs"][0]
    run["polarbear"] = {**run["polarbear"], **changes}
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    "changes",
    [
        {"instance": ""},
        {"instance": None},
        {"instance": ["a"]},
        {"seed": "x"},
        {"seed": 1.5},
        {"group": {}},
        {"fixed_group": 1, "group": "a"},
        {"end": "never"},
        {"end": []},
        {"horizon": "long"},
        {"horizon": [1]},
    ],
)
def test_notes_that_mean_nothing_are_refused_with_their_place(written: Path, changes: dict[str, object]) -> None:
    edit_notes(written, **changes)
    with pytest.raises(SourceError, match=r"IOHprofiler_f0_suite\.json, scenario 1, run 1, polarbear: "):
        list(read_trajectories(written))


def test_notes_that_are_no_object_are_refused(written: Path) -> None:
    [path] = written.rglob("*.json")
    path.write_text(path.read_text().replace('"polarbear": {', '"polarbear": [{').replace("7}", "7}]"))
    with pytest.raises(SourceError, match="polarbear: expected an object in braces"):
        list(read_trajectories(written))


def test_the_user_may_name_instances_by_their_numbers(written: Path) -> None:
    [run] = read_trajectories(written, instance="function,instance")
    assert (run.instance, run.seed, run.horizon) == ("f0_i1", 7, 9)


def test_instances_are_named_by_their_numbers_if_only_some_have_names(tmp_path: Path, written: Path) -> None:
    run = Trajectory(algorithm="b", instance="other", times=[1], best=[2.0], horizon=9)
    write_ioh([run], tmp_path / "logs", suite="suite")
    [index] = (tmp_path / "logs").rglob("*.json")
    data = json.loads(index.read_text())
    del data["scenarios"][0]["runs"][0]["polarbear"]
    index.write_text(json.dumps(data))
    found = list(read_trajectories([written, tmp_path / "logs"]))
    assert {run.instance for run in found} == {"f0_d0_i1"}


def test_one_name_for_different_functions_is_refused(tmp_path: Path) -> None:
    for number in (1, 2):
        run = Trajectory(algorithm=f"a{number}", instance="mine", times=[1], best=[2.0])
        write_ioh([run], tmp_path / f"data{number}", scenarios={"mine": Scenario(number, "F", 2, 1)})
    places = [tmp_path / "data1", tmp_path / "data2"]
    with pytest.raises(SourceError, match=r"Instance 'mine' is another function in data1/a1/.* than in data2/a2/"):
        list(read_trajectories(places))
    assert len(list(read_trajectories(places, instance="function,name,dimension,instance"))) == 2


def test_instances_that_pool_dimensions_come_back(tmp_path: Path) -> None:
    runs = [
        Trajectory(algorithm="a", instance="f1_i1", times=[1], best=[2.0], dimension=dimension, seed=dimension)
        for dimension in (2, 5)
    ]
    write_ioh(runs, tmp_path / "data")
    same_runs(tmp_path / "data", runs)


def test_equal_names_in_two_races_are_one_instance_whatever_their_numbers(tmp_path: Path) -> None:
    for place, names in enumerate((["x", "y"], ["y", "x"])):
        runs = [Trajectory(algorithm=f"a{place}", instance=name, times=[1], best=[2.0]) for name in names]
        write_ioh(runs, tmp_path / str(place), suite="mine")
    found = list(read_trajectories([tmp_path / "0", tmp_path / "1"]))
    assert sorted((run.algorithm, run.instance) for run in found) == [
        ("a0", "x"),
        ("a0", "y"),
        ("a1", "x"),
        ("a1", "y"),
    ]


def test_runs_of_the_same_seed_stay_different_runs(tmp_path: Path) -> None:
    for place in range(2):
        run = Trajectory(algorithm="a", instance="x", times=[1], best=[2.0 + place], seed=5)
        write_ioh([run], tmp_path / str(place), suite="mine")
    found = list(read_trajectories([tmp_path / "0", tmp_path / "1"], algorithm="name"))
    assert sorted(run.seed for run in found) == [0, 5]


@pytest.mark.parametrize(("old", "new"), [("4 0.5000000000", "4 0.5000000001"), ("9 0.5000000000", "9 0.")])
def test_rows_that_were_cut_are_refused(written: Path, old: str, new: str) -> None:
    [path] = written.rglob("*.dat")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SourceError, match=r"the JSON has the best value 0.5 at evaluation 4, but the rows have"):
        list(read_trajectories(written))


def test_iohinspector_reads_all_runs_and_all_digits(tmp_path: Path) -> None:
    inspector: Any = pytest.importorskip("iohinspector")
    runs = [
        Trajectory(algorithm="a", instance=name, times=[5, 9], best=[123.45678901234567, tiny], horizon=20, dimension=3)
        for name, tiny in (("x", 1e-300), ("y", 1.2345678901234e-7))
    ]
    write_ioh(runs, tmp_path / "data", suite="mine")
    manager = inspector.DataManager()
    manager.add_folder(str(tmp_path / "data"))
    frame = manager.load(monotonic=False, include_meta_data=True)
    assert frame.select("run_id", "dimension", "evaluations", "raw_y").rows() == [
        (number, 3, time, value)
        for number, tiny in ((1, 1e-300), (2, 1.2345678901234e-7))
        for time, value in ((1, np.inf), (5, 123.45678901234567), (9, tiny), (20, tiny))
    ]
