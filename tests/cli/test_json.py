"""The keys in docs/guide/data.md are those that the commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from builders import synthetic_race
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, race
from polarbear_plugins.cli import main
from polarbear_plugins.seeds import derived_seed

ROOT = Path(__file__).parents[2]
POLARBEAR = Command()
ANY = "NAME"
CAMPAIGN = ["campaign", "synthetic", "synthetic", "--budget", "3", "--error", "5", "--first", "2"]


def documented(section: str) -> set[str]:
    """Keys in a section of the page."""
    page = (ROOT / "docs" / "guide" / "data.md").read_text()
    [text] = [part for part in page.split("\n### ")[1:] if part.partition("\n")[0] == section]
    return set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.MULTILINE))


def compare(data: Any, known: set[str], inside: str = "") -> None:
    """Check that an object has the documented keys and no others, as deep as they are documented."""
    if isinstance(data, list):
        for item in data:
            compare(item, known, f"{inside}[]")
        return
    if data is None:
        return
    start = f"{inside}." if inside else ""
    rest = [key.removeprefix(start) for key in known if key.startswith(start)]
    children = {re.split(r"[.\[]", key)[0] for key in rest if key}
    if not children:
        return
    names = {ANY} if children == {ANY} else children
    if names != {ANY}:
        assert set(data) == names, inside
    for key, value in data.items():
        compare(value, known, start + (ANY if names == {ANY} else key))


def is_a_result(data: dict[str, Any]) -> None:
    if "groups" in data:  # described below the table, as others that not every result has
        assert len(data["groups"]) == len(data["instances"])
    others = ("groups", "stored", "unused_cost")
    compare({key: value for key, value in data.items() if key not in others}, documented("A result"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    settings = RaceSettings(seed=3, max_rounds=2, alpha=0.8, draws=200)
    result = race("synthetic", "synthetic", [1, 2, 3], settings, workers=0, portfolio_options={"algorithms": 4})
    return str(result.save(tmp_path_factory.mktemp("json") / "race.npz"))


def test_race_and_resume_print_a_result(tmp_path: Path) -> None:
    journal = str(tmp_path / "race.db")
    settings = ["--workers", "0", "--max-rounds", "1", "--seed", "3", "--draws", "200"]
    is_a_result(
        POLARBEAR.data("race", "synthetic", "synthetic", "--timepoints", "1,2", *settings, "--journal", journal)
    )
    is_a_result(POLARBEAR.data("resume", journal, "--workers", "0", "--max-rounds", "2"))


def test_a_race_against_an_archive_prints_a_result_and_says_what_was_stored(tmp_path: Path) -> None:
    seed = derived_seed(3, "instances")
    rows = [f"rival,{seed}-{number},{time},{-time}" for number in range(1, 9) for time in (1, 2)]
    path = tmp_path / "archive.csv"
    path.write_text("\n".join(["algorithm,instance,time,value", *rows]))
    settings = ["--workers", "0", "--max-rounds", "1", "--seed", "3", "--draws", "200", "--timepoints", "1,2"]
    found = POLARBEAR.data("race", "synthetic", "synthetic", "--against", str(path), *settings)
    is_a_result(found)
    assert found["stored"] == ["rival"]
    page = " ".join((ROOT / "docs" / "guide" / "data.md").read_text().split())
    [text] = re.findall(r"there is also `stored`: (.*?) ###", page)
    assert set(found["about"]["against"]) <= set(re.findall(r"`(\w+)`", text))


def test_watch_prints_the_state_of_a_race(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    synthetic_race(journal=journal, max_rounds=1)
    compare(POLARBEAR.data("watch", str(journal)), documented("watch"))


def test_analyze_prints_a_result_and_more() -> None:
    found = POLARBEAR.data("analyze", str(ROOT / "examples" / "runs.csv"), "--timepoints", "3", "--draws", "200")
    has_more_than_a_result(found, documented("analyze"))


@pytest.mark.parametrize("scope", ["new", "same"])
def test_analyze_prints_groups_and_the_other_scope(tmp_path: Path, scope: str) -> None:
    path = grouped_csv(tmp_path)
    options = ["--timepoints", "1,5,10", "--draws", "200", "--by", "group", "--groups", scope]
    found = POLARBEAR.data("analyze", path, *options)
    has_more_than_a_result(found, documented("analyze") | documented("analyze --by group"))
    assert found["scope"]["scope"] == scope
    assert {scope, found["other_scope"]["scope"]} == {"new", "same"}
    assert [part["group"] for part in found["by_group"]] == ["g1", "g2", "g10"]
    assert [part["instances"] for part in found["by_group"]] == [6, 6, 6]
    assert found["by_group"][0]["win_shares"] == [[1.0, 0.0]] * 3
    assert found["by_group"][2]["win_shares"] == [[0.0, 1.0]] * 3
    assert found["by_group"][2]["ratings"][0][1] > 0.8


def has_more_than_a_result(data: dict[str, Any], more: set[str]) -> None:
    mine = {key.partition(".")[0].partition("[")[0] for key in more}
    assert mine <= set(data)
    compare({key: data[key] for key in mine}, more)
    is_a_result({key: value for key, value in data.items() if key not in mine})


def grouped_csv(folder: Path) -> str:
    """Write a table of two algorithms on three groups of six instances: a wins always in two of them, and b in g10."""
    rows = [
        f"{algorithm},{group}-{number},{time},{value},{group}"
        for group in ("g10", "g2", "g1")
        for number in range(6)
        for algorithm, value in (("a", 2 if group == "g10" else 1), ("b", 1 if group == "g10" else 2))
        for time in (1, 10)
    ]
    path = folder / "grouped.csv"
    path.write_text("\n".join(["algorithm,instance,time,value,group", *rows]))
    return str(path)


def test_the_keys_about_the_model_say_what_the_result_says(saved: str) -> None:
    result = RaceResult.load(saved)
    data = result.to_dict()
    assert result.check is not None
    assert data["check"] == result.check.to_json()
    assert data["scope"] is None
    assert data["p_any_wrong"] == result.p_any_wrong
    assert data["second_opinion"]["certain"] == list(result.certain_without_model)
    opinion = result.second_opinion().log_e_values
    assert data["second_opinion"]["log_e_values"] == [pytest.approx(row, abs=1e-4) for row in opinion.tolist()]


@pytest.mark.parametrize(
    ("section", "arguments"),
    [
        ("select", ["select", "{saved}"]),
        ("select --size", ["select", "{saved}", "--size", "2"]),
        ("plan RESULT", ["plan", "{saved}"]),
        ("plan", ["plan", "--effect", "0.5"]),
        ("plan --curve", ["plan", "--instances", "30", "--curve"]),
        ("campaign", [*CAMPAIGN, "--workers", "0", "--instances", "3", "--seed", "1"]),
        ("race --dry-run", ["race", "synthetic", "synthetic", "--budget", "3", "--workers", "0", "--dry-run"]),
        ("campaign --dry-run", [*CAMPAIGN, "--dry-run"]),
        ("plugins", ["plugins"]),
        ("measures", ["measures", "{root}/examples/runs.csv", "--no-posterior"]),
        ("export", ["export", "{saved}", "-o", "{folder}/runs.csv"]),
        ("report", ["report", "{saved}", "-o", "{folder}/report.html"]),
        ("figures", ["figures", "{saved}", "-o", "{folder}/figures", "--only", "ratings"]),
        ("table", ["table", "{saved}"]),
    ],
)
def test_the_keys_of_a_command_are_documented(
    section: str, arguments: list[str], saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if section == "figures":
        pytest.importorskip("matplotlib")
    monkeypatch.setattr("polarbear_plugins.report.figures.MOST_NAMES", 0)  # the page matters here, not its figures
    places = {"saved": saved, "root": str(ROOT), "folder": str(tmp_path)}
    found = POLARBEAR.data(*(argument.format(**places) for argument in arguments))
    known = documented(section)
    assert known
    compare(found, known)


def test_the_keys_of_depth_are_documented(tmp_path: Path) -> None:
    table = tmp_path / "criteria.csv"
    rows = ["function,optimizer,loss,time", "f1,a,1,2", "f1,b,2,3", "f2,a,2,1", "f2,b,1,2", "f3,a,3,1", "f3,b,1,0"]
    table.write_text("\n".join(rows))
    compare(POLARBEAR.data("depth", str(table)), documented("depth"))


def test_the_keys_of_a_gate_are_documented() -> None:
    source = str(ROOT / "examples" / "runs.csv")
    compare(POLARBEAR.data("gate", source, source, "--budgets", "10,1e9"), documented("gate"))


def test_the_keys_of_the_leaderboard_are_documented(shared: Path) -> None:
    folder = str(shared / "bayesmark" / "sample")
    options = ["--bootstrap", "50", "--timepoints", "2", "--draws", "200", "--studies", "2"]
    found = POLARBEAR.run("leaderboard", folder, *options, "--json")
    assert found.exit_code == 0
    data = json.loads(found.stdout)
    is_a_result(data["posterior"])
    compare(data, documented("leaderboard"))


def test_the_keys_of_an_audit_are_documented(tmp_path: Path, shared: Path) -> None:
    table = tmp_path / "board.csv"
    table.write_text("system,task,score\n" + "".join(f"{name},t{k},{k % 3}\n" for name in "ab" for k in range(8)))
    known = documented("leaderboard of a table")
    compare(POLARBEAR.data("leaderboard", str(table), "--better", "higher"), known)
    options = ["--no-posterior", "--bootstrap", "0", "--audit", "--by", "model"]
    data = json.loads(POLARBEAR.run("leaderboard", str(shared / "bayesmark" / "sample"), *options, "--json").stdout)
    compare(data, documented("leaderboard"))
    of_tables = {"table", "repeated", "left_out", "by_group", "figures"}
    compare(data["audit"], {key for key in known if key not in of_tables})


def test_every_command_has_its_section() -> None:
    page = (ROOT / "docs" / "guide" / "data.md").read_text()
    named = {word.strip(",") for title in re.findall(r"^### (.+)$", page, flags=re.MULTILINE) for word in title.split()}
    assert set(main.commands) <= named


def test_a_result_as_json_cannot_be_selected_from(tmp_path: Path, saved: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(RaceResult.load(saved).to_json())
    for command in ("select", "plan", "report"):
        assert "result.json is JSON" in POLARBEAR.fail(command, str(path))
