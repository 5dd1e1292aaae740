"""Reports are made one at a time, of the newest round, and only while somebody looks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from polarbear_plugins import RaceResult
from polarbear_plugins.errors import SourceError
from polarbear_plugins.watch import reports as module
from polarbear_plugins.watch.rendering import _rendered
from polarbear_plugins.watch.reports import Reports, Wanted


@pytest.fixture
def reports() -> Iterator[Reports]:
    made = Reports()
    yield made
    made.close()


def wanted(key: str, *, running: bool = False) -> Wanted:
    return Wanted(key, lambda _: Path(key), running)


def test_nothing_is_made_while_nobody_looks(reports: Reports, quick_reports: list[str], wait: Any) -> None:
    reports.want(wanted("1"))
    time.sleep(0.2)
    assert not quick_reports
    reports.look()
    wait(lambda: reports.newest)
    assert quick_reports == ["1"]


def test_a_report_is_made_once(reports: Reports, quick_reports: list[str], wait: Any) -> None:
    reports.want(wanted("1"))
    reports.look()
    wait(lambda: reports.is_done("1"))
    for _ in range(5):
        reports.look()
        reports.want(wanted("1"))
    reports.want(wanted("2"))
    wait(lambda: reports.is_done("2"))
    assert quick_reports == ["1", "2"]


def test_rounds_that_are_over_before_their_report_has_begun_are_left_out(
    reports: Reports, quick_reports: list[str], wait: Any
) -> None:
    for number in range(5):
        reports.want(wanted(str(number)))
    reports.look()
    wait(lambda: reports.is_done("4"))
    assert quick_reports == ["4"]


def test_while_the_race_runs_there_is_a_pause_between_reports_and_none_before_the_last(
    reports: Reports, quick_reports: list[str], wait: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REST", float("inf"))
    made = Reports._made
    monkeypatch.setattr(Reports, "_made", lambda self, one: replace(made(self, one), processor=1.0))
    reports.look()
    reports.want(wanted("1", running=True))
    wait(lambda: reports.is_done("1"))
    reports._rest_until = time.monotonic() + 3600
    reports.want(wanted("2", running=True))
    time.sleep(0.2)
    assert quick_reports == ["1"]
    reports.want(wanted("3"))
    wait(lambda: reports.is_done("3"))
    assert quick_reports == ["1", "3"]


def test_a_report_that_fails_says_why_and_the_next_one_is_made(
    reports: Reports, wait: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: Reports, arguments: list[str]) -> None:
        if arguments[0] == "1":
            raise OSError(28, "No space left on device")
        if arguments[0] == "2":
            Path(arguments[1]).write_text(json.dumps({"problem": "2 is damaged"}))
            return
        data = {"html": "", "rounds": 1, "cost": 1.0, "forecast": None, "why": "", "processor": 0.0}
        Path(arguments[1]).write_text(json.dumps(data))

    monkeypatch.setattr(Reports, "_run", run)
    reports.look()
    for key, said in (("1", "No space left on device"), ("2", "2 is damaged")):
        reports.want(wanted(key))
        wait(lambda key=key: reports.is_done(key))
        assert said in reports.problem
        assert reports.newest is None
    reports.want(wanted("3"))
    wait(lambda: reports.newest)
    assert reports.problem == ""


def test_a_process_that_dies_is_told_with_how(reports: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SourceError, match="has ended: exit code 1"):
        reports._run(["a", "b", "{}"])


def test_closing_ends_the_process(reports: Reports, wait: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: begin(["sleep", "600"], **options))
    reports.want(wanted("1"))
    reports.look()
    process = wait(lambda: reports._process)
    reports.close()
    assert process.returncode == -signal.SIGKILL
    assert "killed by SIGKILL" in reports.problem


def test_the_report_of_an_earlier_round_does_not_hold_up_the_last_one(
    reports: Reports, wait: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = subprocess.Popen
    commands = iter([["sleep", "600"], ["true"]])
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: begin(next(commands), **options))
    reports.look()
    reports.want(wanted("1", running=True))
    wait(lambda: reports._process)
    reports.want(wanted("2"))
    wait(lambda: reports.is_done("2"))
    assert "report.json" in reports.problem  # the second one ended at once, and wrote nothing


def test_who_asks_again_for_what_is_being_made_does_not_end_it(
    reports: Reports, wait: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda _, **options: begin(["sleep", "600"], **options))
    reports.look()
    reports.want(wanted("1"))
    process = wait(lambda: reports._process)
    reports.want(wanted("1"))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.3)


@pytest.mark.slow
def test_the_report_of_a_round_is_made_in_another_process(
    reports: Reports, raced: RaceResult, wait: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the report of the result, but that the race is still running; the forecast is that of the result."""
    (tmp_path / "json.py").write_text("raise SystemExit('this is not the module json')")
    monkeypatch.chdir(tmp_path)  # what lies there is not imported
    between = replace(raced, stopped="running")
    reports.want(Wanted("4", lambda folder: between.save(folder / "result.npz"), True))
    reports.look()
    report = wait(lambda: reports.newest or reports.problem)
    assert reports.problem == ""
    assert "and the race is still running" in report.html
    assert report.rounds == len(raced.rounds)
    assert report.cost == raced.cost
    forecast = raced.forecast_if_open()
    assert forecast is not None
    assert report.forecast == forecast.to_dict()["cost"]


def test_a_file_that_is_damaged_is_a_problem_in_words(tmp_path: Path) -> None:
    (tmp_path / "result.npz").write_bytes(b"nothing")
    with pytest.raises(SourceError, match=r"result\.npz"):
        _rendered(tmp_path / "result.npz", unit="", title=None, running=False)
