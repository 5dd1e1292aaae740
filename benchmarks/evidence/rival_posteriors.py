"""Time and error of Plackett-Luce inference: this package, NUTS, and choix, for 4 to 64 algorithms.

    python benchmarks/evidence/rival_posteriors.py --output posteriors.json --figure posteriors.png

Simulated rankings of 100 instances at one timepoint, a Dirichlet(1) prior, 4,000 draws.  NUTS gets 4 chains of 1,000
warm-up and 1,000 kept draws, on the package's model, by nutpie and by PyMC.  The reference is a plain Gibbs sampler
(Caron and Doucet, 2012), written here apart from the package.  An error is that of a posterior mean of log-ratings, or
of a posterior standard deviation, in units of the reference's standard deviation: root mean square over algorithms, and
the worst.  choix gives the most likely ratings and no standard deviations.  Seconds are those of the processor in this
process and its children; compilation is given apart.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure
from rivals.versions import versions

METHODS = ("native", "nutpie", "pymc", "choix ilsr", "choix opt")
PACKAGES = ("polarbear-plugins", "numpy", "choix", "nutpie", "pymc", "pytensor", "numba")
DRAWS, CHAINS = 4000, 40
_GROWTH = 4.0  # of time from one number of algorithms to the next, at most about
_COLOURS = dict(zip(METHODS, ("#0072B2", "#D55E00", "#CC79A7", "#009E73", "#E69F00"), strict=True))
_MARKERS = dict(zip(METHODS, "osDv^", strict=True))


@dataclass(frozen=True)
class Estimate:
    """Mean log-ratings, centred, and their standard deviations, if a method knows any."""

    means: np.ndarray
    deviations: np.ndarray | None = None
    compilation: float = 0.0
    problems: tuple[str, ...] = ()


def processor_seconds() -> float:
    """Of this process and of its children that have ended."""
    now = os.times()
    return time.process_time() + now.children_user + now.children_system


def reference(orders: np.ndarray, sweeps: int, seed: int) -> tuple[Estimate, float]:
    """Posterior by Gibbs sampling, and the largest standard error of its means in posterior standard deviations.

    Parameters
    ----------
    orders
        ``[instance, place]``: algorithms from the best to the worst.
    sweeps
        To keep, of each of 40 chains, after half as many to forget the start.
    """
    count, n = orders.shape
    rng, places = np.random.default_rng(seed), np.argsort(orders, axis=1)
    chosen = np.bincount(orders[:, :-1].ravel(), minlength=n)
    rows = np.arange(count)[:, None]
    ratings = rng.gamma(1.0, size=(CHAINS, n))
    sums, squares = np.zeros((CHAINS, n)), np.zeros((CHAINS, n))
    for sweep in range(-(sweeps // 2), sweeps):
        left = np.cumsum(ratings[:, orders[:, ::-1]], axis=2)[:, :, :0:-1]
        waits = np.cumsum(rng.exponential(size=left.shape) / left, axis=2)
        waits = np.concatenate((waits, waits[:, :, -1:]), axis=2)
        ratings = rng.gamma(1.0 + chosen, size=ratings.shape) / (1.0 + waits[:, rows, places].sum(axis=1))
        if sweep >= 0:
            logs = np.log(ratings)
            logs -= logs.mean(axis=1, keepdims=True)
            sums, squares = sums + logs, squares + logs**2
    means = sums / sweeps
    centre = means.mean(axis=0)
    deviations = np.sqrt((squares / sweeps).mean(axis=0) - centre**2)
    error = means.std(axis=0, ddof=1) / np.sqrt(CHAINS) / deviations
    return Estimate(centre, deviations), float(error.max())


def by_package(table: Any, engine: str, seed: int, **options: object) -> Estimate:
    """Posterior by an engine of the package."""
    from polarbear_plugins import fit
    from polarbear_plugins.errors import InferenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        posterior = fit(table, "dirichlet", engine, DRAWS, seed, check=False, engine_options=options)
    logs = posterior.log_ratings[:, 0]
    logs = logs - logs.mean(axis=1, keepdims=True)
    return Estimate(logs.mean(axis=0), logs.std(axis=0), problems=posterior.diagnostics.problems)


@contextmanager
def clocked(module: ModuleType, name: str) -> Iterator[list[float]]:
    """Processor seconds of each call of a function while the context lasts."""
    original, needed = getattr(module, name), []

    def timed(*arguments: Any, **options: Any) -> Any:
        start = processor_seconds()
        result = original(*arguments, **options)
        needed.append(processor_seconds() - start)
        return result

    setattr(module, name, timed)
    try:
        yield needed
    finally:
        setattr(module, name, original)


def by_nuts(table: Any, sampler: str, seed: int) -> Estimate:
    """Posterior by NUTS; its compilation is that of nutpie, or PyMC's preparation of its sampler."""
    if sampler == "nutpie":
        import nutpie as module

        name = "compile_pymc_model"
    else:
        from pymc.sampling import mcmc as module

        name = "init_nuts"
    with clocked(module, name) as needed:
        found = by_package(table, "nuts", seed, sampler=sampler, cores=1)
    return Estimate(found.means, found.deviations, sum(needed), found.problems)


