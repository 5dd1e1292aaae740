"""``polarbear race --against``: stored rivals on the command line, in JSON, words and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Command

from polarbear_plugins import RaceResult, Trajectory, read_trajectories
from polarbear_plugins.plugins.random_search import RandomSearch
from polarbear_plugins.report.words import conclusion

pytest.importorskip("ioh")

from polarbear_plugins.integrations.bbob import BbobSuite

POLARBEAR = Command()
COMMON = ("--workers", "0", "--seed", "2", "--draws", "300", "--batch-size", "4", "--batch-min", "4")
RACE = ("race", "random-search", "bbob", "-S", "functions=1-6", *COMMON)


def poor(instance: str, seed: int) -> Trajectory:
    """A rival that finds what the first point of random search finds, as in data of IOHprofiler."""
    identity = BbobSuite("bbob", instances=range(1, 8)).identity_named(instance)
    assert identity is not None
    run = RandomSearch().run(BbobSuite("bbob").build(identity), 1, seed)
    return Trajectory(algorithm="poor", instance=instance, seed=seed, times=run.times, best=run.best + 1e4, horizon=200)


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """Two runs of a rival on each of 6 functions and instances 1, 2 and 7, of which the suite has the first two."""
    names = [f"f{function}_d5_i{instance}" for function in range(1, 7) for instance in (1, 2, 7)]
    runs = [poor(name, seed) for name in names for seed in (0, 1)]
    path = tmp_path / "archive.csv"
    path.write_text("\n".join(["algorithm,instance,seed,time,value,horizon", *(rows(run) for run in runs)]))
    return str(path)


def rows(run: Trajectory) -> str:
    return f"{run.algorithm},{run.instance},{run.seed},1,{float(run.best[0])!r},{run.horizon}"


def test_the_portfolio_races_against_the_archive(archive: str) -> None:
    found = POLARBEAR.data(*RACE, "--against", archive, "--timepoints", "4")
    assert found["stored"] == ["poor"]
    assert found["algorithms"] == ["poor", "RS"]
    assert found["pareto_set"] == ["RS"]
    assert found["stopped"] == "resolved"
    assert found["resolved"]
    assert sorted(found["instances"]) == [f"f{function}-i{i}-d5" for function in range(1, 7) for i in (1, 2)]
    assert len(found["groups"]) == 12
    assert found["about"]["against"] == {
        "sources": [archive],
        "options": {},
        "runs": 24,
        "instances": 12,
        "not_in_suite": 6,
        "not_in_suite_examples": ["f1_d5_i7", "f2_d5_i7", "f3_d5_i7"],
        "not_in_archive": 18,
        "targets": {},
        "early_ends": [],
    }
    assert (found["timepoints"][0], found["timepoints"][-1]) == (1, 200)
    assert found["cost"] <= 200 * found["rounds"][-1]["instances"]
    assert found["full_cost"] == 12 * 200


def test_the_words_say_what_was_run_and_what_was_stored(archive: str) -> None:
    text = " ".join(POLARBEAR.succeed(*RACE, "--against", archive, "--timepoints", "4").split())
    assert f"race random-search on bbob against {archive} · 4 timepoints 1..200" in text
    assert "Every pair that involves a newcomer is settled. Run: RS, in " in text
    assert " of 12 instances of the archive, for " in text
    assert (
        "Stored, at no cost: poor. 12 instances are both in the archive and in the suite; 6 of the archive are not"
        in text
    )
    assert "not in the suite, such as f1_d5_i7, f2_d5_i7, f3_d5_i7; 18 of the suite are not in the archive." in text
    [row] = [line for line in POLARBEAR.succeed(*RACE, "--against", archive).splitlines() if line.startswith(" poor")]
    assert row.split()[-2:] == ["12", "stored"]


def test_a_race_is_resumed_and_saved_and_reported(
    archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, output, page = (str(tmp_path / name) for name in ("race.db", "race.npz", "race.html"))
    hard = ("--alpha", "0.99999", "--timepoints", "4")
    first = POLARBEAR.data(*RACE, *hard, "--against", archive, "--max-rounds", "1", "--journal", journal)
    assert first["stopped"] == "max_rounds"
    Path(archive).unlink()  # a journal does not need it any more
    resumed = POLARBEAR.data("resume", journal, "--workers", "0", "--max-rounds", "9", "--output", output)
    assert resumed["stopped"] == "instances"
    assert resumed["rounds"][-1]["instances"] == 12
    assert RaceResult.load(output).to_dict() == resumed
    words = conclusion(RaceResult.load(output))
    assert "newcomers have run on all instances of the archive that could settle them" in words
    monkeypatch.setattr("polarbear_plugins.report.figures.MOST_NAMES", 0)
    POLARBEAR.succeed("report", output, "-o", page)
    html = Path(page).read_text()
    assert "<title>Race of random-search on bbob against an archive</title>" in html
    assert "stored</td>" in html
    assert f"--against {archive}" in html
    assert "Stored, at no cost: poor." in html


def test_the_command_in_the_report_repeats_the_race(archive: str) -> None:
    from polarbear_plugins.report.commands import how_to_repeat

    options = ("--timepoints", "4", "--tolerance", "0.001", "-A", "maximize=false")
    output = str(Path(archive).with_suffix(".npz"))
    found = POLARBEAR.data(*RACE, "--against", archive, *options, "--output", output)
    says, command = how_to_repeat(RaceResult.load(output))
    assert says == "This command repeats the race:"
    assert "--tolerance 0.001" in command
    again = POLARBEAR.data(*command.split()[1:], "--workers", "0")
    assert again == found


@pytest.mark.parametrize(
    ("budget", "expected"), [((), (1, 200)), (("--budget", "50"), (1, 50)), (("--budget", "1000"), (1, 200))]
)
def test_timepoints_go_up_to_the_budget_and_no_further_than_the_archive(
    archive: str, budget: tuple[str, ...], expected: tuple[int, int]
) -> None:
    found = POLARBEAR.data(*RACE, "--against", archive, "--timepoints", "4", *budget, "--max-rounds", "1")
    assert (found["timepoints"][0], found["timepoints"][-1]) == expected


def test_given_timepoints_and_the_first_one_are_kept(archive: str) -> None:
    found = POLARBEAR.data(*RACE, "--against", archive, "--timepoints", "5,20", "--max-rounds", "1")
    assert found["timepoints"] == [5, 20]
    found = POLARBEAR.data(*RACE, "--against", archive, "--timepoints", "3", "--first", "20", "--max-rounds", "1")
    assert (found["timepoints"][0], found["timepoints"][-1]) == (20, 200)


def test_errors_say_what_to_do(archive: str, tmp_path: Path) -> None:
    assert "--against-option is for an archive: give it with --against" in POLARBEAR.fail(*RACE, "-A", "a=b")
    other = POLARBEAR.fail("race", "random-search", "bbob", "--dimension", "2", *COMMON, "--against", archive)
    assert "no instance in common: the archive has 'f1_d5_i1', 'f1_d5_i2', 'f1_d5_i7', ..., the suite 'f" in other
    outside = POLARBEAR.fail(*RACE, "--against", archive, "--timepoints", "10,300")
    assert "timepoints: 1 of 2 lie outside every run (300)" in outside
    same = tmp_path / "same.csv"
    same.write_text(Path(archive).read_text().replace("poor", "RS"))
    assert "RS: both the archive and the portfolio have this name" in POLARBEAR.fail(*RACE, "--against", str(same))
    late = tmp_path / "late.csv"
    late.write_text(Path(archive).read_text().replace(",0,1,", ",0,100,").replace(",1,1,", ",1,100,"))
    assert "--budget 50 is too small: some stored rival has its first value at" in POLARBEAR.fail(
        *RACE, "--against", str(late), "--budget", "50"
    )


def test_several_archives_and_options_of_their_adapter(archive: str, tmp_path: Path) -> None:
    text = Path(archive).read_text().replace("value", "loss")
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    one.write_text(text)
    two.write_text(text.replace("poor", "other"))
    sources = ("--against", str(one), "--against", str(two), "-A", "columns=value=loss")
    found = POLARBEAR.data(*RACE, *sources, "--timepoints", "3", "--max-rounds", "1")
    assert found["stored"] == ["other", "poor"]
    assert found["about"]["against"]["options"] == {"columns": "value=loss"}
    assert found["about"]["against"]["runs"] == 48


def test_pairs_of_stored_rivals_that_stay_open_are_named(archive: str, tmp_path: Path) -> None:
    """Two rivals that are equally good at all times, and better than the newcomer, which is out."""
    lines = Path(archive).read_text().splitlines()
    both = [",".join([name, *line.split(",")[1:4], "0", "200"]) for line in lines[1:] for name in ("one", "two")]
    path, output, page = tmp_path / "both.csv", str(tmp_path / "race.npz"), str(tmp_path / "race.html")
    path.write_text("\n".join([lines[0], *both]))
    options = ("--timepoints", "3", "--epsilon", "0.001", "--output", output)
    found = POLARBEAR.data(*RACE, "--against", str(path), *options)
    assert (found["stopped"], found["resolved"]) == ("resolved", True)
    assert found["pareto_set"] == ["one", "two"]
    assert [pair["pair"] for pair in found["open_pairs"]] == [["one", "two"]]
    assert found["rounds"][-1]["resolved_share"] == 1
    says = "Every pair that involves a newcomer is settled; 1 of stored rivals is not, by the data of the archive."
    assert says in conclusion(RaceResult.load(output))
    POLARBEAR.succeed("report", output, "-o", page)
    assert says in Path(page).read_text()
    assert "no more are needed" in POLARBEAR.succeed("plan", output)


def test_data_of_iohprofiler_are_an_archive(tmp_path: Path) -> None:
    folder = str(tmp_path / "archive")
    race: tuple[Any, ...] = ("race", "random-search", "bbob", "-S", "functions=1-3", *COMMON)
    import ioh

    log = ioh.logger.Analyzer(root=str(tmp_path), folder_name="archive", algorithm_name="stored")
    for function in (1, 2, 3):
        for instance in (1, 2, 3):
            problem = ioh.get_problem(function, instance, 5, ioh.ProblemClass.BBOB)
            problem.attach_logger(log)
            for x in np.random.default_rng(function).uniform(-5, 5, (50, 5)):
                problem(x)
            problem.reset()
            problem.detach_logger()
    log.close()
    assert len(list(read_trajectories(folder))) == 9
    found = POLARBEAR.data(*race, "--against", folder, "--timepoints", "3", "--max-rounds", "2")
    assert found["stored"] == ["stored"]
    assert found["about"]["against"]["instances"] == 9
    assert set(found["groups"]) == {"f1 Sphere", "f2 Ellipsoid", "f3 Rastrigin"}
