from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Command

from polarbear_plugins import RaceResult

SHORT = ("race", "synthetic", "synthetic", "--budget", "5", "--seed", "1", "--workers", "0", "--draws", "500")
POLARBEAR = Command()
run, data, failure = POLARBEAR.run, POLARBEAR.data, POLARBEAR.fail


def test_a_race_ends_in_a_table_and_a_conclusion_and_is_quiet_meanwhile() -> None:
    result = run(*SHORT, "--max-rounds", "3")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("race synthetic on synthetic · 5 timepoints 1..5 · pointwise elimination, strict")
    assert lines[0].endswith("seed 1")
    [saved] = [place for place, line in enumerate(lines) if line.startswith("not saved: --output FILE")]
    assert "of 5 algorithms may be right for some budget" in lines[saved - 1]
    assert "3 rounds" in lines[saved - 1]
    assert " of 100 new instances (rating 0." in lines[saved - 2]
    assert lines[saved - 2].endswith("The rating says how much a lead matters, P(best) how sure it is.")
    assert lines[saved + 1 : saved + 3] == ["", "What to do next:"]
    assert lines[-1].startswith("  polarbear race synthetic synthetic --budget 5 ")
    assert lines[-1].endswith(" --journal race.db")


def test_json_has_everything_but_the_draws() -> None:
    found = data(*SHORT, "--max-rounds", "3")
    assert found["stopped"] == "max_rounds"
    assert len(found["rounds"]) == 3
    assert found["settings"]["seed"] == 1
    assert 0 < found["cost"] <= found["full_cost"]


def test_a_race_that_was_stopped_continues_and_ends_like_one_that_was_not(tmp_path: Path) -> None:
    journal = str(tmp_path / "race.db")
    first = data(*SHORT, "--max-rounds", "2", "--journal", journal)
    assert len(first["rounds"]) == 2
    resumed = data("resume", journal, "--workers", "0", "--max-rounds", "4")
    whole = data(*SHORT, "--max-rounds", "4")
    assert resumed == whole
    assert f"{journal} already exists and is not overwritten" in failure(*SHORT, "--journal", journal)


def test_both_schedules_give_the_same_answer_and_resume_keeps_the_schedule(tmp_path: Path) -> None:
    journal = str(tmp_path / "race.db")
    rounds = data(*SHORT, "--max-rounds", "3")
    data(*SHORT, "--max-rounds", "2", "--schedule", "continuous", "--journal", journal)
    resumed = data("resume", journal, "--workers", "0", "--max-rounds", "3")
    assert resumed["settings"].pop("schedule") == "continuous"
    unused = resumed.pop("unused_cost", 0)
    assert resumed == {**rounds, "about": resumed["about"]}
    shown = run("resume", journal, "--workers", "0").stdout
    assert " · schedule continuous · seed 1" in shown
    assert ("runs that no round has used yet cost another" in shown) == (unused > 0)


def test_the_result_is_saved_whole(tmp_path: Path) -> None:
    path = tmp_path / "result.npz"
    found = data(*SHORT, "--max-rounds", "2", "--output", str(path))
    assert RaceResult.load(path).to_dict() == found


