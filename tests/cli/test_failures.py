"""However a command ends, it says so in one line, and nothing is lost."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Command

from polarbear_plugins.plugins.manager import Plugins

POLARBEAR = Command()
SHORT = ("race", "synthetic", "synthetic", "--budget", "5", "--seed", "1", "--workers", "0", "--draws", "100")


class Panic(BaseException):
    """What a library in another language may raise."""


class MuteError(Exception):
    """An error without a text."""

    def __str__(self) -> str:
        raise ValueError("no text")


def recurse() -> None:
    recurse()


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Callable[[], object]], None]:
    """Let reading fail in some way; reports go to a folder of their own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def let_fail(how: Callable[[], object]) -> None:
        monkeypatch.setattr(Plugins, "read_trajectories", lambda *_, **__: how())

    return let_fail


def raising(problem: BaseException) -> Callable[[], object]:
    def fail() -> object:
        raise problem

    return fail


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (
            raising(RuntimeError("a mistake\nof \x1b ours")),
            r"An unexpected error (RuntimeError: a mistake of \u001b ours).",
        ),
        (raising(KeyError()), "An unexpected error (KeyError)."),
        (raising(MuteError()), "An unexpected error (MuteError)."),
        (raising(Panic("deep inside")), "An unexpected error (Panic: deep inside)."),
        (raising(MemoryError()), "Memory ran out (MemoryError)."),
        (raising(OSError(28, "No space left on device")), "An unexpected error (OSError: [Errno 28] No space left"),
        (recurse, "An unexpected error (RecursionError: maximum recursion depth exceeded"),
    ],
)
def test_an_unexpected_error_is_one_line_with_the_place_of_a_report(
    broken: Any, how: Callable[[], object], says: str, tmp_path: Path
) -> None:
    broken(how)
    found = POLARBEAR.run("analyze", "runs.csv")
    assert (found.exit_code, found.stdout, found.stderr.count("\n")) == (70, "", 1)
    assert found.stderr.startswith(f"Error: {says}")
    [report] = (tmp_path / "temporary").iterdir()
    assert f"The full report is in {report}. POLARBEAR_DEBUG=1 shows it here instead." in found.stderr
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    text = report.read_text(encoding="utf-8")
    assert "Traceback (most recent call last):" in text
    assert re.search(r"Python \d.*, polarbear-plugins \d", text)


def test_a_report_that_cannot_be_written_is_not_another_error(
    broken: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken(raising(RuntimeError("a mistake")))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    found = POLARBEAR.run("analyze", "runs.csv")
    assert found.exit_code == 70
    assert "(RuntimeError: a mistake). No report could be written." in found.stderr


def test_developers_see_the_error_itself(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(raising(RuntimeError("a mistake")))
    monkeypatch.setenv("POLARBEAR_DEBUG", "1")
    with pytest.raises(RuntimeError, match="a mistake"):
        POLARBEAR.run("analyze", "runs.csv")


def test_a_report_holds_no_secrets(broken: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    url = "mysql://me:s3cret@host/db"
    broken(raising(RuntimeError(f"cannot reach {url} with hidden99")))
    monkeypatch.setattr(sys, "argv", ["polarbear", "analyze", url, "-o", "password=hidden99", "-o", "maximize=true"])
    POLARBEAR.run("analyze", url)
    [report] = (tmp_path / "temporary").iterdir()
    text = report.read_text()
    assert "polarbear analyze mysql://***@host/db -o password=*** -o maximize=true" in text
    assert "s3cret" not in text
    assert "hidden99" not in text


def test_an_unexpected_error_says_what_is_kept_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    journal = tmp_path / "race.db"
    POLARBEAR.succeed(*SHORT, "--max-rounds", "2", "--journal", str(journal))

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(sys.modules["polarbear_plugins.cli.race"], "resume_race", broken)
    found = POLARBEAR.run("resume", str(journal))
    assert found.exit_code == 70
    assert f"Finished runs are kept in {journal}: polarbear resume {journal} goes on." in found.stderr


def test_an_interrupted_command_ends_as_shells_expect(broken: Any) -> None:
    broken(raising(KeyboardInterrupt()))
    found = POLARBEAR.run("analyze", "runs.csv")
    assert (found.exit_code, found.stdout, found.stderr.strip()) == (128 + signal.SIGINT, "", "Interrupted.")


def in_shell(command: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command line in which POLARBEAR is the command."""
    polarbear = f"'{sys.executable}' -m polarbear_plugins.cli"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command.replace('POLARBEAR', polarbear)}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )
    return done.returncode, done.stdout, done.stderr


FULL = "Error: Standard output cannot be written (No space left on device).\n"
CLOSED = "Error: Standard output is closed, so that nothing could be shown. Send it to a file or to /dev/null.\n"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("command", "ended"),
    [
        ("POLARBEAR plugins > /dev/full", (2, "", FULL)),
        ("POLARBEAR plugins --json > /dev/full", (2, "", FULL)),
        ("POLARBEAR --help > /dev/full", (2, "", FULL)),
        ("POLARBEAR plugins > /dev/full 2> /dev/full", (2, "", "")),
        ("POLARBEAR select nothing 2> /dev/full", (2, "", "")),
        ("POLARBEAR plugins | true", (141, "", "")),
        ("POLARBEAR plugins --json | true", (141, "", "")),
        ("POLARBEAR plugins >&-", (2, "", CLOSED)),
        ("POLARBEAR select nothing 2>&-", (2, "", "")),
    ],
)
def test_standard_output_that_cannot_be_written_ends_a_command_without_a_traceback(
    command: str, ended: tuple[int, str, str]
) -> None:
    assert in_shell(command) == ended


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_what_a_command_saves_is_saved_although_it_cannot_print(tmp_path: Path) -> None:
    saved = tmp_path / "result.npz"
    code, _, says = in_shell(f"POLARBEAR {' '.join(SHORT)} --max-rounds 2 --output '{saved}' > /dev/full")
    assert (code, says) == (2, FULL)
    assert "Expected regret" in POLARBEAR.succeed("select", str(saved))


@pytest.mark.slow
def test_files_do_not_take_the_place_of_closed_standard_streams(tmp_path: Path) -> None:
    saved = tmp_path / "result.npz"
    code, shown, _ = in_shell(f"POLARBEAR {' '.join(SHORT)} --max-rounds 2 --output '{saved}' <&- 2>&-")
    assert code == 0
    assert f"saved {saved}" in shown
    POLARBEAR.succeed("select", str(saved))
