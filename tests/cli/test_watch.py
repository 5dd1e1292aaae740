from __future__ import annotations

import http.client
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from builders import synthetic_race
from command_line import Command

from polarbear_plugins import load_result

module = importlib.import_module("polarbear_plugins.cli.watch")  # the name in the package is the command
WATCH = Command("watch")
RACE = ["race", "synthetic", "synthetic", "--timepoints", "1,2", "--seed", "3", "--draws", "200", "--workers", "0"]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that a browser would have opened."""
    found: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: found.append(address) or True)
    return found


@pytest.fixture
def journal(tmp_path: Path) -> str:
    synthetic_race(journal=tmp_path / "race.db", max_rounds=1)
    return str(tmp_path / "race.db")


def test_json_is_the_state_of_the_race_once(journal: str) -> None:
    found = WATCH.data(journal)
    assert (found["phase"], found["stopped"], found["rounds"]) == ("finished", "max_rounds", 1)
    assert "lines" not in found


def test_what_is_not_a_journal_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    assert "there is no such file" in WATCH.fail(str(tmp_path / "missing.db"))
    (tmp_path / "result.npz").write_bytes(b"PK")
    assert "`polarbear report` shows a saved result" in WATCH.fail(str(tmp_path / "result.npz"))


def test_json_of_a_damaged_journal_is_an_error(journal: str) -> None:
    Path(journal).write_bytes(Path(journal).read_bytes()[:4096])
    assert journal in WATCH.fail(journal, "--json")


def test_the_page_is_announced_and_ctrl_c_ends_it(
    journal: str, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        def wait(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setattr(module, "threading", SimpleNamespace(Event=Interrupted))
    done = WATCH.run(journal)
    assert (done.exit_code, done.stdout) == (0, "")
    assert re.search(r"^watch the race at http://127\.0\.0\.1:\d+/[\w-]{32}/$", done.stderr, flags=re.MULTILINE)
    assert not opened


def test_a_race_that_is_watched_prints_the_same_result(opened: list[str], tmp_path: Path) -> None:
    done = Command(*RACE, "--max-rounds", "1").run("--watch", "--json")
    assert done.exit_code == 0
    assert "watch the race at http://127.0.0.1:" in done.stderr
    assert json.loads(done.stdout) == Command(*RACE, "--max-rounds", "1").data()
    assert not opened  # never in a test
    journal = str(tmp_path / "race.db")
    Command(*RACE, "--max-rounds", "1", "--journal", journal).succeed()
    resumed = Command("resume", journal, "--workers", "0", "--max-rounds", "2").run("--watch")
    assert "watch the race at" in resumed.stderr


def test_open_opens_a_browser_and_says_if_there_is_none(opened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    command = Command(*RACE, "--max-rounds", "1", "--watch", "--open")
    done = command.run()
    assert [f"watch the race at {address}" in done.stderr for address in opened] == [True]
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert "Note: no browser could be opened" in command.run().stderr


def test_a_dry_run_has_no_page() -> None:
    assert "watch the race" not in Command(*RACE).run("--dry-run", "--watch").stderr


def test_a_port_that_is_not_one_is_refused(journal: str) -> None:
    assert WATCH.run(journal, "--port", "70000").exit_code == 2


@pytest.mark.slow
def test_ctrl_c_is_as_before_with_a_page(tmp_path: Path) -> None:
    """The race ends with the result of the last finished round, and nothing waits for a reader."""
    journal = str(tmp_path / "race.db")
    options = ["--alpha", "0.999999", "--epsilon", "0.001", "--batch-max", "8", "--no-open", "--journal", journal]
    command = [sys.executable, "-m", "polarbear_plugins.cli", *RACE, *options, "--watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = urlsplit(process.stderr.readline().split()[-1])
        status: dict[str, Any] = {}
        while not status.get("rounds"):
            connection = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=60)
            connection.request("GET", f"{address.path}status")
            status = json.loads(connection.getresponse().read())
            connection.close()
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert f"polarbear resume {journal}\n" in out
    assert load_result(journal).stopped == "interrupted"
