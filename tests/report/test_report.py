from __future__ import annotations

import importlib.util
import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import posterior_of, synthetic_race, table_of

from polarbear_plugins import RaceResult, RaceSettings, RankingTable, analyze, hookimpl, race, select
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.plugins.hookspecs import ReportSection
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.racing.state import Failure
from polarbear_plugins.report import render, write_report
from polarbear_plugins.report.advice import advice_from
from polarbear_plugins.report.commands import how_to_repeat
from polarbear_plugins.report.words import conclusion
from polarbear_plugins.selection.stretches import Stretch, stretches

HOSTILE = "</script><script>alert(1)</script>"
CHROMIUM = shutil.which("chromium")
WITH_FIGURES = importlib.util.find_spec("matplotlib") is not None
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


Look = Callable[[str], "tuple[Page, str]"]


def crossing(first: str = "early", second: str = "late", rows: int = 60) -> RaceResult:
    """An analysis in which one is best at the first two timepoints, another at the last two, a third never."""
    early, late = [1.0, 2.0, 3.0], [2.0, 1.0, 3.0]
    table = RankingTable.from_values(
        [[early, early, late, late]] * rows, algorithms=[first, second, "never"], timepoints=[10, 100, 20_000, 50_000]
    )
    return analyze(table, RaceSettings(seed=1, draws=500))


def unsettled() -> RaceResult:
    values = [[[1.0, 2.0], [1.0, 2.0]], [[2.0, 1.0], [1.0, 2.0]]]
    return analyze(table_of(values), RaceSettings(seed=1, draws=500))


@pytest.fixture(scope="module")
def raced() -> RaceResult:
    return synthetic_race(algorithms=7, draws=500)


@pytest.fixture(scope="module")
def html(raced: RaceResult) -> str:
    return without_plugins(raced, unit="evaluations")


