"""A race that is asked to stop finishes its round, says why it stopped, and can go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import assert_same_result, synthetic_race

from polarbear_plugins import load_result, resume
from polarbear_plugins.errors import SourceError
from polarbear_plugins.experiments import Progress
from polarbear_plugins.journal.stopping import is_stop_requested, request_stop, stop_file
from polarbear_plugins.report.words import conclusion


def rounds_of(progress: Progress) -> int:
    return len(progress.state.rounds)


def test_a_watcher_that_returns_true_stops_the_race_after_the_round(tmp_path: Path) -> None:
    """In the middle of round 2, so that two rounds are finished."""
    journal = tmp_path / "race.db"
    stopped = synthetic_race(journal=journal, progress=lambda now: rounds_of(now) == 1 and now.done > 3)
    assert (stopped.stopped, len(stopped.rounds)) == ("requested", 2)
    assert load_result(journal).stopped == "requested"
    assert "not settled" in conclusion(stopped)
    assert "stopped on request" in conclusion(stopped)
    resumed = resume(journal, workers=0)
    assert_same_result(resumed, synthetic_race(), about=False)


@pytest.mark.parametrize("answer", [1, "yes", None, False])
def test_only_true_stops_a_race(answer: object) -> None:
    assert synthetic_race(max_rounds=2, progress=lambda _: answer).stopped == "max_rounds"


def test_a_race_that_is_over_when_it_was_asked_to_stop_says_why_it_is_over() -> None:
    assert synthetic_race(max_rounds=1, progress=lambda _: True).stopped == "max_rounds"


def test_a_file_beside_the_journal_stops_the_race_and_is_removed(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"

    def ask(progress: Progress) -> None:
        if progress.planned and rounds_of(progress) == 1:
            request_stop(journal)
            request_stop(journal)  # twice is once

    stopped = synthetic_race(journal=journal, progress=ask)
    assert (stopped.stopped, len(stopped.rounds)) == ("requested", 2)
    assert not is_stop_requested(journal)
    assert {path.name for path in tmp_path.iterdir()} == {"race.db"}


def test_a_file_that_a_killed_race_has_left_behind_does_not_stop_the_next_one(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    synthetic_race(journal=journal, max_rounds=1)
    stop_file(journal).touch()
    assert resume(journal, workers=0, max_rounds=3).stopped == "max_rounds"
    assert not stop_file(journal).exists()


def test_a_link_that_waits_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "race.db.stop").symlink_to(tmp_path / "elsewhere")
    request_stop(tmp_path / "race.db")
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"race\.db\.stop cannot be written"):
        request_stop(tmp_path / "missing" / "race.db")


def test_a_race_that_goes_on_and_is_killed_is_interrupted_whatever_stopped_it_before(tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    synthetic_race(journal=journal, max_rounds=1)
    seen: list[Any] = []

    def die(progress: Progress) -> None:
        if progress.planned:
            seen.append(progress)
            raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        resume(journal, workers=0, max_rounds=3, progress=die)
    assert seen
    assert load_result(journal).stopped == "interrupted"


def test_between_rounds_a_watcher_gets_the_result_so_far_and_the_last_failures() -> None:
    seen: list[Progress] = []
    synthetic_race(max_rounds=2, progress=seen.append)
    between = [now for now in seen if now.result is not None]
    assert [len(now.result.rounds) for now in between if now.result] == [1, 2]
    assert {now.result.stopped for now in between if now.result} == {"running"}
    assert all(now.planned for now in seen if now.result is None)
    assert "and the race is still running" in conclusion(between[0].result)  # type: ignore[arg-type]
