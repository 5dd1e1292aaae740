"""A race in this process that is watched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import assert_same_result, synthetic_race

from polarbear_plugins import RaceSettings, Trajectory, race, resume
from polarbear_plugins.experiments import Progress
from polarbear_plugins.watch import RacePage, race_page

HOSTILE = "<script>alert('x')</script>"

pytestmark = pytest.mark.usefixtures("quick_reports")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(race_page, "_FAREWELL", 0.0)
    with RacePage() as page:
        yield page


def watched(page: RacePage, then: Callable[[Progress], object]) -> Callable[[Progress], object]:
    """What tells the page, and looks at it then."""

    def tell(progress: Progress) -> object:
        answer = page(progress)
        then(progress)
        return answer

    return tell


def test_the_page_says_how_far_the_race_is(page: RacePage, reader: Any) -> None:
    reading, seen = reader(page.address), []
    assert reading.status()["phase"] == "waiting"
    result = synthetic_race(max_rounds=2, progress=watched(page, lambda _: seen.append(reading.status())))
    assert {status["phase"] for status in seen} == {"running"}
    assert [status["rounds"] for status in seen] == sorted(status["rounds"] for status in seen)
    last = seen[-1]
    assert last["rounds"] == 2
    assert last["cost"] == result.cost
    assert last["pareto_set"] == list(result.pareto_set)
    runs = [status["runs"] for status in seen if status["runs"]["planned"]]
    assert {one["planned"] for one in runs} >= {40}
    assert all(0 <= one["done"] <= one["planned"] for one in runs)
    assert seen[1]["says"] == "Round 1 is running."
    assert "runs of round 1 are done" in dict(seen[1]["lines"])["Round"]
    assert dict(seen[0]["lines"])["Time left"] == "- (no round has finished yet)"


def test_the_stop_button_ends_the_race_after_the_round_and_it_can_be_resumed(
    page: RacePage, reader: Any, tmp_path: Path
) -> None:
    reading, journal = reader(page.address), tmp_path / "race.db"

    def stop(progress: Progress) -> None:
        if len(progress.state.rounds) == 1 and progress.planned and progress.done < 5:
            assert reading.stop() == {"problem": ""}
            status = reading.status()
            assert status["phase"] == "stopping"
            assert "the race stops after it, as requested" in status["says"]
            assert not status["can_stop"]
            assert dict(status["lines"])["Time left"] == "- (the race stops after this round)"

    stopped = synthetic_race(journal=journal, progress=watched(page, stop))
    assert (stopped.stopped, len(stopped.rounds)) == ("requested", 2)
    page.finish(stopped)
    assert "after round 2: stopped on request" in reading.status()["says"]
    assert_same_result(resume(journal, workers=0), synthetic_race(), about=False)


def test_watching_changes_nothing(page: RacePage, reader: Any) -> None:
    reading = reader(page.address)
    assert_same_result(synthetic_race(progress=watched(page, lambda _: reading.status())), synthetic_race())


def test_after_each_round_there_is_a_report_of_it(page: RacePage, reader: Any, wait: Any) -> None:
    reading, reports = reader(page.address), []

    def look(progress: Progress) -> None:
        if progress.result is not None:
            key = f"{len(progress.state.rounds)}-running"
            wait(lambda: reading.status()["report"] == key)
            reports.append(reading.page())

    result = synthetic_race(max_rounds=3, progress=watched(page, look))
    assert ["report of round 1" in reports[0], "report of round 3" in reports[2]] == [True, True]
    page.finish(result)
    wait(lambda: reading.status()["last"])
    assert reading.status()["report"] == "3-max_rounds"
    assert "report of round 4" in reading.page()


def test_hostile_names_and_reasons_are_text_in_the_page_and_data_in_its_status(page: RacePage, reader: Any) -> None:
    def fails(*_: object) -> Trajectory:
        raise ValueError(HOSTILE)

    def works(_: object, horizon: float, seed: int) -> Trajectory:
        return Trajectory(algorithm="?", instance="?", times=[1.0], best=[float(seed)], horizon=horizon)

    reading, pages = reader(page.address), []
    tell = watched(page, lambda progress: pages.append(reading.page()) if progress.failed else None)
    with pytest.warns(match="failed and counts as having found nothing"):
        race(
            {HOSTILE: fails, "b": works, "c": works},
            list(range(20)),
            [1.0],
            RaceSettings(seed=1, max_rounds=1),
            workers=0,
            progress=tell,
        )
    status = reading.status()
    assert status["failed"] == 8
    assert len(status["recent_failures"]) == 8
    assert HOSTILE in status["recent_failures"][0]["reason"]
    assert pages
    assert all(HOSTILE not in text and "&lt;script&gt;alert" in text for text in pages)


def test_an_open_page_gets_the_final_report_before_the_server_ends(
    reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_page, "_FAREWELL", 60.0)
    result, got = synthetic_race(max_rounds=1), []

    def read() -> None:
        reading = reader(page.address)
        while not reading.status()["last"]:
            pass
        got.append(reading.page())

    with RacePage() as page:
        page.page()  # somebody looks
        page.finish(result)
        assert page.is_awaited()
        thread = threading.Thread(target=read)
        thread.start()
    thread.join()
    assert "report of round" in got[0]


@pytest.mark.parametrize("stopped", ["max_rounds", "interrupted"])
def test_nobody_waits_for_a_page_that_nobody_reads_or_after_ctrl_c(stopped: str) -> None:
    result = synthetic_race(max_rounds=1)
    with RacePage() as page:
        page.finish(result)
        assert not page.is_awaited()
        if stopped == "interrupted":
            object.__setattr__(result, "stopped", stopped)
            page.page()
            assert not page.is_awaited()
            assert page.current().phase == "interrupted"


def test_a_page_whose_port_is_taken_leaves_nothing_behind(page: RacePage, reader: Any) -> None:
    with pytest.raises(ValueError, match="Use another port"):
        RacePage(port=reader(page.address).port)
