from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from builders import change_journal

from polarbear_plugins import Trajectory, resume
from polarbear_plugins.errors import PolarBearError, SourceError
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.log import log_of
from polarbear_plugins.journal.reading import NO_ROUND, Entry, JournalRun
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Elimination, Failure, Round
from polarbear_plugins.trajectories.runs import cut_at

ABOUT = {"settings": {"alpha": 0.99, "seed": 7}, "timepoints": [1.0, 2.5], "portfolio": None}
NAMES = ["csa", "Müller's µ", "lpxnes"]

HOLDING = """
import sys
from polarbear_plugins.journal.journal import Journal

journal = Journal.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""

WRITING_UNTIL_KILLED = """
import os, signal, sys
from polarbear_plugins import Trajectory
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import JournalRun

journal = Journal.create(sys.argv[1], {"timepoints": [1.0]}, ["csa", "msr"])
for number in range(20):
    run = Trajectory(algorithm="csa", instance=f"f{number}", times=[1], best=[number], horizon=1)
    journal.add_runs([JournalRun(1, run, 0.5 if number % 2 else 1e-6)])
os.kill(os.getpid(), signal.SIGKILL)
"""


def curve(algorithm: str = "csa", instance: str = "f1", best: tuple[float, ...] = (5.0, 2.0)) -> Trajectory:
    times = np.arange(1.0, len(best) + 1)
    return Trajectory(algorithm=algorithm, instance=instance, seed=9, times=times, best=best, horizon=20)


def a_round(number: int) -> Round:
    return Round(
        number=number,
        batch=8,
        instances=8 * number,
        cost=0.1 + 0.2 * number,
        eliminations=(Elimination("lpxnes", "csa", 0.9987654321, number),),
        resolved=(("csa", "Müller's µ"),),
        resolved_share=1 / 3,
        rivals={"csa": ("lpxnes", 0.25)},
        good=True,
        next_batch=16,
        newcomers=("late",),
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "race.db"


@pytest.fixture
def filled(path: Path) -> Path:
    """A journal of several pages that is closed."""
    with Journal.create(path, ABOUT, NAMES) as journal:
        journal.add_instances(0, [Identity(f"f{number}", {"number": number}) for number in range(60)])
        journal.add_runs(
            JournalRun(1, curve(name, f"f{number}", tuple(np.linspace(9, 1, 15))), 0.5)
            for number in range(60)
            for name in NAMES
        )
        journal.add_round(a_round(1), np.ones((2, 3, 3), dtype=bool))
    return path


def read_everything(path: Path) -> None:
    with Journal.open(path) as journal:
        assert journal.about
        assert journal.entries
        assert journal.instances
        assert journal.rounds
        assert journal.resolved(2, 3).shape == (2, 3, 3)
        assert list(journal.runs())
        assert journal.failures is not None
        assert not journal.stored(2)


def test_what_is_written_is_read_again(path: Path) -> None:
    identities = [Identity("f1", {"dimension": 5, "shift": [0.1, None]}), Identity("f2")]
    runs = [JournalRun(1, curve("csa"), 0.25), JournalRun(2, curve("lpxnes", "f2", ()), 0.0, "it died")]
    resolved = np.random.default_rng(1).random((2, 2, 3, 3)) < 0.5
    with Journal.create(path, ABOUT, NAMES) as journal:
        journal.add_instances(0, identities[:1])
        journal.add_instances(1, identities[1:])
        journal.add_runs(runs)
        journal.add_entry("late", 1)
        journal.add_round(a_round(1), resolved[0])
        journal.add_round(a_round(2), resolved[1])
        journal.write_about(settings={"alpha": 0.95}, more="text")
    with Journal.open(path) as journal:
        assert journal.about == {**ABOUT, "settings": {"alpha": 0.95}, "more": "text"}
        assert journal.entries == [*(Entry(name, 0) for name in NAMES), Entry("late", 1)]
        assert journal.instances == identities
        assert journal.rounds == [a_round(1), a_round(2)]
        np.testing.assert_array_equal(journal.resolved(2, 3), resolved[1])
        read = list(journal.runs())
        assert [(run.round, run.seconds, run.failure) for run in read] == [(1, 0.25, None), (2, 0.0, "it died")]
        for one, other in zip(read, runs, strict=True):
            assert repr(one.trajectory) == repr(other.trajectory)
            np.testing.assert_array_equal(one.trajectory.times, other.trajectory.times)
            np.testing.assert_array_equal(one.trajectory.best, other.trajectory.best)
        assert journal.failures == [Failure("lpxnes", "f2", "it died")]


@pytest.mark.parametrize(
    "best",
    [
        (np.inf, 1.0, -np.inf),
        (0.1 + 0.2, 0.3, 5e-324, 0.0, -5e-324, -np.nextafter(1, 2), -np.finfo(float).max),
        (),
    ],
)
def test_values_survive_to_the_last_bit(path: Path, best: tuple[float, ...]) -> None:
    times = np.cumsum(np.full(len(best), 1 / 3))
    written = Trajectory(algorithm="csa", instance="f1", seed=2**31 - 1, times=times, best=best, horizon=1e300 / 3)
    with Journal.create(path, ABOUT, NAMES) as journal:
        journal.add_runs([JournalRun(1, written, 1 / 3)])
    with Journal.open(path) as journal:
        [read] = journal.runs()
    assert read.trajectory.times.tobytes() == written.times.tobytes()
    assert read.trajectory.best.tobytes() == written.best.tobytes()
    assert (read.trajectory.horizon, read.trajectory.seed, read.seconds) == (1e300 / 3, 2**31 - 1, 1 / 3)


def test_a_run_that_is_written_again_replaces_the_first(path: Path) -> None:
    with Journal.create(path, ABOUT, NAMES) as journal:
        journal.add_runs([JournalRun(1, curve(best=(5.0,)), 0.1), JournalRun(2, curve(best=(4.0,)), 0.2)])
        assert [(run.round, run.trajectory.best.tolist()) for run in journal.runs()] == [(2, [4.0])]


def test_runs_that_a_round_did_not_use_are_kept_for_later_ones(path: Path) -> None:
    with Journal.create(path, ABOUT, NAMES) as journal:
        journal.add_runs([JournalRun(1, curve("csa", "f1"), 0), JournalRun(1, curve("csa", "f2"), 0)])
        journal.add_round(a_round(1), np.ones((2, 3, 3), dtype=bool), later=[("csa", "f2")])
        assert [(run.trajectory.instance, run.round) for run in journal.runs()] == [("f1", 1), ("f2", NO_ROUND)]


def test_a_run_that_was_stored_before_its_round_becomes_one_of_the_round_as_it_was_used(path: Path) -> None:
    longer = Trajectory(algorithm="csa", instance="f1", times=[1, 4], best=[3.0, 2.0], horizon=5)
    with Journal.create(path, ABOUT, NAMES) as journal:
        journal.add_runs([JournalRun(NO_ROUND, longer, 0.25), JournalRun(NO_ROUND, curve("csa", "f2"), 0.5)])
        journal.add_round(a_round(1), np.ones((2, 3, 3), dtype=bool), [cut_at(longer, 2)], about={"spent": 7.0})
    with Journal.open(path) as journal:
        first, second = journal.runs()
        assert first == JournalRun(1, cut_at(longer, 2), 0.25)
        assert (second.round, second.seconds) == (NO_ROUND, 0.5)
        assert journal.about["spent"] == 7.0


def test_nothing_of_a_round_is_written_if_a_part_cannot_be(path: Path) -> None:
    with Journal.create(path, ABOUT, NAMES) as journal:
        journal.add_runs([JournalRun(1, curve("csa", "f1"), 0)])
        with pytest.raises(ValueError, match="JSON"):
            journal.add_round(a_round(1), np.ones((2, 3, 3), dtype=bool), (), [("csa", "f1")], {"spent": np.nan})
        assert journal.rounds == []
        assert [run.round for run in journal.runs()] == [1]


def test_a_file_that_exists_is_not_overwritten(filled: Path) -> None:
    before = filled.read_bytes()
    with pytest.raises(SourceError, match=r"race\.db already exists and is not overwritten.*resume\("):
        Journal.create(filled, ABOUT, NAMES)
    assert filled.read_bytes() == before


def test_a_journal_that_appears_at_the_last_moment_is_not_overwritten(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Code that checks first and creates the file later would overwrite what another process created in between.
    before = filled.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda *_, **__: False)
        with pytest.raises(SourceError, match="already exists and is not overwritten"):
            Journal.create(filled, ABOUT, NAMES)
    assert filled.read_bytes() == before


def test_a_journal_that_cannot_be_started_leaves_nothing(path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        Journal.create(path, {"timepoints": float("nan")}, NAMES)
    assert list(path.parent.iterdir()) == []


def test_an_algorithm_enters_once(path: Path) -> None:
    with Journal.create(path, ABOUT, NAMES) as journal:
        with pytest.raises(SourceError):
            journal.add_entry("csa", 1)
        assert len(journal.entries) == 3


def refused(path: Path, match: str) -> None:
    """Check that a file is refused by name, and not changed."""
    before = path.read_bytes()
    with pytest.raises(SourceError, match=match) as caught:
        read_everything(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    with pytest.raises(SourceError, match=r"already exists and is not overwritten"):
        Journal.create(path, ABOUT, NAMES)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, 3, 99])
def test_a_journal_of_another_version_is_refused(filled: Path, version: int) -> None:
    change_journal(filled, f"PRAGMA user_version = {version}")
    refused(filled, rf"is a journal of version {version}; this version of polarbear-plugins reads 1 and 2")


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_the_database_of_another_program_is_refused_and_not_touched(path: Path, mode: str) -> None:
    change_journal(path, f"PRAGMA journal_mode = {mode}", "CREATE TABLE runs (a, b)", seal=False)
    refused(path, "is an SQLite file, but not the journal of a race")
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"evaluations raw_y\n1 5.0\n", b"SQLite format 2\x00" * 100, b"\x00" * 8192])
def test_a_file_of_another_kind_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused(path, "is not the journal of a race")


def test_a_file_that_does_not_exist_is_not_made(path: Path) -> None:
    with pytest.raises(SourceError, match=r"race\.db: there is no such file"):
        Journal.open(path)
    assert not path.exists()


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no such file"):
        Journal.open(tmp_path)
    with pytest.raises(SourceError, match="already exists and is not overwritten"):
        Journal.create(tmp_path, ABOUT, NAMES)


def test_a_folder_that_does_not_exist_is_an_error_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "race.db"
    with pytest.raises(SourceError, match="cannot be written") as caught:
        Journal.create(path, ABOUT, NAMES)
    assert str(path) in str(caught.value)


def test_a_folder_that_may_not_be_written_is_an_error_with_the_path(filled: Path) -> None:
    folder, before = filled.parent, filled.read_bytes()
    folder.chmod(0o500)
    filled.chmod(0o400)
    try:
        if os.access(filled, os.W_OK):
            pytest.skip("root may write everywhere")
        with pytest.raises(SourceError, match=r"race\.db cannot be written"):
            Journal.open(filled)
        with pytest.raises(SourceError, match=r"new\.db cannot be written"):
            Journal.create(folder / "new.db", ABOUT, NAMES)
        assert filled.read_bytes() == before
    finally:
        folder.chmod(0o700)


DAMAGES: dict[str, Callable[[bytearray], None]] = {}


def damage(function: Callable[[bytearray], None]) -> Callable[[bytearray], None]:
    DAMAGES[function.__name__.replace("_", " ").strip()] = function
    return function


@damage
def cut_to_half(content: bytearray) -> None:
    del content[len(content) // 2 :]


@damage
def cut_within_the_first_page(content: bytearray) -> None:
    del content[1000:]


@damage
def cut_within_the_header(content: bytearray) -> None:
    del content[40:]


@damage
def zeros_behind_the_header(content: bytearray) -> None:
    content[100:4096] = bytes(3996)


@damage
def noise_behind_the_header(content: bytearray) -> None:
    content[100:4096] = np.random.default_rng(1).bytes(3996)


@damage
def zeros_in_each_second_page(content: bytearray) -> None:
    for start in range(4096, len(content), 8192):
        content[start : start + 4096] = bytes(4096)


@damage
def noise_in_the_page_numbers(content: bytearray) -> None:
    for start in range(4096, len(content), 4096):
        content[start : start + 12] = b"\xff" * 12


@damage
def another_page_size(content: bytearray) -> None:
    content[16:18] = b"\x03\x07"


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_journal_is_refused(filled: Path, kind: str) -> None:
    content = bytearray(filled.read_bytes())
    DAMAGES[kind](content)
    filled.write_bytes(content)
    refused(filled, "damaged|is not the journal|not the journal of a race")


@pytest.mark.parametrize("page", range(1, 12))
def test_a_page_of_zeros_is_never_another_kind_of_error(filled: Path, page: int) -> None:
    content = bytearray(filled.read_bytes())
    assert len(content) > 12 * 4096
    content[page * 4096 : (page + 1) * 4096] = bytes(4096)
    filled.write_bytes(content)
    with pytest.raises(SourceError, match=r"race\.db"):
        read_everything(filled)
    assert filled.read_bytes() == content


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bytes_are_an_error_with_a_reason_or_harmless(filled: Path, seed: int) -> None:
    content = bytearray(filled.read_bytes())
    rng = np.random.default_rng(seed)
    for place in rng.integers(100, len(content), 30):
        content[place] ^= int(rng.integers(1, 256))
    filled.write_bytes(content)
    reason = ""
    try:
        read_everything(filled)
    except SourceError as problem:
        reason = str(problem)
    assert not reason or str(filled) in reason
    assert filled.read_bytes() == content


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("UPDATE about SET json = '{\"alpha\": 0.9' WHERE key = 'settings'", "table about"),
        ("INSERT INTO about VALUES ('log_expected', '7', x'')", "table about"),
        ("INSERT INTO stored VALUES (0, 'csa', 'f1', x'0011223344556677', x'')", "table stored"),
        ("UPDATE instances SET identity = 'f7' WHERE place = 7", "table instances"),
        ("UPDATE instances SET identity = '[1]' WHERE place = 7", "table instances"),
        ("UPDATE rounds SET json = '{'", "table rounds"),
        ("UPDATE rounds SET json = '{}'", "table rounds"),
        ("UPDATE rounds SET json = '7'", "table rounds"),
        ("UPDATE rounds SET json = json_set(json, '$.rivals', 7)", "table rounds"),
        ("UPDATE rounds SET resolved = x''", "table rounds"),
        ("UPDATE runs SET best = x'0011' WHERE place = 4", "table runs, number 5"),
        ("UPDATE runs SET times = x'' WHERE place = 4", "table runs, number 5"),
        ("UPDATE runs SET horizon = -1 WHERE place = 4", "table runs, number 5"),
        ("UPDATE runs SET instance = CAST(x'ff' AS TEXT) WHERE place = 4", "table runs, number 5"),
    ],
)
def test_damaged_data_name_the_file_and_the_table(filled: Path, statement: str, place: str) -> None:
    change_journal(filled, statement, seal="CAST" not in statement)
    with pytest.raises(SourceError, match=rf"race\.db, {place}: damaged"):
        read_everything(filled)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM about WHERE key = 'settings'",
        "UPDATE about SET json = '7' WHERE key = 'settings'",
        "UPDATE about SET json = '{\"alpha\": 7}' WHERE key = 'settings'",
        "UPDATE about SET json = '{\"colour\": 7}' WHERE key = 'settings'",
        "UPDATE about SET json = '[3, 1]' WHERE key = 'timepoints'",
        "UPDATE runs SET instance = 'f99' WHERE instance = 'f1'",
        "UPDATE runs SET algorithm = 'nobody' WHERE algorithm = 'csa'",
        "DELETE FROM instances WHERE place = 1",
    ],
)
def test_resuming_what_does_not_fit_together_is_an_error_with_the_path(filled: Path, statement: str) -> None:
    change_journal(filled, statement)
    portfolio = dict.fromkeys(NAMES, curve)
    with pytest.raises(PolarBearError, match=r"race\.db"):
        resume(filled, portfolio, [*range(60)], workers=0)


def test_a_journal_in_use_by_another_process_is_refused(filled: Path) -> None:
    before = filled.read_bytes()
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDING, filled], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        with pytest.raises(SourceError, match=r"race\.db is in use by another process; wait"):
            Journal.open(filled)
        other.kill()
    assert filled.read_bytes() == before
    read_everything(filled)


def test_a_journal_is_free_again_when_it_is_closed(filled: Path) -> None:
    with Journal.open(filled), pytest.raises(SourceError, match="in use"):
        Journal.open(filled)
    read_everything(filled)
    assert list(filled.parent.iterdir()) == [filled]


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_what_a_killed_process_wrote_is_read(path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITING_UNTIL_KILLED, path], check=False)
    assert path.with_name("race.db-wal").stat().st_size > 0
    with Journal.open(path) as journal:
        assert journal.entries == [Entry("csa", 0), Entry("msr", 0)]
        runs = list(journal.runs())
    assert [(run.trajectory.instance, run.trajectory.best.tolist()) for run in runs] == [
        (f"f{number}", [float(number)]) for number in range(20)
    ]


def test_a_journal_that_was_killed_before_its_first_run_can_be_opened_again_and_again(path: Path) -> None:
    killed = path.with_name("killed.db")
    with Journal.create(path, ABOUT, NAMES):
        killed.write_bytes(path.read_bytes())
        log_of(killed).write_bytes(log_of(path).read_bytes())
    for _ in range(3):
        with Journal.open(killed) as journal:
            assert journal.about == ABOUT


def test_a_journal_holds_plain_data_only(filled: Path) -> None:
    connection = sqlite3.connect(filled)
    texts = [
        text
        for (text,) in connection.execute(
            "SELECT json FROM about WHERE key <> 'journal' UNION ALL SELECT json FROM rounds"
        )
    ]
    identities = [text for (text,) in connection.execute("SELECT identity FROM instances")]
    blobs = connection.execute("SELECT times, best FROM runs").fetchall()
    [[resolved]] = connection.execute("SELECT resolved FROM rounds")
    connection.close()
    assert [json.loads(text) for text in texts[:-1]] == list(ABOUT.values())
    assert json.loads(texts[-1]) == json.loads(json.dumps(asdict(a_round(1))))
    assert json.loads(identities[7]) == {"name": "f7", "parameters": {"number": 7}}
    assert all(np.frombuffer(best).tolist() == np.linspace(9, 1, 15).tolist() for _, best in blobs)
    assert len(resolved) == -(-2 * 3 * 3 // 8)
    assert b"polarbear_plugins" not in filled.read_bytes()  # a pickle names the module of its classes


def test_runs_wait_for_the_disk_as_soon_as_there_is_something_to_lose(tmp_path: Path) -> None:
    with Journal.create(tmp_path / "race.db", ABOUT, NAMES) as journal:
        statements: list[str] = []
        journal._file.connection.set_trace_callback(statements.append)

        def waited(instance: str, seconds: float, failure: str | None = None) -> bool:
            statements.clear()
            journal.add_runs([JournalRun(1, curve(instance=instance), seconds, failure)])
            [[level]] = journal._file.connection.execute("PRAGMA synchronous").fetchall()
            assert level == 2  # FULL again, for whatever is written next
            return "PRAGMA synchronous = NORMAL" not in statements

        assert waited("long", 10.0)
        assert [waited(f"short {number}", 0.02) for number in range(6)] == [False, False, True] * 2
        assert waited("failed, nobody knows when", 0.0, "it hung")
        assert not waited("short", 0.02)
    with Journal.open(tmp_path / "race.db") as journal:
        assert len(list(journal.runs())) == 9


def test_a_durable_journal_waits_for_the_disk_with_each_run(tmp_path: Path) -> None:
    Journal.create(tmp_path / "race.db", ABOUT, NAMES).close()
    for make in (
        lambda: Journal.create(tmp_path / "new.db", ABOUT, NAMES, durable=True),
        lambda: Journal.open(tmp_path / "race.db", durable=True),
    ):
        with make() as journal:
            statements: list[str] = []
            journal._file.connection.set_trace_callback(statements.append)
            for number in range(3):
                journal.add_runs([JournalRun(1, curve(instance=f"f{number}"), 1e-6)])
            assert "PRAGMA synchronous = NORMAL" not in statements
            assert journal._file.connection.execute("PRAGMA synchronous").fetchall() == [(2,)]
