"""Many inputs of a reader, in processes that may crash and hang."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from fuzzing.containers import mutation_of
from fuzzing.judging import CHECKSUMMED, Input, TooLongError, judge
from fuzzing.kinds import Answer, Files, Reader
from fuzzing.readers import READERS
from polarbear_plugins.errors import PolarBearWarning

#: Inputs of each finding with a description, by its kind and where it is.
Findings: TypeAlias = dict[tuple[str, str], list[tuple[int, str]]]

RIGHT = ("equal", "other", "refused")
_KEPT_EACH = 3  # inputs that show the same finding
_MOST_SILENT = 60.0  # seconds without an answer, after which a process hangs
_DECLARED = 0.4  # share of the inputs whose change says what must come of it


@dataclass(frozen=True)
class Limits:
    """How much is read, from which seed, and what an input may take."""

    inputs: int
    seed: int = 1
    first: int = 0
    duration: float = 1e9
    seconds: float = 5.0
    megabytes: int = 1024
    checksummed: frozenset[str] = CHECKSUMMED

    def also_checksummed(self, names: Iterable[str]) -> Limits:
        """The same with more readers whose answer no damage may change."""
        return replace(self, checksummed=self.checksummed | set(names))


def seeds_of(reader: Reader, folder: Path) -> list[Files]:
    """Make the seeds of a reader, in a process of its own: libraries may start threads, which no fork survives."""
    folder.mkdir(parents=True)
    child = multiprocessing.get_context("fork").Process(target=_quietly, args=(reader.make, folder))
    child.start()
    child.join()
    if child.exitcode:
        raise SystemExit(f"the seeds could not be made (exit code {child.exitcode})")
    return [load(seed) for seed in sorted(folder.iterdir())]


def _quietly(make: Any, folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(folder)


def load(folder: Path) -> Files:
    """Read all files of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def store(files: Files, folder: Path) -> None:
    """Write files into a folder, which then holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        if "/" in name:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Work:
    """Inputs of a reader, by number."""

    def __init__(self, name: str, seeds: list[Files], limits: Limits) -> None:
        self.name, self.reader, self.seeds, self.limits = name, READERS[name], seeds, limits
        self.answers: list[Answer] = []

    def read_seeds(self, folder: Path) -> None:
        """Read the seeds, which must succeed: what comes of changed ones is compared with their answers."""
        for files in self.seeds:
            store(files, folder)
            self.answers.append(self.reader.read(folder))

    def input(self, number: int) -> Input:
        """Make the input of a number; the same one every time, from the same seeds."""
        return self.made(random.Random(f"{self.limits.seed}/{self.name}/{number}"))  # noqa: S311 - damage, not secrets

    def made(self, rng: random.Random, rounds: tuple[int, ...] = (1, 1, 1, 2)) -> Input:
        """Make an input: now and then a seed as it is, else with a declared change or with damage."""
        at = rng.randrange(len(self.seeds))
        files, whole = self.seeds[at], self.answers[at]
        if rng.random() < 0.005:
            return Input(files, (whole,), "unchanged", whole)
        if self.reader.changes and rng.random() < _DECLARED:
            declared = rng.choice(self.reader.changes)(files, whole, rng)
            if declared is not None:
                return Input(declared.files, declared.allowed, declared.what, whole)
        return Input(self._damaged(files, rng, rng.choice(rounds)), None, "damaged", whole)

    def _damaged(self, seed: Files, rng: random.Random, rounds: int) -> Files:
        files = dict(seed)
        for _ in range(rounds):
            name = rng.choice(list(files))
            suffix = "." + name.rpartition(".")[2]
            others = [f for seed in self.seeds for n, f in seed.items() if n.endswith(suffix)]
            special = self.reader.mutations.get(suffix)
            mutate = special if special is not None and rng.random() < 0.5 else mutation_of(name)
            files[name] = mutate(files[name], rng, rng.choice(others or [b""]))
            if len(files) > 1 and rng.random() < 0.03:
                del files[name]
        return files

    def judged(self, given: Input, folder: Path) -> tuple[str, str]:
        """Read an input and say what came of it."""
        store(given.files, folder)
        checksummed = self.name in self.limits.checksummed
        return judge(self.reader, folder, given, self.limits.seconds, checksummed=checksummed)

    def run(self, start: int, stop: int, at: Any, pipe: Any, place: str) -> None:
        """Read inputs until all are done, and tell what was found."""
        folder = Path(place) / "input"
        quiet()
        self.read_seeds(folder)
        _bound_memory(self.limits.megabytes)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries complain about what they are fed
        counts: Counter[str] = Counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(start, stop):
            at.value = number
            given = self.input(number)
            kind, what = self.judged(given, folder)
            reached = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if reached - peak > self.limits.megabytes * 1024 // 4:
                kind, what = "memory", f"{(reached - peak) // 1024} megabytes more ({kind} {what})"
            peak = max(peak, reached)
            counts[kind] += 1
            counts["declared"] += given.allowed is not None
            if what:
                pipe.send(("finding", number, kind, what))
            if number % 20 == 0 or number == stop - 1:
                pipe.send(("counts", number, dict(counts), ""))
                counts.clear()


def quiet() -> None:
    """Let warnings be errors, except ours, and bound the time of reading."""
    warnings.simplefilter("error")
    warnings.simplefilter("ignore", PolarBearWarning)
    signal.signal(signal.SIGPROF, _interrupt)
    sys.unraisablehook = lambda _: None


def _bound_memory(megabytes: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _interrupt(*_: object) -> None:
    raise TooLongError


def fast_folder() -> str | None:
    """Folder in memory, where there is one."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of its own is made in it


