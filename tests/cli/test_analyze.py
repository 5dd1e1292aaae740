from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click
import pytest
from command_line import Command

from polarbear_plugins.cli import main
from polarbear_plugins.plugins.manager import installed_plugins

# The first is best until 9, the second at 10.
TWO = "algorithm,instance,time,value\nsprinter,f1,1,2.5\nsprinter,f1,10,2.4\nclimber,f1,1,3\nclimber,f1,10,2\n"
TABLE = EntryPoint("table", "polarbear_plugins.adapters.table", "polarbear")
COMMANDS = (
    "demo",
    "race",
    "campaign",
    "resume",
    "analyze",
    "select",
    "report",
    "figures",
    "table",
    "watch",
    "export",
    "measures",
    "gate",
    "depth",
    "plan",
    "leaderboard",
    "plugins",
)


@pytest.fixture
def two(tmp_path: Path) -> str:
    """A table of two algorithms."""
    path = tmp_path / "two.csv"
    path.write_text(TWO)
    return str(path)


COMMAND = Command()
run, succeed, fail = COMMAND.run, COMMAND.succeed, COMMAND.fail


def many(path: Path, names: dict[str, str] | None = None) -> str:
    """Write the runs of the two algorithms on twenty instances, under other names if given."""
    header, *rows = TWO.splitlines()
    text = "\n".join(row.replace("f1", f"f{number}") for number in range(20) for row in rows)
    for name, other in (names or {}).items():
        text = text.replace(name, other)
    path.write_text(f"{header}\n{text}\n")
    return str(path)


