from __future__ import annotations

import gzip
import io
import warnings
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from polarbear_plugins import PolarBearError, Trajectory, load_plugins, read_trajectories
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning, SourceError, UnknownNameError

HEADER = "algorithm,instance,time,value\n"
PLUGINS = load_plugins()

# Two algorithms on two instances, two runs of one of them; all watched until 10, rows in the order of time.
RUNS = pd.DataFrame(
    [
        ("csa", "f1", 0, 1, 5.0),
        ("msr", "f1", 0, 1, 6.0),
        ("csa", "f1", 1, 1, 7.0),
        ("csa", "f2", 0, 2, 1.5),
        ("csa", "f1", 0, 4, 9.0),
        ("msr", "f1", 0, 4, np.nan),
        ("csa", "f1", 0, 10, 2.0),
        ("csa", "f1", 1, 10, 6.5),
        ("msr", "f1", 0, 10, 5.5),
        ("csa", "f2", 0, 10, 1.5),
    ],
    columns=["algorithm", "instance", "seed", "time", "value"],
)
TRAJECTORIES = [
    Trajectory(algorithm="csa", instance="f1", seed=0, times=[1, 10], best=[5.0, 2.0]),
    Trajectory(algorithm="msr", instance="f1", seed=0, times=[1, 10], best=[6.0, 5.5]),
    Trajectory(algorithm="csa", instance="f1", seed=1, times=[1, 10], best=[7.0, 6.5]),
    Trajectory(algorithm="csa", instance="f2", seed=0, times=[2], best=[1.5], horizon=10),
]


def read(source: object, **options: object) -> list[Trajectory]:
    return list(read_trajectories(source, plugins=PLUGINS, **options))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def frame(**columns: Any) -> pd.DataFrame:
    """A run of two rows; columns replace its own."""
    return pd.DataFrame({"algorithm": "csa", "instance": "f1", "time": [1, 10], "value": [5.0, 2.0], **columns})


def names(trajectories: list[Trajectory]) -> list[tuple[str, str, int]]:
    return [(run.algorithm, run.instance, run.seed) for run in trajectories]


# Kinds of tables


def test_a_data_frame_gives_its_runs_in_the_order_in_which_they_begin() -> None:
    assert read(RUNS) == TRAJECTORIES


@pytest.mark.parametrize("name", ["runs.csv", "runs.csv.gz", "runs.tsv", "runs.tsv.gz", "RUNS.CSV", "a.b.Csv.GZ"])
def test_text_files_give_the_same_trajectories_as_the_data_frame(tmp_path: Path, name: str) -> None:
    text = RUNS.to_csv(index=False, sep="\t" if "tsv" in name else ",").encode()
    path = write(tmp_path / name, gzip.compress(text) if name.lower().endswith("gz") else text)
    assert read(path) == TRAJECTORIES
    assert read(str(path)) == TRAJECTORIES


@pytest.mark.parametrize("name", ["runs.parquet", "runs.pq", "RUNS.Parquet"])
def test_parquet_files_give_the_same_trajectories_as_the_data_frame(tmp_path: Path, name: str) -> None:
    pytest.importorskip("pyarrow")
    RUNS.to_parquet(tmp_path / name)
    assert read(tmp_path / name) == TRAJECTORIES
    assert read(str(tmp_path / name)) == TRAJECTORIES


