"""CPU seconds of the native engine for 4,000 draws, against NUTS on the same models in the same run.

    python benchmarks/speed/inference.py                       # the native engine alone, a minute
    python benchmarks/speed/inference.py --nuts nutpie         # and NUTS by nutpie, a quarter of an hour
    python benchmarks/speed/inference.py --nuts nutpie pymc    # and PyMC's own sampler, longer
    python benchmarks/speed/inference.py --cases --separated 20 100    # the same order on all instances, two minutes
    python benchmarks/speed/inference.py --cases --large       # many algorithms or timepoints, some minutes

Data are simulated rankings with independent timepoints; the models are those of the paper, so dependence="none".  NUTS
gets 4 chains of 1,000 warm-up and 1,000 kept draws; its compilation counts, since a race compiles for every new size.
"""

import argparse
import itertools
import json
import math
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from polarbear_plugins import Posterior, RankingTable, compare, fit
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.priors import BUILT_IN_PRIORS

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure
from simulated_rankings import rankings

CASES: list[tuple[str, int, int, int]] = [
    ("dirichlet", 7, 100, 20),
    ("dirichlet", 30, 100, 1),
    ("dirichlet", 64, 50, 1),
    ("dirichlet", 7, 1000, 200),
    ("hierarchical-dirichlet", 5, 30, 100),
    ("random-walk", 5, 30, 100),
    ("hsgp", 5, 30, 100),
    ("bspline", 5, 30, 100),
    ("sparse-gp", 5, 30, 100),
    ("gp", 5, 30, 60),
    ("random-walk", 5, 30, 500),
    ("dirichlet", 20, 6000, 2),  # hardly any set occurs twice
]
NUTS_CASES = {0, 5, 6, 7, 8, 9}
LARGE_CASES = [
    *(
        (prior, 15, 30, 150)
        for prior in ("hierarchical-dirichlet", "random-walk", "bspline", "sparse-gp", "hsgp", "gp")
    ),
    *((prior, 5, 30, 500) for prior in ("random-walk", "bspline", "hsgp", "gp")),
    ("dirichlet", 50, 30, 1),
    *((prior, 50, 30, 20) for prior in ("dirichlet", "random-walk", "bspline", "hsgp")),
]
WARM_CASES = [("dirichlet", 7, 20), ("random-walk", 5, 100), ("bspline", 5, 100), ("hsgp", 5, 100), ("gp", 5, 60)]


def measured(
    table: RankingTable, prior: str, engine: str, start: Posterior | None = None, **options: Any
) -> tuple[float, float, Posterior]:
    """CPU and wall seconds of a fit in this process, and the posterior."""
    cpu, wall = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        posterior = fit(
            table, prior, engine, draws=4000, seed=1, dependence="none", start=start, engine_options=options
        )
    return time.process_time() - cpu, time.perf_counter() - wall, posterior


def show(label: str, table: RankingTable, prior: str) -> None:
    """Print the CPU seconds of one fit as users make it, with the correction for repetition, and whether it is good."""
    cpu = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        posterior = fit(table, prior, seed=1)
    cpu, found = time.process_time() - cpu, posterior.diagnostics
    print(f"  {label:40s} {cpu:6.2f} CPU s, {'good' if found.good else '; '.join(found.problems)}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nuts", nargs="*", default=[], choices=["nutpie", "pymc"])
    parser.add_argument("--cases", nargs="*", type=int, default=range(len(CASES)))
    parser.add_argument("--separated", nargs="*", type=int, default=[], help="timepoints of rankings that are the same")
    parser.add_argument("--large", action="store_true", help="many algorithms or timepoints")
    parser.add_argument("--repetitions", type=int, default=3, help="of the native engine; the fastest counts")
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    arguments = parse_arguments(parser, {"cases": [0, 7], "repetitions": 1})
    fit(rankings(3, 5, 2), seed=0)  # imports
    results = []
    for place in arguments.cases:
        prior, n, instances, timepoints = CASES[place]
        table = rankings(n, instances, timepoints)
        runs = [measured(table, prior, "native") for _ in range(arguments.repetitions)]
        cpu, wall = min(run[0] for run in runs), min(run[1] for run in runs)
        native = runs[0][2]
        row: dict[str, Any] = {"case": f"{prior} n={n} P={instances} T={timepoints}", "cpu": cpu, "wall": wall}
        print(f"{row['case']:38s} native {cpu:6.3f} CPU s, {wall:6.3f} s", end="", flush=True)
        for sampler in arguments.nuts if place in NUTS_CASES else []:
            nuts_cpu, _, posterior = measured(table, prior, "nuts", sampler=sampler, cores=1)
            error = np.abs(compare(native).p_better - compare(posterior).p_better).max()
            row[sampler] = {"cpu": nuts_cpu, "ratio": nuts_cpu / cpu, "difference": float(error)}
            row[sampler] |= {"good": posterior.diagnostics.good, "problems": posterior.diagnostics.problems}
            doubt = "" if posterior.diagnostics.good else f" (NUTS: {'; '.join(posterior.diagnostics.problems)})"
            report_figure(
                f"   {sampler} {nuts_cpu:6.1f} CPU s = {nuts_cpu / cpu:.0f}x, p_better within {error:.3f}{doubt}",
                f"speed of {row['case']}",
                nuts_cpu / cpu,
                f"NUTS by {sampler}",
                "higher",
                end="",
            )
        print(flush=True)
        results.append(row)
    if arguments.separated:
        print("\nSix algorithms, the same order on all of 30 instances:")
    for timepoints, prior in itertools.product(arguments.separated, BUILT_IN_PRIORS):
        values = np.tile(np.arange(6.0), (30, timepoints, 1))
        same = RankingTable.from_values(values, algorithms=list("abcdef"), timepoints=np.arange(1, timepoints + 1))
        show(f"{prior} T={timepoints}", same, prior)
    if arguments.large:
        print("\nLarge:")
        for prior, n, instances, timepoints in LARGE_CASES:
            show(f"{prior} n={n} P={instances} T={timepoints}", rankings(n, instances, timepoints), prior)
    if not arguments.cases:
        return
    print("\nWith one instance in seven more, starting from the posterior before or not, CPU s:")
    for prior, n, timepoints in WARM_CASES:
        later = rankings(n, 35, timepoints)
        values = later.values[:30]
        before = RankingTable.from_values(values, algorithms=later.algorithms, timepoints=later.timepoints)
        start = measured(before, prior, "native")[2]
        cold, warm = (
            min(measured(later, prior, "native", start=known)[0] for _ in range(arguments.repetitions))
            for known in (None, start)
        )
        report_figure(
            f"  {prior} n={n} T={timepoints}: {cold:.3f} from the prior, {warm:.3f} from the posterior",
            f"warm start of {prior} n={n} T={timepoints}",
            warm / cold,
            "starting from the prior",
            "lower",
        )
    print("\nGrowth with the number of instances, dirichlet n=7 T=20, CPU s:")
    sizes = (30, 100, 300, 1000, 3000)
    times = []
    for instances in sizes:
        table = rankings(7, instances, 20)
        times.append(min(measured(table, "dirichlet", "native")[0] for _ in range(arguments.repetitions)))
        print(f"  P={instances:5d} {times[-1]:.3f}")
    exponent = math.log(times[-1] / times[0]) / math.log(sizes[-1] / sizes[0])
    report_figure(
        f"  exponent {exponent:.2f}", "exponent of growth with instances", exponent, "in proportion: 1", "lower"
    )
    if arguments.output:
        data = {"results": results, "growth": dict(zip(sizes, times, strict=True))}
        arguments.output.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
