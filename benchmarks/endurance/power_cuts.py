"""Cut the power while a race writes its journal, at every moment, and see what is still there.

    python benchmarks/endurance/power_cuts.py --runs 60

The system calls that write the journal are traced once (by strace).  For every moment between two of them the disk is
then put together as it could be after a power failure: what was waited for (fsync) is there; of what was not, nothing,
everything, or random sectors.  Each disk is opened as a user would, with ``salvage`` only if it is refused.  Counted is
what was lost of the runs that the race had been told were stored, with the default, which does not wait for the disk
for runs of less than 0.05 s together, and with ``durable``.
"""

from __future__ import annotations

import argparse
import collections
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from polarbear_plugins import Trajectory
from polarbear_plugins.errors import SourceError
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import JournalRun

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, skip

SECTOR = 512  # bytes that a disk writes whole
CALLS = "openat,pwrite64,write,fsync,fdatasync,ftruncate,unlink"
QUICK, LONG = 0.004, 0.2  # seconds that the runs of this race say they took
MODES = ("nothing", "everything", "random sectors", "random sectors")
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\)\s+= (-?\d+)")
_DESCRIPTOR = re.compile(r"^\d+<([^>]*)>(?:, (.*))?$", re.DOTALL)


def seconds_of(number: int) -> float:
    """How long a run took, as the journal is told: long ones now and then."""
    return LONG if number % 15 == 14 else QUICK


def write_a_journal(path: str, runs: int, durable: bool) -> None:
    """Store runs one by one, and say on standard output when each is stored; in a process of its own."""
    with Journal.create(path, {"timepoints": [1.0]}, ["a", "b"], durable=durable) as journal:
        print("begun", flush=True)
        for number in range(runs):
            run = Trajectory(algorithm="a", instance=f"f{number}", times=[1], best=[number], horizon=1)
            journal.add_runs([JournalRun(1, run, seconds_of(number))])
            print(f"stored {number}", flush=True)


@dataclass
class File:
    """A file as the system sees it, what of it is on the disk for sure, and the writes that are not."""

    content: bytearray = field(default_factory=bytearray)
    on_disk: bytes = b""
    pending: list[tuple[int, bytes]] = field(default_factory=list)

    def write(self, offset: int, data: bytes) -> None:
        """Write without waiting."""
        self.content[len(self.content) :] = bytes(max(0, offset - len(self.content)))
        self.content[offset : offset + len(data)] = data
        self.pending.append((offset, data))

    def truncate(self, size: int) -> None:
        """Change the size, which a file system does in order."""
        del self.content[size:]
        self.on_disk = self.on_disk[:size]
        self.pending = [(offset, data[: max(0, size - offset)]) for offset, data in self.pending]

    def sync(self) -> None:
        """Wait for the disk."""
        self.on_disk, self.pending = bytes(self.content), []

    def after_a_cut(self, mode: str, rng: random.Random) -> bytes:
        """One of the contents that may be there after a power failure."""
        if mode == "everything":
            return bytes(self.content)
        found = bytearray(self.on_disk)
        if mode == "random sectors":
            for offset, data in self.pending:
                for start in range(0, len(data), SECTOR):
                    if rng.random() < 0.5:
                        piece, place = data[start : start + SECTOR], offset + start
                        found[len(found) :] = bytes(max(0, place - len(found)))
                        found[place : place + len(piece)] = piece
        return bytes(found)


Disk = dict[str, File]


def moments(trace: str, folder: Path) -> Iterator[tuple[Disk, int]]:
    """The disk after each traced call, and how many runs the race had been told were stored; -1 before it began."""
    disk: Disk = {}
    stored = -1
    for line in trace.splitlines():
        found = _LINE.match(line)
        if found is None or int(found[3]) < 0:
            continue
        call, arguments = found[1], found[2]
        if call == "openat":
            name = _text(arguments.split(", ")[1]).decode()
            if "O_CREAT" in arguments and Path(name).parent == folder:
                disk.setdefault(Path(name).name, File())
            continue
        if call == "unlink":
            disk.pop(Path(_text(arguments).decode()).name, None)
        else:
            described = _DESCRIPTOR.match(arguments)
            if described is None:
                continue
            path, rest = Path(described[1]), described[2]
            if call == "write" and rest.startswith('"'):
                said = _text(rest.rpartition(", ")[0])
                if said.startswith((b"begun", b"stored")):
                    stored += 1
            if path.parent != folder or path.name not in disk:
                continue
            file = disk[path.name]
            if call == "pwrite64":
                data, _, offset = rest.rsplit(", ", 2)
                file.write(int(offset), _text(data))
            elif call == "ftruncate":
                file.truncate(int(rest))
            elif call in ("fsync", "fdatasync"):
                file.sync()
        yield disk, stored


