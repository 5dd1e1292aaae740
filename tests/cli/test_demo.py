from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path

import pytest
from command_line import Command

from polarbear_plugins.journal.replay import load_result

demo_module = importlib.import_module("polarbear_plugins.cli.demo")
REAL = all(importlib.util.find_spec(name) for name in ("ioh", "modcma"))
run = Command("demo", "--workers", "0").run


@pytest.fixture
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def without_ioh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "find_spec", lambda _: None)


@pytest.mark.slow
@pytest.mark.usefixtures("without_ioh")
def test_without_ioh_a_synthetic_race_says_what_it_is_and_how_to_get_the_real_one(in_a_folder: Path) -> None:
    result = run("--journal", "demo.db")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert "not installed, so this is a race of synthetic algorithms with known ratings" in lines[0]
    assert lines[0].endswith("pip install 'polarbear-plugins[ioh,plots]'")
    assert "saved demo-report.html, demo.db" in lines
    assert "What to do next:" in lines
    assert "  polarbear select demo.db --preference log-uniform" in lines
    assert lines[-1] == f"Open {(in_a_folder / 'demo-report.html').as_uri()} in a browser."
    assert "<h1>Demonstration: known ratings</h1>" in (in_a_folder / "demo-report.html").read_text()
    found = load_result("demo.db")
    assert found.eliminations
    assert len(found.pareto_set) > 1


@pytest.mark.slow
@pytest.mark.usefixtures("without_ioh", "without_figures")
def test_json_is_the_result_and_the_place_of_the_report(in_a_folder: Path) -> None:
    data = json.loads(run("--json", "-o", "page.html").stdout)
    assert (data["report"], data["real"], data["settings"]["seed"]) == ("page.html", False, 1)
    assert data == json.loads(run("--json", "-o", "page.html").stdout)  # replaces its own, and repeats itself
    assert [path.name for path in in_a_folder.iterdir()] == ["page.html"]


def test_a_foreign_file_stops_the_demo_before_anything_runs(in_a_folder: Path) -> None:
    (in_a_folder / "demo-report.html").write_text("mine")
    result = run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is not a report" in result.stderr
    assert (in_a_folder / "demo-report.html").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.skipif(not REAL, reason="needs the extra ioh")
def test_the_real_race_is_one_of_cma_es_variants(in_a_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo_module, "_MOST_EVALUATIONS", 120_000.0)  # the first round; all of it takes half a minute
    result = run()
    assert result.exit_code == 0
    assert result.stdout.startswith("Which step-size adaptation of CMA-ES is worth keeping")
    text = (in_a_folder / "demo-report.html").read_text()
    assert "polarbear race modcma-ssa ma-bbob --budget 2000 --first 100 --timepoints 25" in text
    assert "2,000 evaluations" in text