class Page(HTMLParser):
    """What a browser would find in a page: elements, scripts, what it would load, and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.texts: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        while tag in self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] == "script":
            self.scripts[-1] += data
        elif "style" not in self._inside[-1:]:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def choices(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.scripts[0])
        return found


def without_plugins(result: RaceResult, **options: Any) -> str:
    return render(result, plugins=Plugins(), **options)


def test_the_conclusion_stands_first_and_says_whom_to_choose_until_when() -> None:
    result = crossing("CSA", "XNES")
    page = Page(without_plugins(result, unit="evaluations"))
    says = "Choose CSA up to 100 evaluations, XNES beyond. Every pair is settled."
    assert "2 of 3 algorithms may be right for some budget: CSA, XNES. " + says in page.text
    assert page.text.index(says) < page.text.index("What to choose for which budget")
    assert "CSA is better at every timepoint, P > 0.9995" in page.text or "XNES is better at every" in page.text


def test_one_algorithm_left_is_the_conclusion() -> None:
    table = table_of([[[1.0, 2.0]]] * 40, algorithms=["good", "bad"], timepoints=[10])
    result = analyze(table, RaceSettings(seed=1, draws=500))
    page = Page(without_plugins(result))
    assert "1 of 2 algorithms is right for some budget: good. Every pair is settled." in page.text
    assert "Nothing: every pair is settled." in page.text
    assert {choice["algorithm"] for risks in page.choices.values() for choice in risks.values()} == {"good"}


def test_what_is_not_settled_and_what_it_would_take_is_told() -> None:
    result = unsettled()
    page = Page(without_plugins(result))
    assert not result.resolved
    assert "1 pair is neither surely different nor surely equivalent" in page.text
    assert str(result.forecast()) in page.text


def test_a_race_that_ended_before_its_first_round_has_a_report() -> None:
    settings = RaceSettings(seed=3, draws=500)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    result = race("synthetic", "synthetic", [1, 2], settings, workers=0, progress=stop)
    page = Page(without_plugins(result))
    assert "nothing is known yet" in page.text
    assert page.scripts == []
    assert "polarbear race synthetic synthetic" in page.text


def test_a_race_tells_who_was_out_when_by_whom_and_how_surely(raced: RaceResult, html: str) -> None:
    assert raced.eliminations
    page = Page(html)
    for out in raced.eliminations:
        assert f"out in round {out.round}" in page.text
        assert f"{out.by} is better at every timepoint" in page.text
    assert "4,000 draws" not in page.text
    assert "500 draws of the engine native under the prior dirichlet" in page.text


def test_texts_from_data_are_escaped_everywhere() -> None:
    result = crossing(HOSTILE, '<img src=x onerror="alert(2)">&')
    hostile = Failure("early", "<i>instance</i>", "<script>bad()</script>")
    result = RaceResult(
        state=result.state,
        stopped="analyzed",
        _posterior=result.posterior,
        failures=(hostile,),
        about={"sources": ["<u>file</u>.csv"], "candidates": {HOSTILE: {"<s>": "<q>"}}},
    )
    page = Page(without_plugins(result, unit="<em>s</em>", title=None))
    kinds = {tag for tag, _ in page.tags}
    assert not kinds & {"img", "i", "u", "s", "q", "em"}
    assert len(page.scripts) == 4  # two with data, uPlot and ours
    assert not any("alert" in script for script in page.scripts[2:])
    assert "<" not in page.scripts[0] + page.scripts[1]  # no comment and no element can begin in the data
    # Nothing is lost either: the names arrive in the data and in the text.
    assert HOSTILE in page.text
    assert page.choices["budget-10"]["expected"]["algorithm"] == HOSTILE
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)


def test_nothing_is_loaded_from_anywhere(html: str) -> None:
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img", "video", "audio")
        for name in ("src", "href", "xlink:href", "action", "data", "srcset", "poster"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/png;base64,")), (tag, name, value)
    # The address of uPlot stands in a comment.
    assert re.findall(r"https?://[^ ]*|url\((?!#)|@import", html) == ["https://github.com/leeoniya/uPlot"]
    [policy] = [attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes]
    assert policy is not None
    assert policy.startswith("default-src 'none';")


def test_the_parts_of_all_figures_have_names_of_their_own(html: str) -> None:
    names = re.findall(r'\bid="([^"]+)"', html)
    assert len(names) == len(set(names))
    wanted = set(re.findall(r"url\(#([^)]+)\)", html)) | set(re.findall(r'href="#([^"]+)"', html))
    assert wanted <= set(names)


def test_the_same_result_gives_the_same_bytes(raced: RaceResult, html: str, tmp_path: Path) -> None:
    saved = RaceResult.load(raced.save(tmp_path / "result.npz"))
    assert without_plugins(saved, unit="evaluations") == html


def test_the_choices_in_the_page_are_those_of_select(raced: RaceResult, html: str) -> None:
    choices = Page(html).choices
    assert {"uniform", "log-uniform", "final", "worst"} < set(choices)
    for preference in ("uniform", "log-uniform", "final", "worst"):
        for risk in ("expected", "best", "quantile:0.05"):
            chosen = select(raced.posterior, raced.pareto_set, preference, risk)
            shown = choices[preference][risk]
            assert shown["algorithm"] == chosen.algorithm
            assert [row[0] for row in shown["rows"]] == list(chosen.summary().index)
            assert f"{chosen.expected_regret:.3g}" in shown["says"]


def test_a_budget_by_itself_is_a_preference() -> None:
    choices = Page(without_plugins(crossing())).choices
    assert choices["budget-10"]["best"]["algorithm"] == "early"
    assert choices["budget-20000"]["best"]["algorithm"] == "late"


def test_timepoints_from_0_leave_out_the_logarithm() -> None:
    table = table_of([[[1.0, 2.0]] * 3] * 5, timepoints=[0, 1, 2])
    assert "log-uniform" not in Page(without_plugins(analyze(table, RaceSettings(seed=1, draws=500)))).choices


@pytest.mark.skipif(not WITH_FIGURES, reason="needs the extra plots")
def test_figures_have_a_text_for_those_who_cannot_see_them(html: str) -> None:
    page = Page(html)
    drawn = [attributes for tag, attributes in page.tags if tag == "svg"]
    # Timeline, dominance, ratings, wins, four preferences, allocation, check.
    assert len(drawn) == 10
    assert all(attributes["role"] == "img" and attributes["aria-label"] for attributes in drawn)
    assert "There are no figures" not in page.text


@pytest.mark.skipif(not WITH_FIGURES, reason="needs the extra plots")
def test_a_phone_shows_every_figure_without_scrolling_sideways(html: str) -> None:
    [smallest] = re.findall(r"min-width: calc\(var\(--width\) \* ([.\d]+)px\)", html)
    styles = [attributes["style"] for tag, attributes in Page(html).tags if tag == "svg"]
    widths = [float(str(style).removeprefix("--width:")) * float(smallest) for style in styles]
    assert max(widths) <= 390 - 2 * 16  # less the padding of the page


def test_a_single_timepoint_has_one_preference_and_the_only_candidate_no_figure_of_its_value() -> None:
    table = table_of([[[1.0, 2.0]]] * 40, algorithms=["good", "bad"], timepoints=[10])
    page = Page(without_plugins(analyze(table, RaceSettings(seed=1, draws=500)), unit="evaluations"))
    assert list(page.choices) == ["uniform"]
    assert "timepoint 10 evaluations" in page.text
    assert "treats timepoints as independent" not in page.text
    labels = [str(attributes["aria-label"]) for tag, attributes in page.tags if tag == "svg"]
    assert not [label for label in labels if "of those that are left" in label or "value of each" in label]


@pytest.mark.usefixtures("without_figures")
def test_without_matplotlib_the_report_says_how_to_get_figures(raced: RaceResult) -> None:
    page = Page(without_plugins(raced))
    assert "svg" not in {tag for tag, _ in page.tags}
    assert "There are no figures in this report for print and for browsers without scripts." in page.text
    assert "pip install 'polarbear-plugins[plots]'" in page.text
    assert page.choices


@pytest.mark.slow
def test_a_report_of_10_algorithms_at_200_timepoints_has_at_most_1_5_mb() -> None:
    rng = np.random.default_rng(1)
    level = np.cumsum(rng.normal(size=(200, 10)), axis=0) / 4
    values = level + rng.gumbel(size=(60, 200, 10))
    names = ["CSA", "MSR", "TPA", "XNES", "MXNES", "LPXNES", "RS", "BIPOP", "DE", "NM"]
    table = RankingTable.from_values(values, algorithms=names, timepoints=np.geomspace(100, 60_000, 200))
    result = analyze(table, RaceSettings(seed=1, draws=1000))
    assert len(result.pareto_set) == 10  # all are in every part of the page
    assert len(without_plugins(result).encode()) <= 1_500_000


@pytest.mark.usefixtures("without_figures")
def test_sections_of_plugins_stand_behind_ours_in_order_with_escaped_titles_and_their_html(raced: RaceResult) -> None:
    class One:
        @hookimpl
        def polarbear_report_sections(self, result: RaceResult) -> list[ReportSection]:
            """Two sections."""
            return [ReportSection("<b>First</b>", f"<em>{len(result.algorithms)}</em>"), ReportSection("Second", "")]

    class Other:
        @hookimpl
        def polarbear_report_sections(self) -> list[ReportSection]:
            """One section."""
            return [ReportSection("Third", "<p>three</p>")]

    plugins = Plugins()
    plugins.register(One(), "one")
    plugins.register(Other(), "other")
    html = render(raced, plugins=plugins)
    page = Page(html)
    assert [page.text.rindex(title) for title in ("Settings, and how", "<b>First</b>", "Second", "Third")] == sorted(
        page.text.rindex(title) for title in ("Settings, and how", "<b>First</b>", "Second", "Third")
    )
    assert "<em>7</em>" in html
    assert "b" not in {tag for tag, _ in page.tags}


@pytest.mark.usefixtures("without_figures")
def test_a_section_of_another_kind_is_refused(raced: RaceResult) -> None:
    class Wrong:
        @hookimpl
        def polarbear_report_sections(self) -> list[str]:
            """No sections."""
            return ["<p>text</p>"]

    plugins = Plugins()
    plugins.register(Wrong(), "wrong")
    with pytest.raises(InvalidInputError, match="expected ReportSection objects, got str"):
        render(raced, plugins=plugins)


@pytest.mark.usefixtures("without_figures")
def test_a_file_that_is_no_report_is_not_replaced_unless_forced(raced: RaceResult, tmp_path: Path) -> None:
    path = tmp_path / "mine.html"
    path.write_text("<html>my own work</html>")
    with pytest.raises(InvalidInputError, match="the file exists and is not a report"):
        raced.report(path, plugins=Plugins())
    assert "my own work" in path.read_text()
    raced.report(path, plugins=Plugins(), force=True)
    assert raced.report(path, plugins=Plugins(), title="Again") == path  # our own
    assert "<h1>Again</h1>" in path.read_text()
    assert [found.name for found in tmp_path.iterdir()] == ["mine.html"]


@pytest.mark.usefixtures("without_figures")
def test_a_place_that_cannot_be_written_is_an_error_that_names_it(raced: RaceResult, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"nowhere.*cannot be written"):
        write_report(raced, tmp_path / "nowhere" / "race.html", plugins=Plugins())


def test_the_advice_needs_no_unit_and_gives_up_on_many_changes() -> None:
    grid = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert advice_from([Stretch(0, 5, "a")], grid).startswith("Choose a for any budget")
    three = [Stretch(0, 1, "a"), Stretch(2, 3, "b"), Stretch(4, 5, "a")]
    assert advice_from(three, grid, "seconds") == "Choose a up to 2 seconds, b up to 4, a beyond."
    many = [Stretch(place, place, "ab"[place % 2]) for place in range(6)]
    assert advice_from(many, grid) == "The likely best algorithm changes 5 times with the budget, among a, b."


def test_a_change_is_advised_only_where_it_pays() -> None:
    hair = [[0.501, 0.499], [0.499, 0.501], [0.501, 0.499], [0.501, 0.499]]
    assert stretches(posterior_of([hair]), ("a", "b")) == [Stretch(0, 3, "a")]
    clear = [[0.7, 0.3], [0.7, 0.3], [0.2, 0.8], [0.3, 0.7]]
    assert stretches(posterior_of([clear]), ("a", "b")) == [Stretch(0, 1, "a"), Stretch(2, 3, "b")]
    assert stretches(posterior_of([clear]), ("b",)) == [Stretch(0, 3, "b")]


def test_stretches_are_the_best_of_all_ways_to_change() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        share = rng.uniform(0.46, 0.54, 6)
        mean = np.stack([share, 1 - share], axis=1)
        found = stretches(posterior_of([mean]), ("a", "b"))

        def worth(way: tuple[int, ...], mean: np.ndarray = mean) -> float:
            changes = sum(one != other for one, other in itertools.pairwise(way))
            return float(mean[np.arange(6), list(way)].mean()) - 0.01 * changes

        chosen = tuple("ab".index(part.algorithm) for part in found for _ in range(part.first, part.last + 1))
        assert worth(chosen) == pytest.approx(max(worth(way) for way in np.ndindex(*(2,) * 6)))


def test_the_command_repeats_the_race(raced: RaceResult) -> None:
    says, command = how_to_repeat(raced)
    assert says == "This command repeats the race:"
    assert command == (
        "polarbear race synthetic synthetic --budget 10 --first 1 --timepoints 10 "
        "-P algorithms=7 -P timepoints=10 --alpha 0.9 --draws 500 --seed 3 --max-rounds 4"
    )


@pytest.mark.parametrize(
    ("about", "stopped", "expected"),
    [
        ({"sources": ["my runs.csv"], "options": {"maximize": "true"}}, "analyzed", "polarbear analyze 'my runs.csv' "),
        ({}, "analyzed", "analyze(table, RaceSettings(draws=500, seed=1))"),
        ({"study": "s"}, "interrupted", "race_result(study)"),
        (
            {"portfolio": None, "suite": None},
            "resolved",
            "race(portfolio, suite, [10, 100, 20000, 50000], RaceSettings(",
        ),
        (
            {"portfolio": None, "suite": {"name": "ma-bbob", "options": '{"dimension": 3}'}},
            "resolved",
            "race(portfolio, 'ma-bbob', [10, 100, 20000, 50000], RaceSettings(",
        ),
    ],
)
def test_every_source_says_how_to_repeat_it(about: dict[str, Any], stopped: str, expected: str) -> None:
    known = crossing()
    result = RaceResult(state=known.state, stopped=stopped, _posterior=known.posterior, about=about)
    command = how_to_repeat(result)[1]
    assert command.startswith(expected)
    if about.get("suite"):
        assert command.endswith("seed=1), suite_options={'dimension': 3})")
    if "sources" in about:
        assert command.endswith("--timepoints 10,100,20000,50000 -o maximize=true --draws 500 --seed 1")


def test_a_race_inside_an_optuna_study_has_a_report_with_the_parameters_of_its_candidates() -> None:
    optuna = pytest.importorskip("optuna")
    optuna_sampler = pytest.importorskip("polarbear_plugins.integrations.optuna_sampler")

    def objective(trial: Any) -> float:
        rng = np.random.default_rng(trial.suggest_int("instance", 0, 99))
        return float(trial.suggest_float("x", 0, 1) + 0.1 * rng.normal())

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    settings = RaceSettings(seed=1, draws=500, batch_size=4, batch_min=4)
    sampler = optuna_sampler.PolarBearSampler([{"x": 0.0}, {"x": 0.25}, {"x": 1.0}], settings=settings)
    study = optuna.create_study(study_name="folds", sampler=sampler)
    study.optimize(objective, n_trials=40)
    page = Page(without_plugins(optuna_sampler.race_result(study)))
    assert "Race in the study folds" in page.text
    assert "x = 0.25" in page.text
    assert "race_result(study)" in page.text


def test_notebooks_show_small_escaped_tables() -> None:
    result = crossing(HOSTILE)
    for shown in (result, result.posterior, result.state.table):
        html = shown._repr_html_()
        page = Page(html)
        assert {tag for tag, _ in page.tags} <= {"p", "table", "caption", "thead", "tbody", "tr", "th", "td"}
        assert HOSTILE in page.text
        assert len(html) < 3000
    assert conclusion(result, forecast=result.forecast_if_open()) in Page(result._repr_html_()).text
    assert "1.00" in result.state.table._repr_html_()


@pytest.fixture(scope="module")
def look(tmp_path_factory: pytest.TempPathFactory) -> Look:
    """Load a report in a browser, with a fragment of its address; gives the page as the script left it."""
    folder = tmp_path_factory.mktemp("report")
    write_report(crossing(HOSTILE, "late"), folder / "race.html", plugins=Plugins())

    def load(fragment: str) -> tuple[Page, str]:
        assert CHROMIUM is not None
        flags = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--virtual-time-budget=2000")
        address = f"{(folder / 'race.html').as_uri()}{fragment}"
        command = [CHROMIUM, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", address]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        return Page(done.stdout), done.stderr

    return load


@in_a_browser
@pytest.mark.parametrize(("preference", "chosen"), [("final", "late"), ("budget-10", HOSTILE)])
def test_the_control_shows_the_choice_of_the_address_without_an_error(look: Look, preference: str, chosen: str) -> None:
    page, errors = look(f"#preference={preference}&risk=best")
    assert "CONSOLE" not in errors
    [form] = [attributes for _, attributes in page.tags if attributes.get("id") == "control"]
    assert "hidden" not in form  # the script is at work
    assert f"Choose {chosen} (preference " in page.text
    assert "risk best). Expected regret" in page.text
    assert not {"budget-10", "final"} - {attributes.get("value") for _, attributes in page.tags}
    if WITH_FIGURES:
        drawn = [attributes for _, attributes in page.tags if "data-preference" in attributes]
        shown = [attributes["data-preference"] for attributes in drawn if "hidden" not in attributes]
        assert shown == ([preference] if preference == "final" else [])


@in_a_browser
def test_an_address_that_means_nothing_shows_the_first_choice(look: Look) -> None:
    page, errors = look("#preference=%3Cscript%3E&risk=none")
    assert "CONSOLE" not in errors
    assert "(preference uniform: " in page.text


@in_a_browser
def test_a_script_in_a_section_does_not_run(tmp_path: Path) -> None:
    class Section:
        @hookimpl
        def polarbear_report_sections(self) -> list[ReportSection]:
            """A section with a script."""
            return [ReportSection("Mine", "<script>document.title = 'taken over'</script>")]

    plugins = Plugins()
    plugins.register(Section(), "section")
    path = write_report(unsettled(), tmp_path / "race.html", plugins=plugins)
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    done = subprocess.run(
        [*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True, timeout=120
    )
    assert "<title>Analysis of existing data</title>" in done.stdout