def _text(quoted: str) -> bytes:
    return bytes.fromhex(quoted.strip('"').replace("\\x", ""))


def runs_on(disk: dict[str, bytes], folder: Path, stored: int) -> tuple[int, bool]:
    """How many of the first runs are in a journal without a gap, and whether it had to be salvaged.

    Before the race has begun there is nothing to lose, and whatever is there may be refused.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in disk.items():
        (folder / name).write_bytes(content)
    for salvage in (False, True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Journal.open(folder / "race.db", salvage=salvage) as journal:
                    found = [int(run.trajectory.instance[1:]) for run in journal.runs()]
        except SourceError:
            if stored < 0:
                return 0, False
            if salvage:
                raise
            continue
        if found != list(range(len(found))):
            raise AssertionError(f"the journal has the runs {found}")
        return len(found), salvage
    raise AssertionError("cannot be reached")


def cut_everywhere(runs: int, durable: bool, rng: random.Random, folder: Path) -> collections.Counter[str]:
    """Write a journal once, and cut the power at every moment."""
    journal, trace = folder / "race.db", folder.with_name(f"{folder.name}.trace")
    command = ["strace", "-f", "-y", "-xx", "-s", "200000", "-e", f"trace={CALLS}", "-o", str(trace)]
    command += [sys.executable, __file__, "--write", str(journal), "--runs", str(runs)]
    subprocess.run([*command, *(["--durable"] if durable else [])], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    found: collections.Counter[str] = collections.Counter()
    for disk, stored in moments(_readable(trace), folder):
        for mode in MODES:
            there, salvaged = runs_on(
                {name: file.after_a_cut(mode, rng) for name, file in disk.items()}, folder, stored
            )
            found["cuts"] += 1
            found["salvaged"] += salvaged
            lost = range(there, max(stored, 0))
            found["with a loss"] += bool(lost)
            found["runs lost"] = max(found["runs lost"], len(lost))
            found["ms lost"] = max(found["ms lost"], round(1000 * sum(map(seconds_of, lost))))
    if found["cuts"] < 10 * runs:
        raise SystemExit(f"The trace shows only {found['cuts'] // len(MODES)} moments: it was not understood.")
    return found


def _readable(trace: Path) -> str:
    """A trace with calls in one line, and paths of descriptors as text."""
    text = trace.read_text()
    return re.sub(r"<((?:\\x[0-9a-f]{2})+)>", lambda match: f"<{_text(match[1]).decode()}>", text)


def main() -> int:
    """Cut, and report; exit code 1 if more was lost than is promised."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=60, help="Runs of the race.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--durable", action="store_true", help=argparse.SUPPRESS)
    options = parse_arguments(parser, {"runs": 8})
    if options.write is not None:
        write_a_journal(options.write, options.runs, options.durable)
        return 0
    if shutil.which("strace") is None:
        skip("needs strace, which Linux distributions have as a package")
    rng = random.Random(options.seed)  # noqa: S311 - sectors, not secrets
    wrong = 0
    for durable in (False, True):
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve() / "disk"
            folder.mkdir()
            found = cut_everywhere(options.runs, durable, rng, folder)
        promised = 0 if durable else 50
        wrong += found["ms lost"] > promised
        what = "durable" if durable else "default"
        report_figure(
            f"{what}: {found['cuts']} power cuts, {found['with a loss']} of them lose stored runs, at most "
            f"{found['runs lost']} runs that took {found['ms lost']} ms together (promised: {promised}); "
            f"{found['salvaged']} journals had to be salvaged; {time.perf_counter() - began:.0f} s",
            f"ms of runs lost by a power cut, {what}",
            found["ms lost"],
            f"{promised} ms",
            "lower",
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
