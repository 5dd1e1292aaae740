"""Forecasts of the instances that a race still needs, against what it really needed.

    python benchmarks/evidence/plan.py --races 200 --output results.json

Algorithms with ratings from the Gaussian process of the paper's synthetic examples race until every pair is settled.
After some rounds the posterior forecasts how many more instances that takes: by ``forecast``, which simulates how the
race may go on, and by the square-root rule, which takes each draw of the posterior for the truth and asks when its
differences would be sure, noise and rounds left out.  Printed for each: the share of races whose need lies in the 80 %
interval, with a 95 % interval of that share, below it and above it; the share that needed more than the median; how
wide the interval is on average, as the ratio of its ends; and seconds for a forecast.

Needs are multiples of batches, so intervals with both ends included cover more than 80 % where races are short; the
column ``inside`` counts the ends of the interval as half.
"""

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from scipy.stats import beta

from polarbear_plugins import Posterior, RaceSettings
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.plugins.synthetic import draw_log_ratings, utilities
from polarbear_plugins.racing.forecast import forecast
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.rules import decide, plan
from polarbear_plugins.racing.state import RaceState, start_race

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

MODES: dict[str, dict[str, Any]] = {
    "pointwise/strict": {"elimination": "pointwise", "resolution": "strict", "prior": "dirichlet"},
    "joint/crossing": {"elimination": "joint", "resolution": "crossing", "prior": "bspline"},
}
Interval = tuple[float, float, float]


def simulated(state: RaceState, posterior: Posterior) -> Interval:
    """Forecast by simulation: low, median, high."""
    found = forecast(state, posterior)
    low, median, high = (math.inf if count is None else count for count in (found.low, found.median, found.high))
    return low, median, high


def square_root_rule(state: RaceState, posterior: Posterior) -> Interval:
    """Forecast by how the uncertainty of a difference shrinks: low, median, high."""
    inside = [state.algorithms.index(name) for name in state.pareto_set]
    logs, settings = posterior.log_ratings, state.settings
    width = math.log((0.5 + settings.epsilon) / (0.5 - settings.epsilon))
    z = NormalDist().inv_cdf(settings.alpha)
    drawn, draws = len(state.table), len(logs)
    out = {i: np.full(draws, np.inf) for i in inside}
    need = {}
    for i in inside:
        for j in inside:
            if j <= i:
                continue
            difference = logs[:, :, i] - logs[:, :, j]
            spread = drawn * difference.var(axis=0) * z**2
            dominant = spread / difference**2
            room = np.maximum(width - np.abs(difference), 1e-12)
            equivalent = np.where(np.abs(difference) < width, spread / room**2, np.inf)
            pair = np.where(state.resolved[:, i, j], 0.0, np.minimum(dominant, equivalent)).max(axis=1)
            if settings.resolution == "crossing":
                better = np.where(difference > 0, dominant, np.inf).min(axis=1)
                worse = np.where(difference < 0, dominant, np.inf).min(axis=1)
                pair = np.minimum(pair, np.sort([better, worse, equivalent.min(axis=1)], axis=0)[1])
            need[i, j] = pair
            everywhere = dominant.max(axis=1)
            out[j] = np.where((difference > 0).all(axis=1), np.minimum(out[j], everywhere), out[j])
            out[i] = np.where((difference < 0).all(axis=1), np.minimum(out[i], everywhere), out[i])
    total = np.max([np.minimum(pair, np.minimum(out[i], out[j])) for (i, j), pair in need.items()], axis=0)
    low, median, high = np.quantile(np.maximum(total - drawn, 0), [0.1, 0.5, 0.9], method="higher")
    return float(low), float(median), float(high)


FORECASTS: dict[str, Callable[[RaceState, Posterior], Interval]] = {
    "simulated": simulated,
    "square-root": square_root_rule,
}


@dataclass
class Forecasted:
    """What a race needed after its forecast, and what the forecasts said."""

    needed: float
    intervals: dict[str, Interval]
    seconds: dict[str, float]


def step(state: RaceState, truth: np.ndarray, correlation: float, rng: np.random.Generator) -> Any:
    """Carry out a round without running anything: the values of all runs are drawn at once."""
    orders = plan(state).orders
    first = len(state.table)
    rows = orders[-1].instance + 1 - first
    shape = (rows, *truth.T.shape)
    drawn = -utilities(np.broadcast_to(truth.T, shape).copy(), correlation, rng).transpose(0, 2, 1)
    values = np.full_like(drawn, np.nan)
    for order in orders:
        place, end = state.algorithms.index(order.algorithm), np.searchsorted(state.timepoints, order.until) + 1
        values[order.instance - first, :end, place] = drawn[order.instance - first, :end, place]
    table = state.table.extended(values, [str(first + row) for row in range(rows)])
    observed = replace(state, table=table, cost=state.cost + sum(order.until for order in orders))
    posterior = infer(observed, len(state.rounds) + 1)
    return decide(observed, posterior), posterior


