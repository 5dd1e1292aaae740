"""Journals on disks that are full, limited or read-only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from builders import assert_same_result
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, race, resume
from polarbear_plugins.errors import SourceError
from polarbear_plugins.experiments.watching import Progress
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.journal.replay import load_result

if sys.platform == "win32":
    pytest.skip("needs limits and mounts", allow_module_level=True)

import resource

from hostile.misbehaving import slow_portfolio

SETTINGS = RaceSettings(seed=4, draws=100, max_rounds=3, batch_size=8, batch_min=8)
PROBLEMS = [f"p{number}" for number in range(60)]
TIMES = list(range(1, 31))


def start(folder: Path, **options: Any) -> RaceResult:
    return race(slow_portfolio(folder / "runs.log"), PROBLEMS, TIMES, SETTINGS, workers=0, **options)


def go_on(folder: Path, journal: Path) -> RaceResult:
    return resume(journal, slow_portfolio(folder / "runs.log"), PROBLEMS, workers=0)


def finished(journal: Path) -> int:
    with journal_copy(journal) as copy:
        return len(list(copy.runs()))


@pytest.fixture(scope="module")
def in_peace(tmp_path_factory: pytest.TempPathFactory) -> RaceResult:
    return start(tmp_path_factory.mktemp("peace"))


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own; skipped where nobody may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount(folder, "-t", "tmpfs", "-o", "size=160k", "tmpfs")
    yield folder
    subprocess.run(["umount", folder], check=True)


def mount(folder: Path, *options: str) -> None:
    try:
        done = subprocess.run(["mount", *options, folder], capture_output=True, text=True, check=False)
    except OSError as problem:
        pytest.skip(f"cannot mount a disk: {problem}")
    if done.returncode:
        pytest.skip(f"cannot mount a disk: {done.stderr.strip()}")


def test_a_journal_that_may_not_grow_stops_the_race_and_resuming_ends_as_in_peace(
    in_peace: RaceResult, tmp_path: Path
) -> None:
    journal = tmp_path / "race.db"
    message = (
        r"race\.db cannot be read or written: disk I/O error\. Check whether the disk is full.*"
        "no finished run is lost"
    )
    with no_file_longer_than(90_000), pytest.raises(SourceError, match=message):
        start(tmp_path, journal=journal)
    before, last = 0, finished(journal)
    assert last > before
    with no_file_longer_than(90_000), pytest.raises(SourceError, match=message):  # a little room, and full again
        go_on(tmp_path, journal)
    before, last = last, finished(journal)
    assert last > before
    ran = len((tmp_path / "runs.log").read_text().splitlines())
    assert_same_result(go_on(tmp_path, journal), in_peace)
    again = len((tmp_path / "runs.log").read_text().splitlines()) - ran
    assert last + again == len(list(in_peace.trajectories()))


def test_a_full_disk_stops_the_race_and_resuming_ends_as_in_peace(
    in_peace: RaceResult, tmp_path: Path, small_disk: Path
) -> None:
    journal = small_disk / "race.db"
    message = r"race\.db: the disk is full\. Make room and resume; no finished run is lost"
    with pytest.raises(SourceError, match=message):
        start(tmp_path, journal=journal)
    kept = finished(journal)
    assert kept
    with pytest.raises(SourceError, match=message):  # nobody has made room
        go_on(tmp_path, journal)
    assert finished(journal) >= kept
    mount(small_disk, "-o", "remount,size=8m")
    assert_same_result(go_on(tmp_path, journal), in_peace)


def test_a_race_that_could_not_begin_on_a_full_disk_begins_when_there_is_room(
    in_peace: RaceResult, tmp_path: Path, small_disk: Path
) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as file:
        assert file.write(bytes(300_000)) < 170_000
    with pytest.raises(SourceError, match="the disk is full"):
        start(tmp_path, journal=small_disk / "race.db")
    assert not (tmp_path / "runs.log").exists()  # before anything has run
    mount(small_disk, "-o", "remount,size=8m")
    assert_same_result(start(tmp_path, journal=small_disk / "race.db"), in_peace)


def test_a_result_for_which_there_is_no_room_is_printed_and_saved_elsewhere(
    tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("race", "synthetic", "synthetic", "--budget", "20", "--seed", "1", "--workers", "0", "--max-rounds", "1")
    outputs = ("--output", str(small_disk / "result.npz"), "--ioh-output", str(small_disk / "runs"))
    found = Command().run(*command, *outputs)
    assert (found.exit_code, found.stderr.count("\n")) == (2, 1)
    says = f"cannot be written (No space left on device). It was saved as {tmp_path / 'result.npz'} instead."
    assert f"{small_disk / 'result.npz'}: {says}" in found.stderr
    assert RaceResult.load(tmp_path / "result.npz").rounds
    assert "on which each would be the best of all" in found.stdout
    assert not list(small_disk.rglob("*.unfinished"))


def test_a_disk_that_becomes_read_only_is_named_and_its_journal_can_be_read(
    in_peace: RaceResult, tmp_path: Path, small_disk: Path
) -> None:
    journal = small_disk / "race.db"
    mount(small_disk, "-o", "remount,size=8m")
    rounds = 0

    def interrupted(progress: Progress) -> None:
        nonlocal rounds
        rounds = len(progress.state.rounds)
        if rounds == 2:
            raise KeyboardInterrupt

    assert start(tmp_path, journal=journal, progress=interrupted).stopped == "interrupted"
    mount(small_disk, "-o", "remount,ro")
    with pytest.raises(SourceError, match=r"new\.db cannot be written: Read-only file system"):
        start(tmp_path, journal=small_disk / "new.db")
    with pytest.raises(SourceError, match=r"race\.db cannot be written"):
        go_on(tmp_path, journal)
    assert load_result(journal).rounds == in_peace.rounds[:2]
    mount(small_disk, "-o", "remount,rw")
    assert os.listdir(small_disk) == ["race.db"]  # noqa: PTH208
    assert_same_result(go_on(tmp_path, journal), in_peace)
