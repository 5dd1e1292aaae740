from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import asdict
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from command_line import Command
from rich.console import Console

from polarbear_plugins import RaceResult
from polarbear_plugins.cli import main
from polarbear_plugins.cli.output import show_result
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.report.commands import how_to_repeat
from polarbear_plugins.report.next_steps import Kept, next_steps
from polarbear_plugins.report.words import conclusion

SHORT = ("race", "synthetic", "synthetic", "--budget", "5", "--seed", "1", "--workers", "0", "--draws", "500")
POLARBEAR = Command()
run, succeed = POLARBEAR.run, POLARBEAR.succeed


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "race.db"
    succeed(*SHORT, "--max-rounds", "2", "--journal", str(path))
    return path


def test_a_report_of_a_journal_is_written_and_its_conclusion_printed(journal: Path, tmp_path: Path) -> None:
    page = tmp_path / "race.html"
    text = succeed("report", str(journal), "-o", str(page), "--unit", "evaluations", "--title", "My race")
    found = load_result(journal)
    says = conclusion(found, "evaluations", found.forecast_if_open())
    without = [] if find_spec("matplotlib") else ["without figures: they need matplotlib, from the extra plots"]
    lines = text.splitlines()
    assert lines[: 4 + len(without)] == [says, f"saved {page}", *without, "", "What to do next:"]
    [resume] = [line for line in lines if line.startswith("  polarbear resume ")]
    assert f"<pre>{escape(resume.strip())}</pre>" in page.read_text()  # the page has the same
    assert lines[-1] == f"Open {page.as_uri()} in a browser."
    assert "<h1>My race</h1>" in page.read_text()


@pytest.mark.usefixtures("without_figures")
def test_a_saved_result_gives_the_report_of_its_journal_and_stands_beside_it(journal: Path, tmp_path: Path) -> None:
    result = load_result(journal)
    result.save(tmp_path / "result.npz")
    found: dict[str, Any] = json.loads(succeed("report", str(tmp_path / "result.npz"), "--json"))
    page = tmp_path / "result.html"
    assert found == {
        "report": str(page),
        "bytes": page.stat().st_size,
        "conclusion": conclusion(result, forecast=result.forecast_if_open()),
        "next": [
            asdict(step) for step in next_steps(result, result.forecast_if_open(), Kept(saved=page.with_suffix(".npz")))
        ],
    }
    succeed("report", str(journal))

    def without_commands(path: Path) -> list[str]:
        return re.split('<section id="(?:next|repeat)">', path.read_text())[::2]

    assert without_commands(page) == without_commands(tmp_path / "race.html")  # they name the file


def test_an_analysis_has_a_report_too(root: Path, tmp_path: Path) -> None:
    saved = tmp_path / "result.npz"
    source = root / "examples" / "runs.csv"
    succeed("analyze", str(source), "--timepoints", "5", "--draws", "500", "--output", str(saved))
    succeed("report", str(saved), "-o", str(tmp_path / "runs.html"))
    text = (tmp_path / "runs.html").read_text()
    assert "<h1>Analysis of runs.csv</h1>" in text
    assert f"polarbear analyze {source}" in text


@pytest.mark.parametrize("kind", ["race", "analysis"])
def test_the_command_in_the_report_gives_the_same_result_again(root: Path, tmp_path: Path, kind: str) -> None:
    first, again = tmp_path / "first.npz", tmp_path / "again.npz"
    source = str(root / "examples" / "runs.csv")
    words = {
        "race": (*SHORT, "--max-rounds", "2", "--alpha", "0.9", "-P", "algorithms=3", "--prior-option", "alpha=2"),
        "analysis": (
            "analyze",
            source,
            "--timepoints",
            "7",
            "--tolerance",
            "0.001",
            "--draws",
            "500",
            "--epsilon",
            "0.1",
        ),
    }[kind]
    succeed(*words, "--output", str(first))
    result = RaceResult.load(first)
    program, *command = shlex.split(how_to_repeat(result)[1])
    assert program == "polarbear"
    workers = ("--workers", "0") if kind == "race" else ()
    succeed(*command, *workers, "--output", str(again))
    assert RaceResult.load(again).to_dict() == result.to_dict()


@pytest.mark.usefixtures("without_figures")
def test_a_foreign_file_is_kept_and_the_error_is_one_line(journal: Path, tmp_path: Path) -> None:
    page = tmp_path / "mine.html"
    page.write_text("mine")
    result = run("report", str(journal), "-o", str(page))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the file exists and is not a report" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert page.read_text() == "mine"
    succeed("report", str(journal), "-o", str(page), "--force")
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_result_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    result = run("report", str(tmp_path / "no.npz"))
    assert result.exit_code == 2
    assert "there is no such file" in result.stderr


def test_help_shows_the_ways_in_and_every_command_of_them_exists() -> None:
    text = succeed("--help")
    for way in ("From data", "From a race", "From Optuna", "_POLARBEAR_COMPLETE=bash_source polarbear"):
        assert way in text
    named = [line.split()[1] for line in text.splitlines() if line.startswith("    polarbear ")]
    assert set(named) == {"demo", "analyze", "export", "report", "race", "select", "figures", "watch"} & set(
        main.commands
    )


def test_the_table_of_findings_fits_a_narrow_terminal(journal: Path) -> None:
    shown = {}
    for width in (80, 160):
        out = Console(width=width, file=io.StringIO(), highlight=False)
        show_result(out, load_result(journal))
        assert isinstance(out.file, io.StringIO)
        shown[width] = out.file.getvalue()
        assert "…" not in shown[width]  # nothing is truncated
    assert "instances" in shown[160].splitlines()[2]
    assert "instances" not in shown[80].splitlines()[2]


def test_the_shell_completes_commands() -> None:
    code = "import sys; sys.argv[0] = 'polarbear'; from polarbear_plugins.cli import main; main(prog_name='polarbear')"
    words = {"_POLARBEAR_COMPLETE": "bash_complete", "COMP_WORDS": "polarbear re", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | words, capture_output=True, text=True, check=True
    )
    assert [line.removeprefix("plain,") for line in done.stdout.split()] == ["resume", "report"]