def test_options_reach_portfolio_prior_and_settings() -> None:
    found = data(
        *SHORT,
        *("-P", "algorithms=3", "-P", "correlation=0.5"),
        *("--prior", "random-walk", "--elimination", "joint", "--resolution", "crossing"),
        *("--alpha", "0.9", "--batch-size", "4", "--max-rounds", "1", "--max-cost", "1000"),
    )
    assert found["algorithms"] == ["A", "B", "C"]
    settings = found["settings"]
    assert (settings["prior"], settings["elimination"], settings["resolution"]) == ("random-walk", "joint", "crossing")
    assert (settings["alpha"], settings["max_cost"]) == (0.9, 1000.0)
    assert len(found["instances"]) == 4


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), [1, 2, 3, 4, 5]),
        (("--timepoints", "3"), [1, 2, 5]),
        (("--timepoints", "3", "--spacing", "uniform"), [1, 3, 5]),
        (("--timepoints", "2", "--first", "2"), [2, 5]),
        (("--timepoints", "1"), [5]),
    ],
)
def test_timepoints_run_up_to_the_budget(more: tuple[str, ...], expected: list[float]) -> None:
    assert data(*SHORT, "--max-rounds", "1", *more)["timepoints"] == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("race", "synthetic", "synthetic"), "--budget"),
        (("race", "synthetic", "synthetic", "--budget", "nan"), "--budget: expected a finite number"),
        (("race", "synthetic", "synthetic", "--budget", "-5"), "--budget: expected a positive number, got -5"),
        (("race", "synthetic", "synthetic", "--budget", "5", "--timepoints", "1,2"), "leave out --budget"),
        (("race", "nobody", "synthetic", "--budget", "5"), "No plugin knows the portfolio 'nobody'"),
        (("race", "synthetic", "nowhere", "--budget", "5"), "No plugin knows the suite 'nowhere'"),
        ((*SHORT, "-P", "algorithms=x"), "algorithms must be a whole number"),
        ((*SHORT, "-P", "size=3"), "no option 'size'"),
        ((*SHORT, "--dimension", "3"), "no option 'dimension'"),
        ((*SHORT, "--alpha", "0.3"), "alpha: expected a number"),
        ((*SHORT, "--elimination", "joint"), "temporal prior"),
        ((*SHORT, "--executor", "nowhere"), "No plugin knows the executor"),
        ((*SHORT, "--run-timeout", "1"), "run_timeout needs processes"),
        ((*SHORT, "--run-memory", "1"), "run_memory needs processes"),
        (("resume", "no-such.db"), "there is no such file"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    text = failure(*arguments)
    assert message in text
    assert text.count("\n") == 1


@pytest.mark.slow
def test_progress_is_shown_at_a_terminal() -> None:
    terminal, inside = pty.openpty()
    command = [sys.executable, "-m", "polarbear_plugins.cli", *SHORT, "--max-rounds", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=inside, env=os.environ | {"COLUMNS": "200"}
    ) as process:
        os.close(inside)
        seen = b""
        try:
            while chunk := os.read(terminal, 4096):
                seen += chunk
        except OSError:  # the other side is closed
            pass
        os.close(terminal)
    assert process.returncode == 0
    text = seen.decode()
    assert "round 1: 8 instances" in text
    assert "round 2 · batch " in text
    assert " of full cost" in text


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A race as its journal, and as a saved result."""
    folder = tmp_path_factory.mktemp("saved")
    journal, output = str(folder / "race.db"), str(folder / "result.npz")
    assert run(*SHORT, "--max-rounds", "6", "--journal", journal, "--output", output).exit_code == 0
    return journal, output


def test_select_chooses_alike_from_a_journal_and_from_a_saved_result(saved: tuple[str, str]) -> None:
    from_journal, from_result = (data("select", source) for source in saved)
    assert from_journal == from_result
    assert set(from_journal["candidates"]) == set(RaceResult.load(saved[1]).pareto_set)
    text = run("select", saved[1]).stdout
    assert f"Choose {from_journal['algorithm']}: preference uniform, risk expected. Expected regret" in text


def test_select_takes_preferences_risks_sizes_and_candidates(saved: tuple[str, str]) -> None:
    _, result = saved
    assert data("select", result, "--preference", "5,4,3,2,1")["weights"] == pytest.approx(
        [n / 15 for n in (5, 4, 3, 2, 1)]
    )
    assert data("select", result, "--preference", "lognorm:0.5,0,3")["weights"][0] > 0
    assert data("select", result, "--risk", "quantile:0.05")["risk"] == "quantile:0.05"
    assert set(data("select", result, "--all")["candidates"]) == set("ABCDE")
    assert data("select", result, "--among", "B, A")["candidates"].keys() == {"A", "B"}
    portfolio = data("select", result, "--all", "--size", "2", "--different", "--preference", "worst")
    assert len(set(portfolio["algorithms"])) == 2
    text = run("select", result, "--all", "--size", "2", "--preference", "worst").stdout
    assert " in parallel (enumeration of 15)" in text


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--preference", "soon"), "preference: expected one of"),
        (("--preference", "nodist:1"), "a distribution of scipy.stats"),
        (("--preference", "os:1"), "a distribution of scipy.stats"),
        (("--preference", "lognorm:1,2,3,4"), "lognorm does not take"),
        (("--preference", "1,2"), "weight"),
        (("--risk", "none"), "risk"),
        (("--among", "Z"), "Z"),
        (("--size", "0"), "size"),
    ],
)
def test_a_choice_without_meaning_is_refused(saved: tuple[str, str], more: tuple[str, ...], message: str) -> None:
    assert message in failure("select", saved[1], *more)


def test_the_runs_of_a_race_are_read_again_as_iohprofiler_data(tmp_path: Path) -> None:
    folder = tmp_path / "ioh"
    found = data(*SHORT, "--max-rounds", "2", "--ioh-output", str(folder))
    again = data("analyze", str(folder), "--timepoints", "1,2,3,4,5", "--seed", "1")
    assert again["algorithms"] == found["algorithms"]
    assert len(again["instances"]) == len(found["instances"])
    assert again["ratings"][0] == pytest.approx(found["ratings"][0], abs=0.05)


@pytest.mark.parametrize(("prior", "warned"), [("dirichlet", True), ("bspline", False)])
def test_select_says_where_the_prior_makes_it_too_sure(tmp_path: Path, prior: str, warned: bool) -> None:
    path = str(tmp_path / "race.npz")
    assert run(*SHORT, "--max-rounds", "1", "--prior", prior, "--output", path).exit_code == 0
    assert ("treats timepoints as independent" in run("select", path).stdout) == warned


def test_an_option_given_twice_is_refused() -> None:
    told = Command("race", "synthetic", "synthetic", "--budget", "5").fail("-P", "seed=1", "-P", "seed=2")
    assert "--portfolio-option: seed is given twice, as '1' and '2'." in told
