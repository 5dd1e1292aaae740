"""A report in a browser: what a reader sees, moves, draws, links to, downloads and prints."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import CHROMIUM, Browser, chromium
from builders import synthetic_race, table_of

from polarbear_plugins import RaceResult, RaceSettings, analyze, select
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.report import write_report
from polarbear_plugins.report.at_budget import choices_at_timepoints

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
    pytest.mark.slow,
    pytest.mark.xdist_group("browser"),
]
SIZES = [1300, 390]
CHARTS = ("ratings", "best", "pair", "rounds")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def raced() -> RaceResult:
    return synthetic_race(algorithms=7, timepoints=10)


@pytest.fixture(scope="module")
def page(raced: RaceResult, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("matplotlib")
    return write_report(raced, tmp_path_factory.mktemp("page") / "race.html", plugins=Plugins(), unit="evaluations")


@pytest.fixture(scope="module")
def gappy() -> RaceResult:
    """An analysis in which c was not observed at the first two timepoints."""
    values = np.random.default_rng(1).normal(size=(25, 5, 3))
    values[:, :2, 2] = np.nan
    return analyze(table_of(values, timepoints=[1, 10, 100, 1000, 10000]), RaceSettings(seed=1, draws=300))


def data_of(browser: Browser) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(browser.text("#explorer"))
    return found


def test_both_sizes_show_all_charts_without_scrolling_sideways_or_complaints(browser: Browser, page: Path) -> None:
    for width in SIZES:
        browser.open(page, width=width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("document.querySelectorAll('.explore canvas').length") == len(CHARTS) + 1  # and the sketch
        for name in CHARTS:
            drawn = browser.run(
                f"(() => {{ const one = document.querySelector('#explore-{name} canvas');"
                " return new Set(one.getContext('2d').getImageData(0, 0, one.width, one.height).data).size; })()"
            )
            assert drawn > 20, name
        assert browser.run("getComputedStyle(document.querySelector('figure.static')).display") == "none"
        browser.resize(600)
        browser.wait("document.querySelector('#explore-ratings canvas').clientWidth < 600")
        assert browser.run("document.documentElement.scrollWidth") <= 600
        assert browser.problems == []


def test_on_a_phone_words_stay_whole_cells_do_not_overlap_and_doubt_is_in_sight(
    browser: Browser, tmp_path: Path
) -> None:
    names = ["differential-evolution", "dual-annealing", "random-search", "x" * 60]
    values = np.random.default_rng(1).normal(size=(12, 3, 4))
    result = analyze(table_of(values, algorithms=names), RaceSettings(seed=1, draws=300))
    path = write_report(result, tmp_path / "few.html", plugins=Plugins(), unit="evaluations")
    browser.open(path, width=390)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    # A word on two lines has a box on each; only names longer than a cell may have them.
    split = browser.run(
        "[...document.querySelectorAll('td')].flatMap(cell => {"
        " const walk = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];"
        " for (let node = walk.nextNode(); node; node = walk.nextNode()) {"
        "  for (const word of node.data.matchAll(/[A-Za-z]+/g)) {"
        "   const range = new Range(); range.setStart(node, word.index);"
        "   range.setEnd(node, word.index + word[0].length);"
        "   if (new Set([...range.getClientRects()].map(box => box.top)).size > 1) { found.push(word[0]); } } }"
        " return found; })"
    )
    assert set(split) <= {"x" * 60}
    over = browser.run(
        "[...document.querySelectorAll('td')].filter(cell => cell.scrollWidth > cell.clientWidth + 1)"
        ".map(cell => cell.textContent)"
    )
    assert over == []
    assert browser.run("document.querySelector('#budgets .doubt').getBoundingClientRect().right") <= 390
    swatch = "document.querySelector('#algorithms .swatch')"
    assert browser.run(f"{swatch}.getClientRects().length") == 1  # the colour stands at its top, before the name


def test_a_long_name_leaves_words_and_values_beside_it_whole(browser: Browser, tmp_path: Path) -> None:
    names = ["a", "x" * 120, "<b>bold</b>"]
    values = np.random.default_rng(1).normal(size=(12, 3, 3))
    result = analyze(table_of(values, algorithms=names), RaceSettings(seed=1, draws=300))
    path = write_report(result, tmp_path / "long.html", plugins=Plugins())
    for width in SIZES:
        browser.open(path, width=width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        bar = "document.querySelector('#explore-bar')"
        right = browser.run(f"{bar}.getBoundingClientRect().right")
        assert browser.run(f"{bar}.querySelector('select').getBoundingClientRect().right") <= right
        # No word is narrower than its letters: each has one line.
        lines = browser.run(
            "[...document.querySelectorAll('#explore-bar label, .item .value')].flatMap(one => {"
            " const walk = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), found = [];"
            " for (let node = walk.nextNode(); node; node = walk.nextNode()) {"
            "  if (node.parentElement.closest('option')) { continue; }"
            "  for (const word of node.data.matchAll(/[^ ]+/g)) {"
            "   const range = new Range(); range.setStart(node, word.index);"
            "   range.setEnd(node, word.index + word[0].length);"
            "   found.push(new Set([...range.getClientRects()].map(box => box.top)).size); } }"
            " return found; })"
        )
        assert set(lines) == {1}


def test_the_mouse_and_the_arrow_keys_show_the_values_at_the_nearest_timepoint(browser: Browser, page: Path) -> None:
    for width in SIZES:
        browser.open(page, width=width)
        data = data_of(browser)
        x, y = browser.middle("#explore-ratings .u-over")
        browser.mouse("moved", x, y)
        says = browser.wait(
            "document.querySelector('#explore-ratings .at').textContent !== 'At 10 evaluations' &&"
            " document.querySelector('#explore-ratings .at').textContent"
        )
        place = data["timeTexts"].index(says.split()[1])
        assert place in (4, 5)  # the middle of ten
        rows = browser.run(
            "Array.from(document.querySelectorAll('#explore-ratings .item'), item =>"
            " [item.querySelector('.name').textContent, item.querySelector('.value').textContent])"
        )
        for name, value in rows:
            one = data["names"].index(name)
            mean, low, high = (data["ratings"][band][one][place] for band in ("mean", "low", "high"))
            assert value == f"{mean:.3f} ({low:.3f} to {high:.3f})"
        assert [name for name, _ in rows] == sorted(
            data["names"], key=lambda name: -data["ratings"]["mean"][data["names"].index(name)][place]
        )
        assert browser.text("#explore-best .at") == says  # the same timepoint in all charts over time
        browser.run("document.querySelector('#explore-pair .plot').focus()")
        browser.key("Home")
        browser.key("ArrowRight")
        assert browser.text("#explore-pair .at") == "At 2 evaluations"
        assert browser.run("document.querySelector('#explore-pair .plot').getAttribute('aria-valuenow')") == "1"
        browser.wait("document.getElementById('explore-live').textContent.startsWith('At 2 evaluations: ')")
        assert browser.problems == []


def test_the_slider_says_what_python_says_at_each_timepoint(browser: Browser, page: Path, raced: RaceResult) -> None:
    browser.open(page)
    expected = choices_at_timepoints(raced, raced.posterior, "evaluations")
    for place, found in enumerate(expected):
        browser.run(
            "(() => { const one = document.getElementById('budget-slider');"
            f" one.value = {place}; one.dispatchEvent(new Event('input', {{bubbles: true}})); }})()"
        )
        assert browser.text("#budget-says") == found["says"]
        choice = select(raced.posterior, raced.pareto_set, np.eye(raced.timepoints.size)[place])
        assert choice.algorithm in found["says"]
    assert browser.run("document.getElementById('budget-slider').getAttribute('aria-valuetext')") == "10 evaluations"


def test_following_fades_others_everywhere_and_the_table_sorts_and_filters(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click("#explore-ratings .item:nth-child(2)")
    name = browser.text("#explore-ratings .item[aria-pressed=true] .name")
    for part in ("#explore-best", "#explore-rounds"):
        pressed = browser.run(
            f"Array.from(document.querySelectorAll('{part} .item[aria-pressed=true] .name'), one => one.textContent)"
        )
        assert pressed in ([name], [])
    assert browser.text("#algorithms tr.followed button.plain") == name
    assert browser.run("document.querySelectorAll('#explore-ratings .item.faded').length") == 6
    browser.click("#algorithms tr.followed button.plain")  # again: nobody
    assert browser.run("document.querySelectorAll('.item.faded').length") == 0
    names = (
        "Array.from(document.querySelectorAll('#algorithms table[data-sortable] tbody tr:not([hidden])'),"
        " row => row.cells[0].textContent)"
    )
    first = "document.querySelector('#algorithms th button')"
    browser.run(f"{first}.click()")
    assert browser.run(names) == sorted(browser.run(names))
    browser.run(f"{first}.click()")
    assert browser.run(names) == sorted(browser.run(names), reverse=True)
    assert browser.run("document.querySelector('#algorithms th').getAttribute('aria-sort')") == "descending"
    browser.run(
        "(() => { const one = document.querySelector('#algorithms input[type=search]'); one.value = 'OUT IN';"
        " one.dispatchEvent(new Event('input')); })()"
    )
    assert (
        browser.run("document.querySelectorAll('#algorithms table[data-sortable] tbody tr:not([hidden])').length") == 3
    )
    assert browser.problems == []


def test_a_click_on_a_line_follows_it_and_a_drag_zooms_until_reset(browser: Browser, page: Path) -> None:
    browser.open(page)
    data = data_of(browser)
    browser.middle("#explore-ratings .u-over")
    box = browser.run(
        "(() => { const box = document.querySelector('#explore-ratings .u-over').getBoundingClientRect();"
        " return [box.x, box.y, box.width, box.height]; })()"
    )
    high = max(value for line in data["ratings"]["high"] for value in line)
    best = max(range(7), key=lambda one: data["ratings"]["mean"][one][1])
    x = box[0] + box[2] / 9
    y = box[1] + box[3] * (1 - data["ratings"]["mean"][best][1] / min(high * 1.05, 1))
    browser.drag((x, y), (x, y))
    assert browser.text("#explore-ratings .item[aria-pressed=true] .name") == data["names"][best]
    middle = box[1] + box[3] / 2
    browser.drag((box[0] + box[2] * 0.3, middle), (box[0] + box[2] * 0.5, middle), (box[0] + box[2] * 0.8, middle))
    browser.wait("location.hash.includes('zoom=')")
    reset = "document.querySelector('#explore-best .tools:last-of-type button')"
    assert browser.run(f"{reset}.textContent") == "Whole range"
    assert not browser.run(f"{reset}.hidden")  # all charts over time zoom together
    browser.run(f"{reset}.click()")
    browser.wait("!location.hash.includes('zoom=')")
    assert browser.run(f"{reset}.hidden")
    assert browser.problems == []


def test_a_drawn_preference_changes_the_choice_by_mouse_and_by_keys(
    browser: Browser, page: Path, raced: RaceResult
) -> None:
    for width in SIZES:
        browser.open(page, width=width)
        before = browser.text("#explore-own tbody")
        x, y = browser.middle(".sketch")
        wide = browser.run("document.querySelector('.sketch').clientWidth / 2 - 14")
        browser.drag((x - wide, y - 60), (x, y + 60), (x + wide, y + 68))
        heights = browser.run("Array.from(document.querySelectorAll('.knots input'), one => Number(one.value))")
        assert heights[0] > 85
        assert heights[-1] == 0
        assert browser.text("#explore-own tbody") != before
        browser.run("document.querySelector('.knots input').focus()")
        browser.key("ArrowLeft")
        assert browser.run("Number(document.querySelector('.knots input').value)") == heights[0] - 1
        browser.wait("location.hash.includes('draw=')")
    browser.run("document.querySelectorAll('#explore-own .tools button')[3].click()")
    rows = list(csv.DictReader(io.StringIO(browser.downloaded("weights.csv").decode())))
    weights = [float(row["weight"]) for row in rows]
    choice = select(raced.posterior, raced.pareto_set, weights)
    shown = browser.run(
        "Array.from(document.querySelectorAll('#explore-own tbody tr'),"
        " row => Array.from(row.cells, one => one.textContent))"
    )
    means = dict(zip(choice.candidates, choice.values.mean(axis=0), strict=True))
    assert [row[0] for row in shown] == sorted(means, key=lambda name: -means[name])
    assert all(float(row[1]) == pytest.approx(means[row[0]], rel=5e-3) for row in shown)
    assert browser.problems == []


def test_a_portfolio_of_up_to_three_has_a_value(browser: Browser, page: Path, raced: RaceResult) -> None:
    browser.open(page)
    browser.click("#explore-portfolio input")
    assert browser.text("#portfolio-says") == "Pick two or three."
    browser.run("document.querySelectorAll('#explore-portfolio input')[1].click()")
    names = [name for name in raced.algorithms if name in raced.pareto_set]
    assert browser.text("#portfolio-says").startswith(f"{names[0]} + {names[1]}: value 0.")
    browser.run("document.querySelectorAll('#explore-portfolio input')[2].click()")
    disabled = browser.run("document.querySelectorAll('#explore-portfolio input:disabled').length")
    assert disabled == len(names) - 3


def test_a_link_restores_everything_and_one_that_means_nothing_does_no_harm(browser: Browser, page: Path) -> None:
    state = (
        "#preference=final&risk=best&follow=E&axis=log&budget=4&zoom=2,6&draw=1,2,3,4,5,6,7,8&members=0,1&pair=1,0"
        "&sort=0,-1&filter=out&rounds=1,2"
    )
    look = (
        "[...['preference', 'risk', 'budget-slider'].map(name => document.getElementById(name).value),"
        " document.querySelector('input[name=axis]:checked').value,"
        " document.querySelector('#explore-bar select').selectedOptions[0].textContent,"
        " Array.from(document.querySelectorAll('.knots input'), one => one.value).join(),"
        " document.querySelectorAll('#explore-portfolio input:checked').length,"
        " Array.from(document.querySelectorAll('#explore-pair select'), one => one.value).join(),"
        " document.querySelector('#explore-ratings .tools button').hidden,"
        " document.querySelector('#explore-rounds .tools button').hidden,"
        " document.querySelector('#algorithms input').value,"
        " document.querySelector('#algorithms th').getAttribute('aria-sort')]"
    )
    browser.open(page, state)
    expected = ["final", "best", "3", "log", "E", "1,2,3,4,5,6,7,8", 2, "1,0", False, False, "out", "descending"]
    assert browser.run(look) == expected
    browser.run("document.querySelector('#explore-bar button').click()")
    link = browser.run("document.querySelector('#explore-bar input[type=text]').value")
    browser.open(page, "#" + link.partition("#")[2])
    assert browser.run(look) == expected
    browser.open(
        page, "#follow=nobody&axis=x&budget=y&zoom=9,1&draw=1,2&members=99&pair=0,0&sort=-1,5&preference=%3Cb%3E"
    )
    assert browser.run(look)[:5] == ["uniform", "expected", "9", "linear", "nobody"]
    browser.open(page, "#follow=E&budget=4")
    browser.run("location.hash = '#ratings'")  # a link to a section changes nothing
    assert browser.run(look)[2:5] == ["3", "linear", "E"]
    assert browser.problems == []


def test_downloads_are_the_data_and_the_figures(browser: Browser, page: Path) -> None:
    browser.open(page)
    data = data_of(browser)
    browser.run("document.querySelector('[aria-label^=\"CSV of Mean ratings\"]').click()")
    rows = list(csv.DictReader(io.StringIO(browser.downloaded("ratings.csv").decode())))
    assert len(rows) == 70
    for row in rows:
        one, at = data["names"].index(row["algorithm"]), data["times"].index(float(row["timepoint"]))
        assert [float(row[band]) for band in ("mean", "low", "high")] == [
            data["ratings"][band][one][at] for band in ("mean", "low", "high")
        ]
    browser.run("document.querySelector('[aria-label^=\"CSV of P(dominated)\"]').click()")
    assert browser.downloaded("dominance.csv").startswith(b"round,algorithm,rival,p_dominated\r\n1,A,")
    browser.run("document.querySelector('[aria-label^=\"PNG of P(best)\"]').click()")
    assert browser.downloaded("timeline.png").startswith(b"\x89PNG")
    assert browser.problems == []


def test_every_chart_can_be_saved_as_lines_and_texts_as_it_is_shown(browser: Browser, page: Path) -> None:
    browser.open(page, "#follow=E")
    data = data_of(browser)
    svg = "{http://www.w3.org/2000/svg}"
    for name, title in [("timeline", "P(best)"), ("ratings", "Mean"), ("pair", "One"), ("dominance", "P(dom")]:
        browser.run(f"document.querySelector('[aria-label^=\"SVG of {title}\"]').click()")
        found = ET.fromstring(browser.downloaded(f"{name}.svg"))  # noqa: S314
        assert found.tag == f"{svg}svg"
        texts = [text.text or "" for text in found.iter(f"{svg}text")]
        assert texts[-1].removeprefix("P(").split()[0] in data["names"]
        paths = [path for path in found.iter(f"{svg}path") if path.get("fill") == "none"]
        assert len(paths) == {"timeline": len(data["left"]), "pair": 2}.get(name, 7)
        assert all(len(re.findall("[ML]", path.get("d", ""))) >= 2 for path in paths[:2])
        if name == "ratings":  # the one that is followed is wider, and has the only band
            place = data["names"].index("E")
            assert [path.get("stroke-width") for path in paths] == ["3" if one == place else "1.7" for one in range(7)]
            assert len([path for path in found.iter(f"{svg}path") if path.get("fill") != "none"]) == 1
            # Heights are those of the ratings: a straight line maps one to the other.
            heights = [float(y) for y in re.findall(r"[ML][\d.-]+ ([\d.-]+)", paths[0].get("d", ""))]
            slope = np.polyfit(data["ratings"]["mean"][0], heights, 1)
            assert slope[0] < 0
            assert np.allclose(np.polyval(slope, data["ratings"]["mean"][0]), heights, atol=0.02)
            assert "At 10 evaluations" in texts
    assert browser.problems == []


def test_print_shows_the_static_figures_and_no_controls(browser: Browser, page: Path) -> None:
    browser.open(page, "#filter=nothing")
    shown = "(selector => Array.from(document.querySelectorAll(selector), one => one.getClientRects().length > 0))"
    assert not any(browser.run(f"{shown}('figure.static')"))
    browser.media("print")
    try:
        assert browser.run(f"{shown}('figure.static')") == [True] * 3
        assert not any(browser.run(f"{shown}('.explore')"))
        assert all(browser.run(f"{shown}('#algorithms tbody tr')"))  # a filter does not hide rows on paper
    finally:
        browser.media()


def test_without_script_the_static_figures_are_shown(browser: Browser, page: Path) -> None:
    browser.open(page, scripts=False)
    assert browser.run("document.documentElement.className") == ""
    assert browser.run("getComputedStyle(document.querySelector('figure.static')).display") == "block"
    assert browser.run("getComputedStyle(document.querySelector('.explore')).display") == "none"


@pytest.mark.usefixtures("without_figures")
def test_without_matplotlib_the_charts_work(browser: Browser, gappy: RaceResult, tmp_path: Path) -> None:
    path = write_report(gappy, tmp_path / "page.html", plugins=Plugins())
    browser.open(path)
    assert browser.run("document.querySelectorAll('svg').length") == 0
    assert browser.run("document.querySelectorAll('.explore canvas').length") == 4
    assert browser.run("document.querySelectorAll('[aria-label^=SVG]').length") == 3
    # A gap and a dash where c was not observed.
    browser.run("document.querySelector('#explore-ratings .plot').focus()")
    browser.key("Home")
    value = "document.querySelector('#explore-{} [data-algorithm=\"2\"] .value').textContent"
    assert browser.run(value.format("ratings")) == "-"
    assert browser.run(value.format("best")) == "-"
    browser.run("document.querySelector('[aria-label^=\"CSV of Mean ratings\"]').click()")
    rows = list(csv.DictReader(io.StringIO(browser.downloaded("ratings.csv").decode())))
    assert [row["timepoint"] for row in rows if not row["mean"]] == ["1", "10"]
    assert browser.problems == []


def test_a_page_whose_content_is_replaced_can_start_again(browser: Browser, page: Path) -> None:
    browser.open(page, "#follow=E")
    browser.run(
        "(() => { const fresh = new DOMParser().parseFromString(document.documentElement.outerHTML, 'text/html');"
        " document.querySelector('main').replaceWith(fresh.querySelector('main')); polarbearReport.start(); })()"
    )
    assert browser.run("document.querySelectorAll('.explore canvas').length") == len(CHARTS) + 1
    assert browser.run("document.querySelectorAll('#algorithms input[type=search]').length") == 1
    assert browser.text("#explore-ratings .item[aria-pressed=true] .name") == "E"
    browser.run("location.hash = '#follow=A'")
    browser.wait("document.querySelector('#explore-ratings .item[aria-pressed=true] .name').textContent === 'A'")
    assert browser.problems == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, page: Path, scheme: str) -> None:
    axe = os.environ.get("AXE_CORE")  # axe.min.js of the npm package axe-core
    if axe is None:
        pytest.skip("AXE_CORE does not name axe.min.js")
    browser.media(prefers_color_scheme=scheme)
    try:
        for width in SIZES:
            browser.open(page, "#follow=E&members=0,1", width=width)
            browser.run("document.querySelectorAll('details').forEach(one => { one.open = true; })")
            browser.run(Path(axe).read_text() + "; 0")
            found = browser.run("axe.run().then(all => all.violations)")
            serious = [
                (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
                for one in found
                if one["impact"] in ("serious", "critical")
            ]
            assert serious == []
    finally:
        browser.media()
