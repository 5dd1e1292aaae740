"""``polarbear race --dry-run``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from command_line import Command

from polarbear_plugins import RaceSettings
from polarbear_plugins.cli.dry_run import first_round_text, full_text, show_dry_run
from polarbear_plugins.experiments.dry_runs import DryRun, FirstRun, Timing

POLARBEAR = Command("race", "synthetic", "synthetic", "--budget", "5", "--seed", "1", "--workers", "0")


def of_timings(*seconds: float, workers: int = 2) -> DryRun:
    names = tuple("abcdef"[: len(seconds)])
    return DryRun(
        settings=RaceSettings(seed=1),
        algorithms=names,
        stored=(),
        instances=24,
        timepoints=np.array([1.0, 10.0]),
        first_round=tuple(FirstRun(name, f"p{i}", 10.0) for i in range(4) for name in names),
        timings=tuple(Timing(name, took) for name, took in zip(names, seconds, strict=True)),
        workers=workers,
    )


def test_a_dry_run_says_what_comes_first_and_what_everything_costs_and_writes_nothing(tmp_path: Path) -> None:
    files = ("--journal", str(tmp_path / "race.db"), "--output", str(tmp_path / "result.npz"))
    lines = POLARBEAR.succeed("--dry-run", *files).splitlines()
    assert lines[0] == (
        "dry run: synthetic on synthetic · 5 algorithms · over 1,000 instances · 5 timepoints 1..5 · seed 1"
    )
    text = "\n".join(lines)
    assert "First come 40 runs on 8 instances, which cost 200: A on 1388513975-1, B on 1388513975-1" in text
    assert "Everything until 5 on 100 instances costs 2,500 and takes about" in text
    assert lines[-1].endswith("come on top. Nothing was raced, and nothing was written.")
    assert not list(tmp_path.iterdir())


def test_a_dry_run_finds_mistakes_that_the_race_would_find(tmp_path: Path) -> None:
    assert "No plugin knows the suite" in Command("race", "synthetic", "nowhere").fail("--budget", "5", "--dry-run")
    journal = tmp_path / "race.db"
    journal.touch()
    assert "already exists and is not overwritten" in POLARBEAR.fail("--dry-run", "--journal", str(journal))
    assert "no-such-folder" in POLARBEAR.fail("--dry-run", "--output", str(tmp_path / "no-such-folder" / "x.npz"))


def test_waiting_workers_are_a_reason_for_the_other_schedule() -> None:
    assert first_round_text(of_timings(1.0, 3.0)) == (
        "First come 8 runs on 4 instances, which cost 80: a on p0, b on p0, a on p1, b on p1 and so on. They take "
        "about 9 s with 2 workers, busy for 89% of it."
    )
    says = first_round_text(of_timings(1.0, 30.0, workers=8))
    assert says.endswith(
        "They take about 30 s with 8 workers, busy for 52% of it. With --schedule continuous, workers go on with later "
        "runs instead of waiting, at a higher cost."
    )


def test_times_are_lower_bounds_if_a_run_was_ended(capsys: Any) -> None:
    found = of_timings(0.5, 30.0, 1.0)
    ended = Timing("b", 30.0, ended=True)
    failed = Timing("c", None, failure="it\x1bbroke")
    found = replace(found, timings=(found.timings[0], ended, failed))
    assert "take at least" in first_round_text(found)
    assert full_text(found) == (
        "Everything until 10 on 24 instances costs 720 and takes at least 6 min with 2 workers; a race stops earlier "
        "where it can, and goes on where it must."
    )
    show_dry_run(found, "mine on yours", as_json=False)
    lines = capsys.readouterr().out.splitlines()
    [[row_b], [row_c]] = ([line.split() for line in lines if line.startswith(f" {name} ")] for name in "bc")
    assert row_b == ["b", "more", "than", "30", "s"]
    assert row_c == ["c", "failed", "it\\u001bbroke"]
    assert "The slowest takes at least 60 times as long as the quickest." in lines


def test_nothing_is_concluded_from_differences_between_runs_that_are_too_short_to_be_timed(capsys: Any) -> None:
    show_dry_run(of_timings(0.0003, 0.0009), "mine on yours", as_json=False)
    assert "times as long as" not in capsys.readouterr().out
    show_dry_run(of_timings(0.0003, 0.03), "mine on yours", as_json=False)
    assert "The slowest takes 100 times as long as the quickest." in capsys.readouterr().out
