"""Inputs that atheris chooses by the code that they reach.

What libFuzzer changes is not a file but the choices behind one: the bytes stand for the random numbers from which an
input is made, so that all mutations and declared changes are at its command.  atheris is no dependency of this project.
It counts only code that is imported under its eyes, so this module is a script, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fuzzing.working import Limits

_HOW = "--guided needs 'atheris', which is not installed. Install it with: pip install atheris"
_ROUNDS = (1, 1, 2, 4, 8)  # more than without guidance: each may lead further
_MOST_BYTES = 4096


class Choices(random.Random):
    """Random numbers that come from bytes, and from a generator seeded with them when these are used up."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0
        super().__init__(data)

    def random(self) -> float:
        """A number from 0 up to 1."""
        return self.getrandbits(16) / 2**16

    def getrandbits(self, count: int, /) -> int:
        """A whole number of so many bits."""
        size = (count + 7) // 8
        piece = self._data[self._at : self._at + size]
        self._at += size
        if len(piece) < size:  # not zeros: who draws without repetition would draw for ever
            return super().getrandbits(count)
        return int.from_bytes(piece, "little") >> (8 * size - count)


def guide(name: str, limits: Limits, folder: Path) -> int:
    """Let atheris choose inputs of a reader for a time; prints what came of them and returns the exit code."""
    import importlib.util

    if importlib.util.find_spec("atheris") is None:
        raise SystemExit(_HOW)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    seconds = limits.duration if limits.duration < 1e8 else 600.0
    with tempfile.TemporaryDirectory(prefix="guided-") as place:
        report = Path(place) / "report.json"
        command = [sys.executable, "-m", "fuzzing.guided", name, str(seconds), str(limits.seed), place, str(target)]
        path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if not report.exists():
            raise SystemExit(f"{name}: atheris did not begin.\n{done.stderr[-2000:]}")
        counts = json.loads(report.read_text())
    reached = [word for line in done.stderr.splitlines() if " cov: " in line for word in [line.split("cov: ")[1]]]
    lines = reached[-1].split()[0] if reached else "?"
    print(f"{name}: {counts}, {lines} branches reached, exit code {done.returncode}")  # noqa: T201
    if done.returncode:
        print(done.stderr[-1500:])  # noqa: T201
    wrong = {kind: count for kind, count in counts.items() if kind not in ("equal", "other", "refused", "declared")}
    return 1 if wrong or done.returncode else 0


def _main() -> None:
    parser = argparse.ArgumentParser()
    for argument in ("name", "seconds", "seed", "place", "target"):
        parser.add_argument(argument)
    options = parser.parse_args()
    import atheris

    with atheris.instrument_imports(include=["polarbear_plugins"]):
        from fuzzing.readers import READERS
        from fuzzing.working import Limits, Work, quiet, seeds_of, store

        work = Work(options.name, seeds_of(READERS[options.name], Path(options.place) / "seeds"), Limits(inputs=0))
        quiet()
        folder = Path(options.place) / "input"
        work.read_seeds(folder)  # imports what is imported late
    counts: Counter[str] = Counter()
    seen: set[str] = set()
    report = Path(options.place) / "report.json"
    told = 0.0

    def one(data: bytes) -> None:
        nonlocal told
        given = work.made(Choices(data), _ROUNDS)
        kind, what = work.judged(given, folder)
        counts[kind] += 1
        counts["declared"] += given.allowed is not None
        place = f"{kind}: {what[:60]}"
        if what and place not in seen:
            seen.add(place)
            store(given.files, Path(options.target) / f"guided-{len(seen)}")
            (Path(options.target) / f"guided-{len(seen)}.txt").write_text(f"{kind}: {what}\n")
        if time.monotonic() - told > 1:
            told = time.monotonic()
            report.write_text(json.dumps(counts))

    corpus = Path(options.place) / "corpus"
    corpus.mkdir()
    rng = random.Random(options.seed)  # noqa: S311 - damage, not secrets
    for number in range(50):
        (corpus / str(number)).write_bytes(rng.randbytes(256))
    arguments = [
        *(sys.argv[0], str(corpus), f"-max_total_time={float(options.seconds):.0f}", f"-seed={options.seed}"),
        *(f"-max_len={_MOST_BYTES}", "-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={options.target}/"),
    ]
    atheris.Setup(arguments, one)
    atheris.Fuzz()


if __name__ == "__main__":
    _main()