def analysis(*arguments: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(succeed("analyze", *arguments, "--json"))
    return data


def test_the_example_is_analysed_as_a_table_with_its_conclusion(root: Path) -> None:
    text = succeed("analyze", str(root / "examples" / "runs.csv"))
    lines = text.splitlines()
    assert " algorithms on " in lines[0]
    assert any("differential-evolution" in line and "%" in line for line in lines)
    end = lines.index("What to do next:")
    assert "algorithms may be right for some budget: " in lines[end - 2]
    assert "more instances" in lines[end - 2]
    assert " add runs of " in lines[end + 1]
    assert lines[-1] == "  polarbear select result.npz --preference log-uniform"


def test_the_table_and_the_json_of_the_example_agree(root: Path) -> None:
    source = str(root / "examples" / "runs.csv")
    text, data = succeed("analyze", source), analysis(source)
    names = data["algorithms"]
    assert text.startswith(f"{data['runs']} runs of {len(names)} algorithms on {len(data['instances'])} instances · ")
    assert f"{len(data['pareto_set'])} of {len(names)} algorithms" in text
    assert f"some budget: {', '.join(data['pareto_set'])}." in text


def test_json_has_shares_ratings_relations_and_open_pairs(two: str) -> None:
    data = analysis(two, "--timepoints", "1,5,10")
    assert (data["sources"], data["runs"], data["instances"]) == ([two], 2, ["f1"])
    assert data["timepoints"] == [1.0, 5.0, 10.0]
    assert data["win_shares"] == {"climber": [0.0, 0.0, 1.0], "sprinter": [1.0, 1.0, 0.0]}
    assert data["pareto_set"] == ["climber", "sprinter"]
    assert data["stopped"] == "analyzed"
    assert data["open_pairs"] == [{"pair": ["climber", "sprinter"], "timepoints": [1.0, 5.0, 10.0]}]
    # One win and a flat prior: Beta(2, 1), better with probability 3/4.
    assert [rows[1][0] for rows in data["relations"]["p_better"]] == pytest.approx([0.75, 0.75, 0.25], abs=0.03)
    assert [sum(row) for row in data["ratings"]] == pytest.approx([1.0] * 3)
    assert data["relations"]["p_anytime"] is None


def test_the_same_seed_gives_the_same_analysis(two: str) -> None:
    assert analysis(two, "--seed", "4") == analysis(two, "--seed", "4")
    assert analysis(two, "--seed", "4") != analysis(two, "--seed", "5")


def test_an_algorithm_that_is_dominated_is_out_and_the_table_says_by_whom(tmp_path: Path) -> None:
    path = many(tmp_path / "many.csv")
    data = analysis(path, "--timepoints", "1,5")
    assert data["pareto_set"] == ["sprinter"]
    assert [(out["algorithm"], out["by"]) for out in data["eliminations"]] == [("climber", "sprinter")]
    text = succeed("analyze", path, "--timepoints", "1,5")
    assert "sprinter is better at every timepoint, P > 0.9995" in text
    assert "1 of 2 algorithms is right for some budget: sprinter. Every pair is settled." in text


def test_joint_elimination_takes_a_temporal_prior(tmp_path: Path) -> None:
    path = many(tmp_path / "many.csv")
    assert "needs a joint posterior" in fail("analyze", path, "--elimination", "joint")
    data = analysis(path, "--elimination", "joint", "--prior", "random-walk", "--timepoints", "1,2,3,4,5")
    assert data["pareto_set"] == ["sprinter"]
    assert data["relations"]["p_anytime"][1][0] > 0.99


def test_options_of_the_prior_reach_it(two: str) -> None:
    flat, steep = (analysis(two, "--prior-option", f"alpha={alpha}")["ratings"][0][1] for alpha in (1, 10))
    assert flat > steep > 0.5
    assert "no option 'beta'" in fail("analyze", two, "--prior-option", "beta=1")
    assert "There is no prior 'flat'" in fail("analyze", two, "--prior", "flat")


def test_an_unknown_share_is_null_in_json(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("horizon," + TWO.split("\n")[0] + "\n10,a,f1,1,3\n10,b,f1,1,4\n5,c,f1,1,5\n")
    assert analysis(str(path), "--timepoints", "1,10", "--ended", "cut")["win_shares"]["c"] == [0.0, None]
    assert analysis(str(path), "--timepoints", "1,10")["win_shares"]["c"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("timepoints", "expected"),
    [
        ("3", [1, 3, 10]),
        ("3.0", [1, 3, 10]),
        ("2,4.5,10", [2, 4.5, 10]),
        (" 2, 3 ", [2, 3]),
        ("1000", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ],
)
def test_timepoints_are_a_number_of_them_or_a_list(two: str, timepoints: str, expected: list[float]) -> None:
    assert analysis(two, "--timepoints", timepoints)["timepoints"] == expected


@pytest.mark.parametrize(
    "timepoints", ["", "x", "1,x", "1,,2", "0", "-3", "2.5", "nan", "inf", "5,1", "1,1", "-1,2", "1,99"]
)
def test_timepoints_without_meaning_are_refused(two: str, timepoints: str) -> None:
    assert "timepoints: " in fail("analyze", two, "--timepoints", timepoints)


def test_a_number_of_timepoints_beyond_all_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "seconds.csv"
    path.write_text(TWO.replace(",1,", ",0.5,"))
    fail("analyze", str(path), "--timepoints", "1e30")


def test_options_reach_the_adapter(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(TWO.replace("time", "evaluations").replace("instance", "function"))
    options = ("-o", "columns=time=evaluations,instance=function", "--option", "maximize=true", "-o", "horizon=20")
    data = analysis(str(path), *options, "--timepoints", "1,20")
    assert data["win_shares"] == {"climber": [1, 1], "sprinter": [0, 0]}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("maximize", "--option: expected KEY=VALUE, got 'maximize'"),
        ("=true", "--option: expected KEY=VALUE, got '=true'"),
        ("colour=red", "A table has no option 'colour'. It takes columns, maximize, horizon"),
        ("maximize=perhaps", "maximize: expected true or false, got 'perhaps'"),
        ("columns=times=t", "columns: there is no role 'times'"),
        ("columns=time=t", "two.csv has no column 't'. It has algorithm, instance, time, value"),
        ("horizon=3", "horizon 3 lies before the last time 10"),
    ],
)
def test_options_without_meaning_are_refused(two: str, option: str, message: str) -> None:
    assert message in fail("analyze", two, "-o", option)


@pytest.mark.parametrize("option", ["source=1", "self=1"])
def test_options_named_like_arguments_of_ours_are_refused(two: str, option: str) -> None:
    assert "A table has no option" in fail("analyze", two, "-o", option)


def test_several_sources_are_analysed_together(two: str, tmp_path: Path) -> None:
    more = tmp_path / "more.csv"
    more.write_text(TWO.replace("f1", "f2"))
    data = analysis(two, str(more))
    assert (data["sources"], data["runs"], data["instances"]) == ([two, str(more)], 4, ["f1", "f2"])


def test_the_same_source_twice_is_refused(two: str) -> None:
    assert "Two trajectories of 'sprinter' on instance 'f1' have the seed 0" in fail("analyze", two, two)


def test_repetitions_count_as_one_instance_or_as_many(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("algorithm,instance,seed,time,value\na,f1,0,1,1\na,f1,1,1,3\na,f1,2,1,3\nb,f1,0,1,2\n")
    shares = {
        repetitions: [
            shares[0]
            for shares in analysis(str(path), "--repetitions", repetitions, "--timepoints", "1,1.5", "-o", "horizon=2")[
                "win_shares"
            ].values()
        ]
        for repetitions in ("weight", "independent")
    }
    assert shares["weight"] == pytest.approx([1 / 3, 2 / 3])
    assert shares["independent"] != pytest.approx(shares["weight"])


def test_values_within_the_tolerance_share_the_win(two: str) -> None:
    data = analysis(two, "--timepoints", "1,10", "--tolerance", "1")
    assert list(data["win_shares"].values()) == [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize("tolerance", ["-1", "nan", "inf"])
def test_a_tolerance_without_meaning_is_refused(two: str, tolerance: str) -> None:
    assert "tolerance: " in fail("analyze", two, "--tolerance", tolerance)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.csv", None, "absent.csv: there is no such file."),
        ("absent.xyz", None, "; table (CSV and Parquet files"),
        ("empty.csv", "", "empty.csv is empty."),
        (
            "bad.csv",
            TWO + "climber,f1,11,low\n",
            "bad.csv, line 6: expected a number or 'unranked' in 'value', got 'low'.",
        ),
        ("one.csv", "\n".join(TWO.split("\n")[:3]), "A ranking needs at least two algorithms, got only 'sprinter'."),
    ],
)
def test_a_source_that_cannot_be_analysed_is_one_line(
    tmp_path: Path, name: str, content: str | None, message: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content)
    assert message in fail("analyze", str(path))


def test_an_unknown_source_is_named_however_long_its_path() -> None:
    path = f"{'results/' * 12}absent.xyz"
    assert f"No plugin knows the source '{path}' (there is no such file)." in fail("analyze", path)


def test_runs_that_end_early_are_named_with_what_counts_for_them(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(TWO.replace("climber,f1,10", "climber,f1,9"))
    held, cut = (
        run("analyze", str(path)).stdout,
        run("analyze", str(path), "--timepoints", "5,10", "--ended", "cut").stdout,
    )
    assert "climber ended before others in 1 run, at 9, and keeps its last value from there on (--ended cut" in held
    assert "climber ended before others in 1 run, at 9, and is left out from there on" in cut
    found = analysis(str(path))
    ends = {"algorithm": "climber", "rule": "hold", "runs": 1, "first": 9.0, "last": 9.0, "added": 1.0}
    assert found["early_ends"] == [ends]
    assert found["cost"] == 19  # nothing ran where a value was held


@pytest.mark.slow
def test_in_a_process_of_its_own_a_mistake_is_one_line_without_a_traceback(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", "from polarbear_plugins.cli import main; main()", "analyze", "absent.csv"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "Error: absent.csv: there is no such file.\n"


@pytest.mark.parametrize("names", [("[red]x[/red]", "[/bold]y"), ("x:cat:", "y:dog:")])
def test_names_with_markup_or_emoji_codes_are_shown_verbatim(tmp_path: Path, names: tuple[str, str]) -> None:
    loser, winner = names
    path = many(tmp_path / "many.csv", {"climber": loser, "sprinter": winner})
    text = succeed("analyze", path, "--timepoints", "1,5")
    assert f" {loser} " in text
    assert f"{winner} is better at every timepoint" in text
    assert f"1 of 2 algorithms is right for some budget: {winner}." in text


def test_names_with_emoji_codes_are_shown_verbatim_in_the_conclusion(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(TWO.replace("sprinter", "y:dog:"))
    assert "may be right for some budget: climber, y:dog:." in succeed("analyze", str(path))


def test_long_names_are_not_truncated_in_piped_output(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(TWO.replace("climber", "c" * 90))
    assert "c" * 90 in succeed("analyze", str(path))


def test_plugins_lists_the_table_adapter_and_its_description() -> None:
    text = succeed("plugins")
    [row] = [line for line in text.splitlines() if line.lstrip().startswith("table ")]
    assert f"polarbear-plugins {importlib.metadata.version('polarbear-plugins')}" in row
    assert "read_trajectories" in row
    assert (
        "CSV and Parquet files and pandas data frames with the columns algorithm, instance, [seed], time, value" in row
    )
    assert text.splitlines()[-1].endswith(" installed, 0 failed")


def test_plugins_lists_in_json_what_is_installed_and_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    announced = [TABLE, EntryPoint("broken", "no_such_module_at_all", "polarbear")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: announced if group == "polarbear" else [])
    data = json.loads(succeed("plugins", "--json"))
    assert data["failed"] == [
        {
            "name": "broken",
            "module": "no_such_module_at_all",
            "distribution": "",
            "reason": "ModuleNotFoundError: No module named 'no_such_module_at_all'",
        }
    ]
    [table] = data["installed"]
    assert (table["name"], table["module"], table["distribution"]) == ("table", TABLE.value, "")
    assert list(table["hooks"]) == ["polarbear_read_trajectories"]


def test_a_failed_plugin_is_listed_and_is_a_note_elsewhere(two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    announced = [TABLE, EntryPoint("[red]broken", "no_such_module_at_all", "polarbear")]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: announced if group == "polarbear" else [])
    text = succeed("plugins")
    assert "failed: [red]broken (no_such_module_at_all): ModuleNotFoundError: No module named" in text
    assert text.splitlines()[-1] == "1 installed, 1 failed"
    installed_plugins.cache_clear()  # another command is another process
    result = run("analyze", two)
    assert result.exit_code == 0
    assert result.stderr.startswith("Note: The plugin '[red]broken' could not be loaded (ModuleNotFoundError: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_every_command_explains_itself_and_its_options(command: tuple[str, ...], option: str) -> None:
    text = succeed(*command, option)
    described: click.Command = main.commands[command[0]] if command else main
    assert text.startswith("Usage: ")
    assert (described.help or "").split()[0] in text
    for parameter in described.params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[-1] in text
            assert parameter.help


def test_the_help_lists_every_command() -> None:
    text = succeed("--help")
    assert set(main.commands) == set(COMMANDS)
    assert all(f"\n  {name} " in text for name in main.commands)


def test_the_version_is_that_of_the_distribution() -> None:
    assert succeed("--version").endswith(f", version {importlib.metadata.version('polarbear-plugins')}\n")


@pytest.mark.parametrize("arguments", [("analyze",), ("analyse", "runs.csv"), ("analyze", "runs.csv", "--colour")])
def test_a_command_that_does_not_exist_or_lacks_something_shows_the_usage(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage: ")
