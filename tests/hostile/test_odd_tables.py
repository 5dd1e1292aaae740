"""What the content checks of tests/hostile/fuzz.py found in tables, one small input each."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from polarbear_plugins import read_trajectories
from polarbear_plugins.errors import SourceError
from polarbear_plugins.integrations.ma_bbob import read_csv_folder
from polarbear_plugins.measures.results_table import read_results
from polarbear_plugins.partial_orders.criteria import read_criteria

LONG = "é" * 5000


@pytest.mark.parametrize("dimension", ["inf", "1e300", "9007199254740993"])
def test_a_dimension_that_no_whole_number_holds_is_refused(tmp_path: Path, dimension: str) -> None:
    """It was cast, with a warning of numpy, to whatever came of it."""
    path = tmp_path / "runs.csv"
    path.write_text(f"algorithm,instance,dimension,time,value\na,x,{dimension},1,2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SourceError, match=r"runs\.csv, line 2: expected a whole number from 1 on in 'dimension'"):
            list(read_trajectories(path))


def test_the_end_of_a_run_is_plain_text(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("algorithm,instance,time,value,end\na,x,1,2,stopped\n")
    [run] = read_trajectories(path)
    assert type(run.end) is str


def test_seeds_in_half_precision_are_read() -> None:
    frame = pd.DataFrame({"algorithm": "a", "instance": "x", "seed": np.array([0, 3], "f2"), "time": 1, "value": 2.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [run.seed for run in read_trajectories(frame)] == [0, 3]


def test_a_long_name_of_a_group_is_not_repeated_in_full(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(f"algorithm,instance,group,time,value\na,x,g,1,2\nb,x,{LONG},1,2\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"runs\.csv, line 3: expected the group 'g'") as caught:
        list(read_trajectories(path))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("cell", ["\uff11\uff12", "-nan", "1_000", "1" + "0" * 400])
def test_a_number_that_only_python_reads_is_refused_with_its_row(tmp_path: Path, cell: str) -> None:
    """The column stayed text, and the error complained about its other numbers without naming the file."""
    path = tmp_path / "criteria.csv"
    path.write_text(f"function,optimizer,loss\nf,p,{cell}\nf,o,1.5\n", encoding="utf-8")
    with pytest.raises(SourceError, match=rf"criteria\.csv, row 1 below the header.*'loss', got '{cell[:20]}"):
        read_criteria(path)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (f"a,{LONG},g,1\nb,t,g,1\n", "2 scores are missing"),
        (f"a,t,g,1\na,t,{LONG},1\n", "more than one group"),
        (f"a,{LONG},g,1\na,{LONG},h,1\n", "more than one group"),
    ],
)
def test_long_names_in_results_are_not_repeated_in_full(tmp_path: Path, rows: str, says: str) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"system,task,group,score\n{rows}", encoding="utf-8")
    with pytest.raises(SourceError, match=rf"results\.csv.*{says}") as caught:
        read_results(path)
    assert len(str(caught.value)) < 700


def test_long_names_of_columns_of_results_are_not_repeated_in_full(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(f"system,{LONG},score\na,t,1\n", encoding="utf-8")
    with pytest.raises(SourceError, match=r"results\.csv has no column 'instance'") as caught:
        read_results(path)
    assert len(str(caught.value)) < 700


def test_a_decimal_comma_in_an_optimum_is_not_two_coordinates(tmp_path: Path) -> None:
    """The row had a number more than its header, and the coordinates after it were those of their neighbours."""
    header = ",".join(["", *map(str, range(24))])
    (tmp_path / "weights.csv").write_text(f"{header}\n0,{','.join(['1'] * 24)}\n")
    (tmp_path / "iids.csv").write_text(f"{header}\n0,{','.join(['1'] * 24)}\n")
    (tmp_path / "opt_locs.csv").write_text(",0,1\n0,1.5,2.5\n")
    assert read_csv_folder(tmp_path, 2)["0"]["xopt"] == [1.5, 2.5]
    (tmp_path / "opt_locs.csv").write_text(",0,1\n0,1,5,2.5\n")
    with pytest.raises(SourceError, match=r"opt_locs\.csv, line 2: expected 3 columns as in the header, got 4"):
        read_csv_folder(tmp_path, 2)