def test_parquet_files_with_categories_and_an_index_are_read_by_their_columns(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    odd = RUNS.astype({"algorithm": "category", "time": "uint8"}).set_index(np.arange(10)[::-1])
    odd.to_parquet(tmp_path / "runs.parquet")
    assert read(tmp_path / "runs.parquet") == TRAJECTORIES


NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"),  # the writer of pandas does not quote these
    min_size=1,
).filter(lambda text: text.strip() and not text.startswith("\ufeff"))


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Runs of any names, times and values, their rows interleaved."""
    keys = draw(
        st.lists(st.tuples(NAMES, NAMES, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=4, unique=True)
    )
    runs = []
    for key in keys:
        times = sorted(draw(st.lists(st.floats(0, 1e300), min_size=1, max_size=5, unique=True)))
        runs.append([(*key, time, draw(st.floats())) for time in times])
    turns = draw(st.permutations([k for k, run in enumerate(runs) for _ in run]))
    rows = [iter(run) for run in runs]
    return pd.DataFrame([next(rows[k]) for k in turns], columns=RUNS.columns)


@settings(max_examples=50)
@given(tables())
def test_a_data_frame_written_as_text_gives_equal_trajectories(
    tmp_path_factory: pytest.TempPathFactory, table: pd.DataFrame
) -> None:
    path = tmp_path_factory.getbasetemp() / "round_trip.csv"
    table.to_csv(path, index=False)
    assert read(path, horizon="last") == read(table, horizon="last")


@settings(max_examples=50)
@given(tables())
def test_the_order_in_which_runs_are_interleaved_does_not_matter(table: pd.DataFrame) -> None:
    sorted_table = table.sort_values(["algorithm", "instance", "seed", "time"])
    assert set(read(sorted_table, horizon="last")) == set(read(table, horizon="last"))


@settings(max_examples=50)
@given(tables())
def test_reading_leaves_a_data_frame_as_it_was(table: pd.DataFrame) -> None:
    before = table.copy(deep=True)
    read(table, horizon="longest", maximize=True)
    pd.testing.assert_frame_equal(table, before, check_exact=True)


@settings(max_examples=50)
@given(tables())
def test_the_trajectory_of_a_run_ends_at_the_best_of_its_values(table: pd.DataFrame) -> None:
    runs = table.groupby(["algorithm", "instance", "seed"], sort=False)["value"]
    for run in read(table, horizon="last"):
        best = runs.get_group((run.algorithm, run.instance, run.seed)).min()
        assert (run.best[-1] if run.best.size else np.inf) == (np.inf if np.isnan(best) else best)


# Columns


RENAMED = RUNS.rename(
    columns={"algorithm": "method", "instance": "function", "seed": "run", "time": "evaluations", "value": "raw_y"}
)


@pytest.mark.parametrize(
    "columns",
    [
        {"algorithm": "method", "instance": "function", "seed": "run", "time": "evaluations", "value": "raw_y"},
        {"algorithm": ("method",), "instance": ["function"], "seed": ("run",), "time": "evaluations", "value": "raw_y"},
        "algorithm=method,instance=function,seed=run,time=evaluations,value=raw_y",
        "algorithm=method, instance=function, seed=run, time=evaluations, value=raw_y",
    ],
)
def test_columns_of_other_names_are_found_by_the_mapping(tmp_path: Path, columns: object) -> None:
    RENAMED.to_csv(tmp_path / "runs.csv", index=False)
    assert read(RENAMED, columns=columns) == TRAJECTORIES
    assert read(tmp_path / "runs.csv", columns=columns) == TRAJECTORIES


@pytest.mark.parametrize(
    "columns",
    [{"instance": ("function", "dimension")}, {"instance": ["function", "dimension"]}, "instance=function+dimension"],
)
def test_several_columns_make_up_the_instance(tmp_path: Path, columns: object) -> None:
    table = frame(function=[1, 2], dimension=[5, 20]).drop(columns="instance")
    expected = [("csa", "function=1,dimension=5", 0), ("csa", "function=2,dimension=20", 0)]
    assert names(read(table, columns=columns)) == expected
    table.to_csv(tmp_path / "runs.csv", index=False)
    assert names(read(tmp_path / "runs.csv", columns=columns)) == expected


def test_one_column_may_play_two_roles() -> None:
    assert names(read(frame(value=[3, 3]), columns={"instance": "value"})) == [("csa", "3", 0)]


def test_columns_without_a_role_are_ignored(tmp_path: Path) -> None:
    table = RUNS.assign(comment="NA", when=pd.Timestamp("2026-01-01"), empty=None)
    table.to_csv(tmp_path / "runs.csv", index=False)
    assert read(table) == read(tmp_path / "runs.csv") == TRAJECTORIES


def test_runs_without_a_seed_have_the_seed_0() -> None:
    assert names(read(frame())) == [("csa", "f1", 0)]


@pytest.mark.parametrize("seed", [-3, 2**63 - 1, 2.0, "7"])
def test_seeds_are_whole_numbers_however_they_are_stored(tmp_path: Path, seed: Any) -> None:
    table = frame(seed=seed)
    table.to_csv(tmp_path / "runs.csv", index=False)
    assert [run.seed for run in read(table)] == [run.seed for run in read(tmp_path / "runs.csv")] == [int(seed)]


# Values and horizons


def test_the_trajectory_is_the_running_minimum_of_the_values() -> None:
    [run] = read(frame(time=[1, 2, 3, 4, 5], value=[3.0, 4.0, 1.0, 1.0, 0.5], algorithm="csa", instance="f1"))
    assert (run.times.tolist(), run.best.tolist(), run.horizon) == ([1, 3, 5], [3.0, 1.0, 0.5], 5)


@pytest.mark.parametrize("maximize", [True, "true", "True", "yes", "1"])
def test_values_to_be_maximised_turn_their_sign(maximize: object) -> None:
    [run] = read(frame(value=[5.0, 7.0]), maximize=maximize)
    assert run.best.tolist() == [-5.0, -7.0]


@pytest.mark.parametrize("maximize", [False, "false", "No", "0"])
def test_values_are_minimised_otherwise(maximize: object) -> None:
    [run] = read(frame(value=[5.0, 7.0]), maximize=maximize)
    assert run.best.tolist() == [5.0]


@pytest.mark.parametrize("failed", ["", "nan", "NaN", "NA", "null", "None"])
def test_nan_and_empty_values_are_failed_evaluations(tmp_path: Path, failed: str) -> None:
    path = write(tmp_path / "runs.csv", f"{HEADER}csa,f1,1,{failed}\ncsa,f1,2,5\ncsa,f1,9,{failed}\n")
    assert read(path) == [Trajectory(algorithm="csa", instance="f1", times=[2], best=[5.0], horizon=9)]


@pytest.mark.parametrize("values", [[np.nan, 5.0, np.nan], [None, 5, None], pd.array([None, 5, None], dtype="Int64")])
def test_missing_values_of_a_data_frame_are_failed_evaluations(values: Any) -> None:
    table = pd.DataFrame({"algorithm": "csa", "instance": "f1", "time": [1, 2, 9], "value": values})
    assert read(table) == [Trajectory(algorithm="csa", instance="f1", times=[2], best=[5.0], horizon=9)]


def test_a_run_whose_evaluations_all_failed_has_no_value_and_is_watched_until_its_last_row() -> None:
    assert read(frame(value=np.nan)) == [Trajectory(algorithm="csa", instance="f1", times=[], best=[], horizon=10)]


@pytest.mark.parametrize("horizon", [50, 50.0, "50", "5e1", np.int64(50)])
def test_a_horizon_given_as_a_number_holds_for_all_runs(horizon: object) -> None:
    assert {run.horizon for run in read(RUNS, horizon=horizon)} == {50.0}


def test_a_horizon_column_tells_how_far_each_run_was_watched() -> None:
    table = frame(instance=["f1", "f2"], horizon=[20, 30])
    assert [run.horizon for run in read(table)] == [20.0, 30.0]
    assert [run.horizon for run in read(table.rename(columns={"horizon": "to"}), columns={"horizon": "to"})] == [20, 30]


def test_longest_watches_all_runs_until_the_last_row_of_any() -> None:
    table = frame(instance=["f1", "f2"])
    assert [run.horizon for run in read(table, horizon="longest")] == [10.0, 10.0]
    assert [run.horizon for run in read(table, horizon="last")] == [1.0, 10.0]


def test_the_dimension_and_the_end_of_a_run_are_columns(tmp_path: Path) -> None:
    table = frame(algorithm=["csa", "msr"], dimension=5, end=["done", None])
    table.to_csv(tmp_path / "runs.csv", index=False)
    for source in (table, tmp_path / "runs.csv"):
        runs = read(source)
        assert [(run.dimension, run.end) for run in runs] == [(5, "done"), (5, "unknown")]
    again = pd.concat([run.to_pandas() for run in runs])
    assert read(again) == runs


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"dimension": [5, 0]}, r"row 1: expected a whole number from 1 on in 'dimension', got 0\."),
        ({"dimension": [5, 2.5]}, r"row 1: expected a whole number from 1 on in 'dimension', got 2\.5\."),
        ({"dimension": [5, 6]}, r"row 1: expected the dimension '5', which the instance 'f1' has at .*, got '6'\. An"),
        ({"end": ["done", "stopped"]}, r"row 1: expected the same word in all rows of a run in 'end', got 'stopped'\."),
        ({"end": ["over", "over"]}, r"row 0: expected unknown or stopped or done in 'end', got 'over'\."),
        ({"end": ["done", "done"], "value": [np.nan, np.nan]}, r"end='done' says that it reached its target, and it"),
    ],
)
def test_a_wrong_dimension_or_end_is_refused_by_its_place(columns: dict[str, object], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        read(frame(**columns))


# Names


def test_an_algorithm_may_be_called_like_a_missing_value(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", f"{HEADER}NA,nan,1,5\nNone,null,1,5\n")
    assert names(read(path)) == [("NA", "nan", 0), ("None", "null", 0)]


def test_names_that_are_the_same_number_stay_different_in_text(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", f"{HEADER}1,01,1,5\n1,1,1,5\n1.0,1e0,1,5\n")
    assert names(read(path)) == [("1", "01", 0), ("1", "1", 0), ("1.0", "1e0", 0)]


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        ([3, 12], ["3", "12"]),
        ([3.0, 12.0], ["3", "12"]),
        ([0.5, 12.0], ["0.5", "12"]),
        (["03", "3"], ["03", "3"]),
        (np.array([3, 12], dtype=np.uint8), ["3", "12"]),
        (pd.Categorical(["f2", "f1"], categories=["f1", "f2", "f3"]), ["f2", "f1"]),
        (pd.Categorical([12, 3]), ["12", "3"]),
        (pd.array([3, 12], dtype="Int64"), ["3", "12"]),
        (pd.array(["a", "b"], dtype="string"), ["a", "b"]),
        ([True, False], ["True", "False"]),
    ],
)
def test_instances_of_a_data_frame_may_be_of_any_type_with_a_text(instances: Any, expected: list[str]) -> None:
    assert [run.instance for run in read(frame(instance=instances))] == expected


def test_cells_of_different_types_with_the_same_text_are_the_same_name() -> None:
    assert names(read(frame(instance=pd.Series([1, "1"], dtype=object)))) == [("csa", "1", 0)]


def test_the_index_of_a_data_frame_does_not_matter() -> None:
    assert read(RUNS.set_index(np.zeros(10, dtype=int))) == TRAJECTORIES
    assert read(RUNS.set_index(pd.MultiIndex.from_product([["a", "b"], range(5)]))) == TRAJECTORIES


def test_numbers_written_as_text_in_a_data_frame_are_numbers() -> None:
    assert read(RUNS.astype({"time": str, "value": object})) == TRAJECTORIES


# Text


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + HEADER + "csa,f1,1,5\ncsa,f1,10,2\n",
        HEADER.replace("\n", "\r\n") + "csa,f1,1,5\r\ncsa,f1,10,2\r\n",
        HEADER + "csa,f1,1,5\ncsa,f1,10,2",
        HEADER + "\ncsa,f1,1,5\n\n\ncsa,f1,10,2\n\n",
        HEADER + '"csa","f1","1","5"\n"csa","f1","10","2"\n',
        "value,comment,time,instance,algorithm\n5,,1,f1,csa\n2,,10,f1,csa\n",
        HEADER + "csa,f1,1,5.0e0\ncsa,f1, 10 , 2\n",
    ],
    ids=["BOM", "CRLF", "no last newline", "blank lines", "quotes", "other order", "other numbers"],
)
def test_harmless_differences_of_text_do_not_matter(tmp_path: Path, text: str) -> None:
    assert read(write(tmp_path / "runs.csv", text)) == read(frame())


def test_quoted_names_may_contain_what_separates_others(tmp_path: Path) -> None:
    path = write(tmp_path / "runs.csv", HEADER + '"CMA-ES, active","f""1""",1,5\n')
    assert names(read(path)) == [("CMA-ES, active", 'f"1"', 0)]


