"""How fast IOHprofiler data are read and live runs are logged, against plain alternatives in the same run.

    python benchmarks/speed/ioh_logs.py

Reading: a folder of runs as ioh's Analyzer writes them, to a RankingTable; the alternative is ``pandas.read_csv`` on
the rows of each run, aligned by ``numpy.searchsorted``, which checks nothing.  Logging needs ioh: a run with a
RankingLogger against the same run with ioh's Analyzer on improvement.  CPU seconds on one core, best of several
repetitions.
"""

import argparse
import io
import json
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd

from polarbear_plugins import RankingTable, log_timepoints, rank
from polarbear_plugins.adapters import ioh_logs
from polarbear_plugins.plugins.manager import Plugins

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure, seconds

ALGORITHMS, FUNCTIONS, BUDGET = 5, 24, 10_000


def write(root: Path, runs: int, rows: int) -> int:
    """Write runs of several algorithms on several functions; return how many."""
    rng = np.random.default_rng(0)
    instances = runs // (ALGORITHMS * FUNCTIONS)
    for algorithm in range(ALGORITHMS):
        for function in range(1, FUNCTIONS + 1):
            folder = root / f"a{algorithm}"
            path = f"data_f{function}_F{function}/IOHprofiler_f{function}_DIM5.dat"
            described, lines = [], []
            for instance in range(1, instances + 1):
                times = np.sort(rng.choice(np.arange(2, BUDGET), rows - 2, replace=False)).tolist()
                values = np.sort(10 ** rng.uniform(-8, 3, rows - 1))[::-1].tolist()
                described.append(
                    {
                        "instance": instance,
                        "evals": BUDGET,
                        "best": {"evals": times[-1], "y": values[-1], "x": [0.5] * 5},
                    }
                )
                lines.append("evaluations raw_y\n")
                lines += [f"{t} {y:.10f}\n" for t, y in zip([1, *times, BUDGET], [*values, values[0]], strict=True)]
            (folder / path).parent.mkdir(parents=True)
            (folder / path).write_text("".join(lines))
            index = {
                "function_id": function,
                "function_name": f"F{function}",
                "maximization": False,
                "algorithm": {"name": f"a{algorithm}"},
                "scenarios": [{"dimension": 5, "path": path, "runs": described}],
            }
            (folder / f"IOHprofiler_f{function}_F{function}.json").write_text(json.dumps(index))
    return ALGORITHMS * FUNCTIONS * instances


def plain(root: Path, grid: np.ndarray) -> RankingTable:
    """Read the same with pandas, a run at a time."""
    values: dict[str, dict[str, np.ndarray]] = {}
    for path in sorted(root.rglob("*.json")):
        index = json.loads(path.read_text())
        for scenario in index["scenarios"]:
            text = (path.parent / scenario["path"]).read_text()
            blocks = text.split("evaluations raw_y\n")[1:]
            for run, block in zip(scenario["runs"], blocks, strict=True):
                frame = pd.read_csv(io.StringIO(block), sep=" ", header=None, names=["evaluations", "raw_y"])
                best = np.minimum.accumulate(frame["raw_y"].to_numpy())
                best[frame["evaluations"].to_numpy().searchsorted(run["best"]["evals"]) :] = run["best"]["y"]
                place = frame["evaluations"].to_numpy().searchsorted(grid, side="right") - 1
                name = f"f{index['function_id']}_d5_i{run['instance']}"
                values.setdefault(name, {})[index["algorithm"]["name"]] = best[place]
    names = [f"a{k}" for k in range(ALGORITHMS)]
    array = np.array([[runs[name] for name in names] for runs in values.values()]).transpose(0, 2, 1)
    return RankingTable.from_values(array, algorithms=names, timepoints=grid, instances=list(values))


def reading(runs: int, rows: int, repetitions: int) -> None:
    """Measure reading."""
    plugins = Plugins()
    plugins.register(ioh_logs, "ioh-logs")
    grid = log_timepoints(1, BUDGET, 50, integer=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        count = write(root, runs, rows)

        def ours() -> RankingTable:
            return rank(plugins.read_trajectories(root), grid)

        table, other = ours(), plain(root, grid)
        order = [table.instances.index(name) for name in other.instances]
        if not np.array_equal(table.ranks[order], other.ranks):
            raise SystemExit("The two do not agree.")
        mine, theirs = seconds(ours, repetitions), seconds(lambda: plain(root, grid), repetitions)
        print(f"{count} runs with {count * rows} rows to a RankingTable, CPU seconds")
        report_figure(
            f"ours {mine:.2f}   pandas.read_csv per run {theirs:.2f}   ratio {theirs / mine:.1f}",
            "speed of reading",
            theirs / mine,
            "pandas.read_csv for each run",
            "higher",
        )
        size = sum(path.stat().st_size for path in root.rglob("*.dat"))
        tracemalloc.start()
        for _ in plugins.read_trajectories(root):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"memory while reading {peak / 1e6:.1f} MB at most, files {size / 1e6:.1f} MB")


def logging(repetitions: int) -> None:
    """Measure logging: random points, which improve seldom, and points ever closer, which always do."""
    try:
        import ioh
    except ImportError:
        print("logging: ioh is not installed")
        return
    from polarbear_plugins.adapters.ioh_logger import RankingLogger

    rng = np.random.default_rng(0)
    count = 20_000
    optimum = np.array(ioh.get_problem(1, 1, 5).optimum.x)
    random = rng.uniform(-5, 5, (count, 5))
    some = optimum + 0.999 ** np.arange(count)[:, None] * rng.normal(size=(count, 5))
    always = optimum + np.linspace(1, 0.01, count)[:, None] * np.ones(5)
    grid = log_timepoints(1, count, 50, integer=True)
    for title, x in (("random search", random), ("ever closer", some), ("every evaluation better", always)):
        points = x.tolist()

        def run(logger: object, points: list[list[float]] = points) -> float:
            problem = ioh.get_problem(1, 1, 5)
            if logger is not None:
                problem.attach_logger(logger)
            start = time.process_time()
            for x in points:
                problem(x)
            problem.reset()
            return time.process_time() - start

        with tempfile.TemporaryDirectory() as folder:
            trigger = ioh.logger.trigger.OnImprovement()
            analyzer = ioh.logger.Analyzer(root=folder, triggers=[trigger])
            logger = RankingLogger("a", grid)
            # In turns, so that both meet the same weather.
            times = np.array([[run(kind) for kind in (None, analyzer, logger)] for _ in range(4 * repetitions)])
            improvements = logger.trajectories[0].times.size
            analyzer.close()
            logger.close()
        bare, theirs, mine = times.min(axis=0)
        print(f"{title}: {count} evaluations, {improvements} improvements, CPU seconds")
        report_figure(
            f"RankingLogger {mine:.4f}   Analyzer {theirs:.4f}   no logger {bare:.4f}   ratio {mine / theirs:.2f}",
            f"time of logging, {title}",
            mine / theirs,
            "ioh's Analyzer",
            "lower",
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=6000)
    parser.add_argument("--rows", type=int, default=50, help="rows of each run")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parse_arguments(parser, {"runs": 240, "repetitions": 1})
    reading(arguments.runs, arguments.rows, arguments.repetitions)
    logging(arguments.repetitions)


if __name__ == "__main__":
    main()
