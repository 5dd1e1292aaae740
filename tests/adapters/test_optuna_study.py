from __future__ import annotations

import datetime
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from polarbear_plugins import PolarBearError, Trajectory, rank
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.testing import check_adapter

optuna = pytest.importorskip("optuna")
module = pytest.importorskip("polarbear_plugins.adapters.optuna_study")
COMPLETE, PRUNED, FAIL = (getattr(optuna.trial.TrialState, name) for name in ("COMPLETE", "PRUNED", "FAIL"))
START = datetime.datetime(2026, 1, 1)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def read(source: object, **options: object) -> list[Trajectory]:
    plugins = Plugins()
    plugins.register(module, "optuna-study")
    return list(plugins.read_trajectories(source, **options))


def make(
    name: str, values: Sequence[float | None], storage: Any = None, direction: str = "minimize", **attrs: Any
) -> Any:
    """A study of which trial k ended after k + 1 seconds; None is a failed trial."""
    study = optuna.create_study(study_name=name, storage=storage, direction=direction)
    for key, value in attrs.items():
        study.set_user_attr(key, value)
    for number, value in enumerate(values):
        trial = optuna.trial.create_trial(state=FAIL if value is None else COMPLETE, value=value)
        trial.datetime_start = START + datetime.timedelta(seconds=number)
        trial.datetime_complete = START + datetime.timedelta(seconds=number + 1)
        study.add_trial(trial)
    return study


def steps(name: str, curves: Sequence[dict[int, float]], state: Any = PRUNED) -> Any:
    study = optuna.create_study(study_name=name)
    for curve in curves:
        value = 0.0 if state == COMPLETE else None
        study.add_trial(optuna.trial.create_trial(state=state, value=value, intermediate_values=curve))
    return study


@pytest.fixture
def database(tmp_path: Path) -> Path:
    for name in ("tpe-f1-0", "tpe-f2-0", "random-f1-0", "random-f2-0"):
        make(name, [3.0, 5.0, 1.0], f"sqlite:///{tmp_path / 'studies.db'}")
    return tmp_path / "studies.db"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "studies.log"
    storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(path)))
    for name in ("tpe-f1-0", "random-f1-0"):
        make(name, [3.0, 5.0, 1.0], storage)
    return path


CURVE = {"times": [1, 3], "best": [3.0, 1.0], "horizon": 3}


# Sources


def test_the_adapter_keeps_its_promises_for_a_file(database: Path, journal: Path) -> None:
    assert len(check_adapter(module, database)) == 4
    assert len(check_adapter(module, journal)) == 2


def test_the_adapter_keeps_its_promises_for_a_url(database: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(database.read_bytes()[:5000])
    missing, empty = f"sqlite:///{tmp_path}/missing.db", tmp_path / "empty.db"
    empty.touch()
    check_adapter(module, f"sqlite:///{database}", damaged=[f"sqlite:///{damaged}", missing, f"sqlite:///{empty}"])
    assert not (tmp_path / "missing.db").exists()
    assert not empty.stat().st_size


def test_all_kinds_of_sources_give_the_same_curves(database: Path, journal: Path) -> None:
    storage = optuna.storages.get_storage(f"sqlite:///{database}")
    names = ["tpe-f1-0", "tpe-f2-0", "random-f1-0", "random-f2-0"]
    studies = [optuna.load_study(study_name=name, storage=storage) for name in names]
    expected = [
        Trajectory(algorithm=algorithm, instance=instance, **CURVE)  # type: ignore[arg-type]
        for algorithm in ("tpe", "random")
        for instance in ("f1", "f2")
    ]
    for source in (f"sqlite:///{database}", database, str(database), storage, studies, tuple(studies)):
        assert read(source) == expected
    assert read(studies[0]) == expected[:1]
    assert read(journal) == [expected[0], expected[2]]


def test_other_files_are_left_to_others(tmp_path: Path) -> None:
    import sqlite3

    other = tmp_path / "race.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE runs (x)")
    connection.commit()
    connection.close()
    text = tmp_path / "notes.log"
    text.write_text('{"hello": 1}\n')
    for source in (other, text, tmp_path, "https://example.org", [], [1], ["sqlite:///x.db"], "a\0b"):
        with pytest.raises(PolarBearError, match="No plugin knows"):
            read(source)


