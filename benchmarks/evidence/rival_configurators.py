"""Configurators in a space at equal numbers of evaluations: irace, SMAC3, TPE with a pruner, PolarBearSampler.

    python benchmarks/evidence/rival_configurators.py --output configurators.json --figure configurators.png
    python benchmarks/evidence/rival_configurators.py --tasks annealing --rivals irace polarbear --seeds 5

An evaluation is one configuration on one instance.  Each seed draws 25 instances, and all rivals of a seed see the same
losses on them; the tasks are described in benchmarks/evidence/rivals/configuring/tasks.py.  Printed for each task and
budget: the regret of the configuration that a rival names, on instances that it did not see, in units in which the
median configuration has about 1, with its 95 % interval over seeds; and the paired difference to the lowest ("behind").
The best is marked =, and ~ means that the interval of the difference reaches 0.  The best is chosen by the same seeds,
and nothing is corrected for the number of rivals.

Rivals are used with their defaults.  irace is run for each budget, since it plans by that; the others name their pick
at each budget of one run.  random search evaluates each configuration on all instances.  polarbear-near takes its
candidates near the survivors, as irace does, polarbear-bold eliminates at a probability of 0.8 in place of 0.99, and
polarbear-unguarded does so without the guard by counted wins: they test why PolarBearSampler wins or loses.

What is in the output is not run again: a run that was interrupted goes on, and rivals can be added.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, skip

TASKS = ("annealing", "svm-digits", "modcma")
#: Modules of rivals; those with several have them in RIVALS.
MODULES = {
    "irace": "irace",
    "smac": "smac",
    "optuna": "optuna",
    "polarbear": "polarbear",
    "random": "random",
    "optuna-polarbear": "optuna",
    "polarbear-near": "polarbear",
    "polarbear-bold": "polarbear",
    "polarbear-unguarded": "polarbear",
}
PACKAGES = ("polarbear-plugins", "smac", "optuna", "modcma", "ioh", "scikit-learn", "numpy", "scipy")
SAMPLE = 150


def find_rival(name: str) -> Any:
    """The function of a rival."""
    module = import_module(f"rivals.configuring.{MODULES[name]}")
    return module.RIVALS[name] if hasattr(module, "RIVALS") else module.configure


@cache
def open_task(name: str, folder: Path, grid: int) -> Any:
    """A task, loaded once in a process."""
    from rivals.configuring.tasks import Sources, load_configuring_task

    return load_configuring_task(name, Sources(folder, grid))


def run_job(job: tuple[str, str, int], budgets: Sequence[int], folder: Path, grid: int) -> list[dict[str, Any]] | str:
    """What a rival picked on a task with a seed, a row for each budget; a text if the rival is missing here."""
    import optuna
    from rivals.configuring.budget import RivalMissingError
    from threadpoolctl import threadpool_limits

    task_name, rival, seed = job
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task = open_task(task_name, folder, grid)
    start = time.process_time()
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            picks = find_rival(rival)(task, seed, budgets)
        except (ImportError, RivalMissingError) as problem:
            return f"{rival} is left out: {problem}"
        seconds = time.process_time() - start
        regret = task.draw(seed).regret
        rows = [
            {
                "task": task_name,
                "rival": rival,
                "label": label,
                "seed": seed,
                "budget": budget,
                "value": None if pick is None else round(regret(pick), 9),
                "pick": pick,
                "seconds": round(seconds, 2),
            }
            for label, by_budget in picks.items()
            for budget, pick in by_budget.items()
        ]
    if task_name == "modcma":
        task.runs.keep()
    return rows


def versions() -> dict[str, str | None]:
    """Versions of what was compared; ``None`` for what is missing."""
    from rivals.configuring.irace import version

    found: dict[str, str | None] = {"python": platform.python_version(), "irace": version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def read_options() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, metavar="TASK", help=", ".join(TASKS))
    parser.add_argument(
        "--rivals", nargs="+", choices=MODULES, default=list(MODULES), metavar="RIVAL", help=", ".join(MODULES)
    )
    parser.add_argument("--budgets", nargs="+", type=int, default=(125, 250, 500), help="multiples of 25")
    parser.add_argument("--output", type=Path, metavar="JSON")
    parser.add_argument("--figure", type=Path, metavar="PNG")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--grid", type=int, default=15, help="positions on an axis of svm-digits")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="random configurations of modcma to compare with")
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(tempfile.gettempdir()) / "polarbear_configurators",
        help="folder for tables that take minutes to compute",
    )
    quick = {"seeds": 1, "budgets": (125,), "tasks": ("annealing",), "rivals": ("irace", "optuna", "polarbear")}
    options = parse_arguments(parser, quick)
    if any(budget <= 0 or budget % 25 for budget in options.budgets):
        parser.error(f"--budgets must be multiples of 25, the instances of a seed, got {list(options.budgets)}")
    return options


def run_all(options: argparse.Namespace, rows: list[dict[str, Any]], save: Any) -> None:
    """Run what is not among the rows yet, seed by seed, and add it."""
    done = {(row["task"], row["rival"], row["seed"]) for row in rows}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    jobs = [
        job
        for job in ((task, rival, seed) for seed in seeds for task in options.tasks for rival in options.rivals)
        if job not in done
    ]
    common = options.budgets, options.cache, options.grid
    said: set[str] = set()
    with ProcessPoolExecutor(options.workers) as pool:
        for job, found in zip(jobs, pool.map(run_job, jobs, *([one] * len(jobs) for one in common)), strict=True):
            if isinstance(found, str):
                if found not in said:
                    said.add(found)
                    print(found, flush=True)
                continue
            rows.extend(found)
            save()
            print(f"{job[0]}, {job[1]}, seed {job[2]}: {found[0]['seconds']:.0f} s", file=sys.stderr, flush=True)


def main() -> None:
    """Run the rivals, print the tables, and write the figures down."""
    options = read_options()
    try:
        from rivals.configuring.report import draw, print_summary, summarize, with_regrets
    except ImportError as problem:
        skip(f"this benchmark needs what is not installed here: {problem}")
    data: dict[str, Any] = {"rows": [], "modcma_sample": []}
    if options.output and options.output.exists():
        data = json.loads(options.output.read_text())
    data["versions"] = versions()

    def save() -> None:
        if options.output:
            partial = options.output.with_suffix(".partial")
            partial.write_text(json.dumps(data, indent=None) + "\n")
            partial.replace(options.output)

    print(", ".join(f"{name} {version or 'missing'}" for name, version in data["versions"].items()), flush=True)
    run_all(options, data["rows"], save)
    if not data["rows"]:
        skip("none of the rivals is installed here")
    if any(row["task"] == "modcma" for row in data["rows"]) and len(data["modcma_sample"]) != options.sample:
        task = open_task("modcma", options.cache, options.grid)
        data["modcma_sample"] = task.sample(options.sample).round(9).tolist()
        task.runs.keep()
    data["rows"] = with_regrets(data["rows"], data["modcma_sample"])
    data["summary"] = summarize(data["rows"])
    save()
    print_summary(data["summary"])
    if options.figure:
        draw(data["summary"], options.figure)


if __name__ == "__main__":
    main()
