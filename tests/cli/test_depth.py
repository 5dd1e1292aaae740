from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.partial_orders.criteria import best_at_timepoints, orders_of_functions, read_criteria
from polarbear_plugins.partial_orders.depth import measure_depth

TABLE = """function,optimizer,loss,seconds
f1,a,1,5
f1,b,2,6
f1,c,3,7
f2,a,3,5
f2,b,2,6
f2,c,1,7
f3,a,1,5
f3,b,2,4
f3,c,3,6
f4,a,3,7
f4,b,2,6
f4,c,1,8
"""


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "criteria.csv"
    path.write_text(TABLE)
    return str(path)


COMMAND = Command("depth")
run, succeed, fail = COMMAND.run, COMMAND.succeed, COMMAND.fail


def test_a_table_of_criteria_gives_depths_and_a_conclusion(table: str) -> None:
    text = succeed(table)
    found = measure_depth(orders_of_functions(read_criteria(table)))
    assert text.startswith("4 test functions, 4 distinct orders of 3 optimizers")
    for name, depth in zip(found.functions, found.depths, strict=True):
        [row] = [line for line in text.splitlines() if line.startswith(f" {name} ")]
        assert f"{depth:.4f}" in row
    assert f"Most central: {', '.join(found.central())}." in text
    assert "The 3 deepest orders (" in text


def test_json_has_everything(table: str) -> None:
    data = json.loads(succeed(table, "--json", "--without", "a", "--common", "2"))
    found = measure_depth(orders_of_functions(read_criteria(table)))
    assert [row["depth"] for row in data["functions"]] == found.depths.tolist()
    assert data["central"] == found.central()
    assert data["common"]["functions"] == found.ranking()[:2]
    assert set(data["changes_without"]) == {"a"}
    assert set(data["changes_without"]["a"]) == {"f1", "f2", "f3", "f4"}
    assert data["sets_generic"] == {str(size): number for size, number in found.generic.items()}


def test_changes_without_an_optimizer_are_shown(table: str) -> None:
    text = succeed(table, "--without", "a", "--without", "b")
    assert "without a" in text
    assert "without b" in text


def test_runs_are_compared_at_timepoints_or_by_targets(root: Path) -> None:
    runs = str(root / "examples" / "runs.csv")
    assert succeed(runs, "--at", "20,100,500").startswith("20 test functions, ")
    result = run(runs, "--targets", "100,1", "--indifferent", "incomparable")
    assert result.exit_code == 0
    assert "20 test functions" in result.stdout
    assert "are equal in all criteria" in fail(runs, "--targets", "100,1")


def test_a_race_is_compared_from_its_journal_or_its_result(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    settings = RaceSettings(seed=1, max_rounds=1, batch_size=8)
    result = race("synthetic", "synthetic", timepoints=[1, 5, 20], settings=settings, workers=0, journal=journal)
    saved = result.save(tmp_path / "result.npz")
    data = [json.loads(succeed(str(path), "--at", "1,5,20", "--json")) for path in (journal, saved)]
    assert data[0] == data[1]
    found = measure_depth(orders_of_functions(best_at_timepoints(result.trajectories(), [1, 5, 20])))
    assert [row["depth"] for row in data[0]["functions"]] == found.depths.tolist()


def test_sampled_depths_have_errors_and_repeat_with_the_seed(root: Path) -> None:
    arguments = [str(root / "examples" / "runs.csv"), "--at", "20,100,500", "--samples", "200", "--seed", "3"]
    text = succeed(*arguments)
    assert " error " in text
    assert text == succeed(*arguments)


def test_the_central_and_the_outlying_order_are_drawn(table: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    figure = tmp_path / "orders.svg"
    assert f"saved {figure}" in succeed(table, "--figure", str(figure)).replace("\n", "")
    assert figure.read_text().startswith("<?xml")
    assert "The figure cannot be saved as" in fail(table, "--figure", str(tmp_path / "orders.xyz"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--function", "problem"], "criteria.csv has no column 'problem'"),
        (["--criterion", "memory"], "criteria.csv has no column 'memory'"),
        (["--maximize", "memory"], "'memory' is not one of the criteria loss, seconds"),
        (["--without", "d"], "'d' is not one of the optimizers a, b, c"),
        (["--tolerance", "2"], "tolerance: expected a number from 0 to below 1"),
        (["--samples", "0"], "samples must be a whole number of at least 1"),
        (["--common", "0"], "deepest must be a whole number of at least 1"),
        (["--at", "1", "--targets", "1"], "--at and --targets: give only one of the two"),
        (["--at", "soon"], "--at: expected numbers separated by commas, got 'soon'"),
        (["more.csv"], "Expected one table of criteria. For runs, give --at or --targets"),
    ],
)
def test_mistakes_are_one_line(table: str, arguments: list[str], message: str) -> None:
    if "--at" in arguments and "--targets" not in arguments:
        Path(table).write_text("algorithm,instance,time,value\na,f1,1,1\nb,f1,1,2\n")
    assert message in fail(table, *arguments)


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (lambda row: row.startswith(("function", "f1")), "several test functions, got one"),
        (lambda row: ",a," in row or row.startswith("function"), "at least 2 and at most 64 optimizers, got 1"),
    ],
)
def test_a_single_function_or_optimizer_is_refused(table: str, keep: object, message: str) -> None:
    Path(table).write_text("\n".join(filter(keep, TABLE.splitlines())))  # type: ignore[call-overload]
    assert message in fail(table)
