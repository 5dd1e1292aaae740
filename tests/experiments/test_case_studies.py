from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ioh")
pytest.importorskip("modcma")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["race_cmaes_ma_bbob.py", "race_cmaes_gp_bbob.py"])
def test_a_case_study_says_how_it_is_run(root: Path, name: str) -> None:
    assert "--max-rounds" in run(root, name, "--help")


def run(root: Path, name: str, *options: str) -> str:
    command = [
        sys.executable,
        str(root / "examples" / name),
        "--quick",
        "--max-rounds",
        "1",
        "--workers",
        "2",
        *options,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.long
def test_case_study_2_ends_in_a_pareto_set_and_goes_on_from_its_journal(root: Path, tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    page = tmp_path / "race.html"
    options = ("--budget", "200", "--timepoints", "5", "--journal", str(journal))
    first = run(root, "race_cmaes_ma_bbob.py", *options)
    assert "Pareto set " in first
    assert "after 1 rounds (max_rounds), 8 instances, 100% of the evaluations" in first
    assert "AOCC: " in first
    again = run(root, "race_cmaes_ma_bbob.py", *options, "--max-rounds", "2", "--report", str(page))
    assert "round 1:" not in again
    assert "after 2 rounds" in again
    written = page.read_text()
    assert "LPXNES" in written
    if importlib.util.find_spec("matplotlib"):
        assert "<svg" in written


@pytest.mark.slow
@pytest.mark.long
def test_case_study_3_races_against_the_clock(root: Path) -> None:
    text = run(root, "race_cmaes_gp_bbob.py", "--budget", "0.05", "--dimension", "3", "--timepoints", "4")
    assert "Pareto set " in text
    assert "of the seconds of running everything" in text
    assert "AOCC" not in text
