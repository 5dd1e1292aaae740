"""Races with known truth: who is eliminated wrongly, and what does racing save.

    python benchmarks/evidence/calibration_races.py --races 500 --output results.json

Ratings of 5 to 10 algorithms are drawn from the Gaussian process of the paper's synthetic examples, and raced in two
modes: pointwise elimination with strict resolution under the independent Dirichlet model, and joint elimination with
crossing resolution under a temporal prior; with independent timepoints and with runs that correlate over time as real
ones do.  Printed for each: the share of truly non-dominated algorithms that were eliminated, with a 95 % interval; the
share of races that found exactly the true Pareto set, and that ended by themselves; the share of the cost saved against
running every algorithm in full on as many instances; seconds per race.
"""

import argparse
import json
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.plugins.synthetic import SyntheticSuite, draw_log_ratings, pareto_set, synthetic_portfolio

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

MODES: dict[str, dict[str, Any]] = {
    "pointwise/strict": {"elimination": "pointwise", "resolution": "strict", "prior": "dirichlet"},
    "joint/crossing": {"elimination": "joint", "resolution": "crossing"},
}
CORRELATIONS = (0.0, 0.95)


def one_race(job: tuple[str, str, float, int, int, int, int]) -> dict[str, float]:
    """Race once; counts of what was right and wrong."""
    mode, prior, correlation, seed, timepoints, draws, max_rounds = job
    algorithms = 5 + seed % 6
    truth = draw_log_ratings(algorithms, timepoints, seed)
    settings = RaceSettings(
        **{"prior": prior, **MODES[mode]}, seed=seed, draws=draws, max_rounds=max_rounds, batch_max=64
    )
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # counted instead
        result = race(
            synthetic_portfolio(log_ratings=truth, correlation=correlation),
            SyntheticSuite(),
            range(1, timepoints + 1),
            settings,
            workers=0,
        )
    kept = np.isin(result.algorithms, result.pareto_set)
    true = pareto_set(truth)
    return {
        "true": int(true.sum()),
        "wrong": int((true & ~kept).sum()),
        "exact": float((kept == true).all()),
        "resolved": float(result.resolved),
        "saved": 1 - result.cost / result.full_cost,
        "eliminated": int((~kept).sum()),
        "instances": len(result.state.table),
        "rounds": len(result.rounds),
        "poor": sum(not finished.good for finished in result.rounds),
        "seconds": time.perf_counter() - began,
    }


def interval(wrong: int, of: int) -> tuple[float, float]:
    """Clopper-Pearson interval of a share, 95 %."""
    low = float(beta.ppf(0.025, wrong, of - wrong + 1)) if wrong else 0.0
    return low, float(beta.ppf(0.975, wrong + 1, of - wrong))


def main() -> None:
    """Race, print a line for each mode and correlation, and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=500, help="for each mode and correlation")
    parser.add_argument("--prior", default="bspline", help="the temporal prior of joint elimination")
    parser.add_argument("--timepoints", type=int, default=10)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--max-rounds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--mode", choices=list(MODES), action="append")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parse_arguments(parser, {"races": 4, "timepoints": 4, "draws": 200, "max_rounds": 2})
    print(
        f"{'mode':18}{'corr':>6}{'wrong':>8}{'of':>8}{'share':>9}{'95 % interval':>18}{'exact':>8}{'settled':>9}",
        end="",
    )
    print(f"{'saved':>8}{'instances':>11}{'s/race':>8}")
    rows = []
    for mode in options.mode or MODES:
        for correlation in CORRELATIONS:
            jobs = [
                (mode, options.prior, correlation, seed, options.timepoints, options.draws, options.max_rounds)
                for seed in range(options.first_seed, options.first_seed + options.races)
            ]
            with ProcessPoolExecutor(options.workers) as pool:
                races = list(pool.map(one_race, jobs, chunksize=4))
            total = {key: sum(found[key] for found in races) for key in races[0]}
            wrong, of = int(total["wrong"]), int(total["true"])
            low, high = interval(wrong, of)
            row = {
                "mode": mode,
                "prior": MODES[mode].get("prior", options.prior),
                "correlation": correlation,
                "races": len(races),
                "wrong": wrong,
                "of": of,
                "share": wrong / of,
                "interval": [low, high],
                **{
                    key: total[key] / len(races)
                    for key in ("exact", "resolved", "saved", "eliminated", "instances", "rounds", "poor", "seconds")
                },
            }
            rows.append(row)
            report_figure(
                f"{mode:18}{correlation:6.2f}{wrong:8d}{of:8d}{wrong / of:9.4f}{f'{low:.4f} .. {high:.4f}':>18}"
                f"{row['exact']:8.2f}{row['resolved']:9.2f}{row['saved']:8.2f}{row['instances']:11.0f}"
                f"{row['seconds']:8.2f}",
                f"share wrongly eliminated, {mode}, correlation {correlation:g}",
                wrong / of,
                "1 - alpha: 0.01",
                "lower",
            )
    if options.output:
        about = {key: getattr(options, key) for key in ("timepoints", "draws", "max_rounds", "first_seed")}
        options.output.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
