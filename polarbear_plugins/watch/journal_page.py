"""A page about the race in a journal, which may be running in another process."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from polarbear_plugins.display.text import format_duration
from polarbear_plugins.errors import PolarBearError, SourceError, describe_exception
from polarbear_plugins.journal.custody import is_in_use, real_path
from polarbear_plugins.journal.log import log_of
from polarbear_plugins.journal.replay import JournalNow, read_journal
from polarbear_plugins.journal.stopping import is_stop_requested, request_stop
from polarbear_plugins.racing.rules import plan
from polarbear_plugins.racing.state import RaceState
from polarbear_plugins.report.page import title_of
from polarbear_plugins.watch.reports import Wanted
from polarbear_plugins.watch.site import STOPPING, RaceSite, over_text
from polarbear_plugins.watch.status import Phase, Status, TimeLeft

_LOOK = 0.5  # seconds between two looks at the files
_REST = 5.0  # times as long as reading has taken passes before it is read again


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of a journal at a time.

    Attributes
    ----------
    now
        Its content, as of when it was read last.
    problem
        Why it could not be read.
    in_use
        Whether a process has it open; ``None`` if that cannot be told.
    changed
        When its files were changed last, by the clock of the system.
    stop_requested
        Whether its race is asked to stop.
    """

    now: JournalNow | None
    problem: str
    in_use: bool | None
    changed: float
    stop_requested: bool


class JournalPage(RaceSite):
    """A page on this computer about the race in a journal: finished, interrupted, or running in another process.

    The journal is never changed: copies are read, when its files have changed.  A running race is asked to stop after
    its round by a file beside the journal, ``race.db.stop``.

    Parameters
    ----------
    path
        The journal.
    port
        Port of 127.0.0.1; 0 takes a free one.
    unit
        Unit of time, such as ``evaluations`` or ``seconds``.
    title
        Title of the page; by default what is raced.

    Attributes
    ----------
    address
        Where the page is.  It has a secret token: whoever knows the address can see the race and stop it.
    """

    def __init__(self, path: str | Path, *, port: int = 0, unit: str = "", title: str | None = None) -> None:
        self._path = Path(path)
        self._look = look_at(self._path)
        self._seen = _files(self._path)
        self._read_next = 0.0
        self._closed = threading.Event()
        super().__init__(port, unit, title)
        self._show()
        self._thread = threading.Thread(target=self._watch, name="polarbear-journal", daemon=True)
        self._thread.start()

    def __exit__(self, *rest: object) -> None:
        self._closed.set()
        self._thread.join()
        super().__exit__(*rest)

    def current(self) -> Status:
        """How the race is doing."""
        look = self._look
        state = None if look.now is None else look.now.result.state
        left = self._time_left(state) if state is not None and phase_of(look) == "running" else None
        return status_of(self._path, look, left)

    def heading(self) -> str:
        """What is raced, if known."""
        now = self._look.now
        return self._path.name if now is None else title_of(now.result)

    def stop(self) -> str:
        """Ask the race to stop after its round."""
        if is_in_use(self._path) is False:
            return "No process on this computer is racing: there is nothing to stop."
        request_stop(self._path)
        return ""

    def _watch(self) -> None:
        while not self._closed.wait(_LOOK):
            files = _files(self._path)
            began = time.monotonic()
            if (files != self._seen or self._look.problem) and began >= self._read_next:
                self._look, self._seen = look_at(self._path, self._look.now), files
                self._read_next = time.monotonic() + max(_LOOK, _REST * (time.monotonic() - began))
            else:
                self._look = look_at(self._path, self._look.now, self._look.problem, read=False)
            self._show()

    def _show(self) -> None:
        """Have the report of the newest round made, and note the speed."""
        now, phase = self._look.now, phase_of(self._look)
        if now is None or not now.result.rounds:
            return
        running = phase in ("running", "stopping")
        if running:
            self._pace.note(time.monotonic(), now.result.cost)
        key = f"{len(now.result.rounds)}-{'running' if running else now.result.stopped}"
        self._reports.want(Wanted(key, lambda _: self._path, running))