def one_race(seed: int, options: argparse.Namespace, mode: str, correlation: float) -> Forecasted | None:
    """Race until every pair is settled; ``None`` if that is so before the forecast."""
    algorithms = options.algorithms[0] + seed % (options.algorithms[1] - options.algorithms[0] + 1)
    truth = draw_log_ratings(algorithms, options.timepoints, seed)
    settings = RaceSettings(**MODES[mode], alpha=options.alpha, epsilon=options.epsilon, draws=options.draws, seed=seed)
    rng = np.random.default_rng([seed, 1])
    state = start_race([str(k) for k in range(algorithms)], range(1, options.timepoints + 1), settings)
    found: Forecasted | None = None
    at = 0
    while not state.resolved.all():
        if len(state.table) > options.most:
            if found is not None:
                found.needed = math.inf
            return found
        state, posterior = step(state, truth, correlation, rng)
        if len(state.rounds) == options.after and not state.resolved.all():
            at, intervals, seconds = len(state.table), {}, {}
            for name, forecast in FORECASTS.items():
                began = time.perf_counter()
                intervals[name] = forecast(state, posterior)
                seconds[name] = time.perf_counter() - began
            found = Forecasted(math.nan, intervals, seconds)
    if found is not None:
        found.needed = len(state.table) - at
    return found


def judge(name: str, races: Sequence[Forecasted]) -> dict[str, float]:
    """Say how often the intervals of a forecast were right."""
    needed = np.array([found.needed for found in races])
    low, median, high = np.array([found.intervals[name] for found in races]).T
    covered = (low <= needed) & (needed <= high)
    inside = covered - 0.5 * ((needed == low) | (needed == high)) * covered
    hits, count = int(covered.sum()), len(races)
    return {
        "races": count,
        "covered": hits / count,
        "from": float(beta.ppf(0.025, hits, count - hits + 1)) if hits else 0.0,
        "to": float(beta.ppf(0.975, hits + 1, count - hits)) if hits < count else 1.0,
        "inside": float(inside.mean()),
        "below": float((needed < low).mean()),
        "above": float((needed > high).mean()),
        "above_median": float((needed > median).mean()),
        "width": float(np.exp(np.mean(np.log(np.maximum(high, 8) / np.maximum(low, 8))))),
        "needed": float(np.median(needed)),
        "unsettled": int(np.isinf(needed).sum()),
        "seconds": float(np.mean([found.seconds[name] for found in races])),
    }


def main() -> None:
    """Race, print two lines for each mode and correlation, and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=200, help="for each mode and correlation")
    parser.add_argument("--mode", choices=list(MODES), action="append")
    parser.add_argument("--correlation", type=float, action="append", help="between timepoints of a run: 0 and 0.95")
    parser.add_argument("--after", type=int, default=3, help="rounds before the forecast")
    parser.add_argument("--algorithms", type=int, nargs=2, default=(3, 6))
    parser.add_argument("--timepoints", type=int, default=6)
    parser.add_argument("--alpha", type=float, default=0.95)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--most", type=int, default=5000, help="instances after which a race is given up")
    parser.add_argument("--first-seed", type=int, default=0, help="of the races; fresh ones from 10000 on")
    parser.add_argument("--output", type=Path)
    options = parse_arguments(
        parser,
        {"races": 2, "timepoints": 3, "draws": 200, "mode": ["pointwise/strict"], "algorithms": (3, 3), "most": 400},
    )
    warnings.simplefilter("ignore", InferenceWarning)
    columns = ("races", "covered", "95 % interval", "inside", "below", "above", "> median", "width", "needed", "s")
    print(
        f"{'mode':18}{'corr':>6}  {'forecast':12}"
        + "".join(f"{column:>{17 if '%' in column else 10}}" for column in columns)
    )
    rows = []
    for mode in options.mode or MODES:
        for correlation in options.correlation or (0.0, 0.95):
            races: list[Forecasted] = []
            seed = options.first_seed
            while len(races) < options.races:
                found = one_race(seed, options, mode, correlation)
                races += [] if found is None else [found]
                seed += 1
            for name in FORECASTS:
                row = judge(name, races)
                bounds = f"{row['from']:.3f} .. {row['to']:.3f}"
                rows.append({"mode": mode, "correlation": correlation, "forecast": name, **row})
                report_figure(
                    f"{mode:18}{correlation:6.2f}  {name:12}{row['races']:10d}{row['covered']:10.3f}"
                    f"{bounds:>17}{row['inside']:10.3f}{row['below']:10.3f}"
                    f"{row['above']:10.3f}{row['above_median']:10.3f}{row['width']:10.2f}{row['needed']:10.0f}"
                    f"{row['seconds']:10.3f}",
                    f"coverage of {name}, {mode}, correlation {correlation:g}",
                    row["covered"],
                    "nominal 0.8",
                )
    if options.output:
        about = {key: value for key, value in vars(options).items() if key not in ("output", "mode", "correlation")}
        options.output.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
