from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import pytest
from builders import run_of
from hypothesis import given

from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning, SourceError
from polarbear_plugins.partial_orders.criteria import (
    best_at_timepoints,
    orders_of_functions,
    read_criteria,
    split_criteria,
    time_to_targets,
)
from polarbear_plugins.partial_orders.order import IndifferenceError
from polarbear_plugins.trajectories.trajectory import Trajectory, best_at

TABLE = "function,optimizer,loss,seconds\nf1,a,1,5\nf1,b,2,6\nf2,a,3,5\nf2,b,2,6\n"


def run_of_steps(algorithm: str, best: list[float], **more: Any) -> Trajectory:
    """A trajectory with a value every ten evaluations."""
    return run_of(algorithm, best=best, times=[10.0 * (step + 1) for step in range(len(best))], **more)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "criteria.csv"
    path.write_text(TABLE)
    return path


def test_an_incumbent_that_was_good_once_has_reached_the_target() -> None:
    values = [5, 1, 4, 4, 4]
    risen = Trajectory(algorithm="a", instance="f1", times=range(1, 6), best=values, horizon=9, incumbent=True)
    assert time_to_targets([risen], [4, 1])["f1"].loc["a"].tolist() == [2, 2]


def test_repeated_runs_count_by_their_median_or_mean() -> None:
    runs = [run_of_steps("a", [9, value], seed=seed) for seed, value in enumerate([1.0, 2.0, 6.0])]
    assert best_at_timepoints(runs, [10, 50])["f1"].loc["a"].tolist() == [9, 2]
    assert best_at_timepoints(runs, [10, 50], "mean")["f1"].loc["a"].tolist() == [9, 3]


def test_a_run_without_a_value_is_infinite_and_one_that_was_not_watched_is_missing() -> None:
    values = best_at_timepoints([run_of_steps("a", [5]), run_of_steps("b", [4], horizon=20)], [5, 20, 50])["f1"]
    assert values.loc["a"].tolist() == [math.inf, 5, 5]
    assert values.loc["b"].iloc[:2].tolist() == [math.inf, 4]
    assert math.isnan(values.loc["b"].iloc[2])


def test_an_algorithm_without_a_run_on_an_instance_is_missing_there() -> None:
    frames = best_at_timepoints(
        [run_of_steps("a", [5]), run_of_steps("b", [4]), run_of_steps("a", [5], instance="f2")], [50]
    )
    assert frames["f2"]["best at 50"].isna().to_dict() == {"a": False, "b": True}
    with pytest.raises(InvalidInputError, match="f2: The criterion 'best at 50' is missing for 'b'"):
        orders_of_functions(frames)


