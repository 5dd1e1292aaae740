"""``polarbear analyze`` of runs that end early, and of instances of several dimensions."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_line import Command

from polarbear_plugins import RaceResult
from polarbear_plugins.report.commands import how_to_repeat

POLARBEAR = Command()
HEADER = "algorithm,instance,dimension,time,value,horizon\n"


@pytest.fixture
def runs(tmp_path: Path) -> str:
    """``quick`` reaches 0.5 early and stays there, ``long`` goes on to 0.1; instances of 2 and 5 dimensions."""
    path = tmp_path / "runs.csv"
    rows = [
        f"{name},f{number},{dimension},{time * dimension},{value},{100 * dimension}"
        for number in range(12)
        for dimension in ((2, 5)[number % 2],)
        for name, steps in (("quick", [(1, 3), (10, 0.5)]), ("long", [(1, 4), (40, 0.6), (90, 0.1)]))
        for time, value in steps
    ]
    path.write_text(HEADER + "\n".join(rows) + "\n")
    return str(path)


def ranks_at_the_end(*arguments: str) -> dict[str, list[float]]:
    found = POLARBEAR.data("analyze", *arguments)
    return {name: shares[-1] for name, shares in found["win_shares"].items()}


def test_a_run_that_reaches_the_target_does_not_lose_to_one_that_goes_on(runs: str) -> None:
    grid = ("--timepoints", "5", "--budget", "100d")
    assert ranks_at_the_end(runs, *grid) == {"long": 1, "quick": 0}
    assert ranks_at_the_end(runs, *grid, "--target", "0.55") == {"long": 0.5, "quick": 0.5}
    found = POLARBEAR.data("analyze", runs, *grid, "--target", "0.55")
    assert {(each["algorithm"], each["rule"]) for each in found["early_ends"]} == {("quick", "done"), ("long", "done")}
    text = POLARBEAR.succeed("analyze", runs, *grid, "--target", "0.55")
    assert "quick reached its target in 12 runs, at 10, and counts as best from there on." in text


def test_a_budget_is_the_last_timepoint(runs: str) -> None:
    assert POLARBEAR.data("analyze", runs, "--budget", "150", "--timepoints", "5")["timepoints"][-1] == 150
    assert POLARBEAR.data("analyze", runs, "--timepoints", "5")["timepoints"][-1] == 500  # the longest
    message = POLARBEAR.fail("analyze", runs, "--budget", "900")
    assert "the last one must lie between 2 and 500, got 900" in message
    assert "--timepoints A,B,... is complete: leave out --budget" in POLARBEAR.fail(
        "analyze", runs, "--budget", "90", "--timepoints", "5,90"
    )
    assert "expected a number such as 10000 or 2000d, got 'much'" in POLARBEAR.fail("analyze", runs, "--budget", "much")


def test_time_in_multiples_of_the_dimension_means_the_same_in_all_of_them(runs: str) -> None:
    found = POLARBEAR.data("analyze", runs, "--budget", "100d", "--timepoints", "6", "--by", "dimension")
    assert found["timepoints"][-1] == 100
    assert [part["group"] for part in found["by_group"]] == ["d = 2", "d = 5"]
    assert found["by_group"][0]["win_shares"] == found["by_group"][1]["win_shares"]
    text = POLARBEAR.succeed("analyze", runs, "--budget", "100d", "--timepoints", "6")
    assert "Instances of 2 dimensions are pooled (6 with d = 2, 6 with d = 5): budgets are multiples of d" in text


def test_pooled_dimensions_are_said_and_shown_by_themselves(runs: str) -> None:
    text = POLARBEAR.succeed("analyze", runs, "--timepoints", "5", "--by", "dimension")
    assert "6 with d = 2, 6 with d = 5): a budget is as many evaluations for all of them" in text
    assert "In each dimension by itself the algorithm most often first" in text


def test_what_the_data_do_not_say_cannot_be_shown_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("algorithm,instance,time,value\na,f1,1,3\nb,f1,1,2\n")
    for by, message in (
        ("dimension", "--by dimension: the data do not say the dimension of every instance"),
        ("group", "--by group: the data have no groups"),
        ("function", "no option 'group'"),
    ):
        assert message in POLARBEAR.fail("analyze", str(path), "--by", by)
    assert "does not say the dimension of its instance" in POLARBEAR.fail("analyze", str(path), "--budget", "1d")


def test_the_command_in_the_report_repeats_the_analysis(runs: str, tmp_path: Path) -> None:
    saved = str(tmp_path / "result.npz")
    options = ("--budget", "80d", "--timepoints", "6", "--ended", "cut", "--target", "0.2", "--seed", "1")
    first = POLARBEAR.data("analyze", runs, *options, "--output", saved)
    _, command = how_to_repeat(RaceResult.load(saved))
    again = json.loads(POLARBEAR.succeed(*shlex.split(command)[1:], "--json"))
    assert again["ratings"] == first["ratings"]
    assert again["timepoints"] == first["timepoints"]
