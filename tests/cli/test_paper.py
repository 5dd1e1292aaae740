"""``polarbear figures`` and ``polarbear table``."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from command_line import Command

from polarbear_plugins import RaceSettings, race

POLARBEAR = Command()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    settings = RaceSettings(seed=3, max_rounds=2, alpha=0.8, draws=200)
    result = race("synthetic", "synthetic", [1, 2, 30], settings, workers=0, portfolio_options={"algorithms": 3})
    return str(result.save(tmp_path_factory.mktemp("paper") / "race.npz"))


def test_figures_are_saved_and_listed(saved: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "new"
    arguments = ["figures", saved, "-o", str(folder), "--only", "ribbon, ratings", "--width", "86mm"]
    said = POLARBEAR.succeed(*arguments, "--format", "svg", "--unit", "evaluations")
    assert f"saved {folder / 'ribbon.svg'}, 3.39 x " in said
    assert {path.name for path in folder.iterdir()} == {"ribbon.svg", "ratings.svg", "captions.txt"}
    assert "the file exists" in POLARBEAR.fail(*arguments, "--format", "svg")
    POLARBEAR.succeed(*arguments, "--format", "svg", "--force")


@pytest.mark.parametrize("width", ["3.4", "wide", "3.4em", "-3in", "nan in", "1e3in"])
def test_a_width_has_a_unit(saved: str, tmp_path: Path, width: str) -> None:
    pytest.importorskip("matplotlib")
    message = POLARBEAR.fail("figures", saved, "-o", str(tmp_path / "new"), f"--width={width}")
    assert "--width: expected a number and in, cm, mm or pt, such as 3.4in" in message
    assert not (tmp_path / "new").exists()


def test_a_style_without_two_columns_says_so(saved: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    message = POLARBEAR.fail("figures", saved, "-o", str(tmp_path), "--style", "springer", "--columns", "2")
    assert "the style springer has one column" in message


def test_a_table_is_printed_or_saved_in_the_format_of_its_ending(saved: str, tmp_path: Path) -> None:
    printed = POLARBEAR.succeed("table", saved)
    assert "\\begin{tabular}" in printed
    for name, sign in (("t.tex", "\\toprule"), ("t.md", "| algorithm |")):
        path = tmp_path / name
        assert POLARBEAR.succeed("table", saved, "-o", str(path)) == f"saved {path}\n"
        assert sign in path.read_text()
    assert (tmp_path / "t.tex").read_text() == printed


def test_csv_has_no_comments_and_they_are_notes(saved: str) -> None:
    found = POLARBEAR.run("table", saved, "--what", "ratings", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(found.stdout)))
    assert list(rows[0]) == ["algorithm", "timepoint", "mean", "low", "high"]
    assert found.stderr.startswith("Note: Rating: probability of being the best of all")
    assert all(line.startswith("Note: ") for line in found.stderr.splitlines())


def test_timepoints_are_those_asked_for(saved: str) -> None:
    found = POLARBEAR.data("table", saved, "--what", "pairs", "--timepoints", "1,29")
    assert {row[2] for row in found["rows"]} == {1.0, 2.0}  # the last timepoint up to each
    assert "--timepoints: expected numbers" in POLARBEAR.fail("table", saved, "--what", "pairs", "--timepoints", "x")
