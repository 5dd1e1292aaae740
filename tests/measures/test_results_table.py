from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.measures.results_table import read_results

ROWS = "algorithm,instance,score\na,t1,1\nb,t1,2\na,t2,3\nb,t2,4\n"


def write(folder: Path, text: str, name: str = "board.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_rows_become_scores_by_instance_and_algorithm_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = read_results(write(tmp_path, "task\tsystem\tscore\nz\tb\t1\nz\ta\t2\ny\ta\t3\ny\tb\t4\n", "board.tsv"))
    assert (found.algorithms, found.instances, found.groups) == (("b", "a"), ("z", "y"), None)
    np.testing.assert_array_equal(found.scores, [[1, 2], [4, 3]])
    assert (found.repeated, found.left_out) == (0, ())


def test_repeated_rows_are_averaged_and_counted(tmp_path: Path) -> None:
    found = read_results(write(tmp_path, ROWS + "a,t1,2\na,t1,6\n"))
    np.testing.assert_array_equal(found.scores, [[3, 2], [3, 4]])
    assert found.repeated == 1


@pytest.mark.parametrize("last", ["TRUE", "1", ""])
def test_solved_or_not_may_be_true_and_false(last: str, tmp_path: Path) -> None:
    text = f"algorithm,instance,score\na,t1,True\nb,t1,false\na,t2,False\nb,t2,true\na,t3,true\nb,t3,{last}\n"
    found = read_results(write(tmp_path, text), common=True)
    np.testing.assert_array_equal(found.scores, [[1, 0], [0, 1], [1, 1]][: 3 if last else 2])


def test_names_are_text_and_groups_follow_their_instances(tmp_path: Path) -> None:
    text = "model,problem,score,group\n01,1,1,g\n1,1,2,g\n01,01,3,NA\n1,01,4,NA\n"
    found = read_results(write(tmp_path, text))
    assert (found.algorithms, found.instances, found.groups) == (("01", "1"), ("1", "01"), ("g", "NA"))


def test_a_missing_score_is_refused_or_its_instance_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS + "a,t3,5\nb,t3,\na,t4,1\n")
    with pytest.raises(
        PolarBearError, match=r"2 scores are missing \(b on t3, b on t4\).* 2 of 4 instances .*--common"
    ):
        read_results(path)
    found = read_results(path, common=True)
    assert (found.instances, found.left_out) == (("t1", "t2"), ("t3", "t4"))


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("a,b\n1,2\n", {}, r"board.csv has no column 'algorithm'. It has a, b. .*--column algorithm=NAME"),
        (ROWS, {"score": "points"}, "has no column 'points'"),
        (ROWS, {"seed": "score"}, 'column: expected "algorithm", "instance", "score" or "group"'),
        (ROWS, {"group": "instance"}, "expected a different column for each"),
        ("system,model,instance,score\na,b,c,1\n", {}, "'system' and 'model' may both be the column of the algorithm"),
        (ROWS + "a,t3,good\n", {}, "line 6: expected a number for the score, got 'good'"),
        (ROWS + "a,t3,inf\n", {}, "line 6: expected a finite number for the score, got inf"),
        (ROWS + ",t3,1\n", {}, "line 6: expected a name for the algorithm, got ''"),
        ("algorithm,instance,score\n", {}, "has no scores"),
        ("algorithm,instance,score\na,t1,1\nb,t2,1\n", {}, "There is no instance on which all have one"),
        (
            "algorithm,instance,score,group\na,t1,1,g\nb,t1,1,h\n",
            {},
            r"instance 't1' is in more than one group \('g', 'h'\)",
        ),
    ],
)
def test_a_bad_table_is_refused_with_the_place(
    text: str, columns: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(PolarBearError, match=message):
        read_results(write(tmp_path, text), columns)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolarBearError, match="there is no such file"):
        read_results(tmp_path / "none.csv")