# Damage


BAD_TEXT = {
    "missing column": (
        "algorithm,instance,evaluations,value\ncsa,f1,1,5\n",
        ["bad.csv has no column 'time'. It has algorithm, instance, evaluations, value. Expected", "columns="],
    ),
    "text for a time": (HEADER + "csa,f1,1,5\ncsa,f1,soon,5\n", ["bad.csv, line 3", "a number in 'time', got 'soon'"]),
    "text for a value": (
        HEADER + "csa,f1,1,5\ncsa,f1,2,low\n",
        ["bad.csv, line 3", "a number or 'unranked' in 'value', got 'low'"],
    ),
    "decimal comma": (HEADER + 'csa,f1,1,"0,5"\n', ["bad.csv, line 2", "a number or 'unranked' in 'value', got '0,5'"]),
    "true for a value": (
        HEADER + "csa,f1,1,True\n",
        ["bad.csv, line 2", "a number or 'unranked' in 'value', got True"],
    ),
    "decreasing times": (
        HEADER + "csa,f1,5,5\nmsr,f1,1,5\ncsa,f1,3,5\n",
        ["bad.csv, line 4: expected a time after 5 (bad.csv, line 2) in the same run, got 3", "Sort the rows by time"],
    ),
    "duplicated rows": (
        HEADER + "csa,f1,5,5\nmsr,f1,5,5\ncsa,f1,5,5\n",
        ["bad.csv, line 4: the same algorithm, instance, seed and time (5) as at bad.csv, line 2", "seed column"],
    ),
    "blank lines before": (HEADER + "\n\ncsa,f1,1,5\n\ncsa,f1,soon,5\n", ["bad.csv, line 6: expected a number in"]),
    "nan time": (
        HEADER + "csa,f1,1,5\ncsa,f1,nan,5\n",
        ["bad.csv, line 3: expected a finite number in 'time', got nan"],
    ),
    "no time": (HEADER + "csa,f1,1,5\ncsa,f1,,5\n", ["bad.csv, line 3: expected a finite number in 'time', got nan"]),
    "infinite time": (HEADER + "csa,f1,inf,5\n", ["bad.csv, line 2: expected a finite number in 'time', got inf"]),
    "overflowing time": (HEADER + "csa,f1,1e999,5\n", ["bad.csv, line 2: expected a finite number in 'time', got inf"]),
    "negative time": (HEADER + "csa,f1,-1,5\n", ["bad.csv, line 2: expected a number that is not negative in 'time'"]),
    "no algorithm": (HEADER + "csa,f1,1,5\n,f1,1,5\n", ["bad.csv, line 3: expected a name in 'algorithm', got ''"]),
    "blank instance": (HEADER + "csa,  ,1,5\n", ["bad.csv, line 2: expected a name in 'instance', got '  '"]),
    "row too long": (HEADER + "csa,f1,1,5\ncsa,f1,2,5,6\n", ["bad.csv", "Expected 4 fields in line 3, saw 5"]),
    "rows too long": (HEADER + "csa,f1,1,5,6\n", ["bad.csv", "Length of header", "does not match length of data"]),
    "row too short": (HEADER + "csa,f1,1,5\ncsa,f1\n", ["bad.csv, line 3: expected a finite number in 'time'"]),
    "open quote": (HEADER + 'csa,f1,1,5\n"csa,f1,2,5\n', ["bad.csv", "EOF inside string starting at row 2"]),
    "empty": ("", ["bad.csv is empty. Expected a line with the column names"]),
    "blank": ("\n\n", ["bad.csv is empty. Expected a line with the column names"]),
    "header only": (HEADER, ["bad.csv has no rows. Expected a row for each value of each run"]),
    "no text at all": (b"\x89PNG\r\n\x1a\n\x00\x00\xff\xfe", ["bad.csv cannot be read as a text table", "decode"]),
    "UTF-16": (HEADER.encode("utf-16"), ["bad.csv cannot be read as a text table", "can't decode byte 0xff"]),
    "fractional seed": (
        "seed," + HEADER + "0.5,csa,f1,1,5\n",
        ["bad.csv, line 2", "a whole number in 'seed', got 0.5"],
    ),
    "missing seed": ("seed," + HEADER + "1,csa,f1,1,5\n,csa,f1,2,5\n", ["bad.csv, line 3", "whole number in 'seed'"]),
    "text for a seed": ("seed," + HEADER + "x,csa,f1,1,5\n", ["bad.csv, line 2: expected a number in 'seed', got 'x'"]),
    "seed of 64 bits": (f"seed,{HEADER}{2**63},csa,f1,1,5\n", ["bad.csv, line 2: expected a whole number below 2**63"]),
    "seed of 100 bits": (f"seed,{HEADER}{2**100},csa,f1,1,5\n", ["bad.csv, line 2: expected a whole number in 'seed'"]),
    "horizon too early": (
        "horizon," + HEADER + "3,csa,f1,1,5\n3,csa,f1,4,4\n",
        ["bad.csv: trajectory of 'csa' on 'f1': horizon 3 lies before the last time 4"],
    ),
    "horizon changes": (
        "horizon," + HEADER + "9,csa,f1,1,5\n8,csa,f1,4,4\n",
        ["bad.csv, line 3: expected the same number in all rows of a run in 'horizon', got 8"],
    ),
    "no horizon": (
        "horizon," + HEADER + "9,csa,f1,1,5\n,csa,f1,4,4\n",
        ["bad.csv, line 3: expected a finite number in 'horizon', got nan"],
    ),
}


