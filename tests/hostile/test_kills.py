"""kill -9 of the driver, of a worker, of both, again and again; and processes that stand still."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from builders import assert_same_result

from polarbear_plugins import RaceResult, RaceSettings, race, resume
from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal import copies
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import Entry
from polarbear_plugins.journal.replay import load_result

if not Path("/proc/self/stat").exists():
    pytest.skip("looks at processes through /proc", allow_module_level=True)

from hostile.misbehaving import slow_portfolio

# For what goes on with other functions, or with objects that have run meanwhile.
other_code = pytest.mark.filterwarnings(
    "ignore:.*not everything is as it was:polarbear_plugins.errors.PolarBearWarning"
)
SETTINGS = RaceSettings(seed=4, draws=100, max_rounds=2, batch_size=8, batch_min=8)
PROBLEMS = [f"p{number}" for number in range(30)]
TIMES = [1, 2, 3]
DRIVER = """
import json
import sys
from hostile.misbehaving import slow_portfolio
from polarbear_plugins import RaceSettings, race, resume

if __name__ == "__main__":
    how, journal, log, settings = sys.argv[1:]
    problems = [f"p{number}" for number in range(30)]
    options = {"workers": 2, "retries": 2, "run_timeout": 6}  # enough for a run on a busy machine
    if how == "race":
        settings = RaceSettings(**json.loads(settings))
        race(slow_portfolio(log, 0.1), problems, [1, 2, 3], settings, journal=journal, **options)
    else:
        resume(journal, slow_portfolio(log, 0.1), problems, **options)
"""
# Ends itself by kill -9 at each statement that Journal.create sends to SQLite, for a new file each time.
KILLED_IN_CREATE = """
import os, signal, sys
import sqlite3
from polarbear_plugins.journal import journal