def test_a_storage_that_does_not_exist_is_named_and_not_created(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no such storage: the file .*nothing\.db does not exist"):
        read(f"sqlite:///{tmp_path}/nothing.db")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_no_storage_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("no database at all")
    with pytest.raises(SourceError, match="not a storage of Optuna"):
        read(f"sqlite:///{path}")
    assert path.read_text() == "no database at all"


def test_a_storage_whose_writer_was_killed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "studies.db"
    make("tpe-f1-0", [3.0, 5.0, 1.0], f"sqlite:///{path}")
    killed = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size=1');"
        "c.execute('BEGIN'); c.execute('CREATE TABLE junk (x)');"
        "c.executemany('INSERT INTO junk VALUES (?)', [('x' * 3000,)] * 300); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", killed, path], check=False)
    assert path.with_name("studies.db-journal").stat().st_size
    [run] = read(f"sqlite:///{path}")
    assert run.best.tolist() == [3.0, 1.0]


def test_a_server_that_cannot_be_reached_is_a_source_error() -> None:
    with pytest.raises(SourceError, match=r"driver that is not installed|cannot be opened"):
        read("mysql+nothing://nobody@localhost:1/x")


def test_a_storage_without_studies_is_refused(tmp_path: Path) -> None:
    optuna.storages.RDBStorage(f"sqlite:///{tmp_path / 'empty.db'}")
    with pytest.raises(SourceError, match="holds no studies"):
        read(tmp_path / "empty.db")


def test_a_damaged_journal_is_refused(journal: Path) -> None:
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join([lines[0], lines[1][:20], *lines[2:]]) + "\n")
    with pytest.raises(SourceError, match=r"studies\.log cannot be read"):
        read(journal)


def test_a_study_without_finished_trials_is_named_and_can_be_left_out(database: Path) -> None:
    study = optuna.create_study(study_name="gp-f1-0", storage=f"sqlite:///{database}")
    study.ask()
    with pytest.raises(SourceError, match="'gp-f1-0' has no finished trial"):
        read(database)
    assert len(read(database, studies="tpe-*")) == 2
    with pytest.raises(InvalidInputError, match=r"'cma\*'\. There are tpe-f1-0"):
        read(database, studies="cma*")
    with pytest.raises(InvalidInputError, match="no name matches 'x'"):
        read([study], studies="x")


def test_several_objectives_are_refused() -> None:
    with pytest.raises(SourceError, match="2 objectives"):
        read(optuna.create_study(study_name="a-b-0", directions=["minimize", "maximize"]))


# Values


def test_failed_and_pruned_trials_take_their_place_without_a_value() -> None:
    study = make("a-f-0", [None, 5.0, 4.0, None])
    study.add_trial(optuna.trial.create_trial(state=PRUNED, intermediate_values={1: 0.0}))
    assert read(study) == [Trajectory(algorithm="a", instance="f", times=[2, 3], best=[5.0, 4.0], horizon=5)]


# From a sampler's constraints_func, and from the set_constraint of Optuna 5.
@pytest.mark.parametrize(
    "attributes", [{"constraints": [-1.0, 0.5]}, {"constraints:time": -1.0, "constraints:size": 0.5}]
)
def test_trials_that_break_a_constraint_have_no_value(attributes: dict[str, Any]) -> None:
    study = make("a-f-0", [5.0])
    study.add_trial(optuna.trial.create_trial(value=1.0, system_attrs=attributes))
    assert read(study)[0].best.tolist() == [5.0]


def test_the_best_value_with_constraints_is_that_of_the_study() -> None:
    study = optuna.create_study(study_name="a-f-0")
    for value, violation in [(3.0, -1.0), (1.0, 0.5), (2.0, 0.0)]:
        study.add_trial(optuna.trial.create_trial(value=value, system_attrs={"constraints": [violation]}))
    assert read(study)[0].best[-1] == study.best_value == 2.0