@pytest.mark.parametrize(("content", "parts"), BAD_TEXT.values(), ids=BAD_TEXT)
def test_damaged_text_is_refused_with_the_place(tmp_path: Path, content: str | bytes, parts: list[str]) -> None:
    with pytest.raises(SourceError) as caught:
        read(write(tmp_path / "bad.csv", content))
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


BAD_FRAMES = {
    "missing column": (RUNS.drop(columns="value"), " has no column 'value'. It has algorithm, instance, seed, time"),
    "no columns": (pd.DataFrame(), " has no column 'algorithm'. It has none"),
    "no rows": (RUNS.iloc[:0], " has no rows"),
    "same column twice": (pd.concat([RUNS, RUNS["value"]], axis=1), " has more than one column 'value'"),
    "truth values": (frame(value=[True, False]), ", row 0: expected a number or 'unranked' in 'value', got True"),
    "complex values": (frame(value=[1.0, 1j]), ", row 0: expected a number or 'unranked' in 'value'"),
    "lists as values": (frame(value=[[1], [2]]), ", row 0: expected a number or 'unranked' in 'value', got [1]"),
    "durations": (frame(time=pd.to_timedelta([1, 2], "s")), ", row 0: expected a number in 'time', got Timedelta"),
    "missing name": (frame(algorithm=["csa", None]), ", row 1: expected a name in 'algorithm'"),
    "missing category": (frame(instance=pd.Categorical(["f1", None])), ", row 1: expected a name in 'instance'"),
    "blank name": (frame(algorithm=["csa", " "]), ", row 1: expected a name in 'algorithm', got ' '"),
    "decreasing times": (frame(time=[10, 1]), ", row 1: expected a time after 10 (data frame, row 0)"),
    "same times": (frame(time=[10, 10]), ", row 1: the same algorithm, instance, seed and time (10) as at data frame,"),
    "fractional seed": (frame(seed=[0, 0.5]), ", row 1: expected a whole number in 'seed', got 0.5"),
    "unsigned seed": (frame(seed=np.uint64(2**63)), ", row 0: expected a whole number below 2**63 in 'seed'"),
    "lossy seed": (frame(seed=2.0**53), ", row 0: expected a whole number in 'seed'"),
    "huge seed": (frame(seed=[10**30] * 2), ", row 0: expected a whole number in 'seed', got 1000000"),
}