def by_choix(orders: np.ndarray, name: str) -> Estimate:
    """Most likely log-ratings; a ridge of 1e-6 keeps them finite where an algorithm is always last."""
    import choix

    method = choix.ilsr_rankings if name == "choix ilsr" else choix.opt_rankings
    found = method(orders.shape[1], [tuple(order) for order in orders.tolist()], alpha=1e-6)
    return Estimate(found - found.mean())


def estimator(method: str, table: Any, orders: np.ndarray, seed: int) -> Callable[[], Estimate]:
    """What a method does with the data."""
    if method == "native":
        return lambda: by_package(table, "native", seed)
    if method in ("nutpie", "pymc"):
        return lambda: by_nuts(table, method, seed)
    return lambda: by_choix(orders, method)


def measure(method: str, n: int, seed: int, known: Estimate, table: Any, orders: np.ndarray) -> dict[str, Any]:
    """Time a method on a data set, and compare it with the reference."""
    start = processor_seconds()
    found = estimator(method, table, orders, seed)()
    cpu = processor_seconds() - start
    off = np.abs(found.means - known.means) / known.deviations
    row = {"method": method, "n": n, "seed": seed, "cpu": cpu, "compilation": found.compilation}
    row |= {"mean_error": float(np.sqrt((off**2).mean())), "worst_mean_error": float(off.max())}
    if found.deviations is not None:
        wide = np.abs(found.deviations / known.deviations - 1)
        row |= {"sd_error": float(np.sqrt((wide**2).mean())), "worst_sd_error": float(wide.max())}
    return row | {"problems": list(found.problems)}


