"""Hand damaged and hostile input to everything that reads a user's file.

    python tests/hostile/fuzz.py --reader csv --inputs 100000 --seed 1
    python tests/hostile/fuzz.py --reader all --inputs 1000 --keep findings
    python tests/hostile/fuzz.py --reader csv --replay findings/csv/17

Each input is a real file that was damaged by seeded mutations (fuzz_mutations.py; the readers are in fuzz_readers.py).
Right is what an unchanged file gives, or a PolarBearError in one line that names a file.  Anything else is a finding:
another exception, a warning that is not ours, a crash, more than --seconds of processor time, or more than --megabytes
beyond what the process had.  Findings are kept in a folder, with the command that repeats each.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from fuzz_mutations import mutation_of
from fuzz_readers import READERS, Reader

from polarbear_plugins.errors import PolarBearError, PolarBearWarning

Files: TypeAlias = dict[str, bytes]
_KEPT_EACH = 3  # inputs that show the same finding
_MOST_SILENT = 60.0  # seconds without an answer, after which a process hangs


class _TooLong(BaseException):
    """More processor time than an input may take; no reader catches it."""


# --- inputs


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


def damaged(reader: Reader, seeds: list[Files], rng: random.Random) -> Files:
    """Damage one seed; now and then not at all."""
    files = dict(rng.choice(seeds))
    if rng.random() < 0.005:
        return files
    for _ in range(rng.choice((1, 1, 1, 2))):
        name = rng.choice(list(files))
        suffix = "." + name.rpartition(".")[2]
        others = [f for seed in seeds for n, f in seed.items() if n.endswith(suffix)]
        special = reader.mutations.get(suffix)
        mutate = special if special is not None and rng.random() < 0.5 else mutation_of(name)
        files[name] = mutate(files[name], rng, rng.choice(others or [b""]))
        if len(files) > 1 and rng.random() < 0.03:
            del files[name]
            if not files:
                break
    return files


# --- one input


def digest(found: object) -> str:
    """Fingerprint of what a reader returned."""
    return hashlib.sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest()


def judge(reader: Reader, folder: Path, expected: str | None, seconds: float) -> tuple[str, str]:
    """Read an input: ``("read", "")``, ``("refused", "")``, or what was found and where."""
    names = {part for path in folder.rglob("*") for part in (path.name, path.stem)} | {folder.name}
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            found = reader.read(folder)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except PolarBearError as problem:
        cause = problem.__context__
        text = str(problem)
        where = f"{type(problem).__name__} from {_place(problem)}"
        if isinstance(cause, MemoryError):
            return "memory", f"MemoryError behind {where}: {text[:200]}"
        if expected is not None:
            return "refused what is whole", f"{where}: {text[:200]}"
        if not text.strip() or (reader.names_file and len(text) > 2000):
            return "message", f"{len(text)} characters, {where}: {text[:80]!r}"
        if reader.names_file and not any(name in text for name in names):
            return "message names no file", f"{where}: {text[:300]}"
        return "refused", ""
    except _TooLong as problem:
        return "time", f"more than {seconds:g} s of processor time in {_place(problem)}"
    except MemoryError as problem:
        return "memory", f"MemoryError in {_place(problem)}"
    except Exception as problem:
        return type(problem).__name__, f"{_place(problem)}: {str(problem)[:300]}"
    if expected is not None and digest(found) != expected:
        return "wrong answer", "an unchanged input gave another answer than at first"
    return "read", ""


def _place(problem: BaseException) -> str:
    """Innermost line of ours; of other packages where there is none."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [
        f for f in frames if "polarbear" in f.filename or "/adapters/" in f.filename or "/integrations/" in f.filename
    ]
    frame = (ours or frames)[-1]
    return f"{Path(frame.filename).parent.name}/{Path(frame.filename).name}:{frame.lineno}"


# --- many inputs