@pytest.mark.parametrize(("table", "message"), BAD_FRAMES.values(), ids=BAD_FRAMES)
def test_a_data_frame_without_meaning_is_refused_with_the_place(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(table)
    assert f"data frame{message}" in str(caught.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (frame(time=pd.to_datetime(["2026-01-01", "2026-01-02"])), "row 0: expected a number in 'time'"),
        (frame(time=pd.to_datetime(["2026-01-01", "2026-01-02"], utc=True)), "row 0: expected a number in 'time'"),
        (
            frame(time=pd.Series([10**400, 10**401], dtype=object)),
            r"row 0: expected a finite number in 'time', got 1000+\.\.\.\.",
        ),
        (
            frame(time=pd.Series([1, 10**5000], dtype=object)),
            r"row 1: expected a finite number in 'time', got a huge int\.",
        ),
        (
            frame(value=pd.Series([None, -(10**400)], dtype=object)),
            r"row 1: expected a finite number in 'value', got -1000+\.\.\.\.",
        ),
        (frame(value=pd.Series([2, 1j], dtype=object)), r"row 1: expected a number or 'unranked' in 'value', got 1j\."),
        (
            frame(value=pd.Series([None, True], dtype=object)),
            r"row 1: expected a number or 'unranked' in 'value', got True\.",
        ),
        (frame(instance=[[1], [2]]), r"row 0: expected a name in 'instance', got \[1\]\."),
        (frame(instance=["f1", {"f": 2}]), r"row 1: expected a name in 'instance', got \{'f': 2\}\."),
        (frame(instance=["f1", ("f", [2])]), r"row 1: expected a name in 'instance', got \('f', \[2\]\)\."),
    ],
    ids=[
        "dates",
        "dates with a zone",
        "too large for a float",
        "too large for a text",
        "too small for a float",
        "complex among others",
        "truth values among others",
        "lists as names",
        "dicts as names",
        "lists inside names",
    ],
)
def test_a_data_frame_of_other_things_is_refused_with_the_place(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(SourceError, match=f"^data frame, {message}"):
        read(table)


def test_lists_in_a_column_of_arrow_are_no_names() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    lists = pd.Series([[1], [2]], dtype=pd.ArrowDtype(pyarrow.list_(pyarrow.int64())))
    with pytest.raises(SourceError, match="data frame, row 0: expected a name in 'instance', got "):
        read(frame(instance=lists))


@pytest.mark.parametrize("bad", [None, " ", [2]])
def test_of_several_columns_that_make_up_the_instance_the_bad_one_is_named(bad: object) -> None:
    table = frame(function=["f1", "f1"], dimension=pd.Series(["2", bad], dtype=object))
    with pytest.raises(SourceError, match="data frame, row 1: expected a name in 'dimension', got "):
        read(table, columns={"instance": ("function", "dimension")})


@pytest.mark.parametrize("name", ["absent.csv", "absent.csv.gz", "absent.tsv", "absent.parquet"])
def test_a_missing_file_is_named_with_its_folder(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(SourceError) as caught:
        read(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: there is no such file."


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.parquet"])
def test_a_folder_that_is_called_like_a_table_is_refused(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    (tmp_path / name).mkdir()
    (tmp_path / name / "inside.txt").touch()  # an empty folder might be anybody's
    with pytest.raises(SourceError, match=rf"{name} is a folder, not a (text table|Parquet file)"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda good: good[:-12], "ended before the end-of-stream marker"),
        (lambda good: good[:-8] + bytes(8), "CRC check failed"),
        (lambda _: HEADER.encode(), "Not a gzipped file"),
    ],
    ids=["cut", "wrong checksum", "not compressed"],
)
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, damage: Any, message: str) -> None:
    good = gzip.compress(RUNS.to_csv(index=False).encode())
    with pytest.raises(SourceError, match=rf"bad\.csv\.gz cannot be read as a text table: .*{message}"):
        read(write(tmp_path / "bad.csv.gz", damage(good)))


def test_a_gzip_file_with_a_damaged_inside_is_refused(tmp_path: Path) -> None:
    good = gzip.compress(RUNS.to_csv(index=False).encode())
    with pytest.raises(SourceError, match=r"bad\.csv\.gz cannot be read as a text table"):
        read(write(tmp_path / "bad.csv.gz", good[:10] + b"\xff" * 20 + good[30:]))


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.999])
def test_a_cut_parquet_file_is_refused(tmp_path: Path, part: float) -> None:
    good = parquet_bytes(RUNS)
    with pytest.raises(SourceError, match=r"bad\.parquet cannot be read as a Parquet file"):
        read(write(tmp_path / "bad.parquet", good[: int(part * len(good))]))


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"bad\.parquet has no column 'algorithm'. It has x"):
        read(write(tmp_path / "bad.parquet", parquet_bytes(pd.DataFrame({"x": [1]}))))
    with pytest.raises(SourceError, match=r"bad\.parquet, row 1: expected a time after 10"):
        read(write(tmp_path / "bad.parquet", parquet_bytes(frame(time=[10, 1]))))