connect = sqlite3.connect
for moment in range(int(sys.argv[2])):
    child = os.fork()
    if not child:
        left = moment
        def count(statement):
            global left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        def watched(*arguments, **options):
            if not moment:
                os.kill(os.getpid(), signal.SIGKILL)
            connection = connect(*arguments, **options)
            connection.set_trace_callback(count)
            return connection
        sqlite3.connect = watched
        journal.Journal.create(f"{sys.argv[1]}/{moment}.db", {"timepoints": [1.0]}, ["csa", "msr"]).close()
        os._exit(0)
    os.waitpid(child, 0)
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition: Callable[[], object]) -> None:
    for _ in range(30_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it does not come true")


@dataclass
class Race:
    """A race in other processes."""

    folder: Path
    settings: RaceSettings = SETTINGS

    @property
    def journal(self) -> Path:
        return self.folder / "race.db"

    @property
    def log(self) -> Path:
        return self.folder / "runs.log"

    @property
    def ran(self) -> list[list[str]]:
        """Process, algorithm, instance and horizon of each run that began."""
        return [line.split() for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def finished(self) -> set[tuple[str, ...]]:
        with journal_copy(self.journal) as journal:
            return {
                (run.trajectory.algorithm, run.trajectory.instance, f"{run.trajectory.horizon:g}")
                for run in journal.runs()
            }

    @contextlib.contextmanager
    def driver(self, how: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a driver, and wait until it has begun some runs."""
        script = self.folder / "driver.py"
        script.write_text(DRIVER)
        path = os.pathsep.join([str(Path(__file__).parent.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
        before = len(self.ran)
        command = [sys.executable, script, how, self.journal, self.log, json.dumps(self.settings.to_json())]
        process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path})
        try:
            wait_until(lambda: len(self.ran) >= before + 5 or process.poll() is not None)
            yield process
        finally:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def in_peace(tmp_path_factory: pytest.TempPathFactory) -> RaceResult:
    log = tmp_path_factory.mktemp("peace") / "runs.log"
    return race(slow_portfolio(log), PROBLEMS, TIMES, SETTINGS, workers=0)


@other_code
@pytest.mark.slow
@pytest.mark.long
def test_a_race_that_is_killed_stopped_and_watched_again_and_again_ends_as_one_in_peace(
    in_peace: RaceResult, tmp_path: Path
) -> None:
    under = Race(tmp_path)
    with under.driver("race") as driver:
        # Stopped for longer than a run may take, as by ctrl-Z: nobody's time is over.
        pids = [driver.pid, *{int(run[0]) for run in under.ran}]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(6.5)
        # Somebody reads the journal meanwhile; the lock stays.
        assert load_result(under.journal).stopped == "interrupted"
        with pytest.raises(SourceError, match="in use by another process"):
            Journal.open(under.journal)
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.2)  # the driver comes first, and finds nothing
        began = len(under.ran)
        wait_until(lambda: len(under.ran) >= began + 2)
        assert len({tuple(run[1:]) for run in under.ran}) == len(under.ran)  # nothing was ended and repeated
        # A worker is killed: its run is repeated.
        began = len(under.ran)
        os.kill(int(under.ran[-1][0]), signal.SIGKILL)
        wait_until(lambda: len(under.ran) >= began + 3)
        driver.kill()
    finished, began = under.finished(), len(under.ran)
    assert finished
    with under.driver("resume") as driver:  # and now both
        pids = [int(run[0]) for run in under.ran[began:]]
        os.kill(pids[-1], signal.SIGKILL)
        driver.kill()
    wait_until(lambda: not any(alive(int(run[0])) for run in under.ran))
    more = under.finished()
    assert finished < more
    again = len(under.ran)
    result = resume(under.journal, slow_portfolio(under.log), PROBLEMS, workers=0)
    assert result.failures == ()
    assert_same_result(result, in_peace)
    assert not finished & {tuple(run[1:]) for run in under.ran[began:]}
    assert not more & {tuple(run[1:]) for run in under.ran[again:]}


@other_code
@pytest.mark.slow
def test_without_barriers_a_killed_race_goes_on_with_all_that_has_finished(
    in_peace: RaceResult, tmp_path: Path
) -> None:
    under = Race(tmp_path, replace(SETTINGS, schedule="continuous"))
    finished: set[tuple[str, ...]] = set()
    for how in ("race", "resume", "resume"):
        began = len(under.ran)
        with under.driver(how) as driver:
            driver.kill()
        wait_until(lambda: not any(alive(int(run[0])) for run in under.ran))
        assert not finished & {tuple(run[1:]) for run in under.ran[began:]}
        now = under.finished()
        assert finished < now
        finished = now
    began = len(under.ran)
    result = resume(under.journal, slow_portfolio(under.log), PROBLEMS, workers=2)
    assert not finished & {tuple(run[1:]) for run in under.ran[began:]}
    as_in_rounds = replace(result, state=replace(result.state, settings=SETTINGS), unused_cost=0.0)
    assert_same_result(as_in_rounds, in_peace)


def is_empty(path: Path) -> bool:
    try:
        Journal.open(path).close()
    except SourceError as problem:
        return str(problem) == f"{path} is empty: its race was ended before it began. Start that race again."
    return False


@pytest.mark.slow
def test_a_race_killed_while_it_begins_its_journal_begins_again(in_peace: RaceResult, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED_IN_CREATE, tmp_path, "40"], check=True)
    paths = [tmp_path / f"{moment}.db" for moment in range(40)]
    empty = [path for path in paths if is_empty(path)]
    for path in set(paths) - set(empty):
        with Journal.open(path) as journal:
            assert (journal.entries, journal.about) == ([Entry("csa", 0), Entry("msr", 0)], {"timepoints": [1.0]})
        with pytest.raises(SourceError, match="already exists and is not overwritten"):
            Journal.create(path, {}, [])
    assert 10 < len(empty) < 40  # killed before and after the last moment
    assert_same_result(
        race(slow_portfolio(tmp_path / "log"), PROBLEMS, TIMES, SETTINGS, workers=0, journal=empty[0]), in_peace
    )
    for path in empty[1:]:
        Journal.create(path, {"timepoints": [2.0]}, ["lpxnes"]).close()
        with Journal.open(path) as journal:
            assert (journal.entries, journal.about) == ([Entry("lpxnes", 0)], {"timepoints": [2.0]})


def test_a_second_look_in_the_same_process_does_not_unlock_the_journal(tmp_path: Path) -> None:
    # A process that closes a file gives up its locks on it, also those of others in the same process.
    path = tmp_path / "race.db"
    look = "import sys; from polarbear_plugins.journal.journal import Journal; Journal.open(sys.argv[1])"
    with Journal.create(path, {"timepoints": [1.0]}, ["csa", "msr"]):
        for attempt in (load_result, Journal.open, lambda path: Journal.create(path, {}, [])):
            with pytest.raises(
                SourceError, match=r"in use by a race in this process|already exists and is not overwritten"
            ):
                attempt(path)
        other = subprocess.run([sys.executable, "-c", look, path], capture_output=True, text=True, check=False)
    assert "race.db is in use by another process" in other.stderr


def test_a_copy_is_whole_whatever_is_written_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The worst moment: between the two files, all of the log is moved into the first file and the log begins anew.
    path, copyfile = tmp_path / "race.db", shutil.copyfile
    writer = Journal.create(path, {"number": 0}, ["csa", "msr"])
    number = 0

    def write(count: int) -> None:
        nonlocal number
        for _ in range(count):
            number += 1
            writer.write_about(number=number, text="x" * 20_000 * (number % 7))

    def disturbed(source: Path, target: Path) -> Any:
        done = copyfile(source, target)
        if len(tried) < 3:
            tried.append(source)
            write(40)
            writer._begin_log()
            write(3)
        return done

    tried: list[Path] = []
    write(5)
    monkeypatch.setattr(shutil, "copyfile", disturbed)
    monkeypatch.setattr(copies, "_PAUSE", 0)
    copies._copy(path, tmp_path / "copy.db")
    assert len(tried) == 3
    with Journal.open(tmp_path / "copy.db") as copy:
        assert copy.about == {"number": number, "text": "x" * 20_000 * (number % 7)}
    writer.close()
