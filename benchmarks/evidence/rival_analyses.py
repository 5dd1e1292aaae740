"""Analyses of finished runs: who predicts new instances best, and whose 95 % statements hold.

    python benchmarks/evidence/rival_analyses.py --table runs.npz --hpob discrete.csv --output analyses.json

From 10 or 30 training instances, each method predicts held-out instances: who of a pair is ahead at a timepoint (log
score, Brier score), and who is first at a random budget (log score, and the share of first places that its pick loses).
Its statements "i is better than j, 95 %" are compared with what holds over all instances: in the sense of most methods'
readers, that i wins more often than it loses, and in the method's own sense.

Data: runs of CMA-ES variants on MA-BBOB, hyperparameter optimizers on HPO-B, the same with training instances from one
half of the search spaces and predictions for the other, and simulated ones by three generators of
benchmarks/misfit_cases.py.  PolarBear is what its commands do: where the check of the model fails, ratings and
statements come from first places alone.  A rival is a file of benchmarks/evidence/rivals/analysing/.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure
from rivals.versions import versions

#: Module in rivals/analysing/, its function, and the packages to import.
METHODS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "PolarBear": ("polarbear", "checked", ()),
    "PolarBear, unchecked": ("polarbear", "analyse", ()),
    "PolarBear, groups ignored": ("polarbear", "without_groups", ()),
    "PolarBear, first places": ("polarbear", "first_places", ()),
    "mean ranks (autorank)": ("autorank", "analyse", ("autorank",)),
    "signed ranks (baycomp)": ("baycomp", "analyse", ("baycomp",)),
    "Elo (iohinspector)": ("elo", "analyse", ("iohinspector", "skelo")),
    "Glicko-2": ("glicko", "analyse", ("glicko2",)),
    "openskill": ("openskill", "analyse", ("openskill",)),
    "bootstrap (robustranking)": ("bootstrap", "analyse", ("robustranking",)),
    "AOCC with bootstrap": ("aocc", "analyse", ()),
    "counts, add one": ("baselines", "counts", ()),
    "coin": ("baselines", "coin", ()),
}
DATA = ("plackett-luce", "heavy tails", "two kinds", "ma-bbob", "hpo-b", "hpo-b new spaces")
PACKAGES = (
    *("polarbear-plugins", "numpy", "autorank", "baycomp", "iohinspector", "skelo", "glicko2", "openskill"),
    "robustranking",
)


def read_rows(path: Path | None) -> list[dict[str, Any]]:
    """What an earlier call measured."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def measure(options: argparse.Namespace, methods: list[str]) -> list[dict[str, Any]]:
    """A row for each data set, number of training instances, replication and method."""
    from rivals.analysing.answers import score
    from rivals.analysing.data import load

    functions = {}
    for name in methods:
        module, function, _ = METHODS[name]
        functions[name] = getattr(importlib.import_module(f"rivals.analysing.{module}"), function)
    rows = read_rows(options.rows)
    done = {(row["data"], row["training"], row["replication"], row["method"]) for row in rows}
    sets = {}
    for name in options.data:
        try:
            sets[name] = load(name, options.timepoints, options.table, options.hpob, options.instances)
        except FileNotFoundError as error:
            print(f"{name}: left out, {error}", flush=True)
    for replication in range(options.replications):
        for name, data in sets.items():
            keys = [
                (name, size, replication, method)
                for size in options.training
                for method in methods
                if method != "PolarBear, groups ignored" or name == "hpo-b new spaces"
            ]
            if done.issuperset(keys):
                continue
            splits = zip(options.training, data.splits(options.training, options.seed + replication), strict=True)
            for size, split in splits:
                for key in keys:
                    if key[1] != size or key in done:
                        continue
                    start = time.process_time()
                    answer = functions[key[3]](split.sample, options.seed + replication)
                    row = dict(zip(("data", "training", "replication", "method"), key, strict=True))
                    row["cpu"] = time.process_time() - start
                    row |= score(answer, split.held_out, split.population, split.sample.timepoints)
                    rows.append(row)
                    if options.rows:
                        with options.rows.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(row) + "\n")
        print(f"replication {replication + 1} of {options.replications}", flush=True)
    wanted = {(name, size) for name in sets for size in options.training}
    return [
        row
        for row in rows
        if (row["data"], row["training"]) in wanted
        and row["method"] in methods
        and row["replication"] < options.replications
    ]


def show(summary: list[dict[str, Any]]) -> None:
    """Print a table for each data set and number of training instances."""
    head = f"{'log score':>10}{'to best':>9}{'Brier':>7}{'winner':>8}{'regret':>8}"
    head += f"{'stated':>8}{'false':>7}{'false, own sense':>18}{'CPU s':>8}"
    for data, training in dict.fromkeys((row["data"], row["training"]) for row in summary):
        print(f"\n{data}, {training} training instances\n{'method':27}{head}")
        for row in summary:
            if (row["data"], row["training"]) != (data, training):
                continue

            def cell(key: str, width: int, form: str, row: dict[str, Any] = row) -> str:
                found = row.get(key)
                return f"{'-':>{width}}" if found is None else f"{format(found['mean'], form):>{width}}"

            line = f"{row['method']:27}{cell('log_score', 10, '.3f')}{cell('log_score to best', 9, '+.3f')}"
            line += f"{cell('brier', 7, '.3f')}{cell('winner_log_score', 8, '.3f')}{cell('regret', 8, '.3f')}"
            line += f"{cell('stated', 8, '.1%')}{cell('false share', 7, '.1%')}{cell('false_own share', 18, '.1%')}"
            line += f"{cell('cpu', 8, '.2f')}"
            if row.get("false share"):
                name, share = f"false 95 % statements, {data}, {training}, {row['method']}", row["false share"]["mean"]
                report_figure(line, name, share, "at most 0.05", "lower")
            else:
                print(line)


def main() -> None:
    """Analyse, print tables, and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--replications", type=int, default=30)
    parser.add_argument("--training", nargs="+", type=int, default=[10, 30], help="numbers of training instances")
    parser.add_argument("--timepoints", type=int, default=3, help="of those of a data set, evenly spread")
    parser.add_argument("--table", type=Path, metavar="PATH.npz", help="runs on MA-BBOB; recorded if there are none")
    parser.add_argument("--instances", type=int, default=300, help="of MA-BBOB to record")
    parser.add_argument("--hpob", type=Path, metavar="PATH", help="results of HPO-B as a CSV file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=Path, help="keep each answer's scores in this file, and continue from it")
    parser.add_argument("--output", type=Path, help="keep the results as JSON")
    parser.add_argument("--figure", type=Path, help="draw a PNG")
    quick = {"replications": 2, "training": [10], "data": ["plackett-luce"], "timepoints": 1}
    options = parse_arguments(parser, quick)
    methods = []
    for method in options.methods:
        missing = [name for name in METHODS[method][2] if find_spec(name) is None]
        if missing:
            print(f"{method}: left out, {', '.join(missing)} is not installed")
        else:
            methods.append(method)
    print(", ".join(f"{name} {number}" for name, number in versions(PACKAGES).items()), flush=True)
    rows = measure(options, methods)
    if not rows:
        print("nothing was measured")
        return
    from rivals.analysing.summary import draw, summarise

    summary = summarise(rows)
    show(summary)
    about = {key: getattr(options, key) for key in ("replications", "training", "timepoints", "seed", "instances")}
    if options.output:
        data = {"versions": versions(PACKAGES), "settings": about, "summary": summary}
        options.output.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if options.figure:
        draw(options.figure, summary)


if __name__ == "__main__":
    main()
