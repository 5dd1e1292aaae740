"""The page around a report: only known scripts run, and what others wrote is text."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

import pytest

from polarbear_plugins import RaceResult, RaceSettings
from polarbear_plugins.errors import SourceError
from polarbear_plugins.racing.state import Failure, start_race
from polarbear_plugins.report import render
from polarbear_plugins.watch.page import page_of
from polarbear_plugins.watch.reports import Report
from polarbear_plugins.watch.status import Status

HOSTILE = "<script>alert('x')</script>"


def report_of(page: str) -> Report:
    return Report("3-running", page, 3, 1.0, None, "", 0.0)


def hashes(page: str) -> set[str]:
    """Hashes of the scripts that are not data."""
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    return {f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" for one in scripts}


def rules(policy: str) -> dict[str, str]:
    return dict(part.strip().split(" ", 1) for part in policy.split(";"))


@pytest.mark.usefixtures("without_figures")
def test_exactly_the_scripts_of_the_report_and_of_the_strip_may_run(raced: RaceResult) -> None:
    page, policy = page_of(Status(phase="running", says="?"), report_of(render(raced)), "t")
    allowed = set(rules(policy)["script-src"].split())
    assert len(allowed) >= 2
    assert hashes(page) <= allowed
    assert "unsafe" not in rules(policy)["script-src"]
    assert rules(policy)["default-src"] == "'none'"
    assert rules(policy)["connect-src"] == "'self'"
    assert rules(policy)["frame-ancestors"] == "'none'"
    assert "http-equiv" not in page  # two policies would allow only what both do


@pytest.mark.usefixtures("without_figures")
def test_the_page_has_the_whole_report_and_says_which_it_is(raced: RaceResult) -> None:
    report = render(raced)
    page, _ = page_of(Status(phase="running", says="?"), report_of(report), "t")
    inside = report.partition("<body>")[2].rpartition("</body>")[0]
    assert inside in page
    assert 'data-report="3-running"' in page
    assert page.index('id="race"') < page.index("<main>")
    assert page.count("</body>") == report.count("</body>")


def test_before_the_first_report_there_is_a_page_with_the_strip() -> None:
    page, policy = page_of(Status(phase="waiting", says="The race is about to begin."), None, HOSTILE)
    assert "The race is about to begin." in page
    assert "The report of the newest round appears here" in page
    assert HOSTILE not in page
    assert hashes(page) == set(rules(policy)["script-src"].split())


def test_what_others_wrote_is_text() -> None:
    state = start_race([HOSTILE, "b"], [1.0], RaceSettings(seed=1))
    failures = (Failure(HOSTILE, HOSTILE, HOSTILE),)
    status = Status(phase="running", says=HOSTILE, state=state, round_says=HOSTILE, failed=1, recent_failures=failures)
    page, _ = page_of(status, None, HOSTILE)
    assert HOSTILE not in page
    assert page.count(html.escape(HOSTILE)) >= 5


def test_a_report_that_is_not_ours_is_refused() -> None:
    for page in ("<html><body></body></html>", '<meta http-equiv="Content-Security-Policy" content="x y">\n<main>'):
        with pytest.raises(SourceError, match="The report has no"):
            page_of(Status(phase="running", says="?"), report_of(page), "t")


def test_a_script_in_a_section_of_a_plugin_is_not_allowed() -> None:
    policy = '<meta http-equiv="Content-Security-Policy" content="script-src \'none\'">'
    page, policy = page_of(
        Status(phase="running", says="?"), report_of(f"{policy}<body><script>evil()</script></body>"), "t"
    )
    assert len(hashes(page)) == 2
    assert len(hashes(page) & set(rules(policy)["script-src"].split())) == 1


def test_no_script_of_ours_writes_html(root: Path) -> None:
    script = (root / "polarbear_plugins" / "watch" / "assets" / "strip.js").read_text()
    for dangerous in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert dangerous not in script
