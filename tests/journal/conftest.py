"""Journals that several files harm copies of."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from polarbear_plugins import RaceResult, load_result
from polarbear_plugins.journal.log import log_of

RACE = """
import os, signal, sys
from polarbear_plugins import RaceSettings, race, resume

def kill(progress):
    if len(progress.state.rounds) == 1 and progress.done == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)

if os.path.exists(sys.argv[1]):
    resume(sys.argv[1], workers=0, progress=kill)
else:
    settings = RaceSettings(seed=3, max_rounds=2, draws=100, batch_size=4, batch_min=4)
    options = {"portfolio_options": {"algorithms": 2, "seed": 4}, "workers": 0}
    race("synthetic", "synthetic", [1, 2], settings, journal=sys.argv[1], progress=kill, **options)
"""


def race_until(path: Path, runs: int) -> Path:
    """Begin a race or go on with it, until it is killed when its second round has so many finished runs."""
    killed = subprocess.run([sys.executable, "-c", RACE, path, str(runs)], check=False).returncode
    assert killed == (-signal.SIGKILL if runs >= 0 else 0)
    return path


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The closed journal of a race that is over."""
    return race_until(tmp_path_factory.mktemp("whole") / "race.db", -1)


@pytest.fixture(scope="session")
def in_peace(whole: Path) -> RaceResult:
    return load_result(whole)


@pytest.fixture(scope="session")
def killed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal and its log after the race was killed in its second round."""
    path = race_until(tmp_path_factory.mktemp("killed") / "race.db", 5)
    assert log_of(path).stat().st_size > 10_000
    return path


@pytest.fixture
def killed_again(killed_once: Path, tmp_path: Path) -> Path:
    """The same, moved to another folder, gone on with there and killed again."""
    folder = tmp_path / "killed"
    folder.mkdir()
    for file in (killed_once, log_of(killed_once)):
        (folder / file.name).write_bytes(file.read_bytes())
    return race_until(folder / killed_once.name, 7)
