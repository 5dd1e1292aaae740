"""Harm a race again and again and go on with it: nothing finished is lost or repeated, and the result is the same.

    python benchmarks/endurance/soak.py --kills 200
    python benchmarks/endurance/soak.py --kills 200 --schedule continuous

A race with a journal runs in a process of its own and two workers; one of its algorithms crashes on some instances,
always the same ones.  At random moments that process, a worker or both are ended by ``kill -9``, also right after the
start; or all are stopped for a while (SIGSTOP), or the journal may not grow any more, as on a full disk, or somebody
deletes the journal.  What was ended goes on from the journal, until the race is over; then the next one begins.  In
between the journal is moved with its log, or without it (which must be refused until the log has followed), or the race
goes on behind a symbolic link.  Compared at the end: every run that was ever seen in the journal, how often it ran
afterwards, and the result, draws included, with that of a race left in peace.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from polarbear_plugins import PolarBearError, RaceResult, RaceSettings, Trajectory, race, resume
from polarbear_plugins.journal.copies import journal_copy
from polarbear_plugins.journal.log import log_of
from polarbear_plugins.plugins.synthetic import SyntheticSuite, synthetic_portfolio

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

KILLS = ("driver", "worker", "both", "start")
FAULTS = (*KILLS, *KILLS, "stop", "disk", "delete")
MOVES = ("", "", "move", "left", "link")  # what happens to the journal of an ended race
LOG = "POLARBEAR_SOAK_LOG"
SETTINGS = RaceSettings(seed=3, max_rounds=6, batch_min=4, batch_max=12, draws=200)


class Noted:
    """A synthetic algorithm that takes a moment and writes down who runs what; the first crashes now and then."""

    def __init__(self, algorithm, crashes):
        self.name, self.algorithm, self.crashes = algorithm.name, algorithm, crashes

    def run(self, problem, horizon: float, seed: int) -> Trajectory:
        """Run it."""
        log = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(log, f"{os.getpid()}\t{self.name}\t{problem.identity.name}\t{horizon:g}\n".encode())
        os.close(log)
        time.sleep(0.01)
        if self.crashes and seed % 20 == 0:
            # As a kill from outside, which may hit the last try of this run and would otherwise give another reason.
            os.kill(os.getpid(), signal.SIGKILL)
        return self.algorithm.run(problem, horizon, seed)


def portfolio() -> list[Noted]:
    """Make the algorithms."""
    made = synthetic_portfolio(algorithms=5, seed=4)
    return [Noted(algorithm, crashes=algorithm is made[0]) for algorithm in made]


def fingerprint(result: RaceResult) -> str:
    """Tell results apart by everything they say, draws included, but for what was begun in vain."""
    draws = hashlib.sha256(result.posterior.log_ratings.tobytes()).hexdigest()
    said = {key: value for key, value in result.to_dict().items() if key != "unused_cost"}
    return json.dumps([said, draws], sort_keys=True)


def begin_or_go_on(journal: Path | None, room: int | None, schedule: str) -> None:
    """Race, in a process of its own; exit code 0 when the race is over."""
    if room is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    # Tries enough for all kills that may hit the same run; a crash of its own comes back each time.
    options = {"workers": 2, "retries": 4}
    try:
        settings = replace(SETTINGS, schedule=schedule)
        result = race(portfolio(), SyntheticSuite(), range(1, 11), settings, journal=journal, **options)
    except PolarBearError as problem:
        if journal is None or "already exists and is not overwritten" not in str(problem):
            raise
        result = resume(journal, portfolio(), SyntheticSuite(), **options)
    print(fingerprint(result))


class Soak:
    """The faults so far, and what became of the races."""

    def __init__(self, seed: int, folder: Path, verbose: bool, schedule: str) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - moments, not secrets
        self.folder, self.verbose, self.schedule = folder, verbose, schedule
        self.faults: collections.Counter[str] = collections.Counter()
        self.races = self.runs = self.seen = self.lost = self.doubled = self.different = self.strays = self.errors = 0
        self.expected, self.took = self.one_in_peace()

    @property
    def kills(self) -> int:
        """How often something was ended by kill -9."""
        return sum(self.faults[kind] for kind in KILLS)

    def one_in_peace(self) -> tuple[str, float]:
        """Race without any fault: its result, and how long it takes."""
        began = time.perf_counter()
        driver = self.start(None, self.folder / "peace.log")
        output, _ = driver.communicate()
        return output, time.perf_counter() - began

    def start(self, journal: Path | None, log: Path, room: int | None = None) -> subprocess.Popen[str]:
        """Start a process that begins a race or goes on with it, in a session of its own."""
        command = [sys.executable, "-W", "ignore", __file__, "--run", str(journal or ""), "--schedule", self.schedule]
        if room is not None:
            command += ["--room", str(room)]
        return subprocess.Popen(  # noqa: S603 - ourselves
            command,
            env={**os.environ, LOG: str(log)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if room is not None or not self.verbose else None,
            text=True,
            start_new_session=True,
        )

    def one_race(self, number: int, most: int) -> None:
        """Race with faults until it is over or there were enough, then in peace, and compare."""
        journal, log = self.folder / f"{number}-0.db", self.folder / f"{number}.log"
        log.touch()
        finished: set[tuple[str, ...]] = set()
        output, here, kinds = "", 0, []
        parts = 4 if self.schedule == "rounds" else 3  # of a line of the log that tell runs apart
        while not output:
            kind = self.rng.choice(FAULTS) if self.kills < most else ""
            before = len(log.read_text().splitlines())
            driver = self.start(journal, log, _room(journal, self.rng) if kind == "disk" else None)
            happened = self.harm(driver, kind, log, before, journal)
            output, _ = driver.communicate()
            self.strays += self.still_alive(driver.pid, log)
            self.faults[kind] += happened
            here += happened
            kinds.append(f"{kind} x {happened}")
            if driver.returncode not in (0, -signal.SIGKILL) and not (kind == "disk" and driver.returncode == 1):
                self.errors += 1
                print(f"race {number}: exit code {driver.returncode} after {kind!r}", flush=True)
            ran = log.read_text().splitlines()
            again = {tuple(line.split("\t")[1:parts]) for line in ran[before:]}
            self.doubled += len(finished & again)
            now = runs_in(journal, self.schedule)
            self.lost += len(finished - now)
            finished = now
            if driver.returncode == 0:
                break
            journal = self.move(journal)
        self.races += 1
        self.runs += len(ran)
        self.seen += len(finished)
        equal = output == self.expected
        self.different += not equal
        verdict = "equal" if equal else "DIFFERENT"
        print(f"race {number}: {here} faults, {len(finished)} runs in the journal, result {verdict}", flush=True)
        if not equal:
            print(f"  after {', '.join(kinds)}: {difference(self.expected, output)}", flush=True)
        for file in self.folder.glob(f"{number}-*"):
            file.unlink()

    def move(self, journal: Path) -> Path:
        """Move the journal of an ended race, with its log or first without it, or give it a second name."""
        kind = self.rng.choice(MOVES)
        wal, real = log_of(journal.resolve()), journal.resolve()
        if not kind or not real.exists() or not real.stat().st_size:
            return journal
        other = self.folder / f"{journal.name.partition('-')[0]}-{self.rng.randrange(10**9)}.db"
        self.faults[kind] += 1
        if kind == "link":
            other.symlink_to(journal)
            return other
        real.rename(other)
        if kind == "left" and wal.exists() and wal.stat().st_size:
            try:
                with journal_copy(other):
                    self.errors += 1
                    print(f"{other.name} was read without its log", flush=True)
            except PolarBearError as problem:
                if "is not beside it" not in str(problem):
                    self.errors += 1
                    print(f"{problem} does not say that the log is missing", flush=True)
        if wal.exists():
            wal.rename(log_of(other))
        return other

    def harm(self, driver: subprocess.Popen[str], kind: str, log: Path, before: int, journal: Path) -> int:
        """Do it at a random moment, and count; a race may be over before."""
        if kind == "start":
            time.sleep(self.rng.uniform(0, self.took / 2))
        elif kind:
            # Workers of a killed driver may have written the last lines.
            while driver.poll() is None and not self.workers(driver, log, before):
                time.sleep(0.005)
            time.sleep(self.rng.uniform(0, self.took / 6))
        if kind in ("", "disk"):
            driver.wait()
            return int(kind == "disk" and driver.returncode != 0)
        if driver.poll() is not None:
            return 0
        if kind == "delete":  # noticed when the next run is stored
            journal.resolve().unlink(missing_ok=True)
            driver.wait()
            return 1
        if kind == "worker":
            return sum(self.kill_a_worker(driver, log, before) for _ in range(self.rng.randint(1, 3)))
        workers = self.workers(driver, log, before)
        if kind == "stop":
            for pid in (driver.pid, *workers):
                _send(pid, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0, 1))
            for pid in (*workers, driver.pid):
                _send(pid, signal.SIGCONT)
            return 1
        victims = [driver.pid, *workers] if kind == "both" else [driver.pid]
        self.rng.shuffle(victims)
        for pid in victims:
            _send(pid, signal.SIGKILL)
        return 1

    def workers(self, driver: subprocess.Popen[str], log: Path, before: int) -> list[int]:
        """Workers of this driver that have run something, in random order."""
        found = [pid for pid in _pids(log, before) if _in_session(pid, driver.pid)]
        self.rng.shuffle(found)
        return found

    def kill_a_worker(self, driver: subprocess.Popen[str], log: Path, before: int) -> int:
        """Kill one after a while, if there is one."""
        time.sleep(self.rng.uniform(0, self.took / 20))
        victims = self.workers(driver, log, before)[:1]
        for pid in victims:
            _send(pid, signal.SIGKILL)
        return len(victims)

    def still_alive(self, session: int, log: Path) -> int:
        """How many workers outlive their driver by more than some seconds."""
        left: list[int] = []
        for _ in range(200):
            left = [pid for pid in _pids(log, 0) if _in_session(pid, session)]
            if not left:
                break
            time.sleep(0.05)
        return len(left)

    def report(self, seconds: float) -> str:
        """Say what was found."""
        told = ", ".join(f"{self.faults[kind]} {kind}" for kind in dict.fromkeys((*FAULTS, *filter(None, MOVES))))
        return (
            f"{self.kills} kills in {self.races} races and {seconds:.0f} s ({told}); {self.seen} runs finished, "
            f"{self.lost} lost, {self.doubled} doubled, {self.different} results different, {self.strays} workers left "
            f"behind, {self.errors} other errors"
        )


def difference(expected: str, found: str) -> str:
    """Say in what two results differ."""
    if not found:
        return "there is no result"
    (one, draws), (other, others) = json.loads(expected), json.loads(found)
    parts = [key for key in one if one[key] != other.get(key)] + ["draws"] * (draws != others)
    new = [failure for failure in other["failures"] if failure not in one["failures"]]
    return f"{', '.join(parts)}; failures that the race in peace has not: {new}"


def runs_in(journal: Path, schedule: str) -> set[tuple[str, ...]]:
    """Read all finished runs, without touching the journal.

    Without barriers a run may be longer than what its round asks for, and is cut there; one that failed is repeated.
    """
    if not journal.exists():
        return set()
    try:
        with journal_copy(journal) as copy:
            runs = list(copy.runs())
        if schedule == "continuous":
            return {(run.trajectory.algorithm, run.trajectory.instance) for run in runs if run.failure is None}
        return {(run.trajectory.algorithm, run.trajectory.instance, f"{run.trajectory.horizon:g}") for run in runs}
    except PolarBearError as problem:
        if "is empty" in str(problem):  # killed before it began
            return set()
        raise


def _room(journal: Path, rng: random.Random) -> int:
    files = [journal.resolve(), log_of(journal.resolve())]
    return max([file.stat().st_size for file in files if file.exists()], default=0) + rng.randrange(200_000)


def _pids(log: Path, start: int) -> list[int]:
    return sorted({int(line.partition("\t")[0]) for line in log.read_text().splitlines()[start:]})


def _in_session(pid: int, session: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return os.getsid(pid) == session and state != "Z"
    except OSError:
        return False


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def main() -> int:
    """Soak, and report; exit code 1 if anything was lost, doubled or different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="Stop after so many kills.")
    parser.add_argument("--minutes", type=float, help="Stop after this time instead.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--schedule", choices=["rounds", "continuous"], default="rounds")
    parser.add_argument("--verbose", action="store_true", help="Show what the races write to standard error.")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--room", type=int, help=argparse.SUPPRESS)
    options = parse_arguments(parser, {"kills": 3})
    if options.run is not None:
        begin_or_go_on(Path(options.run) if options.run else None, options.room, options.schedule)
        return 0
    most = options.kills if options.minutes is None else sys.maxsize
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(options.seed, Path(folder), options.verbose, options.schedule)
        print(f"left in peace the race takes {soak.took:.1f} s", flush=True)
        number = 0
        while soak.kills < most and (options.minutes is None or time.monotonic() - began < 60 * options.minutes):
            number += 1
            soak.one_race(number, most)
        wrong = sum((soak.lost, soak.doubled, soak.different, soak.strays, soak.errors))
        report_figure(
            soak.report(time.monotonic() - began),
            f"lost, doubled, different, left behind or wrong, after {soak.kills} kills",
            wrong,
            "a race left in peace",
            "lower",
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