def test_a_parquet_file_with_names_that_are_no_text_is_refused(tmp_path: Path) -> None:
    damaged = parquet_bytes(frame(algorithm="qqq"), compression="none").replace(b"qqq", b"\xff\xff\xff")
    with pytest.raises(SourceError, match=r"bad\.parquet"):
        read(write(tmp_path / "bad.parquet", damaged))


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": "red"}, "A table has no option 'colour'. It takes columns, maximize, horizon"),
        (
            {"columns": {"times": "t"}},
            "there is no role 'times'. The roles are algorithm, instance, time, value, group, dim",
        ),
        ({"columns": "times=t"}, "there is no role 'times'"),
        ({"columns": "time"}, "expected the name of a column for 'time'"),
        ({"columns": "time="}, "expected the name of a column for 'time'"),
        ({"columns": {"time": ""}}, "expected the name of a column for 'time', got ''"),
        ({"columns": {"instance": ()}}, r"expected the name of a column for 'instance', got \(\)"),
        ({"columns": {"time": ("a", "b")}}, "'time' is one column, got a, b"),
        ({"columns": "value=a+b"}, "'value' is one column, got a, b"),
        ({"columns": 3}, "columns: expected a mapping such as .*, got 3"),
        ({"maximize": "perhaps"}, "maximize: expected true or false, got 'perhaps'"),
        ({"maximize": 2}, "maximize: expected true or false, got 2"),
        ({"horizon": "soon"}, "horizon: expected a number, 'last' or 'longest', got 'soon'"),
        ({"horizon": float("nan")}, "horizon: expected a number, 'last' or 'longest', got nan"),
        ({"horizon": [1]}, r"horizon: expected a number, 'last' or 'longest', got \[1\]"),
    ],
)
def test_an_option_without_meaning_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read(RUNS, **options)


