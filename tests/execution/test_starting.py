"""Workers that cannot start: the message says why, and advises a guard only to those who lack one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from polarbear_plugins.execution import local_processes
from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.starting import WorkersCannotStartError, cannot_start
from polarbear_plugins.execution.worker_process import WorkerProcess

RACE = """
from polarbear_plugins import RaceSettings, race

result = race("synthetic", "synthetic", [1, 2], RaceSettings(seed=1, max_rounds=1, draws=100), workers=2{options})
print("a result", result)
"""
UNGUARDED = RACE.format(options="")
GUARDED = """
import math
import os
import sys
from polarbear_plugins.execution import LocalProcesses

{before}
if __name__ == "__main__":
    {inside}
    with LocalProcesses(2) as executor:
        print("a result", [future.result() for future in [executor.submit(math.gcd, 6, 4) for _ in range(4)]])
"""
FEW_FILES = """
    import resource
    few = len(os.listdir("/proc/self/fd")) + {spare}
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
"""

needs_limits = pytest.mark.skipif(sys.platform != "linux", reason="needs limits, and /proc")


def run(folder: Path, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(text)
    return subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | environment,
    )


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 1, done.stdout
    assert "a result" not in done.stdout
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("options", ["", ", journal='race.db'"])
def test_a_script_without_a_guard_is_told_to_guard_its_start(
    tmp_path: Path, options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(tmp_path, RACE.format(options=options))
    last = last_line(done)
    assert "WorkersCannotStartError: Worker processes end before they can work: they import the main module" in last
    assert 'if __name__ == "__main__":' in last
    assert done.stderr.count("Traceback") == 1  # that of the race, and none of its workers


@pytest.mark.slow
def test_a_script_from_a_pipe_has_workers_too() -> None:
    done = subprocess.run(
        [sys.executable, "-"], input=UNGUARDED, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "a result" in done.stdout


@pytest.mark.slow
def test_a_script_that_fails_when_it_is_imported_is_named(tmp_path: Path) -> None:
    before = 'if __name__ != "__main__":\n    raise OSError("no licence here")\n'
    done = run(tmp_path, GUARDED.format(before=before, inside=""))
    last = last_line(done)
    assert "Worker processes cannot start (exit code 1). What they have printed says why. They import script.py" in last
    assert "__main__" not in last
    assert "OSError: no licence here" in done.stderr


@pytest.mark.slow
@needs_limits
@pytest.mark.parametrize("spare", [4, 10])
def test_too_few_descriptors_are_said_to_be_too_few(tmp_path: Path, spare: int) -> None:
    last = last_line(run(tmp_path, GUARDED.format(before="", inside=FEW_FILES.format(spare=spare))))
    assert "Worker processes cannot start (too many open files). Raise the limit of open files (ulimit -n)" in last
    assert "__main__" not in last


@pytest.mark.slow
@needs_limits
def test_with_descriptors_for_some_workers_these_do_the_work(tmp_path: Path) -> None:
    done = run(tmp_path, GUARDED.format(before="", inside=FEW_FILES.format(spare=24)))
    assert done.returncode == 0, done.stderr
    assert "a result [2, 2, 2, 2]" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="has no such sockets")
def test_a_long_path_of_temporary_files_does_not_matter(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    done = run(tmp_path, GUARDED.format(before="", inside=""), TMPDIR=str(folder))
    assert done.returncode == 0, done.stderr
    assert "a result" in done.stdout
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (OSError(errno.EMFILE, os.strerror(errno.EMFILE)), "(too many open files). Raise the limit of open files"),
        (OSError(errno.ENFILE, os.strerror(errno.ENFILE)), "use fewer workers"),
        (OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)), "unavailable). Raise the limit of processes (ulimit -u"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), "memory). There is not enough memory: use fewer workers"),
        (OSError("AF_UNIX path too long"), "too long for a socket: .*Set TMPDIR to a shorter one"),
        (EOFError(), "the server that starts them has ended"),
        (ConnectionRefusedError(), "the server that starts them has ended"),
        (-9, "(killed by SIGKILL)"),
        (RuntimeError("a hidden\ud800 reason"), "(a hidden\\ud800 reason)"),
    ],
)
def test_the_reason_is_named_with_what_to_do_about_it(problem: object, expected: str) -> None:
    text = str(cannot_start(problem, with_main=False))
    assert text.startswith("Worker processes cannot start (")
    assert all(part in text for part in expected.split(".*"))
    assert text.endswith("; or race with workers=0, in this process.")
    assert "__main__" not in text


class Failing:
    """Starts workers, but for some of the attempts."""

    def __init__(self, *attempts: int) -> None:
        self.attempts, self.count = attempts, 0

    def __call__(self, *given: Any) -> WorkerProcess:
        self.count += 1
        if self.count in self.attempts:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return WorkerProcess(*given)


def test_processes_that_cannot_be_started_fail_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "WorkerProcess", Failing(1, 2, 3))
    with LocalProcesses(1) as executor:
        with pytest.raises(WorkersCannotStartError, match="limit of processes"):
            executor.submit(abs, -1).result(timeout=60)
        assert executor.submit(abs, -1).result(timeout=60) == 1  # it may be better later


@pytest.mark.parametrize("attempts", [(1,), (1, 2), (2, 3, 4, 5, 6)])
def test_a_start_that_fails_is_tried_again_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch, attempts: tuple[int, ...]
) -> None:
    monkeypatch.setattr(local_processes, "WorkerProcess", Failing(*attempts))
    with LocalProcesses(2) as executor:
        futures = [executor.submit(abs, -number) for number in range(200)]
        assert [future.result(timeout=60) for future in futures] == list(range(200))
