"""What adapters and suites call the group of an instance."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from polarbear_plugins import Trajectory, load_plugins, rank, read_trajectories
from polarbear_plugins.adapters.ioh_logger import RunRecorder
from polarbear_plugins.adapters.yahpo.suites import identity_of
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.integrations.ioh_writer import IOHWriter, Scenario
from polarbear_plugins.trajectories.logs.groups import _FUNCTIONS, Function

# IOHprofiler data


def write_logs(folder: Path, *scenarios: Scenario, suite: str = "unknown_suite") -> Path:
    """Write a run of two algorithms on each scenario."""
    named = {f"f{each.function}_d{each.dimension}_i{each.instance}": each for each in scenarios}
    with IOHWriter(folder, scenarios=named, suite=suite) as writer:
        for algorithm in ("a", "b"):
            for instance in named:
                writer.add(Trajectory(algorithm=algorithm, instance=instance, times=[1, 3], best=[2, 1], horizon=5))
    return folder


def groups(runs: Sequence[Trajectory]) -> dict[str, str | None]:
    return {run.instance: run.group for run in runs}


def read(source: object, **options: object) -> list[Trajectory]:
    return list(read_trajectories(source, **options))


SPHERE, ELLIPSOID = Scenario(1, "Sphere", 2, 1), Scenario(2, "Ellipsoid", 3, 1)


def test_instances_of_logged_data_are_grouped_by_function(tmp_path: Path) -> None:
    runs = read(write_logs(tmp_path / "data", SPHERE, Scenario(1, "Sphere", 2, 7), ELLIPSOID))
    assert groups(runs) == {"f1_d2_i1": "f1 Sphere", "f1_d2_i7": "f1 Sphere", "f2_d3_i1": "f2 Ellipsoid"}
    assert rank(runs, [5]).fixed_groups


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("function", {"f1_d2_i1": "f1 Sphere", "f2_d3_i1": "f2 Ellipsoid"}),
        ("dimension", {"f1_d2_i1": "d2", "f2_d3_i1": "d3"}),
        ("none", {"f1_d2_i1": None, "f2_d3_i1": None}),
    ],
)
def test_users_choose_what_the_groups_of_logged_data_are(
    tmp_path: Path, by: str, expected: dict[str, str | None]
) -> None:
    runs = read(write_logs(tmp_path / "data", SPHERE, ELLIPSOID), group=by)
    assert groups(runs) == expected
    assert {run.fixed_group for run in runs} == {by == "function"}


def test_another_way_to_group_logged_data_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match='group: expected "function", "dimension" or "none", got \'suite\''):
        read(write_logs(tmp_path / "data", SPHERE), group="suite")


@pytest.mark.parametrize(
    ("suite", "number", "name", "fixed"),
    [
        ("BBOB", 1, "Sphere", True),
        ("SBOX", 24, "LunacekBiRastrigin", True),
        ("PBO", 25, "NKLandscapes", True),
        ("sbox", 3, "f3", True),
        ("unknown_suite", 1, "Sphere", True),
        ("Integer", 1, "OneMax", True),
        ("unknown_suite", 2, "Sphere", False),
        ("unknown_suite", 1121, "mine", False),
        ("mine", 1, "Sphere", False),
    ],
)
def test_the_functions_of_a_known_suite_are_all_there_are(suite: str, number: int, name: str, fixed: bool) -> None:
    assert Function(suite, number, name, 5).is_fixed == fixed


def test_the_functions_are_those_of_ioh() -> None:
    ioh = pytest.importorskip("ioh")
    suites = (ioh.ProblemClass.BBOB, ioh.ProblemClass.SBOX, ioh.ProblemClass.PBO)
    assert {pair for suite in suites for pair in suite.problems.items()} == _FUNCTIONS


def test_functions_of_known_and_other_suites_are_a_sample(tmp_path: Path) -> None:
    runs = read(write_logs(tmp_path / "data", SPHERE, Scenario(99, "mine", 2, 1)))
    assert groups(runs) == {"f1_d2_i1": "f1 Sphere", "f99_d2_i1": "f99 mine"}
    assert not any(run.fixed_group for run in runs)


@pytest.mark.parametrize(
    ("suite", "number", "name"),
    [
        ("unknown_suite", 0, "ManyAffine"),
        ("MA-BBOB", 0, "MA-BBOB"),
        ("ma_bbob", 7, "f7"),
        ("gp-bbob", 0, "gp-bbob"),
        ("my suite", 0, "my-suite"),
    ],
)
def test_instances_that_are_functions_of_their_own_have_no_group(suite: str, number: int, name: str) -> None:
    assert Function(suite, number, name, 5).group("function") is None
    assert Function(suite, number, name, 5).group("dimension") == "d5"


def test_an_instance_without_a_function_leaves_all_without_groups(tmp_path: Path) -> None:
    runs = read(write_logs(tmp_path / "data", SPHERE, Scenario(0, "ManyAffine", 2, 1)))
    assert set(groups(runs).values()) == {None}
    assert rank(runs, [5]).groups == ()


def test_instances_over_several_functions_have_groups_only_if_asked_for(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "data", SPHERE, Scenario(2, "Ellipsoid", 2, 1))
    assert groups(read(folder, instance="dimension,instance")) == {"d2_i1": None}
    with pytest.raises(InvalidInputError, match="group=function: instance 'd2_i1' belongs to 'f1 Sphere' and to 'f2 "):
        read(folder, instance="dimension,instance", group="function")
    assert groups(read(folder, instance="dimension,instance", group="dimension")) == {"d2_i1": "d2"}


@pytest.mark.parametrize("name", ["", "f1", "F1", "\ud800", "a\nb"])
def test_a_function_whose_name_says_nothing_is_called_by_its_number(name: str) -> None:
    assert Function("unknown_suite", 1, name, 5).group("function") == "f1"


def test_data_frames_of_iohinspector_have_the_same_groups() -> None:
    columns = ["algorithm_name", "suite", "function_id", "function_name", "dimension", "instance", "evaluations"]
    rows = [
        (name, "BBOB", function, title, 2, 1, time)
        for name in "ab"
        for function, title in ((1, "Sphere"), (2, "Ellipsoid"))
        for time in (1, 2)
    ]
    frame = pd.DataFrame(rows, columns=columns).assign(raw_y=1.0)
    runs = read(frame)
    assert groups(runs) == {"f1_d2_i1": "f1 Sphere", "f2_d2_i1": "f2 Ellipsoid"}
    assert all(run.fixed_group for run in runs)
    drawn = frame.assign(suite="unknown_suite", function_id=0, function_name="ManyAffine").drop_duplicates()
    chosen = read(pd.concat([frame, drawn]), functions="1-2")
    assert [(run.group, run.fixed_group) for run in chosen] == [(run.group, run.fixed_group) for run in runs]
    assert groups(read(frame, group="dimension")) == {"f1_d2_i1": "d2", "f2_d2_i1": "d2"}
    assert groups(read(frame.drop(columns="function_name"))) == {"f1_d2_i1": "f1", "f2_d2_i1": "f2"}
    assert set(groups(read(frame.assign(suite="MA-BBOB"))).values()) == {None}


def test_a_name_of_a_suite_in_damaged_json_is_no_matter(tmp_path: Path) -> None:
    folder = write_logs(tmp_path / "data", SPHERE)
    for path in folder.rglob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "suite": [1], "function_name": {"a": 1}}))
    assert all(run.group is not None for run in read(folder))


# Loggers


def meta(**more: Any) -> Any:
    direction = SimpleNamespace(name="MIN")
    known = {"problem_id": 1, "name": "Sphere", "n_variables": 5, "instance": 1, "optimization_type": direction}
    return SimpleNamespace(**{**known, **more})


def logged(about: Any, **options: Any) -> Trajectory:
    recorder = RunRecorder("csa", [1], **options)
    recorder.begin(about)
    recorder.times.append(1)
    recorder.values.append(2.0)
    found = recorder.finish()
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("options", "group"),
    [
        ({}, "f1 Sphere"),
        ({"group": "dimension"}, "d5"),
        ({"group": "none"}, None),
        ({"instance": lambda about: f"i{about.instance}"}, None),
        ({"instance": lambda about: about.name, "group": "function"}, "f1 Sphere"),
    ],
)
def test_a_logger_names_the_group(options: dict[str, Any], group: str | None) -> None:
    assert logged(meta(), **options).group == group


def test_a_logger_has_no_group_for_functions_that_are_drawn() -> None:
    assert logged(meta(problem_id=0, name="ManyAffine")).group is None


def test_a_logger_refuses_other_groups() -> None:
    with pytest.raises(InvalidInputError, match='group: expected "function", "dimension" or "none", got \'name\''):
        RunRecorder("csa", [1], group="name")  # type: ignore[arg-type]


@pytest.mark.parametrize(("make", "fixed"), [("get_problem", True), ("wrap_problem", False)])
def test_a_logger_knows_the_functions_of_ioh(make: str, fixed: bool) -> None:
    ioh = pytest.importorskip("ioh")
    if make == "get_problem":
        problem = ioh.get_problem(1, 1, 5)
    else:
        problem = ioh.wrap_problem(sum, name="polarbear_group", dimension=5, lb=-5, ub=5)
    found = logged(problem.meta_data)
    assert found.group == f"f{problem.meta_data.problem_id} {problem.meta_data.name}"
    assert found.fixed_group == fixed


# Suites


@pytest.mark.parametrize("name", ["bbob", "sbox"])
def test_the_groups_of_bbob_are_its_functions_as_ioh_calls_them(name: str) -> None:
    ioh = pytest.importorskip("ioh")
    functions = ioh.ProblemClass[name.upper()].problems
    identities = list(load_plugins().suite(name).identities(0))
    assert {(each.parameters["function"], each.group, each.fixed_group) for each in identities} == {
        (number, f"f{number} {title}", True) for number, title in functions.items()
    }


@pytest.mark.parametrize(("name", "options"), [("ma-bbob", {"dimension": 2}), ("gp-bbob", {"dimension": 2})])
def test_random_functions_have_no_group(name: str, options: dict[str, Any]) -> None:
    pytest.importorskip("ioh")
    assert next(load_plugins().suite(name, **options).identities(0)).group is None


def test_the_group_of_a_yahpo_instance_is_its_scenario_one_of_many() -> None:
    identity = identity_of("lcbench", "3945", ("val_accuracy",))
    assert (identity.name, identity.group, identity.fixed_group) == ("lcbench-3945", "lcbench", False)


# Bayesmark


def test_the_group_of_a_bayesmark_function_is_its_dataset_one_of_many(write_study: Callable[..., Path]) -> None:
    for function in ("DT_wine_nll", "kNN_wine_acc", "DT_iris_nll"):
        path = write_study("RandomSearch", function, [[3.0], [2.0]])
    runs = read(path.parents[1])
    assert groups(runs) == {"DT_wine_nll": "wine", "kNN_wine_acc": "wine", "DT_iris_nll": "iris"}
    assert not any(run.fixed_group for run in runs)


# Optuna


def study(name: str, **attributes: Any) -> Any:
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    made = optuna.create_study(study_name=name)
    for key, value in attributes.items():
        made.set_user_attr(key, value)
    made.add_trial(optuna.trial.create_trial(value=1.0))
    return made


@pytest.mark.parametrize(
    ("options", "group"),
    [
        ({}, None),
        ({"group": "space"}, "svm"),
        ({"pattern": "{algorithm}-{instance}-{group}"}, "3"),
        ({"pattern": "{algorithm}-{instance}-{group}", "group": "space"}, "svm"),
        ({"pattern": "(?P<algorithm>.*)-(?P<instance>(?P<group>[a-z]+).*)-(?P<seed>.*)"}, "f"),
        ({"attributes": "algorithm=space,instance=space,group=number"}, "7"),
        ({"label": lambda _: ("tpe", "f1", 3, "mine")}, "mine"),
        ({"label": lambda _: ("tpe", "f1", 3)}, None),
    ],
)
def test_studies_name_the_group_as_they_name_the_rest(options: dict[str, Any], group: str | None) -> None:
    [run] = read(study("tpe-f1-3", space="svm", number=7), **options)
    assert run.group == group
    assert not run.fixed_group


def test_a_user_attribute_called_group_comes_with_those_called_algorithm_and_instance() -> None:
    assert read(study("x", algorithm="tpe", instance="f1", group="g"))[0].group == "g"
    assert read(study("tpe-f1", group="g"))[0].group is None


def test_studies_without_the_attribute_of_the_group_are_named() -> None:
    with pytest.raises(SourceError, match=r"The study 'tpe-f1-3' has no user attribute 'space', .* hold the group"):
        read(study("tpe-f1-3"), group="space")
    with pytest.raises(SourceError, match="The study 'tpe-f1-3': group: expected a name"):
        read(study("tpe-f1-3", space=[1]), group="space")
    with pytest.raises(InvalidInputError, match="group: expected the name of a user attribute"):
        read(study("tpe-f1-3"), group="")


def test_an_instance_in_two_groups_is_refused_with_both_studies() -> None:
    studies = [study("tpe-f1-0", space="svm"), study("tpe-f1-1", space="knn")]
    with pytest.raises(SourceError, match="'f1' has the group 'svm' in the study 'tpe-f1-0' and 'knn' in 'tpe-f1-1'"):
        read(studies, group="space")


def test_a_name_with_a_group_that_can_be_read_in_two_ways_is_told_in_full() -> None:
    with pytest.raises(SourceError, match="instance 'f1', group 'a-b' or algorithm 'tpe', instance 'f1-a', group 'b'"):
        read(study("tpe/f1-a-b"), pattern="{algorithm}/{instance}-{group}")
