"""The word for an unranked value in a table, and tables with such values in files."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import run_of

from polarbear_plugins import UNRANKED, Trajectory, rank, read_trajectories
from polarbear_plugins.errors import SourceError
from polarbear_plugins.rankings import UNRANKED_RANK

INF, NAN = math.inf, math.nan
HEADER = "algorithm,instance,time,value\n"


def read(path: Path, **options: Any) -> list[Trajectory]:
    return list(read_trajectories(path, **options))


@pytest.mark.parametrize("word", ["unranked", "Unranked", " UNRANKED ", '"unranked"', repr(UNRANKED)])
@pytest.mark.parametrize("maximize", [False, True])
def test_a_file_says_it_in_a_word(tmp_path: Path, word: str, maximize: bool) -> None:
    path = tmp_path / "lists.csv"
    path.write_text(HEADER + f"a,f,10,{word}\nb,f,10,-1.5\nc,f,10,-2.5\nd,f,10,{word}\n")
    ranks = rank(read(path, maximize=maximize), timepoints=[10]).ranks
    known = [1, 2] if maximize else [2, 1]
    assert ranks.tolist() == [[[UNRANKED_RANK, *known, UNRANKED_RANK]]]


def test_the_word_changes_no_other_value(tmp_path: Path) -> None:
    values = [0.1, 1e-300, 123456789.123456789, -5e-324, INF, NAN, 1 / 3]
    lines = "".join(f"a{k},f,10,{value!r}\n" for k, value in enumerate(values))
    (tmp_path / "one.csv").write_text(HEADER + lines)
    (tmp_path / "other.csv").write_text(HEADER + lines + "b,f,10,unranked\n")
    assert read(tmp_path / "one.csv") == read(tmp_path / "other.csv")[:-1]


@pytest.mark.parametrize("word", ["unrankd", "not ranked", "un ranked", "-"])
def test_a_misspelt_word_is_refused_with_its_line(tmp_path: Path, word: str) -> None:
    path = tmp_path / "lists.csv"
    path.write_text(HEADER + f"a,f,10,1\nb,f,10,unranked\nc,f,10,{word}\n")
    with pytest.raises(SourceError, match=rf"line 4: expected a number or 'unranked' in 'value', got '{word}'\."):
        read(path)


def test_the_word_is_for_values_only(tmp_path: Path) -> None:
    path = tmp_path / "lists.csv"
    path.write_text(HEADER + "a,f,unranked,1\n")
    with pytest.raises(SourceError, match=r"line 2: expected a number in 'time', got 'unranked'"):
        read(path)


@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_a_data_frame_may_have_the_word(kind: str) -> None:
    value = pd.Series(["unranked", "2", "1.5"]).astype(kind)
    frame = pd.DataFrame({"algorithm": list("abc"), "instance": "f", "time": 10, "value": value})
    before = frame.copy()
    assert rank(read_trajectories(frame), timepoints=[10]).ranks.tolist() == [[[UNRANKED_RANK, 2, 1]]]
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_runs_and_tables_come_back_from_files(tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    runs = [run_of("a", best=[3.0, 1.0]), run_of("b", best=[2.0, UNRANKED]), run_of("c", best=[UNRANKED, 2.0])]
    path = tmp_path / f"runs.{suffix}"
    table = rank(runs, timepoints=[1, 10])
    frames = {"runs": pd.concat([run.to_pandas() for run in runs]), "table": table.to_pandas()}
    for what, frame in frames.items():
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path, index=False)
        columns = {} if what == "runs" else {"columns": {"time": "timepoint", "seed": "repetition"}}
        assert rank(read(path, **columns), timepoints=[1, 10]) == table
