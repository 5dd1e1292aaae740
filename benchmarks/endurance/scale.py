"""A race of 10,000 instances, 20 algorithms and 50 timepoints: memory, bookkeeping for each run, journal, growth.

    python benchmarks/endurance/scale.py                           # 1,000 and 10,000 instances, some minutes
    python benchmarks/endurance/scale.py --instances 100 400 --algorithms 5 --timepoints 10
    python benchmarks/endurance/scale.py --extremes                # posteriors of large and odd tables instead

The algorithms are equal, and only ties settle a pair: ``alpha=1`` and an ``epsilon`` of 1e-6 leave every pair open, so
the race goes on until its cost is spent, which is that of the wanted number of instances in full.  The first batch is
an eighth of the instances and doubles each round: 1/8, 3/8, 7/8 and all of them, so races of different sizes have the
same four rounds.  With batches of one size the rounds would grow with the race, and inference in all of them with its
square.

Runs happen in this process (``--workers 0``), where everything that is neither a run nor inference can be told apart:
planning, requests, dispatch, checks, journal, ranking, comparing and deciding.  Each size has a process of its own, for
its memory; another one resumes its journal.  The named alternatives are measured in the same process: a bare loop over
the same runs, and a bare loop that inserts them into an SQLite table without a race, a transaction for each.  Times are
CPU seconds of all threads, so that others on the machine count little; wall seconds stand beside.
"""

import argparse
import json
import math
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import RaceSettings, RankingTable, compare, fit, race, resume, select
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.experiments import open_race
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.plugins.synthetic import SyntheticSuite, synthetic_portfolio
from polarbear_plugins.seeds import derived_seed

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

MEMORY = 2048.0  # MB
PER_RUN = 1.0  # ms
NOISE = 1.1  # what is in proportion to the runs, such as the runs themselves, varies by this
ALTERNATIVE_RUNS = 5_000


class Clock:
    """Adds up CPU and wall seconds inside a function that it stands for."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.cpu, self.wall = function, 0.0, 0.0

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function."""
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            return self.function(*given, **named)
        finally:
            self.cpu += time.process_time() - cpu
            self.wall += time.perf_counter() - wall