def test_a_target_that_was_not_reached_is_infinite_unless_the_run_was_watched_for_less_time() -> None:
    values = time_to_targets(
        [run_of_steps("a", [5, 3, 1]), run_of_steps("b", [4, 2]), run_of_steps("c", [4], horizon=50)], [4, 1, 0]
    )["f1"]
    assert values.loc["a"].tolist() == [20, 30, math.inf]
    assert values.loc["b"].tolist() == [10, math.inf, math.inf]
    assert values.loc["c"].iloc[0] == 10
    assert values.loc["c"].iloc[1:].isna().all()


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True),
    st.lists(st.integers(-2, 32), min_size=1, max_size=5, unique=True),
)
def test_the_time_to_a_target_is_the_first_at_which_the_best_value_is_as_small(
    best: list[int], targets: list[int]
) -> None:
    trajectory = run_of_steps("a", sorted(map(float, best), reverse=True))
    for target, time in zip(targets, time_to_targets([trajectory], targets)["f1"].loc["a"], strict=True):
        reached = [moment for moment in trajectory.times if best_at(trajectory, [moment])[0] <= target]
        assert time == min(reached, default=math.inf)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: best_at_timepoints([], [1]), "no trajectories"),
        (lambda: best_at_timepoints([run_of_steps("a", [1])], []), "timepoints: expected at least one"),
        (lambda: time_to_targets([run_of_steps("a", [1])], []), "targets: expected distinct finite numbers"),
        (lambda: time_to_targets([run_of_steps("a", [1])], [1, 1]), "targets: expected distinct finite numbers"),
        (lambda: time_to_targets([run_of_steps("a", [1])], [math.nan]), "targets: expected distinct finite numbers"),
        (lambda: best_at_timepoints([run_of_steps("a", [1])], [1], "mode"), "statistic"),  # type: ignore[arg-type]
    ],
)
def test_bad_arguments_are_refused(action: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        action()


def test_a_table_is_split_by_function(table: Path) -> None:
    frames = read_criteria(table)
    assert list(frames) == ["f1", "f2"]
    orders = orders_of_functions(frames)
    assert orders["f1"].edges() == [("a", "b")]
    assert orders["f2"].edges() == []
    assert orders_of_functions(frames, "seconds")["f2"].edges() == [("b", "a")]
    assert orders_of_functions(read_criteria(table, criteria=["loss"]))["f2"].edges() == [("b", "a")]


def test_row_numbers_blank_lines_and_other_marks_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "criteria.csv"
    path.write_text("\ufeff;Problem;Solver;loss\n1;f1;NA;1,5\n2;f1;b;2,5\n;;;\n\n", encoding="utf-8")
    frames = read_criteria(path, "Problem", "Solver", separator=";", decimal=",")
    assert frames["f1"].to_dict() == {"loss": {"NA": 1.5, "b": 2.5}}
    tabs = tmp_path / "criteria.tsv"
    tabs.write_text(TABLE.replace(",", "\t"))
    assert list(read_criteria(tabs)) == ["f1", "f2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "criteria.csv is empty"),
        ("function,optimizer,loss\n", "criteria.csv has no rows"),
        ("function,optimizer\nf1,a\n", "no column of criteria"),
        ("problem,optimizer,loss\nf1,a,1\n", "no column 'function'. It has problem, optimizer, loss"),
        (TABLE + "f1,a,1,1\n", "more than one row for the optimizer 'a' on 'f1'"),
        (TABLE + "f1,c,1,1,1,1\n", "cannot be read as a text table"),
        (TABLE.replace("f2,a,3,5", "f2,a,,5"), "f2: The criterion 'loss' is missing for 'a'"),
        (TABLE.replace("f2,a,3,5\n", ""), "f2: The criterion 'loss' is missing for 'a'"),
        (TABLE.replace("f2,a,3,5", "f2,a,fast,5"), "row 3 below the header: expected a number in 'loss', got 'fast'"),
        (TABLE.replace("f1,b,2,6", "f1,b,1,5"), "f1: 'a' and 'b' are equal in all criteria"),
        ("function,optimizer,loss\nf1,a,1\nf2,a,1\n", r"criteria\.csv: A partial order needs at least 2"),
    ],
)
def test_bad_tables_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "criteria.csv"
    path.write_text(text)
    with pytest.raises(PolarBearError, match=message):
        orders_of_functions(read_criteria(path))


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolarBearError, match="there is no such file"):
        read_criteria(tmp_path / "absent.csv")
    with pytest.raises(SourceError, match="is a folder, not a text table"):
        read_criteria(tmp_path)
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\xff\xfe\x00")
    with pytest.raises(PolarBearError, match=r"picture\.csv cannot be read"):
        read_criteria(tmp_path / "picture.csv")


def test_functions_with_indifferent_optimizers_are_left_out_with_a_warning(table: Path) -> None:
    frames = read_criteria(table)
    frames["f3"] = pd.DataFrame({"loss": [1, 1], "seconds": [2, 2]}, index=["a", "b"])
    with pytest.raises(IndifferenceError, match="f3: 'a' and 'b' are equal"):
        orders_of_functions(frames)
    with pytest.warns(PolarBearWarning, match=r"equal in all criteria: f3\."):
        assert list(orders_of_functions(frames, indifferent="leave-out")) == ["f1", "f2"]
    assert orders_of_functions(frames, indifferent="incomparable")["f3"].edges() == []


def test_a_data_frame_is_split_like_a_file(table: Path) -> None:
    frames = split_criteria(pd.read_csv(table))
    assert orders_of_functions(frames) == orders_of_functions(read_criteria(table))


def test_semicolons_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "criteria.csv"
    path.write_text("function;optimizer;loss;seconds\nf1;sgd;0,5;3\nf1;adam;0,4;4\n")
    with pytest.raises(SourceError, match=r"criteria.csv: the columns seem to be separated by semicolons"):
        read_criteria(path)
    assert read_criteria(path, separator=";", decimal=",")["f1"].loc["adam", "loss"] == 0.4
