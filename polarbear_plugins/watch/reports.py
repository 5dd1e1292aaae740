"""Reports of a race that is being watched: one at a time, of the newest round, and only while somebody looks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polarbear_plugins.errors import PolarBearError, SourceError, describe_exception
from polarbear_plugins.execution.starting import describe_exit

_LOOKED = 10.0  # seconds after which nobody looks any more
_REST = 3.0  # times the processor's time for a report pass before the next begins, while the race needs its cores
_AFTER_FAILURE = 10.0  # seconds
_LONGEST = 900.0  # seconds for a report


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a report is wanted of.

    Attributes
    ----------
    key
        Differs whenever the report would.
    source
        Writes what is to be rendered into a folder, or does nothing, and returns its path.
    running
        Whether the race is still running.
    """

    key: str
    source: Callable[[Path], Path]
    running: bool


@dataclass(frozen=True, slots=True)
class Report:
    """A report, the number of its rounds and their cost, and the forecast of the cost still to come, or why not.

    Attributes
    ----------
    processor
        Seconds of a processor that it took.
    """

    key: str
    html: str
    rounds: int
    cost: float
    forecast: dict[str, float | None] | None
    why: str
    processor: float


class Reports:
    """Makes reports in a thread of its own, each in a process of its own; :meth:`close` ends both."""

    def __init__(self, unit: str = "", title: str | None = None) -> None:
        self.newest: Report | None = None
        self.problem = ""  # why there is none of what was wanted last
        self._options = {"unit": unit, "title": title}
        self._wanted: Wanted | None = None
        self._tried = ""
        self._looked = -_LOOKED
        self._rest_until = 0.0
        self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._making = ""  # the key of what it makes
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="polarbear-reports", daemon=True)
        self._thread.start()

    def want(self, wanted: Wanted) -> None:
        """Ask for a report; what was asked for before and has not begun is forgotten."""
        with self._changed:
            self._wanted = wanted
            if not wanted.running and self._process is not None and self._making != wanted.key:
                self._process.kill()  # an earlier round does not hold up the end
            self._changed.notify()

    def look(self) -> None:
        """Note that somebody is looking at this moment."""
        with self._changed:
            self._looked = time.monotonic()
            self._changed.notify()

    @property
    def is_watched(self) -> bool:
        """Whether somebody has looked a short time ago."""
        return time.monotonic() - self._looked < _LOOKED

    def is_done(self, key: str) -> bool:
        """Whether there is a report of this, or a reason why not."""
        return self._tried == key

    def close(self) -> None:
        """End what is going on."""
        with self._changed:
            self._closed = True
            if self._process is not None:
                self._process.kill()
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while (wanted := self._next()) is not None:
            self._making = wanted.key
            self._rest_until = time.monotonic() + _AFTER_FAILURE
            try:
                self.newest, self.problem = self._made(wanted), ""
                self._rest_until = time.monotonic() + _REST * self.newest.processor
            except PolarBearError as problem:
                self.problem = str(problem) if self._wanted is wanted else ""
            except OSError as problem:  # no space for the file, or no process
                self.problem = f"The report could not be made: {describe_exception(problem)}."
            self._tried = wanted.key

    def _next(self) -> Wanted | None:
        """Wait until a report is wanted and somebody looks; ``None`` when all is closed."""
        with self._changed:
            while not self._closed:
                wanted = self._wanted
                if wanted is not None and wanted.key != self._tried and self.is_watched:
                    pause = self._rest_until - time.monotonic() if wanted.running else 0.0
                    if pause <= 0:
                        return wanted
                    self._changed.wait(pause)
                else:
                    self._changed.wait()
            return None

    def _made(self, wanted: Wanted) -> Report:
        with tempfile.TemporaryDirectory(prefix="polarbear-") as folder:
            target = Path(folder) / "report.json"
            source = wanted.source(Path(folder))
            options = json.dumps({**self._options, "running": wanted.running})
            self._run([str(source), str(target), options])
            data: dict[str, Any] = json.loads(target.read_text())
        if "problem" in data:
            raise SourceError(data["problem"])
        return Report(wanted.key, **data)

    def _run(self, arguments: list[str]) -> None:
        command = [sys.executable, "-P", "-m", "polarbear_plugins.watch.rendering", *arguments]
        # The same packages as here, and one core.
        paths = os.pathsep.join(path for path in sys.path if path)
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        with self._changed:
            if self._closed:
                raise SourceError("The page was closed.")
            # Our own module and files of ours, without a shell.
            self._process = subprocess.Popen(  # noqa: S603
                command,
                env={**os.environ, **threads, "PYTHONPATH": paths},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        try:
            code = self._process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise SourceError(f"The report was given up after {_LONGEST:.0f} s.") from None
        finally:
            with self._changed:
                self._process = None
        if code:
            raise SourceError(f"The process that makes the report has ended: {describe_exit(code)}.")