def measure_all(options: argparse.Namespace, methods: list[str]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """All sizes and methods; a method that would take too long is left out with a line."""
    from simulated_rankings import rankings

    rows, references = [], {}
    if options.resume and options.output and options.output.exists():
        earlier = json.loads(options.output.read_text(encoding="utf-8"))
        rows, references = earlier["rows"], earlier["references"]
    done = {(row["method"], row["n"], row["seed"]) for row in rows}
    small = rankings(3, 5, 1, seed=1)
    for method in methods:  # imports and first calls
        estimator(method, small, np.argsort(small.ranks[:, 0], axis=1), 0)()
    last = dict.fromkeys(methods, 0.0)  # CPU seconds
    spent: Counter[tuple[str, int]] = Counter()
    for row in rows:
        last[row["method"]] = row["cpu"]
        spent[row["method"], row["n"]] += row["cpu"]
    for n in options.algorithms:
        for replication in range(options.replications):
            seed = options.seed + replication
            open_methods = [
                name
                for name in methods
                if (0 < spent[name, n] < options.limit if replication else _GROWTH * last[name] < options.longest)
            ]
            for method in () if replication else sorted(set(methods) - set(open_methods)):
                print(f"{method}, n={n}: left out, it would take more than about {options.longest:g} s", flush=True)
            open_methods = [method for method in open_methods if (method, n, seed) not in done]
            if not open_methods:
                continue
            table = rankings(n, options.instances, 1, seed=seed)
            orders = np.argsort(table.ranks[:, 0], axis=1)
            known, error = reference(orders, options.sweeps, seed)
            references[f"n={n} seed={seed}"] = {"standard_error": error}
            for method in open_methods:
                row = measure(method, n, seed, known, table, orders)
                rows.append(row)
                last[method], spent[method, n] = row["cpu"], spent[method, n] + row["cpu"]
                print(f"  {method:11} n={n:2d} seed {seed}: {row['cpu']:8.2f} CPU s", end="")
                print(f" ({row['compilation']:.1f} compiling), error {row['mean_error']:.3f}", flush=True)
                if options.output:
                    write(options.output, options, rows, references)
    return rows, references


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians over data sets for each method and size."""
    summary = []
    for method, n in dict.fromkeys((row["method"], row["n"]) for row in rows):
        mine = [row for row in rows if (row["method"], row["n"]) == (method, n)]
        keys = [key for key, value in mine[0].items() if isinstance(value, float)]
        medians = {key: float(np.median([row[key] for row in mine])) for key in keys}
        doubted = sum(bool(row["problems"]) for row in mine)
        summary.append({"method": method, "n": n, "data_sets": len(mine), "doubted": doubted, **medians})
    return summary


def write(path: Path, options: argparse.Namespace, rows: list[dict[str, Any]], references: dict[str, Any]) -> None:
    """Keep what was measured so far."""
    about = {key: getattr(options, key) for key in ("instances", "replications", "seed", "sweeps", "limit", "longest")}
    data = {"versions": versions(PACKAGES), "settings": about | {"draws": DRAWS}, "summary": summarise(rows)}
    path.write_text(json.dumps(data | {"references": references, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def draw(path: Path, summary: list[dict[str, Any]]) -> None:
    """Seconds and errors against the number of algorithms."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    titles = ("CPU seconds", "error of posterior means [posterior sd]", "error of posterior sd [share]")
    for axis, key, title in zip(axes, ("cpu", "mean_error", "sd_error"), titles, strict=True):
        for method in METHODS:
            mine = [row for row in summary if row["method"] == method and key in row]
            if mine:
                points = [row["n"] for row in mine], [row[key] for row in mine]
                axis.plot(*points, marker=_MARKERS[method], color=_COLOURS[method], label=method)
        axis.set(title=title, xlabel="algorithms", xscale="log", yscale="linear" if key == "sd_error" else "log")
        sizes = sorted({row["n"] for row in summary})
        axis.set_xticks(sizes, list(map(str, sizes)))
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[2].set_ylim(bottom=0)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(METHODS), frameon=False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Measure, print a table, and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", dest="algorithms", nargs="+", type=int, default=[4, 8, 16, 32, 64], metavar="N")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--replications", type=int, default=5, help="data sets for each number of algorithms, at most")
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=1500, help="of each chain of the reference")
    parser.add_argument(
        "--limit", type=float, default=40.0, help="CPU seconds of a method after which no data set more"
    )
    parser.add_argument("--longest", type=float, default=900.0, help="CPU seconds that one fit may be expected to take")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="keep the results as JSON, after each fit")
    parser.add_argument("--resume", action="store_true", help="continue from what is in --output")
    parser.add_argument("--figure", type=Path, help="draw a PNG")
    quick = {"algorithms": [4, 8], "methods": ["native", "choix ilsr"], "replications": 1, "sweeps": 300}
    options = parse_arguments(parser, quick)
    needed = {"nutpie": "nutpie", "pymc": "pymc", "choix ilsr": "choix", "choix opt": "choix"}
    missing = [method for method in options.methods if method in needed and find_spec(needed[method]) is None]
    for method in missing:
        print(f"{method}: left out, {needed[method]} is not installed")
    print(", ".join(f"{name} {number}" for name, number in versions(PACKAGES).items()), flush=True)
    rows, references = measure_all(options, [method for method in options.methods if method not in missing])
    summary = summarise(rows)
    native = {row["n"]: row["cpu"] for row in summary if row["method"] == "native"}
    print(f"\n{'method':11} {'n':>3}{'sets':>5}{'CPU s':>10}{'compiling':>10}{'mean error':>11}{'sd error':>9}")
    for row in summary:
        width = f"{row['sd_error']:9.3f}" if "sd_error" in row else f"{'':9}"
        line = f"{row['method']:11} {row['n']:3d}{row['data_sets']:5d}{row['cpu']:10.3f}{row['compilation']:10.2f}"
        line += f"{row['mean_error']:11.3f}{width}"
        if row["method"] != "native" and row["n"] in native:
            name, ratio = f"CPU seconds, {row['method']}, n={row['n']}", row["cpu"] / native[row["n"]]
            report_figure(f"{line}  {ratio:.1f} times the native engine", name, ratio, "native engine", "higher")
        else:
            print(line)
    if options.output:
        write(options.output, options, rows, references)
    if options.figure:
        draw(options.figure, summary)


if __name__ == "__main__":
    main()
