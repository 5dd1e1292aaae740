from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from command_line import Command

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.measures import consensus_ranking
from polarbear_plugins.partial_orders.criteria import best_at_timepoints, orders_of_functions, read_criteria
from polarbear_plugins.partial_orders.depth import measure_depth
from polarbear_plugins.partial_orders.shared import above_counts, shared_order

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
    assert f"The {len(found.common(1).functions)} deepest orders (" in succeed(table, "--common", "1")


def test_json_has_everything(table: str) -> None:
    data = json.loads(succeed(table, "--json", "--without", "a", "--common", "2"))
    found = measure_depth(orders_of_functions(read_criteria(table)))
    assert [row["depth"] for row in data["functions"]] == found.depths.tolist()
    assert data["central"] == found.central()
    assert data["common"]["functions"] == found.ranking()[:2]
    assert set(data["changes_without"]) == {"a"}
    assert set(data["changes_without"]["a"]) == {"f1", "f2", "f3", "f4"}
    assert data["sets_generic"] == {str(size): number for size, number in found.generic.items()}


def test_total_orders_are_shown_beside_the_partial_ones(table: str) -> None:
    data = json.loads(succeed(table, "--json"))
    above = pd.DataFrame(data["above"], index=data["optimizers"], columns=data["optimizers"])
    methods = ("kemeny", "borda", "copeland")
    assert data["consensus"] == [consensus_ranking(above, method).to_json() for method in methods]
    text = succeed(table)
    for words, method in zip(("(Kemeny)", "(Borda)", "(Copeland)"), methods, strict=True):
        assert f"{words}: {consensus_ranking(above, method)}" in text


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
    names = re.findall("<!-- (.*) -->", figure.read_text())
    assert any("most central" in name for name in names)
    assert "expected a file that ends in .png" in fail(table, "--figure", str(tmp_path / "orders.xyz"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--function", "problem"], "criteria.csv has no column 'problem'"),
        (["--criterion", "memory"], "criteria.csv has no column 'memory'"),
        (["--maximize", "memory"], "--maximize: 'memory' is not one of the criteria loss, seconds"),
        (["--without", "d"], "'d' is not one of the optimizers a, b, c"),
        (["--tolerance", "2"], "--tolerance: expected a number from 0 to below 1"),
        (["--samples", "0"], "--samples must be a whole number of at least 1"),
        (["--common", "0"], "--common must be a whole number of at least 1"),
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


EQUAL = """function,optimizer,loss
f1,a,1
f1,b,2
f2,a,2
f2,b,1
"""


def test_if_all_depths_are_equal_nothing_is_most_central(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    table = tmp_path / "equal.csv"
    table.write_text(EQUAL)
    text = succeed(str(table), "--figures", str(tmp_path / "figures"))
    assert "All depths are equal: no function is more central than another." in text
    assert "Most central" not in text
    assert "All 2 orders agree on nothing." in text
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"above.png", "depths.png", "shared.png"}
    data = json.loads(succeed(str(table), "--json"))
    assert (data["central"], data["outlying"]) == ([], [])
    figure = tmp_path / "ends.svg"
    succeed(str(table), "--figure", str(figure))
    assert "what all 2 orders share" in figure.read_text()


def test_figures_of_everything_the_paper_shows_are_drawn(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = succeed(
        str(root / "examples" / "runs.csv"), "--at", "20,100,500", "--figures", str(tmp_path / "new" / "all")
    )
    saved = {path.name for path in (tmp_path / "new" / "all").iterdir()}
    assert saved == {f"{name}.png" for name in ("above", "depths", "shared", "deepest", "central", "outlying")}
    assert all(name in text for name in saved)
    (tmp_path / "file").write_text("")
    assert "is not a folder" in fail(
        str(root / "examples" / "runs.csv"), "--at", "20", "--figures", str(tmp_path / "file" / "x")
    )


def test_json_says_how_often_each_is_above_each_other_and_what_all_share(table: str) -> None:
    data = json.loads(succeed(table, "--json"))
    orders = orders_of_functions(read_criteria(table))
    assert data["above"] == above_counts(orders).to_numpy().tolist()
    assert [tuple(edge) for edge in data["shared"]] == shared_order(orders).edges()
    assert (data["sampled"], data["seconds_for_all"]) == (False, None)


def test_what_takes_too_long_is_sampled_and_both_outputs_say_so(table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = "".join(
        f"f{i},{name},{i * k % 7},{i * i * k % 11}\n" for i in range(1, 9) for k, name in enumerate("abcd", 1)
    )
    Path(table).write_text(f"function,optimizer,loss,seconds\n{runs}")
    monkeypatch.setattr("polarbear_plugins.partial_orders.work._PROBE", 0.0)
    monkeypatch.setattr("polarbear_plugins.partial_orders.depth.AUTOMATIC_SAMPLES", 20)
    arguments = [table, "--indifferent", "incomparable", "--seconds", "0"]
    result = run(*arguments)
    assert "--exact tests all" in result.stdout
    assert "most_seconds" not in result.stdout + result.stderr
    data = json.loads(succeed(*arguments, "--json"))
    assert data["sampled"]
    assert data["seconds_for_all"] > 0
    exact = json.loads(succeed(*arguments, "--exact", "--json"))
    assert not exact["sampled"]
    assert "--exact and --samples: give only one" in fail(table, "--exact", "--samples", "5")


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        ("1", "--indifferent leave-out"),
        ("1", "--indifferent incomparable"),
        ("", "--missing worst or --missing incomparable"),
    ],
)
def test_advice_names_options_as_they_are_typed(tmp_path: Path, cell: str, advice: str) -> None:
    path = tmp_path / "criteria.csv"
    path.write_text(f"function,optimizer,loss\nf1,a,1\nf1,b,{cell}\nf2,a,1\nf2,b,2\n")
    message = fail(str(path))
    assert advice in message
    assert '="' not in message


def test_semicolons_are_recognized_with_the_option_to_give(table: str) -> None:
    Path(table).write_text(TABLE.replace(",", ";"))
    assert "Use --separator ';', and --decimal ',' if" in fail(table)