def fuzz(name: str, seeds: list[Files], limits: Limits) -> tuple[Counter[str], Findings]:
    """Read inputs; returns counts, and the inputs of each finding."""
    work = Work(name, seeds, limits)
    context = multiprocessing.get_context("fork")
    counts: Counter[str] = Counter()
    findings: Findings = {}
    number, end = limits.first, limits.first + limits.inputs
    deadline = time.monotonic() + limits.duration
    while number < end and time.monotonic() < deadline:
        ours, theirs = context.Pipe(duplex=False)
        at = context.Value("q", number - 1, lock=False)
        place = tempfile.mkdtemp(prefix="fuzz-", dir=fast_folder())  # here: who is killed removes nothing
        worker = context.Process(target=work.run, args=(number, end, at, theirs, place))
        worker.start()
        theirs.close()
        hung = False
        heard = time.monotonic()
        last = at.value
        with contextlib.suppress(EOFError):
            while time.monotonic() < deadline:
                if ours.poll(1.0):
                    kind, where, what, detail = ours.recv()
                    if kind == "counts":
                        counts.update(what)
                    else:
                        findings.setdefault((what, detail.partition(": ")[0]), []).append((where, detail))
                if at.value != last:
                    last, heard = at.value, time.monotonic()
                elif last >= number and time.monotonic() - heard > _MOST_SILENT:  # to begin may take longer
                    hung = True
                    break
        late = time.monotonic() >= deadline
        if hung or late:
            worker.kill()
        worker.join()
        shutil.rmtree(place, ignore_errors=True)
        if late or (worker.exitcode == 0 and not hung):
            break
        if at.value < number and worker.exitcode == 1:
            raise SystemExit(f"{name}: the seeds cannot be read")
        crash = ("hang", "no answer") if hung else ("crash", f"exit code {worker.exitcode}")
        counts[crash[0]] += 1
        findings.setdefault(crash, []).append((at.value, crash[1]))
        number = at.value + 1
    return counts, findings


def keep(name: str, seeds: list[Files], findings: Findings, limits: Limits, folder: Path) -> Iterator[str]:
    """Write some inputs of each finding to disk; yields what to print."""
    work = Work(name, seeds, limits)
    if findings:
        with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            work.read_seeds(Path(place) / "input")
    for (kind, _), found in sorted(findings.items()):
        yield f"  {kind} x {len(found)}"
        for number, what in found[:_KEPT_EACH]:
            target = folder / name / str(number)
            store(work.input(number).files, target)
            yield f"    {what[:300]}"
            yield f"    python tests/hostile/fuzz.py --reader {name} --replay {target}"
