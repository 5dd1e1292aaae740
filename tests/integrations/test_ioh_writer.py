from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError, RunWarning
from polarbear_plugins.integrations.ioh_writer import IOHWriter, Scenario, scenario_in_name, scenario_of, write_ioh
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.trajectories.trajectory import UNRANKED, Trajectory


def trajectory(
    algorithm: str = "csa",
    instance: str = "a",
    times: list[float] | None = None,
    best: list[float] | None = None,
    horizon: float = 20,
) -> Trajectory:
    return Trajectory(
        algorithm=algorithm,
        instance=instance,
        times=[1, 5] if times is None else times,
        best=[3.0, 0.5] if best is None else best,
        horizon=horizon,
    )


def read(folder: Path) -> list[dict[str, Any]]:
    """The runs in a folder, read with nothing but the format: JSON, and blocks of rows under a header."""
    found = []
    for path in sorted(folder.rglob("*.json")):
        described = json.loads(path.read_text())
        for scenario in described["scenarios"]:
            blocks = (path.parent / scenario["path"]).read_text().split("evaluations raw_y\n")
            assert blocks[0] == ""
            for run, block in zip(scenario["runs"], blocks[1:], strict=True):
                rows = [line.split(" ") for line in block.splitlines()]
                found.append(
                    {
                        "algorithm": described["algorithm"]["name"],
                        "function": described["function_id"],
                        "dimension": scenario["dimension"],
                        "instance": run["instance"],
                        "evals": run["evals"],
                        "best": run["best"]["y"],
                        "best_evals": run["best"]["evals"],
                        "rows": [(int(evaluations), float(value)) for evaluations, value in rows],
                    }
                )
    return found


def test_the_files_are_those_that_ioh_itself_writes_for_the_same_runs(tmp_path: Path) -> None:
    ioh = pytest.importorskip("ioh")
    logger = ioh.logger.Analyzer(root=str(tmp_path), folder_name="theirs", algorithm_name="csa", algorithm_info="-")
    scenarios, runs, rng = {}, [], np.random.default_rng(0)
    for function, dimension, instance in [(1, 2, 1), (1, 2, 2), (1, 3, 1), (5, 2, 7)]:
        problem = ioh.get_problem(function, instance, dimension, ioh.ProblemClass.BBOB)
        optimum = problem.optimum.y
        points = rng.uniform(-5, 5, (12, dimension))
        order = np.argsort([-problem(list(point)) for point in points])
        problem.reset()
        problem.attach_logger(logger)
        # Better and better, so that the last value is the best one, as in a trajectory.
        values = [problem(points[place].tolist()) - optimum for place in order]
        problem.detach_logger()
        name = f"{function}-{dimension}-{instance}"
        scenarios[name] = Scenario(function, problem.meta_data.name, dimension, instance)
        runs.append(Trajectory.from_evaluations(values, algorithm="csa", instance=name))
    logger.close()
    write_ioh(runs, tmp_path / "ours", scenarios=scenarios, suite="unknown_suite")
    ours, theirs = tmp_path / "ours" / "csa", tmp_path / "theirs"

    def files(folder: Path) -> list[str]:
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    assert files(ours) == files(theirs)
    assert len(files(ours)) == 5
    assert plain(ours) == plain(theirs)


def plain(folder: Path) -> dict[str, object]:
    """Texts of the files, without what a trajectory does not know: the point itself, and the last digits."""
    texts: dict[str, object] = {}
    for path in folder.rglob("*"):
        if path.suffix == ".json":
            text = re.sub(r'"x": \[.*?\]', '"x": []', path.read_text())
            text = re.sub(r'"y": ([0-9.e+-]+)', lambda found: f'"y": {float(found[1]):.9g}', text)
            text = re.sub(r', "polarbear": {.*?}', "", text)
            texts[path.name] = re.sub(r'"info": ".*?"', "", text)
        elif path.suffix == ".dat":
            rows = [line.split() for line in path.read_text().splitlines()]
            texts[path.name] = [(row[0], row[1] if row[1] == "raw_y" else f"{float(row[1]):.9g}") for row in rows]
    return texts


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["csa", "CSA", "ssa=CSA active=true", "a/b", "a b"]),
            st.sampled_from(["x", "y", "z"]),
            st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=8),
            st.integers(0, 5),
        ),
        max_size=8,
    )
)
def test_what_was_written_can_be_read(tmp_path_factory: pytest.TempPathFactory, runs: list[Any]) -> None:
    folder = tmp_path_factory.mktemp("data") / "ioh"
    trajectories = [
        Trajectory.from_evaluations(values, algorithm=algorithm, instance=instance, horizon=len(values) + more)
        for algorithm, instance, values, more in runs
    ]
    write_ioh(trajectories, folder, scenarios={"x": Scenario(3, "three", 5, 8)}, dimension=2)
    found = read(folder) if folder.exists() else []

    def key(run: dict[str, Any]) -> tuple[Any, ...]:
        return run["algorithm"], run["function"], run["evals"], run["best"], run["best_evals"], run["rows"][0]

    expected = []
    for run in trajectories:
        rows = [*zip(run.times.astype(int).tolist(), run.best.tolist(), strict=True)]
        if run.horizon > run.times[-1]:
            rows.append((int(run.horizon), run.best[-1]))
        expected.append(
            {
                "algorithm": run.algorithm,
                "function": 3 if run.instance == "x" else 0,
                "evals": int(run.horizon),
                "best": run.best[-1],
                "best_evals": int(run.times[-1]),
                "rows": rows,
            }
        )
    assert len(found) == len(expected)
    left = sorted(found, key=key)
    for run in expected:
        place = next(
            place for place, other in enumerate(left) if all(other[what] == value for what, value in run.items())
        )
        del left[place]


