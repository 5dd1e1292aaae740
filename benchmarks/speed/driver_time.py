"""What the process of a race does for each run: time of its processor, and how long workers wait for the next run.

    python benchmarks/speed/driver_time.py --workers 2 64 --milliseconds 0 5 50

Runs that sleep go through ``Dispatcher.submit`` and ``collect`` as in a continuous race: whatever there is room for is
submitted after each ``collect``.  Processes that sleep share cores well, so there may be many more of them than cores.
The alternative is one message for each run (``--single``), as for runs with a limit of time.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.requests import Request
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.trajectories.trajectory import Trajectory

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

TIMES = np.arange(1.0, 51.0)


class Sleeper:
    """An algorithm that takes a given time and no processor."""

    name = "sleeper"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def run(self, problem: object, horizon: float, seed: int, /) -> Trajectory:
        """Sleep, and return 50 improvements."""
        if self.seconds:
            time.sleep(self.seconds)
        name = problem.identity.name  # type: ignore[attr-defined]
        return Trajectory(algorithm=self.name, instance=name, seed=seed, times=TIMES, best=-TIMES, horizon=horizon)


def request(algorithm: Sleeper, seed: int) -> Request:
    """Make a request for a run."""
    problem = GivenProblem(Identity(f"p{seed}"), "p")
    return Request(algorithm, algorithm.name, problem, None, problem.identity, 50.0, seed, TIMES)


def perform(dispatcher: Dispatcher, algorithm: Sleeper, runs: int) -> None:
    """Perform runs as a continuous race does."""
    sent = done = 0
    while done < runs:
        while sent < runs and dispatcher.room:
            dispatcher.submit(request(algorithm, sent))
            sent += 1
        done += len(dispatcher.collect())


def measure(workers: int, seconds: float, runs: int, repeats: int, single: bool) -> tuple[float, float]:
    """Milliseconds of a run: of the processor here, and on the clock."""
    algorithm = Sleeper(seconds)
    dispatcher = Dispatcher(workers, run_timeout=600 if single else None)
    try:
        perform(dispatcher, Sleeper(0.2), 2 * workers)  # all processes start
        perform(dispatcher, algorithm, 10 * workers)
        turns = []
        for _ in range(repeats):
            clock, processor = time.perf_counter(), time.process_time()
            perform(dispatcher, algorithm, runs)
            turns.append(((time.process_time() - processor) / runs * 1e3, (time.perf_counter() - clock) / runs * 1e3))
    finally:
        dispatcher.close()
    return statistics.median(turn[0] for turn in turns), statistics.median(turn[1] for turn in turns)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 64])
    parser.add_argument("--milliseconds", type=float, nargs="+", default=[0, 5, 50])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parse_arguments(parser, {"workers": [2], "milliseconds": [0, 5], "runs": 40, "repeats": 1})
    for workers in options.workers:
        for milliseconds in options.milliseconds:
            # About a second of sleep for each worker at the most.
            runs = int(min(options.runs, max(10 * workers, 1e3 * workers / max(milliseconds, 0.5))))
            for single in (True, False):
                how = "one by one" if single else "in batches"
                processor, clock = measure(workers, milliseconds / 1e3, runs, options.repeats, single)
                busy = min(1.0, milliseconds / workers / clock)
                report_figure(
                    f"{workers:3} workers, runs of {milliseconds:g} ms, {how}: {processor:6.3f} ms of the processor, "
                    f"{clock:6.3f} ms on the clock a run, workers asleep in runs {busy:.0%}",
                    f"processor a run, {workers} workers, {milliseconds:g} ms, {how}",
                    processor,
                    "2 ms",
                    "lower",
                )


if __name__ == "__main__":
    main()
