from __future__ import annotations

import json
import shutil
import tracemalloc
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from polarbear_plugins import Trajectory, rank
from polarbear_plugins.adapters import ioh_logs, table
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError, UnknownNameError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.testing import check_adapter
from polarbear_plugins.trajectories.trajectory import best_at

PLUGINS = Plugins()
PLUGINS.register(ioh_logs, "ioh-logs")
PLUGINS.register(table, "table")

Runs = Sequence[tuple[int, Sequence[float]]]


def read(source: object, **options: object) -> list[Trajectory]:
    return list(PLUGINS.read_trajectories(source, **options))


def log(
    folder: Path,
    runs: Runs,
    *,
    algorithm: str = "csa",
    function: int = 1,
    name: str = "Sphere",
    dimension: int = 2,
    maximization: object = False,
) -> Path:
    """Write runs, each an instance and the values of its evaluations, as ioh's Analyzer does on improvement."""
    path = folder / f"IOHprofiler_f{function}_{name}.json"
    rows = f"data_f{function}_{name}/IOHprofiler_f{function}_DIM{dimension}.dat"
    scenario = {"dimension": dimension, "path": rows, "runs": [described(run, maximization) for run in runs]}
    (folder / rows).parent.mkdir(parents=True, exist_ok=True)
    (folder / rows).write_text("".join(printed(values, maximization) for _, values in runs))
    scenarios = json.loads(path.read_text())["scenarios"] if path.exists() else []
    index = {
        "version": "0.3.22",
        "suite": "unknown_suite",
        "function_id": function,
        "function_name": name,
        "maximization": maximization,
        "algorithm": {"name": algorithm, "info": "algorithm_info"},
        "attributes": ["evaluations", "raw_y"],
        "scenarios": [*scenarios, scenario],
    }
    path.write_text(json.dumps(index))
    return folder


def improvements(values: Sequence[float], maximization: object) -> list[int]:
    sign = -1 if str(maximization).lower() in ("true", "1", "max") else 1
    best, places = np.inf, []
    for place, value in enumerate(values):
        if sign * value < best:
            best = sign * value
            places.append(place)
    return places


def described(run: tuple[int, Sequence[float]], maximization: object = False) -> dict[str, Any]:
    instance, values = run
    best = improvements(values, maximization)[-1]
    return {"instance": instance, "evals": len(values), "best": {"evals": best + 1, "y": values[best], "x": [0, 0]}}


def printed(values: Sequence[float], maximization: object = False) -> str:
    places = sorted({*improvements(values, maximization), len(values) - 1})
    return "evaluations raw_y\n" + "".join(f"{place + 1} {values[place]:.10f}\n" for place in places)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def pack(folder: Path, path: Path, inside: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, inside + file.relative_to(folder).as_posix())
    return path


def names(runs: Iterable[Trajectory]) -> list[tuple[str, str, int]]:
    return sorted((run.algorithm, run.instance, run.seed) for run in runs)


