"""Kill a race at random moments and resume it: nothing finished is lost, and the result is as if never stopped.

    python benchmarks/kills.py --kills 30

Each time a race with two workers and a journal is started in a process of its own and ended by ``kill -9`` somewhere
on its way; then it is resumed here.  Printed: how many runs were in the journal when it died, whether all of them are
there unchanged in the end, and whether the result, draws included, is the one of the uninterrupted race.
"""

import argparse
import contextlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from polarbear_plugins import RaceResult, RaceSettings, race, resume


def start(journal: Path | None) -> RaceResult:
    """Race synthetic algorithms for some seconds."""
    return race(
        "synthetic",
        "synthetic",
        range(1, 21),
        RaceSettings(seed=3, max_rounds=9),
        workers=2,
        journal=journal,
        portfolio_options={"algorithms": 5, "seed": 4},
    )


def runs_in(journal: Path) -> set[tuple[object, ...]]:
    """Read the rows of all finished runs."""
    with contextlib.closing(sqlite3.connect(journal)) as connection:
        return set(connection.execute("SELECT algorithm, instance, seed, horizon, times, best FROM runs"))


def main() -> None:
    """Kill, resume, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        start(options.run)
        return
    began = time.perf_counter()
    whole = start(None)
    longest = time.perf_counter() - began
    rng = random.Random(options.seed)  # noqa: S311 - moments, not secrets
    lost = different = killed = 0
    for number in range(options.kills):
        with tempfile.TemporaryDirectory() as folder:
            journal = Path(folder) / "race.db"
            process = subprocess.Popen([sys.executable, __file__, "--run", str(journal)])  # noqa: S603 - ourselves
            while not journal.exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.05, longest))
            killed += process.poll() is None
            process.kill()
            process.wait()
            before = runs_in(journal)
            result = resume(journal, workers=2)
            missing = len(before - runs_in(journal))
            equal = result.to_json() == whole.to_json() and np.array_equal(
                result.posterior.log_ratings, whole.posterior.log_ratings
            )
        lost += missing
        different += not equal
        verdict = "equal" if equal else "DIFFERENT"
        print(f"{number + 1}: {len(before)} runs were finished, {missing} lost, result {verdict}", flush=True)
    print(f"{killed} of {options.kills} killed on the way: {lost} runs lost, {different} results different")


if __name__ == "__main__":
    main()