@pytest.mark.parametrize("role", ["algorithm", "seed"])
def test_a_column_that_was_asked_for_must_be_there(role: str) -> None:
    with pytest.raises(
        SourceError, match=r"data frame has no column 'x'\. It has algorithm, instance, seed, time, value"
    ):
        read(RUNS, columns={role: "x"})


@pytest.mark.parametrize("horizon", [3, -1])
def test_a_horizon_before_the_last_row_is_refused_with_the_run(horizon: float) -> None:
    with pytest.raises(SourceError, match=f"'csa' on 'f1': horizon {horizon} lies before the last time 10"):
        read(frame(value=[3.0, 2.0]), horizon=horizon)


@pytest.mark.parametrize("column", [5, None, [["time"]]])
def test_what_is_no_name_of_a_column_is_refused(column: object) -> None:
    with pytest.raises(PolarBearError, match="columns"):
        read(RUNS, columns={"instance": column})


@pytest.mark.parametrize("source", ["runs.xlsx", Path("runs.json"), 3, None, [1, 2], {"time": 1}])
def test_a_source_nobody_recognises_names_the_adapters_asked(source: object) -> None:
    with pytest.raises(UnknownNameError, match=r"Asked: .*table \(CSV and Parquet files and pandas data frames with"):
        read(source)


