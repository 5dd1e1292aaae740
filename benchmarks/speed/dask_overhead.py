"""What a run costs beside itself on Dask, against local processes, and what that means for many workers.

    python benchmarks/speed/dask_overhead.py --runs 600 --repeats 3

Synthetic runs that take next to no time go through ``Dispatcher.carry_out``, as in a race: on ``dask:local`` and, in
turn with it, on as many ``LocalProcesses``, the named alternative.  The ratio is the median over the turns.  Others may
use the machine: beside the time on the clock stands that of the processor in this process, where the race and, on
``dask:local``, the scheduler live; no number of workers makes that any less.  Printed also: as many empty calls on the
bare client of Dask, the size of the messages, runs a second that the journal writes (each on the disk when it counts),
and how busy workers are, with the barrier after each round, for different batches and log-normal run times.
"""

import argparse
import heapq
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import distributed
import numpy as np

from polarbear_plugins.execution.dispatcher import Dispatcher
from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.requests import PortfolioSource, Request, SuiteSource, make_request, perform
from polarbear_plugins.integrations.dask_executor.connecting import start_local
from polarbear_plugins.integrations.dask_executor.executor import DaskExecutor
from polarbear_plugins.integrations.dask_executor.messages import perform_written, write_request
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.journal.reading import JournalRun

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


def requests_of(runs: int, timepoints: int) -> list[Request]:
    """Make requests by registered names, for one algorithm on as many instances."""
    portfolio = PortfolioSource.of("synthetic", {"timepoints": timepoints}, None)
    suite = SuiteSource.of("synthetic", None, None)
    identities = suite.suite.identities(1)
    grid = np.arange(1.0, timepoints + 1)
    return [make_request(portfolio, suite, "A", next(identities), timepoints, seed, grid) for seed in range(runs)]


def milliseconds(action: Callable[[], object], count: int) -> tuple[float, float]:
    """Measure an action that does so many things: for each, on the clock and of the processor in this process."""
    began = time.perf_counter(), time.process_time()
    action()
    return (time.perf_counter() - began[0]) / count * 1e3, (time.process_time() - began[1]) / count * 1e3


def carry_out(executor: DaskExecutor | LocalProcesses, requests: list[Request]) -> None:
    """Carry out all requests."""
    done = sum(len(outcomes) for outcomes in Dispatcher(executor=executor).carry_out(requests))
    if done != len(requests):
        raise SystemExit(f"{done} of {len(requests)} runs came back")


def call(client: distributed.Client, calls: int) -> None:
    """Have as many calls done that do nothing, and fetch their results."""
    client.gather([client.submit(abs, -number, pure=False) for number in range(calls)])


def journal_rate(request: Request, together: int, seconds: float = 1.0) -> float:
    """Count the runs a second that a journal takes, so many at a time."""
    trajectory, _ = perform(request)
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal.create(Path(folder) / "race.db", {}, ["A"])
        began, written = time.perf_counter(), 0
        while time.perf_counter() - began < seconds:
            journal.add_runs([JournalRun(1, trajectory, 0.1, None)] * together)
            written += together
        rate = written / (time.perf_counter() - began)
        journal.close()
    return rate


def busy(workers: int, runs: int, spread: float, rng: np.random.Generator) -> float:
    """Simulate a round of runs with log-normal times, first come first served; share of the time workers are busy."""
    free = [0.0] * workers
    times = rng.lognormal(0.0, spread, runs)
    for seconds in times:
        heapq.heapreplace(free, free[0] + seconds)
    return float(times.sum() / (workers * max(free)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=600)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2, help="processes here; the table is for --many")
    parser.add_argument("--timepoints", type=int, default=50)
    parser.add_argument("--many", type=int, default=1000)
    options = parse_arguments(parser, {"runs": 40, "repeats": 1})
    requests = requests_of(options.runs, options.timepoints)
    text = json.dumps(write_request(requests[0]))
    back = len(perform_written(text))
    print(f"message: {len(text):,} bytes there, {back:,} bytes back, {options.timepoints} timepoints")
    count = options.runs
    with LocalProcesses(options.workers) as local, start_local(options.workers, 1) as dask:
        for executor in (local, dask):
            carry_out(executor, requests[:20])  # processes start, plugins are loaded
        turns = np.array(
            [
                [
                    milliseconds(lambda: carry_out(local, requests), count),
                    milliseconds(lambda: carry_out(dask, requests), count),
                    milliseconds(lambda: call(dask.client, count), count),
                ]
                for _ in range(options.repeats)
            ]
        )
    what = ("a run in local processes", "a run on dask:local", "an empty call of Dask")
    for name, (clock, processor) in zip(what, np.median(turns, axis=0), strict=True):
        print(f"{name:25} {clock:6.2f} ms on the clock, {processor:6.2f} ms of the processor here")
    ratios = np.median(turns[:, 1] / turns[:, 0], axis=0)
    report_figure(
        f"dask:local against local processes: ratio {ratios[0]:.1f} on the clock, ",
        "time of a run on the clock",
        ratios[0],
        "local processes",
        "lower",
        end="",
    )
    report_figure(
        f"{ratios[1]:.1f} of the processor",
        "time of a run, processor here",
        ratios[1],
        "local processes",
        "lower",
    )
    needed = options.many * np.median(turns[:, 1, 1]) / 1e3
    print(f"{options.many:,} workers are kept busy by runs of {needed:.1f} s and more")
    for together in (1, 16, 256):
        print(f"journal: {journal_rate(requests[0], together):,.0f} runs a second, {together} at a time")
    rng = np.random.default_rng(1)
    for spread in (0.2, 0.5, 1.0):
        shares = [
            f"{instances} instances {busy(options.many, 7 * instances, spread, rng):.0%}"
            for instances in (8, 128, 512, 2048)
        ]
        print(f"{options.many:,} workers, 7 algorithms, log-normal times (sigma {spread:g}), busy: {', '.join(shares)}")


if __name__ == "__main__":
    main()
