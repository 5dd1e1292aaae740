"""The page of a report: its parts and their order, title and warnings, without figures."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import table_of

from polarbear_plugins import RaceResult
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.report import page, render, write_report
from polarbear_plugins.report.computed import Computed, compute
from polarbear_plugins.report.figures import Figures, _inline
from polarbear_plugins.report.page import _ratings_are, _subtitle, title_of
from polarbear_plugins.report.style import SCRIPT

pytestmark = pytest.mark.usefixtures("without_figures")
NOTHING = Computed(None, None, None)


def page_of(result: RaceResult, **options: Any) -> str:
    return render(result, plugins=Plugins(), known=NOTHING, **options)


def test_every_part_has_its_title_and_a_link_in_the_order_of_the_page(told: RaceResult) -> None:
    page = page_of(told)
    parts = re.findall(r'<section id="(.*?)"><h2>(.*?)</h2>', page)
    assert parts == [
        ("budgets", "What to choose for which budget"),
        ("algorithms", "Algorithms in and out"),
        ("ratings", "Ratings over time"),
        ("observed", "What was observed, and what was assumed"),
        ("selection", "Choose"),
        ("open", "What is not settled"),
        ("rounds", "Round by round"),
        ("fit", "Does the model fit?"),
        ("diagnostics", "Can the inference be trusted?"),
        ("next", "What to do next"),
        ("repeat", "Settings, and how to repeat this"),
        ("words", "Words"),
    ]
    assert re.findall(r'<li><a href="#(.*?)">(.*?)</a></li>', page) == parts
    one_round = replace(told, state=replace(told.state, rounds=told.rounds[2:]))
    assert "Round by round" not in page_of(one_round)


def test_the_head_says_what_was_compared(told: RaceResult) -> None:
    page = page_of(told, unit="evaluations", title="<b>")
    assert (
        '<header><h1>&lt;b&gt;</h1><p class="quiet">5 algorithms · 6 instances · 3 timepoints 10 to 2,000 evaluations '
        "· alpha 0.9 · epsilon 0.05 · seed 3</p></header>"
    ) in page
    assert "<title>&lt;b&gt;</title>" in page
    assert "Ratings are probabilities of being the best of all algorithms on a new instance." in page


def test_the_frame_of_the_page_is_complete(told: RaceResult) -> None:
    page = page_of(told, title="t")
    frame = page
    for begin, end in [
        ("<style>", "</style>"),
        ("<main>\\n", "</main>"),
        ('content="', '"'),
        (r"<script\b[^>]*>", "</script>"),
    ]:
        frame = re.sub(rf"(?s)({begin}).*?({end})", r"\1\2", frame)
    assert frame == (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="">\n<meta name="generator" content="">\n'
        '<meta name="viewport" content="">\n<title>t</title>\n<style></style>\n</head>\n<body>\n'
        '<header><h1>t</h1><p class="quiet">5 algorithms · 6 instances · 3 timepoints 10 to 2,000 · alpha 0.9 · '
        "epsilon 0.05 · seed 3</p></header>\n<main>\n</main>\n"
        "<footer>Written by polarbear-plugins. Ratings are probabilities of being the best of all algorithms on a new "
        "instance. Everything here follows from rankings, not from how far values lie apart.</footer>\n"
        '<script type="application/json" id="choices"></script>\n'
        '<script type="application/json" id="explorer"></script>\n'
        "<script></script>\n<script></script>\n</body>\n</html>\n"
    )


def test_the_head_names_a_single_timepoint(told: RaceResult) -> None:
    table = table_of(np.ones((2, 1, 5)), algorithms=told.algorithms, timepoints=[2500])
    said = _subtitle(replace(told, state=replace(told.state, table=table)), "s")
    assert said == "5 algorithms · 2 instances · timepoint 2,500 s · alpha 0.9 · epsilon 0.05 · seed 3"


def test_before_the_first_round_nothing_is_computed(told: RaceResult) -> None:
    assert compute(replace(told, state=replace(told.state, rounds=()))) == NOTHING


@pytest.mark.parametrize(("scope", "where"), [("new", "of a new group"), ("same", "of the same groups")])
def test_the_foot_says_what_ratings_are_about(told: RaceResult, scope: Any, where: str) -> None:
    effect = GroupEffect(scope=scope, groups=2, instances=6, p=0.5, inflation=np.ones(3), spread=np.zeros(3))
    result = replace(told, _posterior=replace(told.posterior, groups=effect))
    assert (
        _ratings_are(result)
        == f"Ratings are probabilities of being the best of all algorithms on a new instance {where}."
    )


def test_the_choices_and_the_script_that_shows_them_are_in_the_page(told: RaceResult) -> None:
    page = page_of(told)
    assert f"<script>{SCRIPT}</script>" in page
    [choices] = re.findall(r'<script type="application/json" id="choices">(.*?)</script>', page)
    assert json.loads(choices)["final"]["expected"]["algorithm"] == "b"
    assert "script-src 'sha256-" in page


def test_what_is_wrong_is_said_first(told: RaceResult) -> None:
    said = re.findall(r'<p class="warning">(.*?)</p>', page_of(told).partition("<nav")[0])
    assert said == ["2 runs failed and count as having found nothing: see below."]
    poor = replace(told.posterior, diagnostics=Diagnostics(engine="native", route="by hand", good=False))
    said = re.findall(r'<p class="warning">(.*?)</p>', page_of(replace(told, _posterior=poor)).partition("<nav")[0])
    assert said[0] == "The posterior is not good enough to decide on: see the diagnostics below."
    assert "warning" not in page_of(replace(told, failures=())).partition("<body>")[2].partition("<nav")[0]


def test_without_matplotlib_the_page_says_how_to_get_figures(told: RaceResult) -> None:
    assert (
        '<p class="warning">There are no figures in this report for print and for browsers without scripts. A '
        "figure needs &#x27;matplotlib&#x27;, which is not installed."
    ) in page_of(told)


def test_figures_get_the_unit_and_the_posterior_to_choose_from(
    told: RaceResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(page, "Figures", lambda *arguments: given.append(arguments) or Figures(told))
    robust = replace(told.posterior)
    render(told, plugins=Plugins(), known=Computed(None, robust, None), unit="s")
    [[result, unit, posterior]] = given
    assert (result is told, unit, posterior is robust) == (True, "s", True)


def test_a_file_holds_the_page(told: RaceResult, tmp_path: Path) -> None:
    path = write_report(told, tmp_path / "race.html", plugins=Plugins(), known=NOTHING, unit="s", title="t")
    assert path == tmp_path / "race.html"
    assert path.read_text() == page_of(told, unit="s", title="t")


@pytest.mark.parametrize(
    ("about", "stopped", "expected"),
    [
        ({}, "resolved", "Race of 5 algorithms"),
        ({"portfolio": {"name": "p"}, "suite": {"name": "s"}}, "resolved", "Race of p on s"),
        ({"suite": {"name": "s"}}, "resolved", "Race of 5 algorithms on s"),
        ({"study": "x"}, "resolved", "Race in the study x"),
        ({}, "analyzed", "Analysis of existing data"),
        ({"sources": ["a/b.csv", "c.csv", "d"]}, "analyzed", "Analysis of b.csv, c.csv, d"),
        ({"sources": ["a.csv", "b.csv", "c.csv", "d.csv"]}, "analyzed", "Analysis of a.csv, b.csv, c.csv ..."),
        ({"sources": ["/"]}, "analyzed", "Analysis of /"),
    ],
)
def test_the_title_says_what_was_raced_or_analyzed(
    told: RaceResult, about: dict[str, Any], stopped: str, expected: str
) -> None:
    assert title_of(replace(told, about=about, stopped=stopped)) == expected
    if stopped != "analyzed" and "study" not in about:
        archive = replace(told, about=about, stopped=stopped, state=replace(told.state, stored=("d",)))
        assert title_of(archive) == f"{expected} against an archive"


def test_an_image_in_the_page_has_ids_of_its_own_and_a_text() -> None:
    image = (
        '<?xml version="1.0"?>\n<svg xmlns="x" viewBox="0 0 320.4 200" width="9pt">'
        '<g id="axes"><use href="#axes"/><rect clip-path="url(#axes)"/><text>id="a"</text></g></svg>\n'
    )
    assert _inline(image, "wins", "a < b") == (
        '<svg viewBox="0 0 320.4 200" style="--width:320" role="img" aria-label="a &lt; b">'
        '<g id="wins-axes"><use href="#wins-axes"/><rect clip-path="url(#wins-axes)"/><text>id="a"</text></g></svg>'
    )