def settings_of(options: argparse.Namespace, instances: int) -> RaceSettings:
    """Choose settings under which the race runs that many instances in four rounds."""
    return RaceSettings(
        seed=1,
        alpha=1.0,
        epsilon=1e-6,
        draws=options.draws,
        batch_size=max(1, instances // 8),
        batch_min=1,
        batch_max=instances,
        max_cost=float(instances * options.algorithms * options.timepoints),
    )


def warm_up() -> None:
    """Import what is imported once, and find the plugins."""
    race("synthetic", "synthetic", [1, 2], RaceSettings(seed=0, max_rounds=1, batch_size=1), workers=0)


def race_once(options: argparse.Namespace, instances: int, journal: Path) -> dict[str, Any]:
    """Race in this process and say what it took."""
    runs = instances * options.algorithms
    warm_up()
    algorithms = synthetic_portfolio(log_ratings=np.zeros((options.timepoints, options.algorithms)))
    infer = Clock(open_race.infer)
    open_race.infer = infer
    writes = [Clock(getattr(Journal, name)) for name in ("add_runs", "add_instances", "add_round")]
    for name, clock in zip(("add_runs", "add_instances", "add_round"), writes, strict=True):
        setattr(Journal, name, lambda self, *given, _clock=clock: _clock(self, *given))
    own = Clock(type(algorithms[0]).run)
    type(algorithms[0]).run = lambda self, *given: own(self, *given)  # type: ignore[method-assign]

    def report(progress: open_race.Progress) -> None:
        if not progress.planned:
            last = progress.state.rounds[-1]
            print(f"  round {last.number}: {last.instances:,} instances", file=sys.stderr, flush=True)

    whole = Clock(race)
    result = whole(
        "synthetic",
        "synthetic",
        range(1, options.timepoints + 1),
        settings_of(options, instances),
        options.workers,
        journal=journal,
        portfolio_options={"log_ratings": np.zeros((options.timepoints, options.algorithms)).tolist()},
        progress=report,
    )
    if len(result.state.table) != instances:
        raise SystemExit(f"The race has {len(result.state.table)} instances instead of {instances}.")
    type(algorithms[0]).run = own.function  # type: ignore[method-assign]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    bare_run, bare_insert = alternatives(algorithms, options.timepoints, journal.with_suffix(".bare"))
    return {
        "runs": runs,
        "good": result.posterior.diagnostics.good,
        "total": whole.cpu,
        "wall": whole.wall,
        "own": own.cpu,
        "inference": infer.cpu,
        "inference_wall": infer.wall,
        "journal": sum(clock.cpu for clock in writes),
        "journal_wall": sum(clock.wall for clock in writes),
        "bookkeeping": whole.cpu - infer.cpu - own.cpu,
        "bookkeeping_wall": whole.wall - infer.wall - own.wall / max(1, options.workers),
        "memory": memory,
        "bytes": journal.stat().st_size,
        "bare_run": bare_run.cpu / ALTERNATIVE_RUNS * runs,
        "bare_insert": bare_insert.cpu / ALTERNATIVE_RUNS * runs,
        "bare_insert_wall": bare_insert.wall / ALTERNATIVE_RUNS * runs,
    }


def alternatives(algorithms: Any, timepoints: int, path: Path) -> tuple[Clock, Clock]:
    """Carry out some of the same runs in a bare loop, and insert them in another."""
    suite = SyntheticSuite()
    names = suite.identities(derived_seed(1, "instances"))
    problems = [suite.build(next(names)) for _ in range(-(-ALTERNATIVE_RUNS // len(algorithms)))]
    pairs = [(algorithm, problem) for problem in problems for algorithm in algorithms][:ALTERNATIVE_RUNS]

    def run_all() -> list[Any]:
        return [one.run(problem, float(timepoints), place) for place, (one, problem) in enumerate(pairs)]

    def insert_all(trajectories: list[Any]) -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE runs (algorithm, instance, times, best, PRIMARY KEY (algorithm, instance))")
        for run in trajectories:
            connection.execute("BEGIN IMMEDIATE")
            row = (run.algorithm, run.instance, run.times.tobytes(), run.best.tobytes())
            connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", row)
            connection.commit()
        connection.close()

    running, inserting = Clock(run_all), Clock(insert_all)
    inserting(running())
    return running, inserting


def resume_once(options: argparse.Namespace, journal: Path) -> dict[str, Any]:
    """Resume the journal, which is complete: read everything, infer once more, run nothing."""
    warm_up()
    infer = Clock(open_race.infer)
    open_race.infer = infer
    whole = Clock(resume)
    whole(journal, workers=options.workers)
    return {
        "resume": whole.cpu - infer.cpu,
        "resume_wall": whole.wall - infer.wall,
        "resume_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_a_process(options: argparse.Namespace, what: str, instances: int, journal: Path) -> dict[str, Any]:
    """Run one part in a process of its own."""
    command = [sys.executable, __file__, "--part", what, "--instances", str(instances), "--journal", str(journal)]
    for name in ("algorithms", "timepoints", "workers", "draws"):
        command += [f"--{name}", str(getattr(options, name))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)  # noqa: S603 - this very file
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def table_of(results: dict[int, dict[str, Any]]) -> None:
    """Print what was measured at each size, and how it grew."""
    sizes = list(results)
    small, large = results[sizes[0]], results[sizes[-1]]
    factor = sizes[-1] / sizes[0]
    rows = [
        ("whole race, CPU s", "total"),
        ("  runs themselves", "own"),
        ("  inference", "inference"),
        ("  bookkeeping, journal included", "bookkeeping"),
        ("  of it the journal", "journal"),
        ("resume without inference, CPU s", "resume"),
        ("whole race, s", "wall"),
        ("  bookkeeping", "bookkeeping_wall"),
        ("  of it the journal", "journal_wall"),
        ("resume without inference, s", "resume_wall"),
        ("peak memory, MB", "memory"),
        ("peak memory of resuming, MB", "resume_memory"),
        ("journal, bytes", "bytes"),
    ]
    print(f"\n{'':34s}" + "".join(f"{size:>15,}" for size in sizes) + f"{'growth':>10s}{'of linear':>10s}")
    for label, key in rows:
        growth = large[key] / small[key]
        numbers = "".join(f"{results[size][key]:>15,.{0 if large[key] > 1000 else 1}f}" for size in sizes)
        word = "" if growth <= NOISE * factor else "   MORE THAN LINEAR"
        print(f"{label:34s}{numbers}{growth:>10.1f}{growth / factor:>10.2f}{word}")
    print()
    for size, data in results.items():
        each = 1e3 / data["runs"]
        print(
            f"{size:,} instances, {data['runs']:,} runs: bookkeeping {data['bookkeeping'] * each:.3f} CPU ms a run "
            f"({data['bookkeeping_wall'] * each:.3f} ms by the clock), "
            f"{verdict(data['bookkeeping_wall'] * each, PER_RUN)}; "
            f"peak memory {data['memory']:,.0f} MB, {verdict(data['memory'], MEMORY)}"
        )
        report_figure(
            f"  bare loop of the runs {data['bare_run'] * each:.3f} CPU ms a run: bookkeeping is "
            f"{data['bookkeeping'] / data['bare_run']:.1f} of it, the race without inference "
            f"{(data['bookkeeping'] + data['own']) / data['bare_run']:.1f}",
            f"time of the bookkeeping, {size:,} instances",
            data["bookkeeping"] / data["bare_run"],
            "bare loop of the runs",
            "lower",
        )
        report_figure(
            f"  bare loop of inserts {data['bare_insert'] * each:.3f} CPU ms a run: the journal is "
            f"{data['journal'] / data['bare_insert']:.1f} of it ({data['journal_wall'] / data['bare_insert_wall']:.1f} "
            f"by the clock); {data['bytes'] / data['runs']:,.0f} bytes a run",
            f"time of the journal, {size:,} instances",
            data["journal"] / data["bare_insert"],
            "bare loop of inserts",
            "lower",
        )
        if not data["good"]:
            print("  THE POSTERIOR IS NOT GOOD ENOUGH")


def verdict(value: float, limit: float) -> str:
    """Say whether a limit is kept."""
    return f"within {limit:g}" if value <= limit else f"MORE THAN {limit:g}"


def extremes(draws: int) -> None:
    """Posteriors of tables at the ends of what is allowed: finite, and good or honest about it."""
    rng = np.random.default_rng(0)

    def smooth(instances: int, timepoints: int, algorithms: int) -> Any:
        return -np.log(np.linspace(1, 3, algorithms)) - rng.gumbel(size=(instances, timepoints, algorithms))

    tied = rng.integers(0, 3, size=(5, 1, 30)).astype(float)
    cases: list[tuple[str, str, Any]] = [
        ("50 algorithms, 10,000 instances", "dirichlet", smooth(10_000, 1, 50)),
        ("20 algorithms, 1,000 instances", "bspline", smooth(1000, 10, 20)),
        ("3 algorithms, 500 timepoints", "dirichlet", smooth(30, 500, 3)),
        ("3 algorithms, 500 timepoints", "random-walk", smooth(30, 500, 3)),
        ("5 algorithms, 10,000 instances", "bspline", smooth(10_000, 50, 5)),
        ("200 algorithms, one instance", "dirichlet", smooth(1, 1, 200)),
        ("30 algorithms, ties of ten, 5 instances", "dirichlet", tied),
        ("20 algorithms always in one order, 10,000", "dirichlet", np.tile(np.arange(20.0), (10_000, 1, 1))),
    ]
    print(f"{'':46s}{'prior':14s}{'CPU s':>8s}{'finite':>8s}{'good':>6s}{'k-hat':>8s}  route")
    for label, prior, values in cases:
        names, times = [f"a{place}" for place in range(values.shape[2])], np.arange(1.0, values.shape[1] + 1)
        table = RankingTable.from_values(values, algorithms=names, timepoints=times)
        clock = Clock(fit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)
            posterior = clock(table, prior, draws=draws, seed=1)
        relations, choice = compare(posterior), select(posterior)
        numbers = (
            posterior.log_ratings,
            relations.p_better,
            relations.p_equivalent,
            np.array(list(choice.scores.values())),
        )
        finite = all(bool(np.isfinite(array).all()) for array in numbers)
        found = posterior.diagnostics
        k_hat = math.nan if found.k_hat is None else found.k_hat
        print(
            f"{label:46s}{prior:14s}{clock.cpu:>8.1f}{finite!s:>8s}{found.good!s:>6s}{k_hat:>8.2f}  {found.route}",
            flush=True,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, nargs="+", default=[1000, 10_000], help="from few to many")
    parser.add_argument("--algorithms", type=int, default=20)
    parser.add_argument("--timepoints", type=int, default=50)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--workers", type=int, default=0, help="0: everything in one process")
    parser.add_argument("--folder", type=Path, help="where the journals go while this runs")
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    parser.add_argument("--extremes", action="store_true", help="posteriors of large and odd tables instead")
    parser.add_argument("--part", choices=["race", "resume"], help=argparse.SUPPRESS)
    parser.add_argument("--journal", type=Path, help=argparse.SUPPRESS)
    options = parse_arguments(parser, {"instances": [40, 160], "algorithms": 4, "timepoints": 5, "draws": 500})
    if options.extremes:
        extremes(options.draws)
        return
    if options.part:
        [instances] = options.instances
        done = race_once(options, instances, options.journal) if options.part == "race" else None
        print(json.dumps(done or resume_once(options, options.journal)))
        return
    results: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for instances in sorted(options.instances):
            print(f"{instances:,} instances x {options.algorithms} algorithms", file=sys.stderr, flush=True)
            journal = Path(folder) / f"{instances}.db"
            results[instances] = in_a_process(options, "race", instances, journal)
            print("  resume", file=sys.stderr, flush=True)
            results[instances] |= in_a_process(options, "resume", instances, journal)
    table_of(results)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