INDEX = "IOHprofiler_f1_Sphere.json"
ROWS = "data_f1_Sphere/IOHprofiler_f1_DIM2.dat"
TWO_RUNS: Runs = [(1, [5.0, 7.0, 2.5, 4.0]), (2, [3.0, 3.0])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two runs of csa."""
    return log(tmp_path / "data", TWO_RUNS)


# What is read


def test_a_folder_gives_the_best_values_so_far_of_every_run(folder: Path) -> None:
    assert [run.in_group(None) for run in read(folder)] == [
        Trajectory(algorithm="csa", instance="f1_d2_i1", times=[1, 3], best=[5.0, 2.5], horizon=4, dimension=2),
        Trajectory(algorithm="csa", instance="f1_d2_i2", times=[1], best=[3.0], horizon=2, dimension=2),
    ]
    assert read(str(folder)) == read(folder) == read(folder / INDEX)


def test_the_adapter_keeps_its_promises(folder: Path, tmp_path: Path) -> None:
    broken = log(tmp_path / "broken", TWO_RUNS)
    (broken / ROWS).unlink()
    (tmp_path / "empty").mkdir()
    check_adapter(ioh_logs, folder, damaged=[broken, tmp_path / "empty"])
    check_adapter(ioh_logs, pack(folder, tmp_path / "data.zip"))
    check_adapter(ioh_logs, [folder], {"instance": "function,instance", "dimensions": "1-5"})


VALUES = st.lists(st.integers(-5000, 5000).map(lambda k: k / 1024), min_size=1, max_size=12)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 3), VALUES), min_size=1, max_size=5), st.booleans())
def test_reading_equals_the_running_minimum_of_the_evaluations(
    tmp_path_factory: pytest.TempPathFactory, runs: Runs, maximize: bool
) -> None:
    folder = tmp_path_factory.mktemp("law")
    found = read(log(folder, runs, maximization=maximize))
    seeds: dict[int, int] = {}
    for run, (instance, values) in zip(found, runs, strict=True):
        seeds[instance] = seeds.get(instance, -1) + 1
        assert run.in_group(None) == Trajectory.from_evaluations(
            values, algorithm="csa", instance=f"f1_d2_i{instance}", seed=seeds[instance], maximize=maximize, dimension=2
        )


@pytest.mark.parametrize("spelling", [True, "true", "True", "TRUE", "T", 1, "1", "max", "Maximization"])
def test_maximised_values_come_with_the_sign_turned(tmp_path: Path, spelling: object) -> None:
    log(tmp_path, [(1, [5.0, 2.0, 7.0, 1.0])], maximization=True)
    edit(tmp_path / INDEX, '"maximization": true', f'"maximization": {json.dumps(spelling)}')
    [run] = read(tmp_path)
    assert run.best.tolist() == [-5.0, -7.0]


@pytest.mark.parametrize("spelling", [False, "false", "False", "F", 0, "min", "minimization"])
@pytest.mark.parametrize("key", ["maximization", "Maximization", "maximisation", "maximize"])
def test_minimised_values_come_as_they_are(folder: Path, key: str, spelling: object) -> None:
    edit(folder / INDEX, '"maximization": false', f'"{key}": {json.dumps(spelling)}')
    assert read(folder)[0].best.tolist() == [5.0, 2.5]


def test_the_option_overrules_the_direction_in_the_file(folder: Path) -> None:
    edit(folder / INDEX, '"maximization": false', '"other": 1')
    with pytest.raises(SourceError, match=r"Sphere\.json does not say whether values are maximised"):
        read(folder)
    assert read(folder, maximize="false")[0].best.tolist() == [5.0, 2.5]
    assert read(folder, maximize=True, best="rows")[0].best.tolist() == [-5.0]


def test_columns_may_be_many_in_any_order_and_differ_between_runs(folder: Path) -> None:
    (folder / ROWS).write_text(
        "raw_y x0 evaluations x1\n5.0 nan 1 -1e-3\n2.5 1 3 1\n4.0 0 4 0\n"
        '"evaluations" "my column" raw_y\n1 17 3.0\n2 17 3.0\n'
    )
    assert [run.best.tolist() for run in read(folder)] == [[5.0, 2.5], [3.0]]


def test_the_best_value_so_far_is_preferred_where_it_was_logged(folder: Path) -> None:
    # Logged at evaluations 1 and 4 only, the rows hold the values of these evaluations.
    (folder / ROWS).write_text(
        "evaluations raw_y raw_y_best\n1 5.0 5.0\n3 2.5 2.5\n4 4.0 1.0\nevaluations raw_y\n1 3.0\n2 3.0\n"
    )
    assert [run.best.tolist() for run in read(folder)] == [[5.0, 2.5, 1.0], [3.0]]
    assert read(folder, value="raw_y")[0].best.tolist() == [5.0, 2.5]


def test_other_columns_can_be_chosen_as_value_and_as_time(folder: Path) -> None:
    (folder / ROWS).write_text(
        "evaluations raw_y seconds F2\n1 5.0 0.5 9\n3 2.5 1.5 8\n4 4 3.5 7\n"
        "evaluations raw_y seconds F2\n1 3 1 1\n2 3 2 1\n"
    )
    run = read(folder, value="F2")[0]
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([1, 3, 4], [9, 8, 7], 4)
    run = read(folder, time="seconds", value="raw_y")[0]
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([0.5, 1.5], [5, 2.5], 3.5)


def test_values_that_are_not_finite_leave_the_best_value_as_it_was(folder: Path) -> None:
    edit(folder / ROWS, "1 5.0000000000\n", "1 None\n2 nan\n")
    [run, _] = read(folder)
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([3], [2.5], 4)


def test_rows_may_hold_better_values_than_the_json(folder: Path) -> None:
    # The JSON knows only evaluations at which the logger triggered; the last row is written in any case.
    edit(folder / ROWS, "4 4.0", "4 1.0")
    assert read(folder)[0].best.tolist() == [5.0, 2.5, 1.0]


def test_paths_that_were_written_on_windows_are_found(folder: Path) -> None:
    before = read(folder)
    edit(folder / INDEX, "data_f1_Sphere/", "data_f1_Sphere\\\\")
    assert read(folder) == before


def test_runs_that_were_logged_by_hand_have_no_count_of_evaluations(folder: Path) -> None:
    edit(folder / INDEX, '"evals": 4', '"evals": 0')
    assert read(folder)[0].horizon == 4


def test_real_samples_are_read_whole(shared: Path) -> None:
    runs = read(shared / "ioh" / "examples" / "SO_Data")
    assert len(runs) == 60
    assert {run.algorithm for run in runs} == {"HillClimber", "RandomSearch"}
    assert {run.horizon for run in runs} == {1000}
    first = next(run for run in runs if run.algorithm == "HillClimber" and run.instance == "f1_d2_i1")
    assert (first.times[-1], first.best[-1]) == (135, 0.0018008468450129897)
    table = rank(runs, [1, 10, 100, 1000])
    assert len(table.instances) == 30
    assert (table.ranks[:, -1, 0] == 1).sum() == 27


@pytest.mark.parametrize("options", [{}, {"skip_damaged": True}, {"best": "rows"}])
def test_real_samples_of_several_objectives_are_refused_until_one_is_chosen(
    shared: Path, options: dict[str, object]
) -> None:
    folder = shared / "ioh" / "examples" / "MO_Data"
    message = r"DIM30\.dat, run 1 has several objectives \(raw_y, F2\).* hypervolume so far, or say .* value=raw_y\."
    with pytest.raises(SourceError, match=message):
        read(folder, **options)


def test_real_samples_of_several_objectives_are_read_by_the_one_that_is_chosen(shared: Path) -> None:
    folder = shared / "ioh" / "examples" / "MO_Data"
    with pytest.warns(PolarBearWarning, match=r"6 of 20 runs reach values .* On 1 of 2 instances"):
        runs = read(folder, value="raw_y")
    assert len(runs) == 20
    other = read(folder, value="F2", best="rows")
    assert {run.horizon for run in other} == {run.horizon for run in runs}
    assert min(run.best[-1] for run in other) > 0.1


def test_hypervolumes_by_iohinspector_are_read(shared: Path) -> None:
    inspector: Any = pytest.importorskip("iohinspector")
    indicators: Any = pytest.importorskip("iohinspector.indicators")
    manager = inspector.DataManager()
    manager.add_folder(str(shared / "ioh" / "examples" / "MO_Data" / "NSGA_10"))
    frame = manager.load(monotonic=False, include_meta_data=True)
    with pytest.raises(SourceError, match=r"data frame has several objectives \(raw_y, F2\)"):
        read(frame)
    volumes = indicators.add_indicator(
        frame, indicators.HyperVolume(reference_point=[1.1, 8]), obj_vars=["raw_y", "F2"], evals=[10, 100, 1000]
    )
    runs = read(volumes, value="HyperVolume", maximize=True)
    assert len(runs) == 5
    assert all(run.best[-1] < run.best[0] < 0 for run in runs)


@pytest.mark.parametrize(
    ("columns", "several"),
    [
        ("evaluations raw_y", False),
        ("evaluations raw_y raw_y_best x0 x1", False),
        ("evaluations raw_y current_y current_y_best transformed_y", False),
        ("evaluations raw_y F CR sigma t1", False),
        ("evaluations raw_y F2", True),
        ('evaluations "raw_y" "F1" "F2"', True),
        ("evaluations F1 F2", True),
        ("evaluations raw_y raw_y_2", True),
        ("evaluations raw_y_best obj2 obj3", True),
        ("evaluations raw_y y1 y2 y3 y4 y5 y6 y7", True),
    ],
)
def test_several_objectives_are_seen_by_their_columns(folder: Path, columns: str, several: bool) -> None:
    cells = " ".join(["5.0"] * (len(columns.split()) - 1))
    (folder / ROWS).write_text(f"{columns}\n1 {cells}\n" * 2)
    if several:
        with pytest.raises(SourceError, match="has several objectives"):
            read(folder, best="rows")
    else:
        assert len(read(folder, best="rows")) == 2


# Logs at fixed evaluations


UNKNOWN_BETWEEN = "rows seem to be logged at fixed evaluations only"


def written_by_ioh(
    folder: Path, make_triggers: Any, *, instances: int = 2, functions: Sequence[int] = (1, 8), more: Any = ()
) -> Path:
    ioh = pytest.importorskip("ioh", reason="needs ioh")
    triggers = make_triggers(ioh.logger.trigger)
    properties = [getattr(ioh.logger.property, name) for name in more]
    logger = ioh.logger.Analyzer(root=str(folder), triggers=triggers, additional_properties=properties)
    for function in functions:
        for instance in range(1, instances + 1):
            problem = ioh.get_problem(function, instance, 2)
            problem.attach_logger(logger)
            record(problem, 1500 + 100 * instance, instance, shrink=0.999)
            problem.reset()
    logger.close()
    return folder


@pytest.mark.parametrize("instances", [1, 2])
@pytest.mark.parametrize("grid", [range(1, 2000, 100), [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]])
def test_values_between_fixed_evaluations_are_said_to_be_unknown(tmp_path: Path, grid: Any, instances: int) -> None:
    written_by_ioh(tmp_path, lambda trigger: [trigger.At(set(grid))], instances=instances)
    with pytest.warns(PolarBearWarning, match=f"DIM2.dat and 1 more file: {UNKNOWN_BETWEEN}") as told:
        runs = read(tmp_path)
    assert (len(runs), len(told)) == (2 * instances, 1)


@pytest.mark.parametrize(
    "make_triggers",
    [
        lambda trigger: [trigger.OnImprovement()],
        lambda trigger: [trigger.OnImprovement(), trigger.Each(100)],
        lambda trigger: [trigger.OnImprovement(), trigger.At({1, 2, 5, 10, 20, 50, 100, 200, 500, 1000})],
        lambda trigger: [trigger.ALWAYS],
        lambda trigger: [trigger.OnDeltaImprovement()],
    ],
)
@pytest.mark.parametrize("instances", [1, 2])
def test_logs_of_all_improvements_raise_no_alarm(tmp_path: Path, make_triggers: Any, instances: int) -> None:
    written_by_ioh(tmp_path, make_triggers, instances=instances)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path)) == 2 * instances


def test_best_values_at_fixed_evaluations_are_known(tmp_path: Path) -> None:
    written_by_ioh(tmp_path, lambda trigger: [trigger.At(set(range(1, 2000, 100)))], more=["RAWYBEST"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path)) == 4


def test_the_values_of_a_race_at_its_timepoints_raise_no_alarm(tmp_path: Path) -> None:
    from polarbear_plugins.integrations.ioh_writer import write_ioh

    grid = [1, *range(100, 2000, 100)]
    runs = [
        Trajectory(algorithm=name, instance=number, times=grid, best=np.arange(len(grid), 0, -1.0), horizon=1900)
        for name in "ab"
        for number in range(3)
    ]
    write_ioh(runs, tmp_path / "data")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(tmp_path / "data")) == 6


def test_data_of_coco_are_left_to_their_own_adapter(folder: Path, tmp_path: Path) -> None:
    coco = tmp_path / "coco"
    coco.mkdir()
    (coco / "bbobexp_f1.info").write_text("funcId = 1, DIM = 2, Precision = 1.000e-08, algId = 'a'\n%\nx.dat, 1:1|1\n")
    (coco / "IOHprofiler_f1_DIM2.dat").write_text("")
    packed = pack(coco, tmp_path / "coco.zip")
    tarred = tmp_path / "coco.tgz"
    tarred.write_bytes(b"")
    for source in (coco, packed, coco / "bbobexp_f1.info", tarred):
        assert ioh_logs.polarbear_read_trajectories(source, {}) is None
        # Together with our own, each is left to be read alone.
        assert ioh_logs.polarbear_read_trajectories([folder, source], {}) is None


# Digits


def test_the_final_value_has_all_the_digits_of_the_json(tmp_path: Path) -> None:
    log(tmp_path, [(1, [1 / 3, 1e-13, 2.0])])
    assert read(tmp_path)[0].best.tolist() == [0.3333333333, 1e-13]


def test_values_cut_to_zero_are_no_ties_where_the_json_knows_them(tmp_path: Path) -> None:
    log(tmp_path / "a", [(1, [0.5, 3e-13, 1.0])], algorithm="a")
    log(tmp_path / "b", [(1, [0.5, 2e-13, 1.0])], algorithm="b")
    log(tmp_path / "c", [(1, [0.5, 0.0, 1.0])], algorithm="c")
    assert rank(PLUGINS.read_trajectories(tmp_path), [1, 3]).ranks[0].tolist() == [[1, 1, 1], [3, 2, 1]]


def test_values_cut_to_zero_tie_where_nothing_knows_them_and_are_counted(tmp_path: Path) -> None:
    log(tmp_path / "a", [(1, [0.5, 3e-12, 3e-13])], algorithm="a")
    log(tmp_path / "b", [(1, [0.5, 4e-12, 4e-13])], algorithm="b")
    log(tmp_path / "c", [(1, [0.5, 0.4, 0.3]), (2, [0.5, 4e-12, 4e-13])], algorithm="c")
    with pytest.warns(PolarBearWarning, match=r"3 of 4 runs reach .* On 1 of 2 instances several algorithms"):
        runs = read(tmp_path)
    assert rank(runs, [1, 2, 3]).ranks[0].tolist() == [[1, 1, 1], [1, 1, 3], [1, 2, 3]]
    assert [run.best.tolist() for run in runs[:1]] == [[0.5, 5e-11, 3e-13]]


def test_a_single_algorithm_with_cut_values_ties_with_nobody_and_needs_no_warning(tmp_path: Path) -> None:
    log(tmp_path / "a", [(1, [0.5, 3e-12, 3e-13])], algorithm="a")
    log(tmp_path / "b", [(1, [0.5, 0.4, 0.3])], algorithm="b")
    assert len(read(tmp_path)) == 2


def test_late_values_that_the_logger_did_not_trigger_on_change_nothing(tmp_path: Path) -> None:
    log(tmp_path, [(1, [0.5, 7e-12, 3.0])])
    edit(tmp_path / ROWS, "3 3.0000000000", "3 0.0000000000")  # better or worse than 7e-12, who knows
    assert read(tmp_path)[0].best.tolist() == [0.5, 7e-12]


def test_maximised_values_cut_to_zero_are_mended_alike(tmp_path: Path) -> None:
    log(tmp_path, [(1, [-0.5, -3e-12, -3e-13])], maximization=True)
    assert read(tmp_path)[0].best.tolist() == [0.5, 5e-11, 3e-13]


def test_whole_numbers_are_never_cut(tmp_path: Path) -> None:
    log(tmp_path / "a", [(1, [4.0, 0.0, -3.0])], algorithm="a")
    log(tmp_path / "b", [(1, [4.0, 0.0, 7.0])], algorithm="b")
    assert [run.best.tolist() for run in read(tmp_path)] == [[4, 0, -3], [4, 0]]


def test_values_may_all_be_printed_as_whole_numbers_and_still_be_cut(tmp_path: Path) -> None:
    log(tmp_path, [(1, [5.0, 3e-12, 3e-13])])
    assert read(tmp_path)[0].best.tolist() == [5.0, 5e-11, 3e-13]


def test_values_that_are_printed_like_the_final_one_but_not_as_zero_tie_with_nobody(tmp_path: Path) -> None:
    for name, offset in (("a", 1e-3), ("b", 2e-3)):
        log(tmp_path / name, [(1, [80.0, offset + 4e-11, offset + 2e-11])], algorithm=name)
    assert len(read(tmp_path)) == 2


def test_values_near_an_offset_are_mended_too(tmp_path: Path) -> None:
    log(tmp_path, [(1, [80.0, 79.48 + 4e-11, 79.48 + 2e-11])])
    [run] = read(tmp_path)
    assert run.best[-1] == 79.48 + 2e-11
    assert 79.48 + 2e-11 < run.best[1] <= 79.48 + 6e-11


def test_the_rows_alone_count_if_the_user_says_so(tmp_path: Path) -> None:
    log(tmp_path, [(1, [0.5, 3e-12, 3e-13])])
    edit(tmp_path / INDEX, '"evals": 3, "best"', '"evals": 9, "best"')
    [run] = read(tmp_path, best="rows")
    assert (run.best.tolist(), run.horizon) == ([0.5, 0.0], 9)


# Several folders, zip files


def algorithms(tmp_path: Path) -> list[Path]:
    """Two algorithms on two functions in two dimensions."""
    for name, shift in (("csa", 0.25), ("msr", 0.5)):
        for function, title in ((1, "Sphere"), (2, "Ellipsoid")):
            for dimension in (2, 5):
                runs = [(i, [i + shift, 9.0, shift]) for i in (1, 2, 2)]
                log(tmp_path / name, runs, algorithm=name, function=function, name=title, dimension=dimension)
    return [tmp_path / "csa", tmp_path / "msr"]


def test_every_function_dimension_instance_and_run_is_read(tmp_path: Path) -> None:
    algorithms(tmp_path)
    assert names(read(tmp_path)) == sorted(
        (algorithm, f"f{function}_d{dimension}_i{instance}", seed)
        for algorithm in ("csa", "msr")
        for function in (1, 2)
        for dimension in (2, 5)
        for instance, seed in ((1, 0), (2, 0), (2, 1))
    )


def test_the_order_of_folders_does_not_matter(tmp_path: Path) -> None:
    folders = algorithms(tmp_path)
    log(tmp_path / "more", [(2, [1.0, 0.5])], algorithm="csa")
    folders.append(tmp_path / "more")
    assert read(folders, algorithm="name") == read(folders[::-1], algorithm="name")
    assert read([str(path) for path in folders], algorithm="name") == read(tuple(folders), algorithm="name")
    together = {(run.algorithm, run.instance, run.seed, run.best[-1]) for run in read(tmp_path, algorithm="name")}
    assert together == {
        (run.algorithm, run.instance, run.seed, run.best[-1]) for run in read(folders, algorithm="name")
    }


@pytest.mark.parametrize("inside", ["", "some/folder/"])
def test_a_zip_file_equals_its_folder(tmp_path: Path, inside: str) -> None:
    folder = log(tmp_path / "data", TWO_RUNS)
    algorithms(folder)
    path = pack(folder, tmp_path / "data.zip", inside)
    assert set(read(path, algorithm="name")) == set(read(folder, algorithm="name"))
    if not inside:
        assert set(read(path, algorithm="name+folder")) == set(read(folder, algorithm="name+folder"))


def test_zip_files_and_folders_are_read_together(tmp_path: Path) -> None:
    one, two = algorithms(tmp_path)
    assert names(read([pack(one, tmp_path / "one.ZIP"), two])) == names(read([one, two]))


def test_what_a_mac_adds_to_zip_files_is_left_out(folder: Path, tmp_path: Path) -> None:
    path = pack(folder, tmp_path / "data.zip")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"__MACOSX/._{INDEX}", b"\x00\xff")
        archive.writestr(f"._{INDEX}", b"\x00\xff")
    assert read(path) == read(folder)


def test_trajectories_can_be_gone_through_again_and_come_one_file_at_a_time(tmp_path: Path) -> None:
    algorithms(tmp_path)
    (tmp_path / "msr" / "data_f2_Ellipsoid" / "IOHprofiler_f2_DIM5.dat").write_text("broken\n")
    runs = PLUGINS.read_trajectories(tmp_path)
    for _ in range(2):
        iterator = iter(runs)
        assert len([next(iterator) for _ in range(21)]) == 21
        with pytest.raises(SourceError, match=r"run 1"):
            next(iterator)


def test_memory_grows_with_a_run_and_not_with_all_rows(tmp_path: Path) -> None:
    peaks = []
    for count in (3, 30):
        folder = log(tmp_path / str(count), [(i, np.linspace(9, 1, 1000).tolist()) for i in range(count)])
        runs = PLUGINS.read_trajectories(folder)
        tracemalloc.start()
        assert sum(run.times.size for run in runs) == count * 1000
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


# Names


def test_an_algorithm_that_is_split_over_folders_is_one(tmp_path: Path) -> None:
    log(tmp_path / "data", [(1, [1.0])])
    log(tmp_path / "data-1", [(2, [1.0])])
    log(tmp_path / "data-2", [(1, [1.0])], dimension=5)
    assert names(read(tmp_path)) == [("csa", "f1_d2_i1", 0), ("csa", "f1_d2_i2", 0), ("csa", "f1_d5_i1", 0)]


def test_one_name_for_runs_on_the_same_problem_in_several_folders_is_told_apart_with_a_warning(tmp_path: Path) -> None:
    log(tmp_path / "data", [(1, [1.0])])
    log(tmp_path / "data-1", [(1, [1.0])])
    log(tmp_path / "other", [(1, [1.0])], algorithm="msr")
    with pytest.warns(PolarBearWarning, match=r"'csa' has runs .* 'data' and 'data-1'.* algorithm=name;"):
        runs = read(tmp_path)
    assert names(runs) == [
        ("csa (data)", "f1_d2_i1", 0),
        ("csa (data-1)", "f1_d2_i1", 0),
        ("msr", "f1_d2_i1", 0),
    ]
    assert names(read(tmp_path, algorithm="name"))[:2] == [("csa", "f1_d2_i1", 0), ("csa", "f1_d2_i1", 1)]
    assert [name for name, *_ in names(read(tmp_path, algorithm="folder"))] == ["data", "data-1", "other"]
    assert names(read(tmp_path, algorithm="name+folder"))[2][0] == "msr (other)"


def test_folders_of_the_same_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    paths = [log(tmp_path / where / "data", [(1, [1.0])]) for where in ("here", "there")]
    found = [name for name, *_ in names(read(paths, algorithm="folder"))]
    assert found == [str(path.resolve()) for path in paths]


def test_several_algorithms_in_one_folder_are_not_named_after_it(tmp_path: Path) -> None:
    log(tmp_path / "data", [(1, [1.0])])
    log(tmp_path / "data", [(1, [1.0])], algorithm="msr", function=2, name="Ellipsoid")
    with pytest.raises(InvalidInputError, match=r"'data' holds runs of csa, msr\. Say algorithm=name\+folder"):
        read(tmp_path, algorithm="folder")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("function,dimension,instance", ["f1_d2_i1", "f1_d2_i2"]),
        ("instance, name", ["i1_Sphere", "i2_Sphere"]),
        (["suite", "dimension"], ["unknown_suite_d2", "unknown_suite_d2"]),
    ],
)
def test_the_user_says_what_an_instance_is(folder: Path, parts: object, expected: list[str]) -> None:
    runs = read(folder, instance=parts)
    assert [run.instance for run in runs] == expected
    assert len(set(names(runs))) == 2


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"functions": "1"}, {"f1_d2", "f1_d5"}),
        ({"functions": "Ellipsoid", "dimensions": 5}, {"f2_d5"}),
        ({"functions": [1, "Ellipsoid"], "dimensions": "3-7"}, {"f1_d5", "f2_d5"}),
        ({"functions": "2-9,1", "dimensions": "2, 5"}, {"f1_d2", "f1_d5", "f2_d2", "f2_d5"}),
    ],
)
def test_the_user_says_which_functions_and_dimensions_to_keep(
    tmp_path: Path, options: dict[str, object], expected: set[str]
) -> None:
    algorithms(tmp_path)
    runs = read(tmp_path, **options)
    assert {run.instance.rpartition("_")[0] for run in runs} == expected
    assert len(runs) == 6 * len(expected)


def test_the_user_says_which_instances_to_keep(tmp_path: Path) -> None:
    algorithms(tmp_path)
    assert {run.instance[-2:] for run in read(tmp_path, instances="2-3")} == {"i2"}


def test_what_is_not_kept_may_be_damaged(tmp_path: Path) -> None:
    [path, _] = algorithms(tmp_path)
    (path / "data_f2_Ellipsoid" / "IOHprofiler_f2_DIM5.dat").write_text("broken\n")
    (path / "data_f2_Ellipsoid" / "IOHprofiler_f2_DIM7.dat").write_text("broken\n")
    assert len(read(tmp_path, functions=1)) == len(read(tmp_path, functions=2, dimensions=2)) * 2 == 12
    with pytest.raises(SourceError, match=r"DIM7\.dat: no JSON file describes its runs"):
        read(tmp_path, functions=2)
    with pytest.raises(SourceError, match=r"DIM7\.dat: no JSON file describes its runs"):
        read(tmp_path, functions="Ellipsoid")


def test_keeping_nothing_says_what_there_is(tmp_path: Path) -> None:
    algorithms(tmp_path)
    with pytest.raises(SourceError, match=r"leave no run\. There is function 1 in dimension 2, 1 in dimension 5, 2 in"):
        read(tmp_path, functions=7)


def test_different_functions_of_one_number_do_not_become_one(tmp_path: Path) -> None:
    log(tmp_path / "a", [(1, [1.0])])
    log(tmp_path / "b", [(1, [1.0])], name="OneMax", algorithm="msr")
    with pytest.raises(
        SourceError, match=r"Function 1 is 'Sphere' in .*a/IOH.* and 'OneMax' in .*b/IOH.*function,name"
    ):
        read(tmp_path)
    assert {run.instance for run in read(tmp_path, instance="function,name,dimension,instance")} == {
        "f1_Sphere_d2_i1",
        "f1_OneMax_d2_i1",
    }
    assert len(read(tmp_path, functions="OneMax")) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"instance": "fun"}, "instance: expected some of suite, function, name, dimension, instance"),
        ({"instance": []}, "instance: expected"),
        ({"instance": "function,function"}, "each once"),
        ({"instance": 3}, "instance: expected"),
        ({"functions": "3-1"}, "functions: expected numbers and ranges such as 1,3-5, got '3-1'"),
        ({"functions": []}, "nothing would be kept"),
        ({"dimensions": "five"}, "dimensions: expected numbers"),
        ({"instances": "1,,2"}, "instances: expected numbers"),
        ({"algorithm": "both"}, r'algorithm: expected "auto", "name", "folder" or "name\+folder", got'),
        ({"best": "worst"}, 'best: expected "json" or "rows", got'),
        ({"value": ""}, "value: expected the name of a column"),
        ({"time": 3}, "time: expected the name of a column"),
        ({"maximize": "maybe"}, "maximize: expected true or false"),
        ({"skip_damaged": 2}, "skip_damaged: expected true or false"),
        ({"columns": "time=evaluations"}, "The reader of IOHprofiler data has no option 'columns'"),
    ],
)
def test_options_that_mean_nothing_are_refused(folder: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read(folder, **options)


# Damage: each is refused with file and place, and can be skipped


def cut_line(folder: Path) -> None:
    (folder / ROWS).write_text((folder / ROWS).read_text()[:-8])


def cut_row(folder: Path) -> None:
    (folder / ROWS).write_text((folder / ROWS).read_text()[:-15])


def cut_run(folder: Path) -> None:
    text = (folder / ROWS).read_text()
    (folder / ROWS).write_text(text[: text.rindex("evaluations")])


def index_edit(old: str, new: str) -> Any:
    return lambda folder: edit(folder / INDEX, old, new)


def rows_edit(old: str, new: str) -> Any:
    return lambda folder: edit(folder / ROWS, old, new)


def undescribed(folder: Path) -> None:
    (folder / "data_f1_Sphere" / "IOHprofiler_f1_DIM7.dat").write_text("evaluations raw_y\n5 1.0\n")


def one_more_run(folder: Path) -> None:
    (folder / ROWS).write_text((folder / ROWS).read_text() + "evaluations raw_y\n1 1.0\n")


def run_without_value(folder: Path) -> None:
    (folder / ROWS).write_text("evaluations raw_y\n1 None\n" + (folder / ROWS).read_text())


def no_text(folder: Path) -> None:
    (folder / ROWS).write_bytes(b"\xff\xfe" * 20)


def old_format(folder: Path) -> None:
    (folder / "IOHprofiler_f1.info").write_text("suite = 'bbob', funcId = 1\n")


# What is done, what the message says, and how many of the two runs are left.
DAMAGE = [
    (cut_line, r"f1_DIM2\.dat, run 2, line 7: the file was cut", 1),
    (cut_row, r"f1_DIM2\.dat, run 2: the JSON counts 2 evaluations, but the rows end at 1 \(line 6\)", 1),
    (cut_run, r"f1_DIM2\.dat: IOHprofiler_f1_Sphere\.json describes 2 runs, and the file ends before run 2\.", 1),
    (lambda folder: (folder / ROWS).unlink(), r"f1_DIM2\.dat: there is no such file, .* runs 1 to 2", 0),
    (lambda folder: (folder / ROWS).write_text(""), r"f1_DIM2\.dat: .*the file ends before runs 1 to 2", 0),
    (lambda folder: (folder / ROWS).write_text("1 2\n"), r"DIM2\.dat, line 1: expected the names of columns, got", 0),
    (no_text, r"f1_DIM2\.dat: the file is not text, so there is nothing of runs 1 to 2", 0),
    (rows_edit("3 2.5000000000\n", "nan\n"), r"run 1, line 3: expected 2 numbers \(evaluations raw_y\), got 'nan'", 1),
    (rows_edit("3 2.5000000000\n", "\n"), r"run 1, line 3: expected 2 numbers \(evaluations raw_y\), got ''", 1),
    (rows_edit("3 2.5000000000\n", "3 2.5 7\n"), r"run 1, line 3: expected 2 numbers .* got '3 2\.5 7'", 1),
    (rows_edit("3 2.5000000000\n", "3 two\n"), r"run 1, line 3: expected a value, got 'two'", 1),
    (rows_edit("3 2.5000000000\n", "1 2.5\n"), r"run 1, line 3: expected a time above 1, got '1'", 1),
    (rows_edit("3 2.5", "None 2.5"), r"run 1, line 3: expected a time above 1, got 'None'", 1),
    (rows_edit("1 5.0", "-1 5.0"), r"run 1, line 2: expected a time, got '-1'", 1),
    (rows_edit("1 5.0", "inf 5.0"), r"run 1, line 2: expected a time, got 'inf'", 1),
    (
        rows_edit("3 2.5", "3 2.7"),
        r"run 1: the JSON has the best value 2\.5 at evaluation 3, but the rows have 2\.7",
        1,
    ),
    (rows_edit("3 2.5000000000\n", ""), r"run 1: the JSON has .* at evaluation 3, but the rows have no row for it", 1),
    (index_edit('"evals": 4', '"evals": 5'), r"run 1: the JSON counts 5 evaluations, but the rows end at 4", 1),
    (index_edit('"evals": 4', '"evals": 3'), r"run 1: the JSON counts 3 evaluations, but the rows end at 4", 1),
    (index_edit('"evals": 3', '"evals": 4'), r"run 1: the JSON has the best value 2\.5 at evaluation 4", 1),
    (
        rows_edit("evaluations raw_y\n1 5", "evaluations y\n1 5"),
        r"run 1, line 1: .*'raw_y', got evaluations, y\..*value=",
        1,
    ),
    (rows_edit("1 3.0000000000\n2 3.0000000000\n", ""), r"run 2, line 5: expected rows .*got none", 1),
    (one_more_run, r"f1_DIM2\.dat, line 8: a run that is not among the 2 in IOHprofiler_f1_Sphere\.json\.", 2),
    (run_without_value, r"f1_DIM2\.dat, line 1: a run that is not among the 2 in .*, since it has no value", 2),
    (undescribed, r"f1_DIM7\.dat: no JSON file describes its runs", 2),
    (old_format, r"IOHprofiler_f1\.info is in the \.info format of COCO .* separately\.", 2),
    (lambda folder: (folder / INDEX).write_text("{"), r"Sphere\.json, line 1: expected JSON", 0),
    (lambda folder: (folder / INDEX).write_text("[" * 10**5), r"Sphere\.json: expected the JSON of IOHprofiler", 0),
    (lambda folder: (folder / INDEX).write_bytes(b"\xff\xfe{}"), r"Sphere\.json: expected the JSON .* not text", 0),
    (lambda folder: (folder / INDEX).write_text("[]"), r"Sphere\.json: expected an object in braces, got \[\]", 0),
    (index_edit('"scenarios"', '"scenario"'), r"Sphere\.json: expected scenarios, got none", 0),
    (index_edit('"runs"', '"run"'), r"Sphere\.json, scenario 1: expected runs, got none", 0),
    (
        index_edit('"instance": 2', '"instance": null'),
        r"scenario 1, run 2: expected a whole number as 'instance', got",
        0,
    ),
    (index_edit('"function_id": 1', '"function_id": "one"'), r"expected a whole number as 'function_id', got 'one'", 0),
    (index_edit('"dimension": 2', '"dimension": true'), r"expected a whole number as 'dimension', got True", 0),
    (index_edit('"csa"', "7"), r"Sphere\.json: expected the name of an algorithm, got 7", 0),
    (index_edit('"data_f1', '"../data_f1'), r"scenario 1: expected the path of a \.dat file below the JSON file", 0),
    (index_edit('"data_f1', '"/data_f1'), r"scenario 1: expected the path of a \.dat file below the JSON file", 0),
    (index_edit('"maximization": false', '"maximization": "maybe"'), r"expected true or false as 'maximization'", 0),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("damage", "message", "left"), DAMAGE)
def test_damage_is_refused_with_its_place_and_can_be_skipped(
    folder: Path, tmp_path: Path, damage: Any, message: str, left: int, packed: bool
) -> None:
    damage(folder)
    source = pack(folder, tmp_path / "data.zip") if packed else folder
    with pytest.raises(SourceError, match=f"{message}(.|\n)*$") as caught:
        read(source)
    assert "data/" in str(caught.value)
    with pytest.warns(PolarBearWarning, match=r"Skipped what is damaged") as warned:
        assert len(read(source, skip_damaged="true")) == left
    assert any(str(caught.value).partition(" Skip what is damaged")[0][:60] in str(w.message) for w in warned)


def test_every_run_that_is_skipped_is_named(tmp_path: Path) -> None:
    log(tmp_path, [(i, [5.0, 2.0]) for i in range(5)])
    edit(tmp_path / ROWS, "2 2.0000000000\n", "2 oops\n")
    with pytest.warns(PolarBearWarning) as warned:
        assert read(tmp_path, skip_damaged=True) == []
    [warning] = warned
    assert [
        line.partition("DIM2.dat, ")[2].rpartition(":")[0].partition(" line")[0]
        for line in str(warning.message).splitlines()[1:]
    ] == [f"run {number}," for number in range(1, 6)]


@pytest.mark.parametrize("where", ["other folder", "same problem"])
def test_an_instance_is_not_both_minimised_and_maximised(tmp_path: Path, where: str) -> None:
    log(tmp_path / "a", [(1, [1.0])])
    log(tmp_path / "b", [(1, [1.0])], maximization=True, algorithm="msr", dimension=2 if where == "same problem" else 5)
    if where == "other folder":  # different instances: each has its own direction
        assert [run.best[-1] for run in read(tmp_path)] == [1.0, -1.0]
        return
    with pytest.raises(SourceError, match=r"b/.*json maximises instance f1_d2_i1, which .*a/.*json does not"):
        read(tmp_path)
    assert len(read(tmp_path, maximize="no", best="rows")) == 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_place_with_nothing_in_it_is_refused(tmp_path: Path, packed: bool) -> None:
    (tmp_path / "empty" / "inside").mkdir(parents=True)
    source = pack(tmp_path / "empty", tmp_path / "empty.zip") if packed else tmp_path / "empty"
    with pytest.raises(SourceError, match="empty holds no IOHprofiler data: expected files such as IOHprofiler_f1"):
        read(source)


@pytest.mark.parametrize("packed", [False, True])
def test_a_place_of_somebody_else_is_left_to_them(tmp_path: Path, packed: bool) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "study.json").write_text("{}")
    source = pack(tmp_path / "other", tmp_path / "other.zip") if packed else tmp_path / "other"
    with pytest.raises(UnknownNameError, match="ioh-logs"):
        read(source)
    with pytest.raises(UnknownNameError, match="no such file"):
        read(tmp_path / "missing")
    with pytest.raises(UnknownNameError):
        read("no file has a zero in its name\0")


def test_a_list_with_something_else_in_it_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"missing is not a folder or zip file of IOHprofiler data"):
        read([folder, tmp_path / "missing"])


def test_the_same_folder_is_not_read_twice(folder: Path, tmp_path: Path) -> None:
    for sources in ([folder, folder], [tmp_path, folder], [folder, folder / ".." / "data"]):
        with pytest.raises(SourceError, match="Give each folder once"):
            read(sources)


def test_a_damaged_zip_file_is_refused(folder: Path, tmp_path: Path) -> None:
    path = pack(folder, tmp_path / "data.zip")
    content = path.read_bytes()
    path.write_bytes(content[:100])
    with pytest.raises(SourceError, match=r"data\.zip cannot be read as a zip file"):
        read(path)
    place = content.index(b".dat") + 20  # inside the packed rows
    path.write_bytes(content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :])
    with pytest.raises(SourceError, match=r"data\.zip cannot be read as a zip file"):
        read(path)
    with pytest.warns(PolarBearWarning, match="runs 1 to 2"):
        assert read(path, skip_damaged=True) == []


def test_a_zip_file_that_holds_a_name_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    path = pack(folder, tmp_path / "data.zip")
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(ROWS, "evaluations raw_y\n")
    with pytest.raises(SourceError, match=r"data\.zip holds 'data_f1_Sphere/IOHprofiler_f1_DIM2\.dat' twice"):
        read(path)


def test_a_zip_file_that_would_grow_beyond_measure_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / ROWS).write_text(" " * 20_000_000)
    with pytest.raises(SourceError, match=r"DIM2\.dat would grow from [\d,]+ to 20,000,000 bytes"):
        read(pack(folder, tmp_path / "data.zip"))


def pack_twice(tmp_path: Path, *, times: int = 1) -> Path:
    """A zip file with a folder for each algorithm, and for one of them a zip file."""
    for name in ("csa", "tpa"):
        log(tmp_path / name, TWO_RUNS, algorithm=name)
    inner = pack(tmp_path / "tpa", tmp_path / "inner.zip")
    for number in range(times):
        outer = tmp_path / f"outer{number}.zip"
        with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(inner, "more/inner.zip")
            for file in (tmp_path / "csa").rglob("*") if times == 1 else ():
                archive.write(file, f"csa/{file.relative_to(tmp_path / 'csa').as_posix()}")
        inner = outer
    return inner


def test_a_zip_file_in_a_zip_file_is_read(tmp_path: Path) -> None:
    path = pack_twice(tmp_path)
    assert sorted(map(repr, read(path))) == sorted(map(repr, read([tmp_path / "csa", tmp_path / "tpa"])))
    assert {run.algorithm for run in read(path, algorithm="folder")} == {"outer0/csa", "outer0/more/inner"}
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("damaged.zip", b"PK nothing")
    with pytest.raises(SourceError, match=r"outer0\.zip/damaged\.zip cannot be read as a zip file"):
        read(path)


def test_deeper_zip_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"outer1\.zip/more/inner\.zip/more/inner\.zip is a .* Unpack outer1\.zip"):
        read(pack_twice(tmp_path, times=2))


def test_a_zip_file_in_a_zip_file_that_would_grow_beyond_measure_is_refused(tmp_path: Path, folder: Path) -> None:
    (folder / ROWS).write_text(" " * 20_000_000)
    inner = pack(folder, tmp_path / "inner.zip")
    with zipfile.ZipFile(tmp_path / "outer.zip", "w") as archive:
        archive.write(inner, "inner.zip")
    with pytest.raises(SourceError, match=r"outer\.zip/inner\.zip/.*DIM2\.dat would grow from [\d,]+ to 20,000,000"):
        read(tmp_path / "outer.zip")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.zip", b" " * 20_000_000)
    with pytest.raises(SourceError, match=r"bomb\.zip/inner\.zip would grow from [\d,]+ to 20,000,000 bytes"):
        read(tmp_path / "bomb.zip")


# iohinspector


def frame_of(folder: Path) -> pd.DataFrame:
    """What iohinspector loads with the columns of its overview."""
    parts = []
    for data_id, (run, (instance, values)) in enumerate(zip((1, 2), TWO_RUNS, strict=True), start=1):
        rows = pd.DataFrame({"evaluations": np.arange(1, len(values) + 1), "raw_y": values})
        parts.append(rows.assign(data_id=data_id, run_id=run, instance=instance, evals=len(values)))
    del folder
    return pd.concat(parts).assign(
        algorithm_name="csa", suite="unknown_suite", function_name="Sphere", function_id=1, dimension=2, best_y=0.0
    )


class Columns:
    """As much of a data frame of polars as is used."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.columns = list(frame.columns)
        self.shape = frame.shape
        self._frame = frame

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(to_numpy=lambda: self._frame[name].to_numpy())


@pytest.mark.parametrize("kind", [lambda frame: frame, Columns])
def test_data_frames_of_iohinspector_give_what_the_folder_gives(folder: Path, kind: Any) -> None:
    frame = kind(frame_of(folder))
    assert read(frame) == read(folder)
    assert read(frame, instances=2, instance="function,instance") == read(
        folder, instances=2, instance="function,instance"
    )
    assert read(frame, maximize=True)[0].best.tolist() == [-5.0, -7.0]


def test_data_frames_number_repeated_runs_and_watch_them_until_their_last_evaluation(folder: Path) -> None:
    frame = frame_of(folder).assign(instance=1, evals=10)
    assert [(run.seed, run.horizon) for run in read(frame)] == [(0, 10), (1, 10)]
    assert [run.horizon for run in read(frame.assign(evals=0))] == [4, 2]
    with pytest.raises(SourceError, match="rows after its last evaluation"):
        read(frame.assign(evals=3))


def test_data_frames_with_other_columns_are_left_to_the_table(folder: Path) -> None:
    columns = {"algorithm": "algorithm_name", "time": "evaluations", "value": "raw_y", "horizon": "evals"}
    assert [run.instance for run in read(frame_of(folder), columns=columns)] == ["1", "2"]
    with pytest.raises(SourceError, match="no column 'algorithm'"):
        read(frame_of(folder).drop(columns="dimension"))


@pytest.mark.parametrize(
    ("frame", "options", "error"),
    [
        (lambda frame: frame, {"functions": 7}, "leave none"),
        (lambda frame: frame, {"algorithm": "folder"}, "does not say which folder"),
        (lambda frame: frame, {"value": "F2"}, "no column 'F2'"),
        (lambda frame: frame.assign(function_id="one"), {}, "expected numbers of functions"),
    ],
)
def test_data_frames_that_cannot_be_read_are_refused(folder: Path, frame: Any, options: Any, error: str) -> None:
    with pytest.raises((SourceError, InvalidInputError), match=error):
        read(frame(frame_of(folder)), **options)


class DataManager:
    """As much of iohinspector's manager as is used."""

    def __init__(self, *folders: Path, keep: Sequence[int] = (1, 2)) -> None:
        self.data_sets: list[Any] = [
            SimpleNamespace(
                source="ioh",
                file=str(folder / INDEX),
                scenarios=[
                    SimpleNamespace(data_file=str(folder / ROWS), runs=[SimpleNamespace(id=number) for number in keep])
                ],
            )
            for folder in folders
        ]


def test_a_manager_of_iohinspector_gives_its_runs_from_the_files(folder: Path) -> None:
    undescribed(folder)  # nothing that the manager knows of
    assert read(DataManager(folder)) == read(folder / INDEX)
    assert read(DataManager(folder, keep=[2])) == read(folder / INDEX)[1:]


def test_an_empty_manager_is_called_empty(folder: Path) -> None:
    for manager in (DataManager(), DataManager(folder, keep=[])):
        with pytest.raises(SourceError, match=r"The DataManager is empty|leave no run"):
            read(manager)
    with pytest.raises(SourceError, match=r"holds no data sets\. Add a folder with its add_folder\(\)"):
        read(DataManager())


def test_managers_with_files_that_they_could_not_read_are_refused(folder: Path) -> None:
    manager = DataManager(folder)
    manager.data_sets.append(None)
    with pytest.raises(SourceError, match="could not read itself"):
        read(manager)
    manager = DataManager(folder)
    manager.data_sets[0].source = "coco"
    with pytest.raises(SourceError, match="format of COCO"):
        read(manager)


# What ioh writes


def record(problem: Any, count: int, seed: int, shrink: float = 0.8) -> list[float]:
    """Evaluate random points ever closer to the optimum; return what ioh calls raw_y, which the log holds."""
    rng = np.random.default_rng(seed)
    optimum, values = np.array(problem.optimum.x), []
    for k in range(count):
        problem((optimum + rng.normal(size=optimum.size) * shrink**k).tolist())
        values.append(problem.log_info.raw_y)
    return values


@pytest.mark.parametrize("trigger", ["ON_DELTA_IMPROVEMENT", "ON_IMPROVEMENT", "ALWAYS"])
def test_what_ioh_writes_reads_as_the_running_minimum_of_its_evaluations(tmp_path: Path, trigger: str) -> None:
    ioh = pytest.importorskip("ioh", reason="needs ioh")
    logger = ioh.logger.Analyzer(
        root=str(tmp_path), algorithm_name="mine", triggers=[getattr(ioh.logger.trigger, trigger)], store_positions=True
    )
    recorded = {}
    for function in (1, 8):
        for dimension in (2, 3):
            for instance in (1, 2):
                problem = ioh.get_problem(function, instance, dimension)
                problem.attach_logger(logger)
                for seed in range(2):
                    recorded[f"f{function}_d{dimension}_i{instance}", seed] = record(problem, 70, seed)
                    problem.reset()
    logger.close()
    runs = read(tmp_path)
    assert sorted((run.instance, run.seed) for run in runs) == sorted(recorded)
    points = np.arange(1, 71)
    for run in runs:
        values = recorded[run.instance, run.seed]
        assert (run.algorithm, run.horizon) == ("mine", 70)
        found, true = best_at(run, points), np.minimum.accumulate(values)
        # Improvements below the smallest number that is printed are not logged on "delta improvement".
        np.testing.assert_allclose(found, true, rtol=1e-12, atol=1.1e-10)
        assert (found >= true * (1 - 1e-12) - 0.51e-10).all()
        if trigger != "ON_DELTA_IMPROVEMENT":
            assert found[-1] == true[-1]


def test_what_ioh_maximises_is_turned(tmp_path: Path) -> None:
    ioh = pytest.importorskip("ioh", reason="needs ioh")
    trigger = ioh.logger.trigger.OnImprovement()
    logger = ioh.logger.Analyzer(root=str(tmp_path), triggers=[trigger])
    problem = ioh.get_problem(1, 1, 4, ioh.ProblemClass.PBO)
    problem.attach_logger(logger)
    for x in ([0, 0, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]):
        problem(x)
    logger.close()
    [run] = read(tmp_path)
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([1, 2, 4], [0, -2, -4], 5)


def test_runs_that_ioh_does_not_describe_are_reported(tmp_path: Path) -> None:
    ioh = pytest.importorskip("ioh", reason="needs ioh")
    values = iter([np.inf] * 3 + [2.0, np.inf, 1.0])
    problem = ioh.wrap_problem(lambda _: next(values), name=f"odd_{tmp_path.name}", dimension=1, lb=-5, ub=5)
    always = [ioh.logger.trigger.ALWAYS]  # the default trigger is one for all loggers and remembers earlier tests
    logger = ioh.logger.Analyzer(root=str(tmp_path), folder_name="first_run_without_value", triggers=always)
    problem.attach_logger(logger)
    for _ in range(2):
        for _ in range(3):
            problem([0.0])
        problem.reset()
    logger.close()
    with pytest.raises(SourceError, match=r"line 1: a run that is not among the 1 in .* since it has no value"):
        read(tmp_path)
    with pytest.warns(PolarBearWarning, match="Skipped"):
        [run] = read(tmp_path, skip_damaged=True)
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([1, 3], [2.0, 1.0], 3)

    shutil.rmtree(tmp_path / "first_run_without_value")
    late = [ioh.logger.trigger.At({5})]
    logger = ioh.logger.Analyzer(root=str(tmp_path), folder_name="no_json", triggers=late)
    problem = ioh.get_problem(1, 1, 2)
    problem.attach_logger(logger)
    record(problem, 10, 0)
    logger.close()
    with pytest.raises(SourceError, match=r"no JSON file describes its runs"):
        read(tmp_path)