def test_values_have_ten_decimals_or_all_their_digits(tmp_path: Path) -> None:
    best = [1e300, 123456.78901234567, 123456.789, 1.5, 0.25, 1.2345678901234e-7, 3e-300, 0.0, -2.5]
    with IOHWriter(tmp_path / "data") as writer:
        data = writer.add(trajectory(times=list(range(1, 10)), best=best, horizon=9))
    assert data is not None
    assert [line.split()[1] for line in data.read_text().splitlines()[1:]] == [
        "1e+300",
        "123456.78901234567",
        "123456.7890000000",
        "1.5000000000",
        "0.2500000000",
        "1.2345678901234e-07",
        "3e-300",
        "0.0000000000",
        "-2.5000000000",
    ]


def test_the_last_row_tells_how_long_the_run_was_watched(tmp_path: Path) -> None:
    write_ioh([trajectory(horizon=20.7), trajectory(instance="b", horizon=5)], tmp_path / "data")
    first, second = read(tmp_path / "data")
    assert (first["rows"], first["evals"]) == ([(1, 3.0), (5, 0.5), (20, 0.5)], 20)
    assert (second["rows"], second["evals"]) == ([(1, 3.0), (5, 0.5)], 5)


def test_instances_without_a_scenario_are_numbered_and_listed(tmp_path: Path) -> None:
    runs = [trajectory(name, instance) for name in ("csa", "tpa") for instance in ("seed,1", "known", "seed 2")]
    scenarios = {"known": Scenario(4, "Rastrigin", 3, 9)}
    write_ioh(runs, tmp_path / "data", scenarios=scenarios, suite="MA BBOB", dimension=5)
    found = {(run["algorithm"], run["function"], run["dimension"], run["instance"]) for run in read(tmp_path / "data")}
    assert found == {(name, *rest) for name in ("csa", "tpa") for rest in ((0, 5, 1), (4, 3, 9), (0, 5, 2))}
    assert (tmp_path / "data" / "instances.csv").read_text().splitlines() == [
        "instance,function,function_name,dimension,number",
        '"seed,1",0,MA-BBOB,5,1',
        "known,4,Rastrigin,3,9",
        "seed 2,0,MA-BBOB,5,2",
    ]
    assert json.loads((tmp_path / "data" / "csa" / "IOHprofiler_f0_MA-BBOB.json").read_text())["suite"] == "MA BBOB"


def test_algorithms_have_folders_of_their_own_whatever_their_names(tmp_path: Path) -> None:
    names = ["csa", "CSA", "a/b", "a b", "../..", "ssa=CSA active=true", "Ü"]
    write_ioh([trajectory(name) for name in names], tmp_path / "data")
    folders = {path.name for path in (tmp_path / "data").iterdir() if path.is_dir()}
    assert folders == {"csa", "CSA-2", "a-b", "a-b-2", "algorithm", "ssa=CSA-active=true", "Ü"}
    assert sorted(run["algorithm"] for run in read(tmp_path / "data")) == sorted(names)


def test_the_data_of_a_race_that_breaks_are_complete_files(tmp_path: Path) -> None:
    def broken() -> None:
        with IOHWriter(tmp_path / "data") as writer:
            writer.add(trajectory())
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert len(read(tmp_path / "data")) == 1


@pytest.mark.parametrize("best", [[], [float("inf")], [1.0, float("-inf")]])
def test_runs_that_found_nothing_are_left_out_with_a_warning(tmp_path: Path, best: list[float]) -> None:
    empty = trajectory(instance="b", times=list(range(1, len(best) + 1)), best=best)
    with pytest.warns(RunWarning, match="Left out 'csa' on 'b'"):
        write_ioh([trajectory(), empty], tmp_path / "data")
    assert len(read(tmp_path / "data")) == 1


def test_rows_begin_with_evaluation_1_by_which_iohinspector_tells_runs_apart(tmp_path: Path) -> None:
    for times, best in (([1, 3], [float("inf"), 2.0]), ([3], [2.0])):
        folder = tmp_path / str(len(times))
        write_ioh([trajectory(times=times, best=best, horizon=3)], folder, maximize=len(times) == 1)
        sign = -1 if len(times) == 1 else 1
        assert read(folder)[0]["rows"] == [(1, sign * float("inf")), (3, sign * 2.0)]


