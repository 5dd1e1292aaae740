from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from command_line import Command

from polarbear_plugins.measures.audit import audit_scores

COMMAND = Command("leaderboard")
succeed, audit, fail = COMMAND.succeed, COMMAND.data, COMMAND.fail


def scores(instances: int = 60) -> np.ndarray:
    rng = np.random.default_rng(0)
    solved: np.ndarray = 1.0 * (rng.random((instances, 4)) < [0.9, 0.85, 0.6, 0.2])
    return solved


def write(folder: Path, instances: int = 60, groups: int = 0, header: str = "system,task,score") -> str:
    lines = [header + ",group" * bool(groups)]
    for k, row in enumerate(scores(instances)):
        for name, score in zip("wxyz", row, strict=True):
            lines.append(f"{name},t{k},{score:g}" + (f",g{k % groups}" if groups else ""))
    path = folder / "board.csv"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_the_json_has_the_audit_of_the_scores(tmp_path: Path) -> None:
    found = audit(write(tmp_path), "--better", "higher")
    expected = audit_scores(scores(), list("wxyz"), better="higher").to_json()
    assert {key: found[key] for key in expected} == expected
    assert (found["repeated"], found["left_out"], found["by_group"], found["figures"]) == (0, [], None, [])
    assert audit(write(tmp_path), "--better", "higher", "--audit") == found


def test_people_read_the_places_the_ties_and_what_they_rest_on(tmp_path: Path) -> None:
    text = succeed(write(tmp_path), "--better", "higher")
    found = audit(write(tmp_path), "--better", "higher")
    assert "board.csv: 4 algorithms on 60 instances\n" in text
    rows = [line.split() for line in text.splitlines() if re.match(r" +[1-4]  ", line)]
    assert [row[1] for row in rows] == ["w", "x", "y", "z"]
    assert f"{found['neighbours_told_apart']} of 3 neighbours can be told apart" in text
    assert f"and {found['pairs_told_apart']} of all 6 pairs. 1 other is not told apart from w." in text
    assert "Tie groups, in which no two can be told apart: rows 1 to 2." in text
    assert "right together with probability 95%, if instances are a sample" in text
    assert "if their true difference is the lead observed here, which these data do not show" in text
    assert found["text"][0] in text


def test_lower_scores_may_be_better_and_the_user_has_to_say_so(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert [row["name"] for row in audit(path, "--better", "lower")["algorithms"]] == list("zyxw")
    assert "board.csv are better is not known: give --better higher or --better lower." in fail(path)


def test_groups_count_as_the_observations_unless_told_otherwise(tmp_path: Path) -> None:
    path = write(tmp_path, groups=5)
    found = audit(path, "--better", "higher", "--by", "group")
    assert (found["groups"], found["pairs_told_apart"]) == (5, 0)
    assert found["by_group"]["g0"]["w"] == scores()[::5, 0].mean()
    text = succeed(path, "--better", "higher", "--by", "group")
    assert "Nothing can be told apart with 5 groups, whatever the scores" in text
    assert "chance does that with probability 0.0625. At least 6 groups are needed" in text
    assert "g0 (12)" in text
    for choice in ("none", "same"):
        single = audit(path, "--better", "higher", "--groups", choice)
        assert (single["groups"], single["pairs_told_apart"] > 0) == (None, True)


def test_a_stricter_level_tells_fewer_apart(tmp_path: Path) -> None:
    path = write(tmp_path)
    loose, strict = (audit(path, "--better", "higher", "--level", level) for level in ("0.8", "0.9999"))
    assert loose["pairs_told_apart"] > strict["pairs_told_apart"] == 0


def test_columns_may_have_any_name_and_gaps_may_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, header="entry,task,resolved")
    columns = ("--column", "algorithm=entry", "--column", "score=resolved")
    assert audit(path, "--better", "higher", *columns)["instances"] == 60
    assert "has no column 'algorithm'" in fail(path, "--better", "higher")
    with Path(path).open("a") as file:
        file.write("w,extra,1\nw,t0,1\n")
    assert "3 scores are missing (x on extra, y on extra, z on extra)" in fail(path, "--better", "higher", *columns)
    text = succeed(path, "--better", "higher", "--common", *columns)
    assert "1 instances are left out, on which some algorithm has no score (--common)." in text
    assert "1 scores are means of several rows" in text


def test_options_that_would_have_no_effect_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    assert "--top is for a Bayesmark database, and board.csv is a table" in fail(
        path, "--better", "higher", "--top", "2"
    )
    assert "--bootstrap is for a Bayesmark database" in fail(path, "--better", "higher", "--bootstrap", "9")
    assert "--alpha is for the posterior, and an audit has --level" in fail(
        path, "--better", "higher", "--alpha", "0.9"
    )
    assert "--better is for a table of results" in fail(str(tmp_path), "--better", "higher")
    assert "--by model: a table of results is split by group." in fail(path, "--better", "higher", "--by", "model")
    assert "the table has no column for groups" in fail(path, "--better", "higher", "--by", "group")
    (tmp_path / "one.csv").write_text("system,task,score\nw,t1,1\n")
    assert "at least two algorithms, got those of 'w' only" in fail(str(tmp_path / "one.csv"), "--better", "higher")


def test_the_figure_of_a_table_is_its_rank_intervals(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found = audit(write(tmp_path), "--better", "higher", "--figures", str(tmp_path / "out"))
    assert found["figures"] == [str(tmp_path / "out" / "rank_intervals.png")]
    assert Path(found["figures"][0]).read_bytes()[:4] == b"\x89PNG"
