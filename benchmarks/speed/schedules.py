"""Races in rounds against races without barriers: idle workers, wall time, cost and wrong eliminations.

    python benchmarks/speed/schedules.py --hasty 500
    python benchmarks/speed/schedules.py --races 300 --replays 0 --policies 300 --batches 300 --epsilon 0.1
    python benchmarks/speed/schedules.py --races 20 --replays 20 --workers 1000                 # what limits, and where
    python benchmarks/speed/schedules.py --real --workers 8 16 --first-seed 10                  # sleeping processes

Races with known truth are performed once by their rules and replayed in a discrete-event simulation, because what a
race decides does not depend on its schedule: rounds rest on the same runs.  A run takes a second on average, and half
as long until half its horizon; times are even (log-normal, sigma 0.2) or differ by a factor of 30 between algorithms
(sigma 0.5), which is unrelated to their quality, or larger for the good or for the bad ones, or else the good or the
bad runs of each algorithm are the slow ones (sigma 1).  Inference takes what it took, and the driver a constant for
each run.  The named alternative is the same race in rounds.  Bound: the share of the wall time of rounds below which no
schedule of the same runs on as many workers goes, which is the share in which workers were busy.

Wrong eliminations are those of algorithms that none dominates in truth, and those of rounds and of continuous races
are the same.  For comparison, two races that rank whatever has finished: instances in the order in which they are
complete, and instances as far as they are.
"""

import argparse
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

sys.path.append(str(Path(__file__).parents[1]))
from hasty_races import MISTAKES, race_hastily
from measuring import parse_arguments, report_figure
from recorded_races import DURATIONS, Truth, perform, settings_of
from schedule_policies import setups
from schedule_replays import Replay, Setup, continuously, in_rounds
from sleeping_races import driver_seconds, measure

INSTANCES = 4000  # more than these races need
HASTY_INSTANCES = 200  # after which races that rank whatever has finished end
BATCHES = (8, 32)  # of at most so many instances, instead of 128
#: What a replay took, by number of workers, kind of durations, and schedule.
Replays = dict[tuple[int, str, str], Replay]
#: Wrong eliminations and how many there could be, by kind of durations and by what was decided on.
Errors = dict[tuple[str, str], tuple[int, int]]


def study(seed: int, options: argparse.Namespace) -> tuple[dict[str, Replays], Errors]:
    """Perform a race once; the first ones serve several studies."""
    truth = Truth.drawn(seed, options.algorithms, options.timepoints, INSTANCES)
    race = perform(truth, settings_of(seed, epsilon=options.epsilon))
    number = seed - options.first_seed
    tables: dict[str, Replays] = defaultdict(dict)
    errors: Errors = {("any", "rounds"): truth.wrong(race.final)}
    for kind in DURATIONS if number < options.replays else ():
        seconds = truth.seconds(kind, options.run_seconds)
        for workers in options.workers:
            setup = Setup(workers, options.driver)
            tables["schedules"] |= {
                (workers, kind, "rounds"): in_rounds(race, seconds, replace(setup, long_first=False)),
                (workers, kind, "rounds, long runs first"): in_rounds(race, seconds, setup),
                (workers, kind, "continuous"): continuously(race, seconds, setup),
            }
    if number < options.hasty:
        # Algorithms that are equally good: whoever is eliminated, is so by mistake.
        equal = Truth.drawn(seed, options.algorithms, options.timepoints, HASTY_INSTANCES, spread=0.0)
        errors["any, all equally good", "rounds"] = equal.wrong(perform(equal, settings_of(seed)).final)
        for kind, mistake in itertools.product(("even", "good runs slow", "bad runs slow"), MISTAKES):
            seconds = equal.seconds(kind, options.run_seconds)
            state = race_hastily(equal, settings_of(seed), seconds, options.workers[-1], mistake)
            errors[f"{kind}, all equally good", mistake] = equal.wrong(state)
    setup = Setup(options.workers[-1], options.driver)
    first, seconds = (setup.workers, "heavy tails"), truth.seconds("heavy tails", options.run_seconds)
    if number < options.policies:
        tables["which run next"][(*first, "rounds")] = in_rounds(race, seconds, replace(setup, long_first=False))
        for name, other in setups(setup).items():
            tables["which run next"][(*first, name)] = continuously(race, seconds, other)
    for most in (128, *BATCHES) if number < options.batches else ():
        smaller = perform(truth, settings_of(seed, epsilon=options.epsilon, batch_max=most)) if most < 128 else race
        name = "" if most == 128 else f", batches of at most {most}"
        tables["batches"][(*first, f"rounds{name}")] = in_rounds(smaller, seconds, replace(setup, long_first=False))
        tables["batches"][(*first, f"continuous{name}")] = continuously(smaller, seconds, setup)
        errors["any", f"rounds{name}"] = truth.wrong(smaller.final)
    return tables, errors


def interval(wrong: int, of: int) -> tuple[float, float]:
    """Clopper-Pearson interval of a share, 95 %."""
    low = float(beta.ppf(0.025, wrong, of - wrong + 1)) if wrong else 0.0
    return low, float(beta.ppf(0.975, wrong + 1, of - wrong)) if wrong < of else 1.0


