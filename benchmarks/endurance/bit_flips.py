"""Flip one bit of a journal, its log or a saved result, again and again: nothing altered is believed.

    python benchmarks/endurance/bit_flips.py --flips 1000

Each kind of file has its own flips: the closed journal of a race that is over, the journal of a race that was killed,
the log of that journal, a saved result and a saved posterior.  A file with a flipped bit is refused, or read with the
same answer (the bit stood in unused space, or in a number that nothing rests on); anything else is believed damage.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

from polarbear_plugins import PolarBearError, Posterior, RaceSettings, load_result, race
from polarbear_plugins.experiments import Progress

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

SETTINGS = RaceSettings(seed=3, max_rounds=3, draws=200)


def race_and_be_killed(journal: str) -> None:
    """Race until the third round has some runs, in a process of its own."""

    def kill(progress: Progress) -> None:
        if len(progress.state.rounds) == 2 and progress.done >= 5:
            os.kill(os.getpid(), signal.SIGKILL)

    race("synthetic", "synthetic", [1, 2, 4], SETTINGS, workers=0, journal=journal, progress=kill)


def answer_of_result(path: Path) -> str:
    """Everything that a journal or a saved result says, draws included."""
    result = load_result(path)
    draws = hashlib.sha256(result.posterior.log_ratings.tobytes()).hexdigest()
    return json.dumps([result.to_dict(), draws], sort_keys=True)


def answer_of_posterior(path: Path) -> str:
    """Everything that a saved posterior says."""
    arrays = Posterior.load(path).arrays()
    return json.dumps([[name, hashlib.sha256(arrays[name].tobytes()).hexdigest()] for name in sorted(arrays)])


def what_happens(read: Callable[[Path], str], path: Path, expected: str) -> str:
    """Read a file that was harmed; a warning is a refusal, too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return "same" if read(path) == expected else "believed"
    except (PolarBearError, Warning):
        return "refused"
    except Exception as problem:  # anything else would be a traceback for the user
        return f"traceback ({type(problem).__name__})"


def flip_bits(
    read: Callable[[Path], str], path: Path, harmed: Path, flips: int, rng: random.Random
) -> collections.Counter[str]:
    """Count what becomes of a file with one flipped bit."""
    expected, intact = read(path), harmed.read_bytes()
    found: collections.Counter[str] = collections.Counter()
    for _ in range(flips):
        bit = rng.randrange(8 * len(intact))
        content = bytearray(intact)
        content[bit // 8] ^= 1 << bit % 8
        harmed.write_bytes(content)
        seen = what_happens(read, path, expected)
        found[seen] += 1
        if seen not in ("same", "refused"):
            print(f"  bit {bit} of {harmed.name}: {seen}")
    harmed.write_bytes(intact)
    return found


def main() -> int:
    """Flip, and report; exit code 1 if anything altered was believed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=1000, help="For each kind of file.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parse_arguments(parser, {"flips": 20})
    if options.run is not None:
        race_and_be_killed(options.run)
        return 0
    rng = random.Random(options.seed)  # noqa: S311 - places, not secrets
    total: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        killed, log = folder / "killed.db", folder / "killed.db-wal"
        subprocess.run([sys.executable, __file__, "--run", str(killed)], check=False)  # noqa: S603 - ourselves
        result = race("synthetic", "synthetic", [1, 2, 4], SETTINGS, workers=0, journal=folder / "race.db")
        result.save(folder / "race.npz")
        result.posterior.save(folder / "posterior.npz")
        for what, read, path, harmed in (
            ("journal", answer_of_result, folder / "race.db", folder / "race.db"),
            ("journal, race killed", answer_of_result, killed, killed),
            ("its log", answer_of_result, killed, log),
            ("saved result", answer_of_result, folder / "race.npz", folder / "race.npz"),
            ("saved posterior", answer_of_posterior, folder / "posterior.npz", folder / "posterior.npz"),
        ):
            began = time.perf_counter()
            found = flip_bits(read, path, harmed, options.flips, rng)
            total += found
            others = {kind: count for kind, count in found.items() if kind not in ("refused", "same")}
            told = f"{found['refused']} refused, {found['same']} read with the same answer, {others or 0} otherwise"
            size = harmed.stat().st_size
            print(f"{what} ({size:,} bytes): {told}; {time.perf_counter() - began:.0f} s", flush=True)
    wrong = total.total() - total["refused"] - total["same"]
    report_figure(
        f"{total.total()} flipped bits: {wrong} believed, or a traceback",
        f"believed or a traceback, of {total.total()} flipped bits",
        wrong,
        "the answer of the intact file",
        "lower",
    )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
