"""The journal and its log stay together: links, moved, copied and deleted files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from builders import assert_same_result
from command_line import Command

from polarbear_plugins import RaceResult, RaceSettings, hookimpl, load_result, race, read_trajectories, resume
from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning, SourceError
from polarbear_plugins.experiments import Progress
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.log import log_of
from polarbear_plugins.plugins.manager import installed_plugins

SETTINGS = RaceSettings(seed=3, max_rounds=2, draws=100, batch_size=4, batch_min=4)
POLARBEAR = Command()
OPTIONS = {"portfolio_options": {"algorithms": 2, "seed": 4}, "workers": 0}


def test_the_log_is_found_behind_a_link(killed_again: Path, in_peace: RaceResult, tmp_path: Path) -> None:
    expected = load_result(killed_again)
    assert len(expected.rounds) == 1
    for name in ("link.db", "link-to-link.db"):
        link = tmp_path / name
        link.symlink_to(killed_again if name == "link.db" else "link.db")
        assert_same_result(load_result(link), expected)
    assert_same_result(resume(link, workers=0), in_peace)
    assert link.is_symlink()
    assert [file.name for file in killed_again.parent.iterdir()] == ["race.db"]
    assert len(load_result(killed_again).rounds) == 2


def test_a_new_journal_behind_a_link_is_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to("far.db")
    race("synthetic", "synthetic", [1, 2], SETTINGS, journal=tmp_path / "link.db", **OPTIONS)
    assert (tmp_path / "link.db").is_symlink()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["far.db", "link.db"]


def test_links_in_a_circle_are_an_error_with_the_path(tmp_path: Path) -> None:
    (tmp_path / "one.db").symlink_to("two.db")
    (tmp_path / "two.db").symlink_to("one.db")
    for use in (load_result, resume, lambda path: race("synthetic", "synthetic", [1], journal=path, **OPTIONS)):
        with pytest.raises(SourceError, match=r"one\.db"):
            use(tmp_path / "one.db")


def test_a_journal_moved_without_its_log_says_where_the_log_is(
    killed_again: Path, in_peace: RaceResult, tmp_path: Path
) -> None:
    moved, log = tmp_path / "moved.db", log_of(killed_again)
    killed_again.rename(moved)
    content = moved.read_bytes()
    for use in (load_result, Journal.open):
        with pytest.raises(SourceError, match=rf"is not beside it\. It is {log}: move it to {log_of(moved)}\."):
            use(moved)
    assert (moved.read_bytes(), log.exists()) == (content, True)
    log.rename(log_of(moved))
    assert_same_result(resume(moved, workers=0), in_peace)


def test_a_journal_whose_log_is_gone_is_refused_and_can_be_salvaged(killed_again: Path, in_peace: RaceResult) -> None:
    log_of(killed_again).unlink()
    with pytest.raises(SourceError, match=rf"is not beside it.* polarbear resume {killed_again} --salvage"):
        load_result(killed_again)
    assert_same_result(resume(killed_again, workers=0, salvage=True), in_peace)
    assert_same_result(load_result(killed_again), in_peace)


def test_a_log_that_another_program_moved_into_the_journal_is_not_missed(
    killed_again: Path, in_peace: RaceResult
) -> None:
    sqlite3 = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('SELECT 1 FROM runs').fetchall()"
    subprocess.run([sys.executable, "-c", f"{sqlite3}; c.close()", killed_again], check=True)
    assert not log_of(killed_again).exists()
    assert_same_result(resume(killed_again, workers=0), in_peace)


def test_no_race_begins_where_the_log_of_another_is(killed_again: Path, tmp_path: Path) -> None:
    killed_again.rename(tmp_path / "moved.db")
    log, content = log_of(killed_again), log_of(killed_again).read_bytes()
    for _ in range(2):
        with pytest.raises(SourceError, match=rf"{log} has the newest runs of a race whose journal.* was moved"):
            race("synthetic", "synthetic", [1, 2], SETTINGS, journal=killed_again, **OPTIONS)
        assert log.read_bytes() == content
        assert not killed_again.exists()
    killed_again.touch()
    with pytest.raises(SourceError, match="has the newest runs of a race"):
        race("synthetic", "synthetic", [1, 2], SETTINGS, journal=killed_again, **OPTIONS)
    assert log.read_bytes() == content


def test_the_log_of_another_journal_is_refused_and_nothing_is_changed(killed_again: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    race("synthetic", "synthetic", [1, 2], SETTINGS, journal=other, **OPTIONS)
    shutil.copy(log_of(killed_again), log_of(other))
    before = other.read_bytes(), log_of(other).read_bytes()
    for use in (load_result, resume):
        with pytest.raises(SourceError, match=r"other\.db.*damaged"):
            use(other)
    assert (other.read_bytes(), log_of(other).read_bytes()) == before


@pytest.mark.parametrize("vanished", ["deleted", "moved", "replaced", "log deleted", "folder deleted"])
def test_a_journal_that_vanishes_during_the_race_is_written_again(
    in_peace: RaceResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vanished: str
) -> None:
    path = tmp_path / "folder" / "race.db"
    path.parent.mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def harm(progress: Progress) -> None:
        if len(progress.state.rounds) == 1 and progress.done == 3:
            match vanished:
                case "deleted":
                    path.unlink()
                case "moved":
                    path.rename(tmp_path / "moved.db")
                case "replaced":
                    path.unlink()
                    path.write_text("mine")
                case "log deleted":
                    log_of(path).unlink()
                case "folder deleted":
                    shutil.rmtree(path.parent)

    with pytest.warns(PolarBearWarning, match=rf"{path} or its log was deleted, moved or replaced while") as told:
        result = race("synthetic", "synthetic", [1, 2], SETTINGS, journal=path, progress=harm, **OPTIONS)
    assert_same_result(result, in_peace)
    where = {
        "replaced": path.with_name("race-2.db"),
        "log deleted": path.with_name("race-2.db"),
        "folder deleted": tmp_path / "here" / "race.db",
    }.get(vanished, path)
    assert f"with every finished run: {where}." in str(told[0].message)
    assert_same_result(load_result(where), in_peace)
    assert not log_of(where).exists()
    if vanished == "replaced":
        assert path.read_text() == "mine"
    assert resume(where, workers=0).stopped == in_peace.stopped


def test_a_journal_that_vanishes_after_the_last_run_is_written_again_when_it_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    journal = Journal.create(path, {"timepoints": [1.0]}, ["csa", "msr"])
    journal.write_about(stopped="resolved")
    path.unlink()
    with pytest.warns(PolarBearWarning, match=rf"{path} or its log was deleted, moved or replaced while"):
        journal.close()
    with Journal.open(path) as again:
        assert again.about["stopped"] == "resolved"


def test_no_adapter_leaves_files_beside_a_journal(killed_again: Path, whole: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed.db"
    closed.write_bytes(whole.read_bytes())
    log_of(killed_again).unlink()
    for path in (closed, killed_again):
        with pytest.raises(PolarBearError):
            list(read_trajectories(path))
        assert not log_of(path).exists()
    with pytest.raises(SourceError, match="is not beside it"):
        load_result(killed_again)


def test_only_a_journal_can_be_durable() -> None:
    with pytest.raises(InvalidInputError, match="durable=True is for a journal"):
        race("synthetic", "synthetic", [1, 2], SETTINGS, durable=True, **OPTIONS)


def test_the_command_line_salvages_and_waits_for_the_disk(killed_again: Path, in_peace: RaceResult) -> None:
    log_of(killed_again).unlink()
    assert f"polarbear resume {killed_again} --salvage" in POLARBEAR.fail("resume", str(killed_again), "--workers", "0")
    told = POLARBEAR.succeed("resume", str(killed_again), "--salvage", "--durable", "--workers", "0")
    assert f"saved {killed_again}" in told
    assert_same_result(load_result(killed_again), in_peace)


def test_the_command_line_names_the_journal_that_was_written_again(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    deleted = []

    class Deletes:
        @hookimpl
        def polarbear_round_finished(self, state: object) -> None:  # noqa: ARG002 - the hook's
            if not deleted:
                deleted.append(path.unlink())
                path.write_text("mine")

    plugins = installed_plugins()
    plugins.manager.register(Deletes(), "deletes")
    try:
        done = POLARBEAR.run(
            *("race", "synthetic", "synthetic", "--budget", "9", "--max-rounds", "2", "--workers", "0"),
            *("--journal", str(path)),
        )
    finally:
        plugins.manager.unregister(name="deletes")
    assert f"saved {path.with_name('race-2.db')}" in done.stdout
    assert path.read_text() == "mine"