def show_replays(title: str, found: Sequence[Replays]) -> list[dict[str, Any]]:
    """Print sums over races: a short race counts as much as it takes."""
    totals: dict[tuple[int, str, str], np.ndarray] = defaultdict(lambda: np.zeros(5))
    for key, one in ((key, one) for replays in found for key, one in replays.items()):
        totals[key] += (one.wall, one.busy, one.cost, one.runs, one.wall * one.workers)
    print(f"\n{title}: {len(found)} races")
    print(f"{'workers':>7}  {'run times':16}{'schedule':40}{'idle':>7}{'wall':>7}{'bound':>7}{'busy':>7}{'cost':>7}")
    rows = []
    for (workers, kind, schedule), total in totals.items():
        rounds = totals[workers, kind, "rounds"]
        idle, bound = max(0.0, 1 - total[1] / total[4]), rounds[1] / rounds[4]  # without rounding errors
        wall, busy, cost, _, _ = total / rounds
        rows.append({"table": title, "workers": workers, "run times": kind, "schedule": schedule, "races": len(found)})
        rows[-1] |= {"idle": idle, "wall": wall, "bound": bound, "busy": busy, "cost": cost, "sums": total.tolist()}
        line = f"{workers:7d}  {kind:16}{schedule:40}{idle:7.3f}{wall:7.3f}{bound:7.3f}{busy:7.3f}{cost:7.3f}"
        if schedule == "continuous":
            report_figure(line, f"wall time, {kind}, {workers} workers", wall, "rounds", "lower")
        else:
            print(line, flush=True)
    return rows


def show_errors(found: Iterable[Errors]) -> list[dict[str, Any]]:
    """Print the shares of truly non-dominated algorithms that were eliminated."""
    counts: dict[tuple[str, str], np.ndarray] = defaultdict(lambda: np.zeros(4, dtype=int))
    for key, (wrong, of) in ((key, one) for race in found for key, one in race.items()):
        counts[key] += (wrong, of, wrong > 0, 1)
    print(f"\n{'run times':34}{'decides on':34}{'wrong':>7}{'of':>7}{'share':>9}{'95 % interval':>18}{'races':>12}")
    rows = []
    for (kind, name), (wrong, of, races, count) in counts.items():
        low, high = interval(wrong, of)
        rows.append(
            {"run times": kind, "decides on": name, "wrong": int(wrong), "of": int(of), "interval": [low, high]}
        )
        rows[-1] |= {"races with an error": int(races), "races": int(count)}
        report_figure(
            f"{kind:34}{name:34}{wrong:7d}{of:7d}{wrong / of:9.4f}{f'{low:.4f} .. {high:.4f}':>18}"
            f"{f'{races} of {count}':>12}",
            f"share wrongly eliminated, {name}, {kind}",
            wrong / of,
            "1 - alpha: 0.01",
            "lower",
        )
    return rows


def race_really(options: argparse.Namespace) -> None:
    """Race with runs that sleep on local processes, under both schedules, and compare the results."""
    for workers in options.workers:
        rounds, continuous = (
            measure(schedule, workers, options.shortest, options.first_seed) for schedule in ("rounds", "continuous")
        )
        same = rounds.result.rounds == continuous.result.rounds and np.array_equal(
            rounds.result.posterior.log_ratings, continuous.result.posterior.log_ratings
        )
        for name, one in (("rounds", rounds), ("continuous", continuous)):
            print(f"{workers} processes, {name}: {one.wall:.1f} s, idle {one.idle:.3f}, cost {one.cost:.0f}")
        report_figure(
            f"wall time {continuous.wall / rounds.wall:.3f}, cost {continuous.cost / rounds.cost:.3f}, "
            f"{'the same result' if same else 'ANOTHER RESULT'}: {continuous.result!r}",
            f"wall time, sleeping runs, {workers} processes",
            continuous.wall / rounds.wall,
            "rounds",
            "lower",
        )
    print(f"processor time of the driver: {1000 * driver_seconds(2000, 2):.2f} ms a run, without inference")


def main() -> None:
    """Simulate, or race with sleeping runs, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=500)
    parser.add_argument("--replays", type=int, default=100, help="so many of them are replayed under both schedules")
    parser.add_argument("--hasty", type=int, default=0, help="so many also rank whatever has finished")
    parser.add_argument("--policies", type=int, default=0, help="so many compare answers to which run next")
    parser.add_argument("--batches", type=int, default=0, help="so many are also performed with smaller batches")
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 64], help="the last number for all but --replays")
    parser.add_argument("--epsilon", type=float, default=0.05, help="of the settings; a larger one makes shorter races")
    parser.add_argument("--driver", type=float, default=0.001, help="seconds of the driver for each run")
    parser.add_argument("--run-seconds", type=float, default=1.0, help="mean of the runs in full")
    parser.add_argument("--algorithms", type=int, default=8)
    parser.add_argument("--timepoints", type=int, default=6)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--real", action="store_true", help="race with sleeping runs on local processes instead")
    parser.add_argument("--shortest", type=float, default=0.02, help="seconds of the fastest algorithm's sleeping runs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parse_arguments(parser, {"races": 2, "replays": 1, "hasty": 1, "policies": 1, "batches": 1})
    if options.real:
        race_really(options)
        return
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = range(options.first_seed, options.first_seed + options.races)
        found = list(pool.map(partial(study, options=options), seeds))
    rows = []
    for title in ("schedules", "which run next", "batches"):
        tables = [tables[title] for tables, _ in found if title in tables]
        rows += show_replays(title, tables) if tables else []
    rows += show_errors(errors for _, errors in found)
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