def test_values_that_increase_are_refused(tmp_path: Path) -> None:
    run = Trajectory(algorithm="a", instance="b", times=[1, 4], best=[1.0, 2.0], incumbent=True)
    with pytest.raises(InvalidInputError, match=r"'a' on 'b': .* increases at time 4, .* as a table"):
        write_ioh([run], tmp_path / "data")


def test_a_dimension_that_contradicts_the_scenario_is_refused(tmp_path: Path) -> None:
    run = trajectory().described(dimension=3, end="unknown")
    with pytest.raises(InvalidInputError, match="its scenario has dimension 2, the run 3"):
        write_ioh([run], tmp_path / "data", scenarios={"a": Scenario(1, "Sphere", 2, 1)})


def test_the_dimension_of_a_run_counts_before_that_of_all(tmp_path: Path) -> None:
    runs = [trajectory().described(dimension=3, end="unknown"), trajectory(instance="b")]
    write_ioh(runs, tmp_path / "data", dimension=5)
    assert [run["dimension"] for run in read(tmp_path / "data")] == [3, 5]


def test_a_function_is_not_maximised_on_some_instances_only(tmp_path: Path) -> None:
    scenarios = {"a": Scenario(1, "Sphere", 2, 1), "b": Scenario(1, "Sphere", 2, 2, maximize=True)}
    with pytest.raises(InvalidInputError, match="'csa' on 'b': function f1_Sphere is maximised on some"):
        write_ioh([trajectory(), trajectory(instance="b")], tmp_path / "data", scenarios=scenarios)


@pytest.mark.parametrize("times", [[0.5, 2.0], [0.0, 1.0]])
def test_runs_over_seconds_are_refused(tmp_path: Path, times: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="IOHprofiler counts evaluations"):
        write_ioh([trajectory(times=times)], tmp_path / "data")


def test_unranked_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"IOHprofiler data: .* is unranked at some time"):
        write_ioh([trajectory(best=[3.0, UNRANKED])], tmp_path / "data")


def test_a_folder_with_something_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for folder in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(InvalidInputError, match="is not an empty folder"):
            write_ioh([trajectory()], folder)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scenario(-1, "f", 2, 1), "function of a scenario"),
        (lambda: Scenario(1, "f", 2.5, 1), "dimension of a scenario"),  # type: ignore[arg-type]
        (lambda: Scenario(1, "../f", 2, 1), "function_name of a scenario"),
        (lambda: Scenario(1, "", 2, 1), "function_name of a scenario"),
    ],
)
def test_scenarios_without_meaning_are_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_the_identity_of_a_problem_may_tell_its_scenario() -> None:
    parameters = {"function": 1, "instance": 3, "dimension": 5, "function_name": "Sphere"}
    assert scenario_of(Identity("a", parameters)) == Scenario(1, "Sphere", 5, 3)
    assert scenario_of(Identity("a", {"function": 1, "instance": 3})) is None
    assert scenario_of(Identity("a", {**parameters, "instance": True})) is None
    assert scenario_of(Identity("a", {**parameters, "maximize": True})) == Scenario(1, "Sphere", 5, 3, maximize=True)


@pytest.mark.parametrize(
    ("group", "name"),
    [("f1 Sphere", "Sphere"), ("f1 my function!", "my-function"), ("f1", "f1"), ("f2 Sphere", "f1"), (None, "f1")],
)
def test_a_group_tells_the_name_of_its_function(group: str | None, name: str) -> None:
    identity = Identity("a", {"function": 1, "instance": 3, "dimension": 5}, group=group)
    assert scenario_of(identity) == Scenario(1, name, 5, 3)


@pytest.mark.parametrize(
    ("instance", "group", "dimension", "expected"),
    [
        ("f1_d5_i2", "f1 Sphere", 5, Scenario(1, "Sphere", 5, 2)),
        ("f1-i2-d5", "f1 Sphere", 5, Scenario(1, "Sphere", 5, 2)),
        ("f1_d5_i2", None, 5, Scenario(1, "f1", 5, 2)),
        ("f1_d5_i2", "f1 Sphere", None, None),
        ("f1_d5_i2", "f1 Sphere", 2, None),
        ("f1_d5_i2", "f2 Ellipsoid", 5, None),
        ("f0_d5_i2", None, 5, None),
        ("f1_d5", "f1 Sphere", 5, None),
    ],
)
def test_the_name_of_an_instance_may_tell_its_scenario(
    instance: str, group: str | None, dimension: int | None, expected: Scenario | None
) -> None:
    run = trajectory(instance=instance).in_group(group).described(dimension=dimension, end="unknown")
    assert scenario_in_name(run) == expected