@pytest.mark.skipif(not hasattr(optuna.trial.FrozenTrial, "constraints"), reason="Optuna 4 has no named constraints")
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"constraints": None},  # constraints_func failed
        {"constraints": []},
        {"constraints": [0.0, -1.0]},
        {"constraints": [0.0, 1.0]},
        {"constraints:a": 1.0},
        {"constraints": [-1.0], "constraints:a": 1.0},
        {"constraints": [1.0], "constraints:a": -1.0},
        {"constraints": [1.0], "constraints:0": -1.0},  # the name of the first in the list
        {"other": [1.0], "constraint": 1.0},
    ],
)
def test_constraints_are_those_that_optuna_reads(attributes: dict[str, Any]) -> None:
    trial = optuna.trial.create_trial(value=1.0, system_attrs=attributes)
    with warnings.catch_warnings(action="ignore"):  # Optuna warns of a name that is there twice
        feasible = all(violation <= 0 for violation in trial.constraints.values())
    study = make("a-f-0", [5.0])
    study.add_trial(trial)
    assert read(study)[0].best[-1] == (1.0 if feasible else 5.0)


def test_trials_that_still_run_are_not_watched() -> None:
    study = make("a-f-0", [5.0])
    study.ask()
    assert read(study)[0].horizon == 1


def test_a_study_whose_trials_all_failed_has_found_nothing() -> None:
    assert read(make("a-f-0", [None, None])) == [Trajectory(algorithm="a", instance="f", times=[], best=[], horizon=2)]


@pytest.mark.parametrize("time", ["trials", "seconds"])
def test_values_to_be_maximised_turn_their_sign(time: str) -> None:
    [run] = read(make("a-f-0", [3.0, 5.0, 1.0], direction="maximize"), time=time)
    assert (run.times.tolist(), run.best.tolist()) == ([1, 2], [-3.0, -5.0])


def test_the_last_best_value_is_that_of_the_study() -> None:
    study = optuna.create_study(study_name="random-f-1", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=20)
    [run] = read(study)
    assert (run.best[-1], run.times[-1]) == (study.best_value, study.best_trial.number + 1)


# Time


def test_seconds_count_from_the_start_of_the_first_trial_in_the_order_of_completion() -> None:
    study = make("a-f-0", [9.0])
    for end, value in ((30.0, 1.0), (10.0, 4.0), (20.0, 5.0), (10.0, 3.0)):
        trial = optuna.trial.create_trial(value=value)
        trial.datetime_start, trial.datetime_complete = START, START + datetime.timedelta(seconds=end)
        study.add_trial(trial)
    [run] = read(study, time="seconds")
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([1, 10, 30], [9.0, 3.0, 1.0], 30)


def test_steps_add_up_over_trials() -> None:
    study = steps("a-f-0", [{1: 9.0, 2: 8.0, 4: 7.0}, {1: 8.5, 2: 6.0}, {}, {1: 5.0}])
    [run] = read(study, time="step")
    assert (run.times.tolist(), run.best.tolist()) == ([1, 2, 4, 6, 7], [9.0, 8.0, 7.0, 6.0, 5.0])


def test_steps_that_count_from_0_are_one_more_unit() -> None:
    [run] = read(steps("a-f-0", [{0: 9.0, 1: 8.0}, {0: 7.0}]), time="step")
    assert run.times.tolist() == [1, 2, 3]


def test_whether_steps_count_from_0_is_one_answer_for_all_studies() -> None:
    runs = read([steps("a-f-0", [{0: 9.0, 9: 8.0}]), steps("b-f-0", [{9: 7.0}])], time="step")
    assert [run.times[-1] for run in runs] == [10, 10]


def test_reports_that_are_not_numbers_are_failed_evaluations() -> None:
    [run] = read(steps("a-f-0", [{1: float("nan"), 2: 8.0}]), time="step")
    assert run.times.tolist() == [2]