class Work:
    """Inputs of a reader, from a number on, in this process."""

    def __init__(self, name: str, seeds: list[Files], options: argparse.Namespace) -> None:
        self.name, self.reader, self.seeds, self.options = name, READERS[name], seeds, options

    def input(self, number: int) -> Files:
        """Make the input of a number; the same one every time, from the same seeds."""
        rng = random.Random(f"{self.options.seed}/{self.name}/{number}")  # noqa: S311 - damage, not secrets
        return damaged(self.reader, self.seeds, rng)

    def prepare(self, folder: Path) -> dict[str, str]:
        """Read the seeds, which must succeed, and bound memory and time from here on."""
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PolarBearWarning)
        answers = {}
        for files in self.seeds:
            store(files, folder)
            answers[_key(files)] = digest(self.reader.read(folder))
        signal.signal(signal.SIGPROF, _interrupt)
        sys.unraisablehook = lambda _: None
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit = used + self.options.megabytes * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        return answers

    def run(self, start: int, stop: int, at: Any, pipe: Any, place: str) -> None:
        """Read inputs until all are done, and tell what was found."""
        folder = Path(place) / "input"
        answers = self.prepare(folder)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libraries complain about what they are fed
        counts: Counter[str] = Counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(start, stop):
            at.value = number
            files = self.input(number)
            store(files, folder)
            kind, what = judge(self.reader, folder, answers.get(_key(files)), self.options.seconds)
            reached = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            if reached - peak > self.options.megabytes * 1024 // 4:
                kind, what = "memory", f"{(reached - peak) // 1024} megabytes more ({kind} {what})"
            peak = max(peak, reached)
            counts[kind] += 1
            if what:
                pipe.send(("finding", number, kind, what))
            if number % 20 == 0 or number == stop - 1:
                pipe.send(("counts", number, dict(counts), ""))
                counts.clear()


def _key(files: Files) -> str:
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()


def _interrupt(*_: object) -> None:
    raise _TooLong


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - a folder of its own is made in it


def fuzz(
    name: str, seeds: list[Files], options: argparse.Namespace
) -> tuple[Counter[str], dict[tuple[str, str], list[int]]]:
    """Read inputs in a process that may crash and hang; returns counts, and the inputs of each finding."""
    work = Work(name, seeds, options)
    context = multiprocessing.get_context("fork")
    counts: Counter[str] = Counter()
    findings: dict[tuple[str, str], list[int]] = {}
    number, end = options.first, options.first + options.inputs
    deadline = time.monotonic() + options.minutes * 60
    while number < end and time.monotonic() < deadline:
        ours, theirs = context.Pipe(duplex=False)
        at = context.Value("q", number - 1, lock=False)
        place = tempfile.mkdtemp(prefix="fuzz-", dir=_fast_folder())  # here: who is killed removes nothing
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
                        findings.setdefault((what, detail), []).append(where)
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
        findings.setdefault(crash, []).append(at.value)
        number = at.value + 1
    return counts, findings


def keep(name: str, work: Work, findings: dict[tuple[str, str], list[int]], folder: Path) -> Iterator[str]:
    """Write some inputs of each finding to disk; yields what to print."""
    for (kind, what), numbers in sorted(findings.items()):
        yield f"  {kind} x {len(numbers)}: {what}"
        for number in numbers[:_KEPT_EACH]:
            target = folder / name / str(number)
            store(work.input(number), target)
            yield f"    python tests/hostile/fuzz.py --reader {name} --replay {target}"


def main() -> None:
    """Fuzz, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", default="all", help=f"all, or some of {', '.join(READERS)}, with commas between")
    parser.add_argument("--inputs", type=int, default=1000, help="of each reader")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0, help="processor time that an input may take")
    parser.add_argument("--megabytes", type=int, default=1024, help="memory that an input may take")
    parser.add_argument("--minutes", type=float, default=1e6, help="stop a reader after so long")
    parser.add_argument("--keep", type=Path, default=Path("findings"))
    parser.add_argument("--json", type=Path, help="append the counts of each reader to this file")
    parser.add_argument("--replay", type=Path, help="read this input, and let its error be seen")
    options = parser.parse_args()
    if options.replay:
        print(READERS[options.reader].read(options.replay))
        return
    total = 0
    for name in READERS if options.reader == "all" else options.reader.split(","):
        missing = READERS[name].missing
        if missing:
            print(f"{name}: skipped, needs {', '.join(missing)}", flush=True)
            continue
        with tempfile.TemporaryDirectory() as place:
            seeds = seeds_of(READERS[name], Path(place) / "seeds")
        began = time.perf_counter()
        counts, findings = fuzz(name, seeds, options)
        took = time.perf_counter() - began
        inputs = sum(counts.values())
        wrong = inputs - counts["read"] - counts["refused"]
        total += wrong
        print(
            f"{name}: {inputs:,} inputs in {took:.0f} s ({inputs / took:,.0f} a second): "
            f"{counts['read']:,} read, {counts['refused']:,} refused, {wrong:,} findings",
            flush=True,
        )
        for line in keep(name, Work(name, seeds, options), findings, options.keep):
            print(line, flush=True)
        if options.json:
            row = {"reader": name, "seed": options.seed, "inputs": inputs, "seconds": round(took), **counts}
            with options.json.open("a") as file:
                file.write(json.dumps(row) + "\n")
    raise SystemExit(1 if total else 0)


if __name__ == "__main__":
    main()
