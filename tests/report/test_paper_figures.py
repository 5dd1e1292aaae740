"""Figures for papers: the files, their fonts, their bytes and their captions."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import table_of, two_kinds

from polarbear_plugins import RaceResult, RaceSettings, analyze
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.report import write_figures
from polarbear_plugins.report.paper_figures import FIGURE_NAMES, STYLES, style_width

pytest.importorskip("matplotlib")

HASTY = "import sys; from polarbear_plugins import RaceResult; from polarbear_plugins.report import write_figures; "
HASTY += "write_figures(RaceResult.load(sys.argv[1]), sys.argv[2], only=['ratings', 'wins', 'check'])"


def names_with_signs(told: RaceResult) -> RaceResult:
    """A result whose names have letters beyond ASCII."""
    values = np.random.default_rng(0).normal(size=(12, 4, 3)) + np.arange(3.0)
    return analyze(table_of(values, algorithms=["\u03c3-CMA", "Ångström_1", "c"]), told.settings)


@pytest.mark.slow
def test_fonts_are_embedded_as_truetype(told: RaceResult, tmp_path: Path) -> None:
    found = write_figures(names_with_signs(told), tmp_path / "new", only=["ratings", "wins"])
    for figure in found.figures:
        data = figure.path.read_bytes()
        assert b"/Type3" not in data
        assert b"/FontFile2" in data  # an embedded TrueType font
        assert b"/FontFile " not in data
        assert b"CreationDate" not in data
    assert {figure.path.name for figure in found.figures} == {"ratings.pdf", "wins.pdf"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "only"),
    [("pdf", None), ("svg", ["ribbon", "wins"]), ("png", ["ribbon", "wins"])],
)
def test_the_same_result_gives_the_same_bytes(
    told: RaceResult, tmp_path: Path, kind: str, only: list[str] | None
) -> None:
    first, second = (
        write_figures(told, tmp_path / name, kind=kind, unit="s", only=only)  # type: ignore[arg-type]
        for name in ("one", "two")
    )
    assert len(first.figures) >= len(only or FIGURE_NAMES[:6])
    for one, other in zip(first.figures, second.figures, strict=True):
        assert one.path.read_bytes() == other.path.read_bytes()
    assert first.captions.read_bytes() == second.captions.read_bytes()


@pytest.mark.slow
def test_another_process_with_other_settings_of_matplotlib_writes_the_same_bytes(
    told: RaceResult, tmp_path: Path
) -> None:
    saved = names_with_signs(told).save(tmp_path / "result.npz")
    (tmp_path / "matplotlibrc").write_text("font.family: serif\npdf.compression: 0\naxes.facecolor: red\n")
    for number, folder in enumerate(("one", "two")):
        own = {"PYTHONHASHSEED": str(number), **({"MATPLOTLIBRC": str(tmp_path)} if number else {})}
        command = [sys.executable, "-c", HASTY, str(saved), str(tmp_path / folder)]
        subprocess.run(command, env={**os.environ, **own}, check=True, timeout=300)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_a_file_is_as_wide_as_the_column(told: RaceResult, tmp_path: Path) -> None:
    [figure] = write_figures(told, tmp_path, only=["ribbon"], style="ieee").figures
    assert figure.width == 3.5
    assert b"/MediaBox [ 0 0 252 " in figure.path.read_bytes()
    [figure] = write_figures(told, tmp_path, only=["ribbon"], width=3.4, force=True).figures
    assert figure.width == 3.4


def test_the_styles_have_their_columns() -> None:
    assert {name: style.widths for name, style in STYLES.items()} == {
        "acm": (3.33, 7.0),
        "ieee": (3.5, 7.16),
        "springer": (4.8,),
    }
    assert style_width("acm", 2) == 7.0
    with pytest.raises(InvalidInputError, match="columns: the style springer has one column, got 2"):
        style_width("springer", 2)
    with pytest.raises(InvalidInputError, match='style: expected "acm", "ieee" or "springer"'):
        style_width("nature", 1)


def test_the_captions_say_what_is_shown_and_what_it_rests_on(told: RaceResult, tmp_path: Path) -> None:
    found = write_figures(told, tmp_path, only=["ribbon", "wins"], unit="evaluations")
    text = found.captions.read_text()
    for figure in found.figures:
        assert f"{figure.path.name}: {figure.caption}" in text
    assert "All of them: 5 algorithms on 6 instances, at 3 timepoints" in text
    assert "which treats timepoints as independent" in text
    assert "2 runs failed and count as having found nothing." in text
    assert "Hatched: no choice is supported with 95%" in text
    assert " evaluations, darker if higher" in text


@pytest.mark.slow
def test_if_the_model_does_not_fit_the_captions_say_so(tmp_path: Path) -> None:
    misfit = analyze(two_kinds(40), RaceSettings(seed=1, draws=200))
    found = write_figures(misfit, tmp_path, only=["ribbon", "ratings"])
    captions = {figure.name: figure.caption for figure in found.figures}
    assert captions["ribbon"].endswith("By first places among them, since the model does not fit.")
    assert captions["ratings"].endswith("Under the model, which does not fit.")
    assert str(misfit.check).removesuffix(".") in found.captions.read_text()


@pytest.mark.slow
def test_figures_that_a_result_does_not_have_are_left_out_with_a_reason(tmp_path: Path) -> None:
    values = np.tile([[[1.0, 2.0]]], (40, 2, 1))
    alone = analyze(table_of(values), RaceSettings(seed=1, draws=200))
    assert alone.pareto_set == ("a",)
    with pytest.raises(InvalidInputError, match="this result has no figure 'ribbon': only a is left"):
        write_figures(alone, tmp_path, only=["ribbon"])
    found = write_figures(alone, tmp_path)
    assert found.left_out == {
        **dict.fromkeys(("ribbon", "timeline", "values"), "only a is left."),
        **dict.fromkeys(("dominance", "allocation"), "there was a single round."),
    }
    assert {figure.name for figure in found.figures} == set(FIGURE_NAMES) - set(found.left_out)
    assert "No figure ribbon: only a is left." in found.captions.read_text()


@pytest.mark.slow
def test_a_character_that_the_font_does_not_have_is_told(told: RaceResult, tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(12, 2, 2))
    foreign = analyze(table_of(values, algorithms=["漢字", "b"]), RaceSettings(seed=1, draws=200))
    found = write_figures(foreign, tmp_path, only=["wins"])
    assert found.notes[-1] == (
        "Names have characters that the font does not have (U+5B57, U+6F22): figures show boxes instead."
    )
    assert found.notes[-1] in found.captions.read_text()
    assert not any("boxes" in note for note in write_figures(told, tmp_path / "told", only=["wins"]).notes)


def test_files_that_are_there_are_replaced_only_by_force(told: RaceResult, tmp_path: Path) -> None:
    (tmp_path / "ribbon.pdf").write_text("mine")
    with pytest.raises(InvalidInputError, match=r"ribbon\.pdf: the file exists"):
        write_figures(told, tmp_path, only=["ribbon"])
    assert (tmp_path / "ribbon.pdf").read_text() == "mine"
    assert not (tmp_path / "captions.txt").exists()
    write_figures(told, tmp_path, only=["ribbon"], force=True)
    assert (tmp_path / "ribbon.pdf").read_bytes().startswith(b"%PDF")


def test_what_cannot_be_drawn_is_refused(told: RaceResult, tmp_path: Path) -> None:
    for options, message in (
        ({"only": ["hasse"]}, "only: there is no figure 'hasse'; there are ribbon, ratings"),
        ({"only": []}, "expected names of figures"),
        ({"kind": "gif"}, 'format: expected "pdf", "svg" or "png"'),
        ({"width": 0.5}, "width: expected a number from 2 to 30"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            write_figures(told, tmp_path / "none", **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="before its first round was over"):
        write_figures(replace(told, state=replace(told.state, rounds=())), tmp_path / "none")