def test_a_study_without_steps_says_what_to_do() -> None:
    with pytest.raises(SourceError, match=r"'a-f-0' reports no steps\. Use time"):
        read(make("a-f-0", [1.0]), time="step")
    with pytest.raises(SourceError, match="step -1 in trial 0"):
        read(steps("a-f-0", [{-1: 1.0}]), time="step")


# Names


def label(run: Trajectory) -> tuple[str, str, int]:
    return run.algorithm, run.instance, run.seed


def test_a_pattern_reads_the_names() -> None:
    [run] = read(make("7 f1 by cma-es", [1.0]), pattern="{seed} {instance} by {algorithm}")
    assert label(run) == ("cma-es", "f1", 7)


def test_attributes_come_before_names() -> None:
    assert label(read(make("x-y-1", [1.0], algorithm="tpe", instance=3, seed=2))[0]) == ("tpe", "3", 2)
    assert label(read(make("x-y-1", [1.0], algorithm="tpe"))[0]) == ("x", "y", 1)


@pytest.mark.parametrize(
    "attributes", [{"algorithm": "sampler", "seed": "run"}, "algorithm=sampler,seed=run", "algorithm=sampler, seed=run"]
)
def test_attributes_of_other_names(attributes: object) -> None:
    study = make("whatever", [1.0], sampler="tpe", instance="f1", run="4")
    assert label(read(study, attributes=attributes)[0]) == ("tpe", "f1", 4)


def test_a_function_of_the_study_tells_them() -> None:
    studies = [make("whatever", [1.0]), make("another", [1.0])]
    runs = read(studies, label=lambda study: (study.study_name, "f1"))
    assert [label(run) for run in runs] == [("whatever", "f1", 0), ("another", "f1", 0)]


def test_two_studies_with_the_same_label_are_named() -> None:
    studies = [make("one", [1.0]), make("two", [1.0])]
    with pytest.raises(SourceError, match=r"'one' and 'two' are both 'a' on 'f1' with the seed 0"):
        read(studies, label=lambda _: ("a", "f1"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"'whatever': the name does not match \{algorithm\}-\{instance\}-\{seed\} or .*pattern="),
        ({"pattern": "{algorithm}/{instance}"}, "does not match {algorithm}/{instance}"),
        ({"attributes": {"algorithm": "sampler"}}, "no user attribute 'sampler', which should hold the algorithm"),
        ({"label": lambda _: ("a", None)}, "the instance is missing"),
    ],
)
def test_studies_without_algorithm_and_instance_are_source_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read(make("whatever", [1.0]), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"time": "epochs"}, 'time: expected "trials", "seconds" or "step", got'),
        ({"pattern": "{a}"}, "pattern"),
        ({"attributes": "sampler"}, "attributes: expected algorithm=NAME"),
        ({"attributes": {"name": "x"}}, "attributes"),
        ({"label": "a"}, "label: expected a function"),
        ({"label": lambda _: "ab"}, "label: expected"),
        ({"studies": 3}, "studies"),
        ({"pattern": "{algorithm}-{instance}", "attributes": "algorithm=a"}, "pattern and attributes both"),
        ({"colour": 1}, "no option 'colour'. It takes time, pattern"),
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read(make("a-f-0", [1.0]), **options)


def test_samplers_on_problems_in_one_file_become_a_ranking_table(tmp_path: Path) -> None:
    storage = optuna.storages.get_storage(f"sqlite:///{tmp_path / 'studies.db'}")
    for place, sampler in enumerate(("tpe", "random", "qmc")):
        for problem in range(4):
            make(f"{sampler}-p{problem}-0", [5.0, 3.0 - place], storage)
    copy = shutil.copy(tmp_path / "studies.db", tmp_path / "copy.db")
    table = rank(read(f"sqlite:///{copy}"), timepoints=[1, 2])
    assert (len(table), table.algorithms) == (4, ("qmc", "random", "tpe"))
    assert table.ranks[:, 1].tolist() == [[1, 2, 3]] * 4
