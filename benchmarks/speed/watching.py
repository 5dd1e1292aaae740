"""What it costs a race to be watched: wall time of the same race with an open page and without one.

    python benchmarks/speed/watching.py --workers 2 --rounds 12

Runs keep a processor busy.  The reader does what a page does: it polls every second and fetches each new report, so
reports are made as often as they ever are.  Both races are repeated in turn, because other programs come and go.
"""

import argparse
import statistics
import sys
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np

from polarbear_plugins import RaceSettings, Trajectory, race
from polarbear_plugins.watch import RacePage

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

TIMES = np.arange(1.0, 11.0)


class Busy:
    """An algorithm that needs a processor for a given time; all of them are equally good."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds = name, seconds

    def run(self, problem: object, horizon: float, seed: int, /) -> Trajectory:
        """Compute for some time, and return ten random improvements."""
        end = time.process_time() + self.seconds
        while time.process_time() < end:
            pass
        best = -np.cumsum(np.random.default_rng(seed).random(TIMES.size))
        name = problem.identity.name  # type: ignore[attr-defined]
        return Trajectory(algorithm=self.name, instance=name, seed=seed, times=TIMES, best=best, horizon=horizon)


def run_race(options: argparse.Namespace, page: RacePage | None) -> float:
    """Seconds of a race."""
    portfolio = [Busy(f"a{number}", options.milliseconds / 1e3) for number in range(options.algorithms)]
    settings = RaceSettings(seed=1, max_rounds=options.rounds, epsilon=0.001, batch_min=16, batch_size=16, batch_max=16)
    begun = time.perf_counter()
    race(portfolio, list(range(16 * options.rounds)), TIMES, settings, workers=options.workers, progress=page)
    return time.perf_counter() - begun


def read(address: str, done: threading.Event, reports: list[str]) -> None:
    """Do as an open page: poll every second, and fetch the page when there is another report."""
    while not done.wait(1.0):
        with urllib.request.urlopen(f"{address}status") as answer:  # noqa: S310 - our own server
            key = answer.read().decode().partition('"report": "')[2].partition('"')[0]
        if key and key not in reports:
            reports.append(key)
            with urllib.request.urlopen(address) as answer:  # noqa: S310
                answer.read()


def run_watched_race(options: argparse.Namespace) -> tuple[float, int]:
    """Seconds of a race with an open page, and how many reports it had."""
    done, reports = threading.Event(), list[str]()
    with RacePage() as page:
        reader = threading.Thread(target=read, args=(page.address, done, reports))
        reader.start()
        try:
            taken = run_race(options, page)
        finally:
            done.set()
            reader.join()
    return taken, len(reports)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--algorithms", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=50, help="of a processor, for a run")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=5)
    options = parse_arguments(parser, {"milliseconds": 5.0, "rounds": 2, "repeats": 1})
    alone, watched = [], []
    for _ in range(options.repeats):
        alone.append(run_race(options, None))
        watched.append(run_watched_race(options))
    ratios = [with_page / without for (with_page, _), without in zip(watched, alone, strict=True)]
    ratio, reports = statistics.median(ratios), statistics.median(count for _, count in watched)
    report_figure(
        f"{statistics.median(alone):.1f} s alone, {statistics.median(taken for taken, _ in watched):.1f} s watched "
        f"with {reports:g} reports: {ratio:.3f} times as long "
        f"({min(ratios):.3f} to {max(ratios):.3f})",
        "wall time of a race that is watched",
        ratio,
        "the same race without a page",
        "lower",
    )


if __name__ == "__main__":
    main()