# Fuzzing

SMALL = "algorithm,instance,seed,time,value,horizon\na,f1,0,1,3.5,9\nb,f1,0,1,4,9\na,f1,0,5,2.5,9\nb,f1,0,7,nan,9\n"
INTERESTING = b'",\n\r\0\t .-+eE0123456789naif\xef\xbb\xbf\xff'


@st.composite
def edits(draw: st.DrawFn, good: bytes) -> bytes:
    """The content of a file with a few bytes changed, inserted or lost."""
    damaged = bytearray(good)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, len(damaged)))
        kind = draw(st.sampled_from(["change", "insert", "lose", "cut"]))
        if kind == "cut":
            del damaged[max(place, 1) :]
        else:
            new = draw(st.sampled_from(INTERESTING) | st.integers(0, 255))
            damaged[place : place + (kind != "insert") * draw(st.integers(1, 3))] = [new] * (kind != "lose")
    return bytes(damaged)


def parquet_bytes(table: pd.DataFrame, compression: str = "snappy") -> bytes:
    pytest.importorskip("pyarrow")
    file = io.BytesIO()
    table.to_parquet(file, index=False, compression=compression)
    return file.getvalue()


@settings(max_examples=200)
@given(edits(SMALL.encode()))
def test_damaged_text_gives_trajectories_or_an_error_that_the_user_can_mend(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    assert_trajectories_or_refused(write(tmp_path_factory.getbasetemp() / "fuzz.csv", content))


@pytest.mark.slow
@settings(max_examples=200)
@given(st.data())
def test_a_damaged_parquet_file_gives_trajectories_or_an_error_that_the_user_can_mend(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    good = parquet_bytes(pd.read_csv(io.StringIO(SMALL)))
    content = data.draw(edits(good))
    assert_trajectories_or_refused(write(tmp_path_factory.getbasetemp() / "fuzz.parquet", content))


def assert_trajectories_or_refused(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PolarBearWarning)  # runs of different lengths
        try:
            outcome: object = read(path)[0]
        except PolarBearError as problem:
            outcome = problem
    assert isinstance(outcome, Trajectory) or path.name in str(outcome)
