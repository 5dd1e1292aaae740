"""COCO data: every format from 2009 on, archives, and damage."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from polarbear_plugins import Trajectory, rank
from polarbear_plugins.adapters import coco, ioh_logs
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.testing import check_adapter
from polarbear_plugins.trajectories import hitting_times

NEW = (
    "suite = 'bbob', funcId = {function}, DIM = {dimension}, Precision = 1.000e-08, algId = '{algorithm}', "
    "coco_version = '2.8.2', logger = 'bbob', data_format = 'bbob-new2', settings = ''"
)
OLD = "funcId = {function}, DIM = {dimension}, Precision = 1.000e-008, algId = '{algorithm}'"
NEW_COLUMNS = (
    "% f evaluations | g evaluations | best noise-free fitness - Fopt (7.948000000000e+01) + sum g_i+ | measured "
    "fitness | best measured fitness or single-digit g-values | x1 | x2..."
)
OLD_COLUMNS = (
    "% function evaluation | noise-free fitness - Fopt (7.948000000000e+001) | best noise-free fitness - Fopt | "
    "measured fitness | best measured fitness | x1 | x2..."
)
BETWEEN_COLUMNS = (
    "% f evaluations | g evaluations | best noise-free fitness - Fopt | noise-free fitness - Fopt (7.9e+01) | measured "
    "fitness | best measured fitness | x1 | x2..."
)
Points = Sequence[tuple[int, float]]


@dataclass
class Written:
    """A run to write: its entry in the .info file, its improvements and its values at fixed evaluations."""

    entry: str
    dat: Points
    tdat: Points | None = None


def row(evaluations: int, value: float, columns: str) -> str:
    numbers = [value, value, value + 79.48, value + 79.48] if columns == OLD_COLUMNS else [value, 80.0, 80.0]
    second = "" if columns == OLD_COLUMNS else " 0"
    more = " +8.000000000e+01" if columns == BETWEEN_COLUMNS else ""
    return f"{evaluations}{second} " + " ".join(f"{number:+.9e}" for number in numbers) + more + " -2.9714e+00 +1.0e+00"


def write(
    folder: Path,
    runs: Sequence[Written],
    *,
    function: int = 1,
    dimension: int = 2,
    algorithm: str = "alg",
    header: str = NEW,
    columns: str = NEW_COLUMNS,
    slash: str = "/",
) -> Path:
    """Write a data set as COCO does, beside those that are there."""
    data = folder / f"data_f{function}"
    data.mkdir(parents=True, exist_ok=True)
    stem = f"bbobexp_f{function}_DIM{dimension}"
    for ending in ("dat", "tdat"):
        points = [getattr(run, ending) for run in runs]
        if None not in points:
            lines = [line for some in points for line in (columns, *(row(*point, columns) for point in some))]
            (data / f"{stem}.{ending}").write_text("\n".join(lines) + "\n")
    described = header.format(function=function, dimension=dimension, algorithm=algorithm)
    entries = ", ".join([f"data_f{function}{slash}{stem}.dat", *(run.entry for run in runs)])
    index = folder / f"bbobexp_f{function}.info"
    before = index.read_text() if index.exists() else ""
    index.write_text(f"{before}{described}\n% a comment, with = and .dat\n{entries}\n")
    return folder


RUNS = [
    Written("1:20|2.5e-01", [(1, 5.0), (7, 0.25)], [(1, 5.0), (5, 1.5), (10, 0.25), (20, 0.25)]),
    Written("2:9|3.1e-09", [(1, 4.0), (9, 3.123e-9)], [(1, 4.0), (9, 3.123e-9)]),
]


def read(source: object, **options: object) -> list[Trajectory]:
    plugins = Plugins()
    plugins.register(coco, "coco")
    return list(plugins.read_trajectories(source, **options))


def pack(folder: Path, path: Path) -> Path:
    """Pack a folder by the ending of the path."""
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in files:
                archive.write(file, file.relative_to(folder).as_posix())
    else:
        with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as tar:
            tar.add(folder, "./inside")
    return path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


# Formats


def test_a_run_has_the_names_values_and_end_that_the_files_say(tmp_path: Path) -> None:
    first, second = read(write(tmp_path, RUNS, function=8, dimension=2))
    assert (first.algorithm, first.instance, first.seed) == ("alg", "f8_d2_i1", 0)
    assert (first.group, first.fixed_group, first.dimension) == ("f8 Rosenbrock", True, 2)
    assert (first.times.tolist(), first.best.tolist()) == ([1, 5, 7], [5.0, 1.5, 0.25])
    assert (first.horizon, first.end) == (20, "unknown")
    assert (second.instance, second.horizon, second.end) == ("f8_d2_i2", 9, "done")
    assert second.best.tolist() == [4.0, 3.123e-9]


@pytest.mark.parametrize(
    ("header", "columns"),
    [(NEW, NEW_COLUMNS), (NEW.replace("new2", "new"), BETWEEN_COLUMNS), (OLD, OLD_COLUMNS), (OLD, NEW_COLUMNS)],
)
def test_all_formats_give_the_same_runs(tmp_path: Path, header: str, columns: str) -> None:
    expected = read(write(tmp_path / "a", RUNS))
    assert read(write(tmp_path / "b", RUNS, header=header, columns=columns, slash="\\")) == expected


def test_files_of_windows_are_read(tmp_path: Path) -> None:
    folder = write(tmp_path, RUNS, header=OLD, columns=OLD_COLUMNS, slash="\\")
    expected = read(folder)
    for path in [*folder.rglob("*.info"), *folder.rglob("*.*dat")]:
        text = re.sub(r"e([+-])(\d\d)\b", r"e\g<1>0\2", path.read_text())
        path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read(folder) == expected


def test_the_final_value_is_that_of_the_info_file_if_it_is_better_than_the_rows(tmp_path: Path) -> None:
    [run] = read(write(tmp_path, [Written("1:20|1.3e-03", [(1, 5.0), (7, 0.25)])]))
    assert (run.times.tolist(), run.best.tolist()) == ([1, 7, 20], [5.0, 0.25, 1.3e-3])
    assert run.end == "unknown"


def test_a_value_at_the_last_evaluation_is_replaced_by_a_better_one(tmp_path: Path) -> None:
    [run] = read(write(tmp_path, [Written("1:7|1.3e-09", [(1, 5.0), (7, 0.25)])]))
    assert (run.times.tolist(), run.best.tolist(), run.end) == ([1, 7], [5.0, 1.3e-9], "done")


def test_a_value_that_is_printed_alike_keeps_its_digits(tmp_path: Path) -> None:
    [run] = read(write(tmp_path, [Written("1:20|2.5e-01", [(1, 5.0), (7, 0.2546)])]))
    assert run.best.tolist() == [5.0, 0.2546]
    [other] = read(write(tmp_path / "b", [Written("1:20|2.5e-01", [(1, 5.0), (7, 0.2551)])]))
    assert other.best.tolist() == [5.0, 0.2551, 0.25]


@pytest.mark.parametrize(
    ("printed", "final", "end"),
    [("-5.6e-009", 4.4e-9, "done"), ("1.9e-010", 1.019e-8, "unknown"), ("0.0e+000", 1e-8, "done"), ("2", 2.0, "")],
)
def test_older_files_print_the_distance_to_the_final_target(
    tmp_path: Path, printed: str, final: float, end: str
) -> None:
    folder = write(tmp_path, [Written(f"1:20|{printed}", [(1, 5.0)])], header=OLD, columns=OLD_COLUMNS)
    [run] = read(folder)
    assert run.best[-1] == pytest.approx(final, rel=1e-7)
    assert run.end == (end or "unknown")


@pytest.mark.parametrize("printed", ["4.4e-09", "-5.6e-009"])
def test_in_older_files_rows_agree_with_either_distance(tmp_path: Path, printed: str) -> None:
    runs = [Written(f"1:20|{printed}", [(1, 5.0), (9, 4.374e-9)])]
    [run] = read(write(tmp_path, runs, header=OLD, columns=OLD_COLUMNS))
    assert (run.best.tolist(), run.end) == ([5.0, 4.374e-9], "done")


def test_a_run_that_stops_at_the_target_of_the_header_is_done(tmp_path: Path) -> None:
    folder = write(tmp_path, [Written("1:9|4.0e-03", [(1, 5.0), (9, 0.004)])], header=NEW.replace("1.000e-08", "0.005"))
    assert [run.end for run in read(folder)] == ["done"]


def test_what_is_printed_as_the_target_may_be_above_it(tmp_path: Path) -> None:
    [run] = read(write(tmp_path, [Written("1:9|1.0e-08", [(1, 5.0)])]))
    assert (run.best[-1], run.end) == (1e-8, "unknown")


def test_an_instance_that_occurs_several_times_is_run_with_several_seeds(tmp_path: Path) -> None:
    runs = [Written(f"{i}:5|{v:.1e}", [(1, 9.0), (5, v)]) for i, v in ((1, 3.0), (2, 4.0), (1, 2.0), (1, 1.0))]
    found = read(write(tmp_path, runs))
    assert [(run.instance, run.seed, run.best[-1]) for run in found] == [
        ("f1_d2_i1", 0, 3.0),
        ("f1_d2_i2", 0, 4.0),
        ("f1_d2_i1", 1, 2.0),
        ("f1_d2_i1", 2, 1.0),
    ]


def test_several_entries_and_files_of_an_info_file_are_read(tmp_path: Path) -> None:
    write(tmp_path, RUNS)
    write(tmp_path, RUNS[:1], dimension=5)
    # An experiment that came back to dimension 2 adds an entry for the same file; a line may also name two files.
    more = [Written("7:5|1.0e+00", [(1, 3.0), (5, 1.0)], [(1, 3.0), (5, 1.0)])]
    for ending in ("dat", "tdat"):
        path = tmp_path / "data_f1" / f"bbobexp_f1_DIM2.{ending}"
        before = path.read_text()
        write(tmp_path / "more", more)
        path.write_text(before + (tmp_path / "more" / "data_f1" / path.name).read_text())
    header = NEW.format(function=1, dimension=2, algorithm="alg")
    with (tmp_path / "bbobexp_f1.info").open("a") as index:
        index.write(f"\n{header}\n% \ndata_f1/bbobexp_f1_DIM2.dat, 7:5|1.0e+00, more/data_f1/bbobexp_f1_DIM2.dat")
        index.write(", 8:5|1.0e+00,")
    (tmp_path / "more" / "bbobexp_f1.info").unlink()
    found = {run.instance: run for run in read(tmp_path)}
    assert sorted(found) == ["f1_d2_i1", "f1_d2_i2", "f1_d2_i7", "f1_d2_i8", "f1_d5_i1"]
    assert found["f1_d2_i7"].best.tolist() == found["f1_d2_i8"].best.tolist() == [3.0, 1.0]


def test_comments_and_names_in_other_encodings_and_with_quotes_are_read(tmp_path: Path) -> None:
    write(tmp_path, RUNS, algorithm="a's, b = 1")
    index = tmp_path / "bbobexp_f1.info"
    index.write_bytes(index.read_bytes().replace(b"a comment", b"by Po\xb9\xedk"))
    data = tmp_path / "data_f1" / "bbobexp_f1_DIM2.dat"
    data.write_text("% instance = 1\n" + data.read_text().replace(f"{NEW_COLUMNS}\n", f"{NEW_COLUMNS}\n% a note\n"))
    assert {run.algorithm for run in read(tmp_path)} == {"a's, b = 1"}


def test_rows_without_a_finite_value_leave_the_best_value_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, [Written("1:9|inf", [(1, 5.0), (3, 4.0), (9, 3.0)])])
    path = tmp_path / "data_f1" / "bbobexp_f1_DIM2.dat"
    edit(path, "1 0 +5.000000000e+00", "1 0 1.#INF")
    edit(path, "3 0 +4.000000000e+00", "3 0 -nan(ind)")
    [run] = read(tmp_path)
    assert (run.times.tolist(), run.best.tolist()) == ([9], [3.0])


def test_a_run_without_an_end_is_as_long_as_its_rows(tmp_path: Path) -> None:
    write(tmp_path, [RUNS[0], Written("5", [(1, 4.0), (3, 2.0)], [(1, 4.0), (8, 2.0)])])
    with pytest.warns(PolarBearWarning, match="1 of 2 runs are in the .info file without an end"):
        _, run = read(tmp_path)
    assert (run.instance, run.horizon, run.best[-1], run.end) == ("f1_d2_i5", 8, 2.0, "unknown")


def test_a_file_may_end_with_blanks(tmp_path: Path) -> None:
    expected = read(write(tmp_path, RUNS))
    for path in (tmp_path / "data_f1").iterdir():
        path.write_text(path.read_text() + "\n  ")
    assert read(tmp_path) == expected


def test_headers_without_rows_are_no_runs_if_none_are_described(tmp_path: Path) -> None:
    expected = read(write(tmp_path, RUNS))
    for path in (tmp_path / "data_f1").iterdir():
        path.write_text(f"{NEW_COLUMNS}\n{path.read_text()}{NEW_COLUMNS}\n")
    assert read(tmp_path) == expected


POINTS = st.lists(
    st.tuples(st.integers(1, 10**6), st.floats(1e-12, 1e6).map(lambda value: float(f"{value:.9e}"))), min_size=1
)


@given(st.lists(POINTS, min_size=1, max_size=4), st.booleans(), st.data())
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, curves: list[Any], old: bool, data: st.DataObject
) -> None:
    runs, expected = [], []
    for instance, curve in enumerate(curves, start=1):
        values = np.minimum.accumulate([value for _, value in curve]).tolist()
        points = sorted(dict(zip(sorted({time for time, _ in curve}), values, strict=False)).items())
        horizon = points[-1][0] + data.draw(st.integers(0, 50))
        final = points[-1][1]
        fixed = [*points[:: data.draw(st.integers(1, 3))], (horizon, final)]
        runs.append(Written(f"{instance}:{horizon}|{final - 1e-8 * old:.1e}", points, fixed))
        improved = [place for place, point in enumerate(points) if not place or point[1] < points[place - 1][1]]
        expected.append(([points[k][0] for k in improved], [points[k][1] for k in improved], horizon, final <= 1e-8))
    folder = tmp_path_factory.mktemp("coco")
    write(folder, runs, header=OLD if old else NEW, columns=OLD_COLUMNS if old else NEW_COLUMNS)
    found = [(run.times.tolist(), run.best.tolist(), run.horizon, run.end == "done") for run in read(folder)]
    assert found == expected


# Places


@pytest.mark.parametrize("name", ["a.zip", "a.tgz", "a.tar.gz", "a.tar", "A.TGZ"])
def test_archives_are_read_as_the_folder_they_were_made_from(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "alg-2009" / "deep", RUNS)
    write(folder, RUNS[:1], function=3)
    (folder / "data_f1" / "bbobexp_f1_DIM2.rdat").write_text("% not read\n")
    packed = pack(tmp_path / "alg-2009", tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    assert sorted(map(repr, read(packed))) == sorted(map(repr, read(tmp_path / "alg-2009")))
    assert [run.algorithm for run in read(packed, algorithm="folder")] == [
        "deep" if ".zip" in name else "inside/deep"
    ] * 3
    assert sorted(tmp_path.rglob("*")) == before


def test_an_info_file_alone_is_read(tmp_path: Path) -> None:
    write(tmp_path, RUNS)
    write(tmp_path, RUNS[:1], function=2)
    assert [run.instance for run in read(str(tmp_path / "bbobexp_f2.info"))] == ["f2_d2_i1"]


def test_the_adapter_keeps_its_promises(tmp_path: Path) -> None:
    damaged = write(tmp_path / "damaged", RUNS)
    (damaged / "data_f1" / "bbobexp_f1_DIM2.dat").unlink()
    check_adapter(coco, write(tmp_path / "whole", RUNS), {"dimensions": "2"}, damaged=[damaged])


def test_instances_may_be_split_over_folders_and_sources(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", RUNS[:1]), write(tmp_path / "two", RUNS[1:])
    for source in (tmp_path, [two, one], [pack(one, tmp_path / "one.tgz"), two]):
        assert [(run.algorithm, run.instance) for run in read(source)] == [("alg", "f1_d2_i1"), ("alg", "f1_d2_i2")]


def test_archives_with_the_same_name_on_the_same_problems_are_not_mixed(tmp_path: Path) -> None:
    sources = [pack(write(tmp_path / name, RUNS), tmp_path / f"{name}.tgz") for name in ("x_2009", "y_2010")]
    with pytest.warns(PolarBearWarning, match="'alg' has runs on the same problems in the folders"):
        runs = read(sources)
    assert {run.algorithm for run in runs} == {"alg (x_2009/inside)", "alg (y_2010/inside)"}
    assert {run.seed for run in runs} == {0}
    together = read(sources, algorithm="name")
    assert sorted((run.instance, run.seed) for run in together) == [(f"f1_d2_i{i}", s) for i in (1, 2) for s in (0, 1)]


def test_archives_with_the_same_name_on_different_problems_are_one_algorithm_with_a_warning(tmp_path: Path) -> None:
    sources = [pack(write(tmp_path / f"x{n}", [run]), tmp_path / f"x{n}.tgz") for n, run in enumerate(RUNS)]
    with pytest.warns(PolarBearWarning, match="'alg' has runs on different problems in the archives x0, x1"):
        assert {run.algorithm for run in read(sources)} == {"alg"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {run.algorithm for run in read(sources, algorithm="name")} == {"alg"}
        assert len({run.algorithm for run in read(sources, algorithm="name+folder")}) == 2
        write(tmp_path / "z", RUNS, algorithm="other")
        assert len(read([sources[0], tmp_path / "z"])) == 3


def test_a_folder_given_twice_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "one", RUNS)
    with pytest.raises(SourceError, match=r"bbobexp_f1\.info describes .*, as .* does\. Give each folder once"):
        read([tmp_path, folder])


def test_without_a_name_an_algorithm_is_called_like_its_folder(tmp_path: Path) -> None:
    assert {run.algorithm for run in read(write(tmp_path / "mine", RUNS, algorithm=""))} == {"mine"}


def test_data_of_coco_and_of_iohprofiler_are_compared_on_the_same_instances(tmp_path: Path) -> None:
    write(tmp_path / "coco", RUNS)
    rows = "evaluations raw_y\n1 5.0000000000\n20 0.5000000000\n"
    run = {"instance": 1, "evals": 20, "best": {"evals": 20, "y": 0.5, "x": []}}
    scenario = {"dimension": 2, "path": "data_f1/IOHprofiler_f1_DIM2.dat", "runs": [run]}
    described = {"suite": "bbob", "function_id": 1, "function_name": "Sphere", "maximization": False}
    described |= {"algorithm": {"name": "other"}, "scenarios": [scenario]}
    (tmp_path / "ioh" / "data_f1").mkdir(parents=True)
    (tmp_path / "ioh" / "data_f1" / "IOHprofiler_f1_DIM2.dat").write_text(rows)
    (tmp_path / "ioh" / "IOHprofiler_f1_Sphere.json").write_text(json.dumps(described))
    plugins = Plugins()
    for name, adapter in (("coco", coco), ("ioh-logs", ioh_logs)):
        plugins.register(adapter, name)
    runs = list(plugins.read_trajectories(tmp_path / "ioh", tmp_path / "coco"))
    assert {(run.algorithm, run.instance, run.group) for run in runs if run.instance == "f1_d2_i1"} == {
        ("alg", "f1_d2_i1", "f1 Sphere"),
        ("other", "f1_d2_i1", "f1 Sphere"),
    }
    assert rank([run for run in runs if run.instance == "f1_d2_i1"], [20]).ranks.shape[-1] == 2


@pytest.mark.parametrize("content", [{}, {"notes.txt": "x"}, {"x.info": "x", "IOHprofiler_f1_Sphere.json": "{}"}])
def test_what_is_not_of_coco_is_left_to_others(tmp_path: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    assert coco.polarbear_read_trajectories(tmp_path, {}) is None


# Options


def test_functions_dimensions_and_instances_can_be_chosen(tmp_path: Path) -> None:
    for function in (1, 8):
        for dimension in (2, 5):
            write(tmp_path, RUNS, function=function, dimension=dimension)

    def names(**options: object) -> list[str]:
        return [run.instance for run in read(tmp_path, **options)]

    assert names(functions="Rosenbrock", dimensions=5) == ["f8_d5_i1", "f8_d5_i2"]
    assert names(functions="1-3", instances=[2]) == ["f1_d2_i2", "f1_d5_i2"]
    assert names(instance="suite,name,instance", dimensions="2") == [
        f"bbob_{name}_i{i}" for name in ("Sphere", "Rosenbrock") for i in (1, 2)
    ]
    with pytest.raises(SourceError, match=r"leave no run\. There is function 1 in dimension 2, 1 in dimension 5, 8 in"):
        names(functions=2)


@pytest.mark.parametrize(
    ("group", "found"),
    [(None, {("f1 Sphere", True)}), ("dimension", {("d2", False)}), ("none", {(None, False)})],
)
def test_groups_are_functions_unless_others_are_chosen(
    tmp_path: Path, group: str | None, found: set[tuple[str | None, bool]]
) -> None:
    assert {(run.group, run.fixed_group) for run in read(write(tmp_path, RUNS), group=group)} == found


@pytest.mark.parametrize(
    ("suite", "function", "group"),
    [
        ("bbob-noisy", 101, "f101"),
        ("bbob-largescale", 3, "f3"),
        ("bbob-mixint", 3, "f3"),
        ("sbox-cost", 3, "f3 Rastrigin"),
    ],
)
def test_the_functions_of_other_suites_are_fixed_groups_too(
    tmp_path: Path, suite: str, function: int, group: str
) -> None:
    runs = read(write(tmp_path, RUNS, function=function, header=NEW.replace("'bbob', f", f"'{suite}', f")))
    assert {(run.group, run.fixed_group) for run in runs} == {(group, True)}


def test_older_files_of_noisy_functions_belong_to_the_noisy_suite(tmp_path: Path) -> None:
    write(tmp_path, RUNS, function=107, header=OLD, columns=OLD_COLUMNS)
    assert {run.instance for run in read(tmp_path, instance="suite,instance")} == {"bbob-noisy_i1", "bbob-noisy_i2"}


def test_the_same_number_in_several_suites_is_refused_until_they_are_told_apart(tmp_path: Path) -> None:
    write(tmp_path / "a", RUNS)
    write(tmp_path / "b", RUNS, header=NEW.replace("'bbob', f", "'bbob-largescale', f"))
    with pytest.raises(SourceError, match=r"Function 1 is of the suite 'bbob' in .* Distinguish them with instance="):
        read(tmp_path)
    assert len({run.instance for run in read(tmp_path, instance="suite,function,dimension,instance")}) == 4


@pytest.mark.parametrize("options", [{"columns": "x"}, {"best": "json"}, {"dimensions": "two"}, {"maximize": "true"}])
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(options))):
        read(write(tmp_path, RUNS), **options)


# Files that contradict themselves


def test_rows_past_the_end_are_left_out_with_a_warning(tmp_path: Path) -> None:
    write(tmp_path, [Written("1:20|2.5e-01", [(1, 5.0), (7, 0.25), (90, 0.1)], [(1, 5.0), (20, 0.25)]), RUNS[1]])
    with pytest.warns(PolarBearWarning, match="1 of 2 runs have rows past the evaluations"):
        run, _ = read(tmp_path)
    assert (run.times.tolist(), run.horizon) == ([1, 7], 20)
    run, _ = read(tmp_path, best="rows")
    assert (run.times.tolist(), run.horizon) == ([1, 7, 90], 90)


def test_of_best_values_that_increase_the_smallest_so_far_counts(tmp_path: Path) -> None:
    write(tmp_path, [Written("1:20|2.5e-01", [(1, 5.0), (7, 0.25)], [(1, 6.0), (2, 7.0), (20, 0.25)])])
    with pytest.warns(PolarBearWarning, match="1 of 1 runs have best values that increase"):
        [run] = read(tmp_path)
    assert (run.times.tolist(), run.best.tolist()) == ([1, 7], [5.0, 0.25])


def test_rows_that_are_better_than_the_info_file_count(tmp_path: Path) -> None:
    write(tmp_path, [Written("1:20|2.5e-01", [(1, 5.0), (7, 1e-9)], [(1, 5.0), (20, 0.25)])])
    with pytest.warns(PolarBearWarning, match="1 of 1 runs have better values in their rows"):
        [run] = read(tmp_path)
    assert (run.best[-1], run.end) == (1e-9, "done")


def test_files_that_agree_do_not_warn(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(read(write(tmp_path, RUNS))) == 2


def test_the_rows_alone_are_used_if_the_user_wants(tmp_path: Path) -> None:
    write(tmp_path, [Written("1:50|1.0e-09", [(1, 5.0), (7, 0.25)], [(1, 5.0), (20, 0.25)])])
    with pytest.raises(SourceError, match=r"counts 50 evaluations, but the \.tdat file ends at 20"):
        read(tmp_path)
    [run] = read(tmp_path, best="rows")
    assert (run.best[-1], run.horizon, run.end) == (0.25, 20, "unknown")


# IOHprofiler before JSON

IOH_COLUMNS = '"function evaluation" "current f(x)" "best-so-far f(x)" "current af(x)+b" "best af(x)+b" "rate"'


def write_ioh(folder: Path, header: str, entries: str = "1:3|7, 2:2|4;0.5", ending: str = "dat") -> Path:
    (folder / "data_f1").mkdir(parents=True)
    name = "data_f1/IOHprofiler_f1_DIM16"
    rows = [IOH_COLUMNS, "1 5 5 1 2 0.1", "2 3 5 1 2 0.1", "3 7 7 1 2 0.1", "9 6 7 1 2 0.1", IOH_COLUMNS]
    (folder / f"{name}.{ending}").write_text("\n".join([*rows, "1 4 4 1 2 0.1", "8 0 4 1 2 0.1", ""]))
    (folder / "IOHprofiler_f1_i1.info").write_text(f"{header}\n%\n{name}.dat, {entries}")
    return folder


@pytest.mark.parametrize("ending", ["dat", "tdat", "idat", "cdat"])
@pytest.mark.parametrize(
    "header",
    [
        "suite = 'PBO', funcId = 1, DIM = 16, algId = 'ea'",
        'suite = "mine", funcId = 1, funcName = "OneMax", DIM = 16, maximization = "T", algId = "ea", algInfo = "x"',
    ],
)
def test_data_of_iohprofiler_from_before_json_are_read(tmp_path: Path, header: str, ending: str) -> None:
    first, second = read(write_ioh(tmp_path / "a", header, ending=ending))
    assert (first.algorithm, first.instance, first.dimension) == ("ea", "f1_d16_i1", 16)
    assert (first.times.tolist(), first.best.tolist(), first.horizon) == ([1, 3], [-5, -7], 9)
    assert (second.times.tolist(), second.best.tolist(), second.horizon) == ([1], [-4], 8)
    assert {(run.end, run.group) for run in (first, second)} == {("unknown", "f1 OneMax")}


def test_data_of_iohprofiler_that_do_not_say_the_direction_need_an_option(tmp_path: Path) -> None:
    folder = write_ioh(tmp_path / "a", "suite = 'mine', funcId = 1, DIM = 16, algId = 'ea'")
    with pytest.raises(SourceError, match=r"does not say whether values are maximised\. Give maximize=true or"):
        read(folder)
    assert [run.best.tolist() for run in read(folder, maximize=True)] == [[-5, -7], [-4]]


# Refused suites


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "suite = 'bbob-biobj', algorithm = 'x', indicator = 'hyp'\n%\nfunction = 1, dim = 2, a.dat, 1:5|1",
            "bi-objective",
        ),
        ("algorithm = 'x', indicator = 'hyp'\n%\nfunction = 1, dim = 2, a.dat, 1:5|1", "this is bi-objective"),
        ("suite = 'bbob-constrained', funcId = 1, DIM = 2\n%\na.dat, 1:5|1", "'bbob-constrained' has constraints"),
    ],
)
def test_other_suites_are_refused_with_the_reason(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.info").write_text(text)
    with pytest.raises(SourceError, match=rf"a\.info, line 1: .*{message}.* Leave it out"):
        read(tmp_path)


def test_the_best_of_several_algorithms_is_refused_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path, [Written("0:9|1.0e-08", [(1, 5.0)])])
    data = tmp_path / "data_f1" / "bbobexp_f1_DIM2.dat"
    data.write_text("% Artificial instance\n% algorithm type = best\n1 1.0e+02 1.0e+02 A.tgz 5 5\n")
    with pytest.raises(SourceError, match="line 2: these are not runs, but the best of several algorithms"):
        read(tmp_path)


# Damage: each is refused with file and place, and can be skipped

DAT, TDAT, INFO = "data_f1/bbobexp_f1_DIM2.dat", "data_f1/bbobexp_f1_DIM2.tdat", "bbobexp_f1.info"


def change(name: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda folder: edit(folder / name, old, new)


def cut(name: str, characters: int) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_text(path.read_text()[:-characters])

    return damage


def drop_last_row(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))

    return damage


def drop_last_run(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / name
        path.write_text(NEW_COLUMNS.join(path.read_text().split(NEW_COLUMNS)[:-1]))

    return damage


def one_more_run(folder: Path) -> None:
    for name in (DAT, TDAT):
        text = (folder / name).read_text()
        extra = f"{NEW_COLUMNS}\n{row(1, 77.0, NEW_COLUMNS)}\n"
        (folder / name).write_text(extra + text if name == DAT else text + extra)


# What is done, what the message says, and how many of the two runs are left.
DAMAGE: list[tuple[Callable[[Path], Any], str, int]] = [
    (lambda folder: (folder / DAT).unlink(), r"DIM2\.dat: there is no such file, and bbobexp_f1\.info describes 2", 0),
    (lambda folder: (folder / DAT).write_text(""), r"DIM2\.dat: bbobexp_f1\.info describes 2 runs, .* holds 0", 0),
    (drop_last_run(DAT), r"DIM2\.dat: bbobexp_f1\.info describes 2 runs, and this file holds 1\.", 1),
    (drop_last_run(TDAT), r"DIM2\.tdat: bbobexp_f1\.info describes 2 runs, and this file holds 1\.", 2),
    (one_more_run, r"DIM2\.dat: bbobexp_f1\.info describes 2 runs, and this file holds 3\.", 2),
    (change(INFO, ", 2:9|3.1e-09", ""), r"DIM2\.dat: bbobexp_f1\.info describes 1 run, and this file holds 2", 1),
    (change(INFO, ", 1:20|2.5e-01, 2:9|3.1e-09", ""), r"DIM2\.dat: bbobexp_f1\.info describes 0 runs, .* holds 2", 0),
    (cut(DAT, 3), r"DIM2\.dat, run 2, line 6: the file was cut: it ends inside a number \('\+1\.0e\+'\)", 1),
    (cut(DAT, 10), r"DIM2\.dat, run 2, line 6: expected 7 numbers .*, got '9 0", 1),
    (drop_last_row(TDAT), r"DIM2\.dat, run 2: .*counts 9 evaluations, but the \.tdat file ends at 1", 1),
    (cut(TDAT, 10), r"DIM2\.tdat, run 2, line 8: expected 7 numbers", 1),
    (change(TDAT, "5 0 +1", "five 0 +1"), r"DIM2\.tdat, run 1, line 3: expected evaluations and a value, got 'five", 1),
    (change(DAT, "7 0 +2", "seven 0 +2"), r"run 1, line 3: expected evaluations and a value, got 'seven", 1),
    (change(DAT, "+2.500000000e-01", "two"), r"run 1, line 3: expected evaluations and a value, got '7 0 two", 1),
    (change(DAT, "7 0 +2.500000000e-01", ""), r"run 1, line 3: expected 7 numbers as in the rows before, got", 1),
    (change(DAT, "7 0 +2", "0 0 +2"), r"run 1, line 3: expected evaluations from 1 on, got '0'\. Rows of another", 1),
    (change(DAT, "1 0 +5", "-1 0 +5"), r"run 1, line 2: expected evaluations from 0 on, got '-1'", 1),
    (change(DAT, "7 0 +2", "inf 0 +2"), r"run 1, line 3: expected evaluations from 1 on, got 'inf'", 1),
    (change(DAT, "best noise-free", "best"), r"run 1, line 1: expected a column 'best noise-free fitness - Fopt'", 1),
    (lambda folder: (folder / DAT).write_text("1 0 2.0 3.0\n"), r"DIM2\.dat, line 1: expected the names of columns", 0),
    (lambda folder: (folder / DAT).write_bytes(b"\xff\xfe" * 20), r"DIM2\.dat, line 1: expected the names of col", 0),
    (lambda folder: (folder / "data_f1" / "x_f1_DIM3.dat").touch(), r"x_f1_DIM3\.dat: no \.info file describes", 2),
    (change(INFO, "1:20|", "1:0|"), r"run 1: the \.info file counts 0 evaluations, and the rows begin after them", 1),
    (change(INFO, "1:20|", "1;20|"), r"f1\.info, line 3: expected a run as instance:evaluations\|value, got '1;20", 0),
    (change(INFO, "2.5e-01", "much"), r"f1\.info, line 3: expected a run as instance:evaluations\|value, got", 0),
    (change(INFO, "data_f1/bbobexp_f1_DIM2.dat, ", ""), r"line 3: expected the name of a \.dat file, got '1:20", 0),
    (change(INFO, "data_f1", "../data_f1"), r"line 3: expected the path of a \.dat file below the \.info file", 0),
    (change(INFO, "data_f1", "/data_f1"), r"line 3: expected the path of a \.dat file below the \.info file", 0),
    (change(INFO, "data_f1", "C:\\data_f1"), r"line 3: expected the path of a \.dat file below the \.info file", 0),
    (change(INFO, "f1_DIM2.dat", "f1_\0.dat"), r"line 3: expected the path of a \.dat file below", 0),
    (change(INFO, "f1_DIM2.dat", "1" * 1001 + ".dat"), r"line 3: expected the path of a \.dat file below", 0),
    (change(INFO, "DIM = 2", "DIM = two"), r"f1\.info, line 1: expected a whole number as DIM, got 'two'", 0),
    (change(INFO, "DIM = 2", "DIM = 0"), r"f1\.info, line 1: expected a whole number as DIM, got '0'", 0),
    (change(INFO, "funcId = 1, ", ""), r"f1\.info, line 1: expected a whole number as funcId, got none", 0),
    (change(INFO, "1.000e-08", "small"), r"f1\.info, line 1: expected a number as Precision, got 'small'", 0),
    (lambda folder: (folder / INFO).write_text("%\n"), r"f1\.info: expected the description of runs, got nothing", 0),
    (lambda folder: (folder / INFO).write_text("a.dat, 1:2|3"), r"f1\.info, line 1: expected a line such as funcId", 0),
    (cut(INFO, 56), r"f1\.info, line 1: expected the name of a \.dat file and its runs below\. The file is cut", 0),
]


@pytest.mark.parametrize("packed", ["", "data.zip", "data.tgz"])
@pytest.mark.parametrize(("damage", "message", "left"), DAMAGE)
def test_damage_is_refused_with_its_place_and_can_be_skipped(
    tmp_path: Path, damage: Callable[[Path], Any], message: str, left: int, packed: str
) -> None:
    folder = write(tmp_path / "data", RUNS)
    damage(folder)
    source = pack(folder, tmp_path / packed) if packed else folder
    with pytest.raises(SourceError, match=message) as caught:
        read(source)
    assert "data/" in str(caught.value)
    with pytest.warns(PolarBearWarning, match="Skipped what is damaged"):
        runs = read(source, skip_damaged="true")
    assert len(runs) == left
    whole = {run.instance: run for run in read(write(tmp_path / "whole", RUNS))}
    for run in runs:
        assert run.best[-1] == whole[run.instance].best[-1]  # and none is that of another run


def test_rows_that_end_after_a_run_are_not_taken_for_it(tmp_path: Path) -> None:
    folder = write(tmp_path, RUNS)
    longer = f"{NEW_COLUMNS}\n{row(1, 5.0, NEW_COLUMNS)}\n{row(50, 0.25, NEW_COLUMNS)}\n"
    (folder / DAT).write_text(longer + (folder / DAT).read_text())
    with pytest.warns(PolarBearWarning, match="describes 2 runs, and this file holds 3"):
        assert read(folder, skip_damaged=True) == read(write(tmp_path / "whole", RUNS))


def test_rows_are_not_taken_for_two_runs(tmp_path: Path) -> None:
    alike = [Written("1:5|1.0e+00", [(1, 3.0), (5, 1.0)], [(1, 3.0), (5, 1.0)])] * 3
    folder = write(tmp_path, alike)
    drop_last_run(DAT)(folder)
    with pytest.warns(PolarBearWarning, match="no rows are certainly those of the run 3"):
        assert len(read(folder, skip_damaged=True)) == 2


def test_an_entry_without_runs_and_without_rows_is_nothing_to_read(tmp_path: Path) -> None:
    write(tmp_path, RUNS)
    with (tmp_path / INFO).open("a") as index:
        index.write(f"{NEW.format(function=1, dimension=3, algorithm='alg')}\n%\ndata_f1/bbobexp_f1_DIM3.dat")
    assert len(read(tmp_path)) == 2


def test_a_dat_file_of_two_problems_is_refused(tmp_path: Path) -> None:
    write(tmp_path, RUNS)
    write(tmp_path, RUNS, dimension=3)
    edit(tmp_path / INFO, "DIM3.dat", "DIM2.dat")
    with pytest.raises(SourceError, match=r"line 6: 'data_f1/.* belongs to another function, dimension or algorithm"):
        read(tmp_path)


def test_columns_of_iohprofiler_are_not_taken_for_those_of_coco(tmp_path: Path) -> None:
    write(tmp_path, [Written("1:1|1.0e+00", [(1, 1.0)])])
    (tmp_path / DAT).write_text(f"{IOH_COLUMNS}\n1 5 5 1 2 0.1\n")
    with pytest.raises(SourceError, match="line 1: expected the columns of COCO, got those of IOHprofiler"):
        read(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, RUNS)
    (tmp_path / DAT).unlink()
    os.mkfifo(tmp_path / DAT)
    with pytest.raises(SourceError, match=r"DIM2\.dat cannot be read: it is a folder, a pipe or a device"):
        read(tmp_path)


# Archives that are not what they seem


def tar_of(path: Path, members: Iterable[tuple[str, bytes | str]]) -> Path:
    """A .tgz with files; text instead of bytes is where a link leads."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def members(tmp_path: Path) -> list[tuple[str, bytes]]:
    folder = write(tmp_path / "data", RUNS)
    return [
        (file.relative_to(folder).as_posix(), file.read_bytes()) for file in sorted(folder.rglob("*")) if file.is_file()
    ]