def look_at(path: Path, before: JournalNow | None = None, problem: str = "", *, read: bool = True) -> Look:
    """Look at a journal, and read it unless ``read`` is false; what was read ``before`` stays if it cannot be read."""
    now = before
    if read:
        try:
            now, problem = read_journal(path), ""
        except PolarBearError as damage:
            problem = str(damage)
        except Exception as damage:  # whatever a file may contain, the page goes on
            problem = f"{path} cannot be read: {describe_exception(damage)}."
    try:
        in_use = is_in_use(path)
    except (OSError, SourceError):
        in_use = None
    changed = max((when for when, _ in _files(path)), default=0) / 1e9
    return Look(now, problem, in_use, changed, is_stop_requested(path))


def phase_of(look: Look) -> Phase:
    """What a race is doing, as far as its journal shows."""
    if look.problem or look.now is None:
        return "unreadable"
    if look.in_use:
        return "stopping" if look.stop_requested else "running"
    if look.now.result.stopped != "interrupted":
        return "finished"
    return "unknown" if look.in_use is None else "interrupted"


def status_of(path: Path, look: Look, left: TimeLeft | None = None) -> Status:
    """How the race in a journal is doing."""
    phase, now = phase_of(look), look.now
    if now is None:
        return Status(phase=phase, says=look.problem, stop_says="It cannot be read.")
    result = now.result
    lefts = {"running": TimeLeft("- (one look does not show how fast the race is)"), "stopping": STOPPING}
    return Status(
        phase=phase,
        says=_sentence(path, look, phase, now),
        stopped=None if phase in ("running", "stopping", "unknown", "unreadable") else result.stopped,
        state=result.state,
        round_says=_round_text(now, phase),
        activity="- (only the process that races knows)" if phase in ("running", "stopping") else "-",
        waiting_runs=now.waiting,
        failed=len(now.failures),
        recent_failures=now.failures[-10:],
        left=left or lefts.get(phase, TimeLeft("- (the race is not running)")),
        stop_says={
            "running": "",
            "stopping": "It stops after this round.",
            "unknown": "Whether it is running cannot be told on this system: stop it where it runs.",
        }.get(phase, "It is not running."),
    )


def _sentence(path: Path, look: Look, phase: Phase, now: JournalNow) -> str:
    ago = f"{format_duration(max(0.0, time.time() - look.changed))} ago"
    number = len(now.result.rounds) + 1
    if phase == "unreadable":
        return f"{look.problem} Everything below is as it was before."
    if phase == "running":
        return f"Round {number:,} is running in another process; the last change was stored {ago}."
    if phase == "stopping":
        return f"Round {number:,} is running in another process, and the race is asked to stop after it."
    if phase == "finished":
        return over_text(now.result)
    if phase == "unknown":
        return f"Whether this race is running cannot be told on this system; the last change was stored {ago}."
    return (
        f"Interrupted: no process on this computer has the journal open, and the last change was stored {ago}. "
        f"polarbear resume {path} continues it."
    )


def _round_text(now: JournalNow, phase: Phase) -> str:
    state = now.result.state
    rounds = f"{len(state.rounds):,} finished"
    if phase == "finished" or not (now.waiting or phase in ("running", "stopping")):
        return rounds
    planned = _planned(state, now.drawn)
    if planned is None and not now.waiting:
        return rounds  # between two rounds
    if state.settings.schedule == "continuous" or planned is None:
        return f"{rounds}; {now.waiting:,} stored runs belong to no finished round"
    return f"{rounds}; {min(now.waiting, planned):,} of {planned:,} runs of round {len(state.rounds) + 1:,} are stored"


def _planned(state: RaceState, drawn: int) -> int | None:
    """Number of runs of the current round; ``None`` if its instances are not drawn yet."""
    if drawn <= len(state.table.instances):
        return None
    return len(plan(state, drawn).orders) * state.settings.replications


def _files(path: Path) -> tuple[tuple[int, int], ...]:
    """When the files of a journal were changed, and their sizes."""
    found = []
    for file in (path, log_of(real_path(path))):
        try:
            status = file.stat()
        except OSError:
            continue
        found.append((status.st_mtime_ns, status.st_size))
    return tuple(found)
