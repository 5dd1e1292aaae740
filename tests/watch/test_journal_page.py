"""The race of a journal: finished, interrupted, running in another process, or damaged."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import assert_same_result, change_journal, synthetic_race

from polarbear_plugins import resume
from polarbear_plugins.journal.custody import is_in_use
from polarbear_plugins.journal.stopping import is_stop_requested
from polarbear_plugins.watch import JournalPage
from polarbear_plugins.watch.journal_page import look_at, phase_of, status_of

pytestmark = pytest.mark.usefixtures("quick_reports")
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it cannot be told whether a race is running")

DAMAGE = "UPDATE runs SET seconds = 99"  # against the checksums

# Races until it is killed or stopped, and waits now and then so that it can be.
RACING = """
import sys, time
sys.path.insert(0, {tests!r})
from builders import synthetic_race
synthetic_race(journal={journal!r}, max_rounds=400, alpha=0.999999, epsilon=0.001, batch_max=8,
               progress=lambda now: time.sleep(0.02 if now.result is None else 0))
"""


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "race.db"


@pytest.fixture
def racing(journal: Path, wait: Any) -> Iterator[subprocess.Popen[bytes]]:
    code = RACING.format(tests=str(Path(__file__).parents[1]), journal=str(journal))
    process = subprocess.Popen([sys.executable, "-c", code])
    wait(lambda: journal.exists() and journal.stat().st_size and phase_of(look_at(journal)) == "running")
    yield process
    process.kill()
    process.wait()


def test_a_finished_race_says_so_and_why(journal: Path, reader: Any, wait: Any) -> None:
    result = synthetic_race(journal=journal)
    with JournalPage(journal) as page:
        reading = reader(page.address)
        status = reading.status()
        assert (status["phase"], status["stopped"]) == ("finished", "max_rounds")
        assert status["says"] == "The race is over after round 4: stopped after as many rounds as allowed."
        assert status["pareto_set"] == list(result.pareto_set)
        assert (status["can_stop"], status["stop_says"]) == (False, "It is not running.")
        assert dict(status["lines"])["Time left"] == "- (the race is not running)"
        wait(lambda: reading.status()["report"] == "4-max_rounds")
        assert "report of round 1" in reading.page()
    assert {path.name for path in journal.parent.iterdir()} == {"race.db"}


def test_a_finished_race_cannot_be_stopped(journal: Path, reader: Any) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    with JournalPage(journal) as page:
        assert "nothing to stop" in reader(page.address).stop()["problem"]
    assert not is_stop_requested(journal)


def test_rounds_that_come_are_noticed(journal: Path, reader: Any, wait: Any) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    with JournalPage(journal) as page:
        reading = reader(page.address)
        wait(lambda: reading.status()["report"] == "1-max_rounds")
        resume(journal, workers=0, max_rounds=2)
        wait(lambda: reading.status()["rounds"] == 2)
        wait(lambda: reading.status()["report"] == "2-max_rounds")


@linux
@pytest.mark.slow
def test_a_race_in_another_process_is_running_until_it_is_killed(
    journal: Path, racing: subprocess.Popen[bytes], reader: Any, wait: Any
) -> None:
    with JournalPage(journal) as page:
        reading = reader(page.address)
        status = wait(lambda: (now := reading.status())["rounds"] and now)
        assert status["phase"] == "running"
        assert "is running in another process; the last change was stored" in status["says"]
        assert status["can_stop"]
        # Between two rounds, none of the next one's instances may be drawn yet.
        wait(lambda: "runs of round" in dict(reading.status()["lines"])["Round"])
        racing.send_signal(signal.SIGKILL)
        racing.wait()
        killed = wait(lambda: (now := reading.status())["phase"] == "interrupted" and now)
        assert "no process on this computer has the journal open" in killed["says"]
        assert f"polarbear resume {journal} continues it" in killed["says"]
        assert (killed["stopped"], killed["can_stop"]) == ("interrupted", False)


@linux
@pytest.mark.slow
def test_a_race_in_another_process_can_be_stopped_after_its_round(
    journal: Path, racing: subprocess.Popen[bytes], reader: Any, wait: Any
) -> None:
    with JournalPage(journal) as page:
        reading = reader(page.address)
        assert reading.stop() == {"problem": ""}
        over = wait(lambda: (now := reading.status())["phase"] == "finished" and now)
        assert over["stopped"] == "requested"
        assert "stopped on request" in over["says"]
    assert racing.wait() == 0
    assert not is_stop_requested(journal)
    rounds = over["rounds"]
    settings = {"alpha": 0.999999, "epsilon": 0.001, "batch_max": 8}
    assert_same_result(
        resume(journal, workers=0, max_rounds=rounds + 1),
        synthetic_race(max_rounds=rounds + 1, **settings),
        about=False,
    )


@linux
def test_a_journal_is_in_use_exactly_while_a_process_has_it_open(journal: Path) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    assert is_in_use(journal) is False
    opens = f"from polarbear_plugins.journal import Journal; Journal.open({str(journal)!r})"
    code = f"{opens}; print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.read(1) == b"1"
        assert is_in_use(journal) is True
        assert phase_of(look_at(journal)) == "running"
        other.kill()
    assert is_in_use(journal) is False


def test_where_locks_cannot_be_asked_for_it_is_unknown_whether_a_race_is_running(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    monkeypatch.setattr(sys, "platform", "plan9")
    assert is_in_use(journal) is None
    assert phase_of(look_at(journal)) == "finished"
    resume_killed(journal)
    status = status_of(journal, look_at(journal))
    assert status.phase == "unknown"
    assert "cannot be told on this system" in status.says
    assert status.stopped is None
    assert status.stop_says


def resume_killed(journal: Path) -> None:
    """Race on, and end as if killed."""
    with pytest.raises(ZeroDivisionError):
        resume(journal, workers=0, max_rounds=2, progress=lambda now: 1 / (now.done < 3))


def test_an_interrupted_race_says_so_and_how_to_continue(journal: Path) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    resume_killed(journal)
    status = status_of(journal, look_at(journal))
    if sys.platform == "linux":
        assert (status.phase, status.stopped) == ("interrupted", "interrupted")
        assert "polarbear resume" in status.says
    assert "3 of 80 runs of round 2 are stored" in status.round_says
    assert status.waiting_runs == 3


def test_a_damaged_journal_is_a_message_on_the_page_which_goes_on(journal: Path, reader: Any, wait: Any) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    intact = journal.read_bytes()
    with JournalPage(journal) as page:
        reading = reader(page.address)
        assert reading.status()["phase"] == "finished"
        change_journal(journal, DAMAGE, seal=False)
        broken = wait(lambda: (now := reading.status())["phase"] == "unreadable" and now)
        assert "race.db" in broken["says"]
        assert "Everything below is as it was before." in broken["says"]
        assert broken["rounds"] == 1
        assert "race.db" in reading.page()
        journal.write_bytes(intact)
        wait(lambda: reading.status()["phase"] == "finished")
        journal.unlink()
        wait(lambda: "there is no such file" in reading.status()["says"])


def test_a_journal_that_is_damaged_from_the_start_has_a_page_too(journal: Path, reader: Any, wait: Any) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    intact = journal.read_bytes()
    change_journal(journal, DAMAGE, seal=False)
    with JournalPage(journal) as page:
        reading = reader(page.address)
        assert reading.status()["phase"] == "unreadable"
        assert reading.status()["lines"] == []
        assert "race.db" in reading.page()
        journal.write_bytes(intact)
        wait(lambda: reading.status()["phase"] == "finished")


def test_looking_leaves_the_files_as_they_are(journal: Path) -> None:
    synthetic_race(journal=journal, max_rounds=1)
    before = journal.read_bytes(), journal.stat().st_mtime_ns
    with JournalPage(journal):
        time.sleep(0.1)
    assert (journal.read_bytes(), journal.stat().st_mtime_ns) == before
    assert [path.name for path in journal.parent.iterdir()] == ["race.db"]