def test_links_in_an_archive_are_not_followed(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    outside = tmp_path / "outside.dat"
    outside.write_bytes(dict(members)[DAT])
    linked = [(name, str(outside) if name == DAT else content) for name, content in members]
    with pytest.raises(SourceError, match=r"DIM2\.dat: there is no such file"):
        read(tar_of(tmp_path / "a.tgz", linked))


def test_names_that_lead_out_of_an_archive_lead_nowhere(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert len(read(tar_of(tmp_path / "a.tgz", [(f"../../up/{name}", content) for name, content in members]))) == 2
    assert sorted(tmp_path.rglob("*")) == sorted([*before, tmp_path / "a.tgz"])


def test_an_archive_that_holds_a_file_twice_is_refused(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    with pytest.raises(SourceError, match=r"a\.tgz holds 'bbobexp_f1\.info' twice\. Create the tar file again"):
        read(tar_of(tmp_path / "a.tgz", [*members, members[0]]))


def test_an_archive_that_grows_more_than_data_do_is_refused(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    source = tar_of(tmp_path / "a.tgz", [*members, ("x_f9_DIM2.dat", bytes(60_000_000))])
    with pytest.raises(SourceError, match=r"a\.tgz would grow from .* bytes, which no real data does"):
        read(source)


def test_a_damaged_header_is_not_taken_for_the_end_of_an_archive(
    tmp_path: Path, members: list[tuple[str, bytes]]
) -> None:
    data = bytearray(gzip.decompress(tar_of(tmp_path / "a.tgz", members).read_bytes()))
    second = next(place for place in range(512, len(data), 512) if data[place:].startswith(DAT.encode()))
    data[second + 150] ^= 1  # its checksum
    (tmp_path / "a.tgz").write_bytes(gzip.compress(bytes(data)))
    with pytest.raises(SourceError, match=r"a\.tgz cannot be read as a tar file: its end comes too early"):
        read(tmp_path / "a.tgz")


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", gzip.compress(b"x" * 1000), b"\x1f\x8b" + b"\0" * 30],
    ids=["empty", "text", "gzip of text", "damaged gzip"],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.tgz").write_bytes(content)
    with pytest.raises(SourceError, match=r"a\.tgz cannot be read as a tar file"):
        read(tmp_path / "a.tgz")


def test_a_cut_archive_is_refused(tmp_path: Path, members: list[tuple[str, bytes]]) -> None:
    path = tar_of(tmp_path / "a.tgz", members)
    whole = path.read_bytes()
    for length in range(1, len(whole), 40):
        path.write_bytes(whole[:length])
        with pytest.raises(SourceError, match=r"a\.tgz cannot be read as a tar file"):
            read(path)


def test_an_archive_without_data_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"a holds no COCO data: expected files such as bbobexp_f1\.info"):
        read(tar_of(tmp_path / "a.tgz", [("readme.txt", b"x")]))


# Real data


@dataclass
class Real:
    """What is known of real data."""

    path: str
    runs: int
    done: int
    algorithms: set[str] = field(default_factory=set)


REAL = [
    Real("coco/exdata", 96, 21, {"nelder-mead-restarts", "one-plus-one", "random-search"}),
    Real("ioh/tests/test_coco_data", 15, 15, {"BFGS-scipy-2019"}),
    Real("coco/DIRECT_posik_noiseless.tgz", 720, 244, {"DIRECT"}),
]


@pytest.mark.parametrize("real", REAL, ids=lambda real: Path(real.path).name)
def test_every_run_of_real_data_is_read(shared: Path, real: Real) -> None:
    if not (shared / real.path).exists():
        pytest.skip("no such data")
    runs = read(shared / real.path)
    assert (len(runs), sum(run.end == "done" for run in runs)) == (real.runs, real.done)
    assert {run.algorithm for run in runs} == real.algorithms
    for run in runs:
        assert (hitting_times(run, np.array([1e-8]))[0] <= run.horizon) == (run.end == "done")


@pytest.mark.slow
def test_every_run_of_a_real_archive_that_contradicts_itself_is_read(shared: Path) -> None:
    if not (shared / "coco").exists():
        pytest.skip("no such data")
    with pytest.warns(PolarBearWarning, match="672 of 1800 runs have rows past .*\n998 of 1800 .*\n430 of 1800 "):
        assert len(read(shared / "coco" / "EvoSpace-PSO-GA_Garcia-Valdez.tgz")) == 1800
