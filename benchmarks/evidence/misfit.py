"""Races on data that do not follow the model: who is eliminated wrongly, and at what cost.

    python benchmarks/evidence/misfit.py --races 300 --output misfit.json
    python benchmarks/evidence/misfit.py --alarms 400

Five algorithms at six timepoints on up to 120 instances, by four generators (benchmarks/misfit_cases.py).  Rules: the
posterior alone, the posterior with its guard (the default), the anytime-valid rule, F-race at every timepoint (Friedman
test and its post-hoc tests at 0.05, after each instance from the tenth on), and Wilcoxon's signed-rank tests with
Holm's correction on all 120 instances at once.  The last two are short implementations of the textbook procedures; an
algorithm is out if it is significantly worse at every timepoint.

Printed for each: true members that were eliminated, of all of them, where a member is an algorithm that no other beats
in first places at every timepoint; the same by majorities; the share of races with at least one such error
(family-wise); dominated algorithms found; cost against the posterior alone, and instances until an elimination, where
both rules eliminate; relations that were settled wrongly, by more than epsilon; and the regret of `select` in the share
of first places.

With --alarms: how often the check of the model fires, on data of the model and of the four generators.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from polarbear_plugins import RaceSettings, RankingTable, compare, fit, select
from polarbear_plugins.errors import InferenceWarning, ModelWarning
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import decide, plan
from polarbear_plugins.racing.state import RaceState, start_race
from polarbear_plugins.racing.verdicts import judge

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure
from misfit_cases import ALGORITHMS, KINDS, TIMEPOINTS, Generator, Kind, Truth

NAMES = tuple("ABCDE")
GRID = np.arange(1.0, TIMEPOINTS + 1)
RACES: dict[str, dict[str, Any]] = {
    "posterior alone": {"guard": "none"},
    "with guard": {},
    "anytime-valid": {"rule": "anytime-valid"},
}
RULES = (*RACES, "F-race", "Wilcoxon-Holm")
ALARM_SIZES = (8, 20, 60, 120, 400)


def one_case(job: tuple[Sequence[str], Kind, int, int, int]) -> dict[str, dict[str, Any]]:
    """Race once by each rule on the same data; counts of what was right and wrong."""
    rules, kind, seed, most, draws = job
    generator = Generator(kind, seed)
    truth = generator.truth()
    values = generator.sample(most, np.random.default_rng([seed, 7]))
    return {rule: one_race(rule, values, truth, seed, draws) for rule in rules}


def one_race(rule: str, values: np.ndarray, truth: Truth, seed: int, draws: int) -> dict[str, Any]:
    """Race once."""
    found: dict[str, Any] = {}
    eliminated_at: dict[str, int] = {}
    if rule in RACES:
        settings = RaceSettings(seed=seed, draws=draws, **RACES[rule])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InferenceWarning)
            warnings.simplefilter("ignore", ModelWarning)
            state, settled, wrong = run_race(values, settings, truth)
            found = {"settled": settled, "settled_wrong": wrong, "cost": state.cost, "regret": regret(state, truth)}
        kept = np.isin(NAMES, state.pareto_set)
        drawn = {done.number: done.instances for done in state.rounds}
        eliminated_at = {out.algorithm: drawn[out.round] for out in state.eliminations}
    else:
        kept, cost = f_race(values) if rule == "F-race" else wilcoxon_holm(values)
        found = {"cost": cost}
    lost, lost_majority = truth.members & ~kept, truth.majority_members & ~kept
    return found | {
        "eliminated_at": eliminated_at,
        "true": int(truth.members.sum()),
        "wrong": int(lost.sum()),
        "true_majority": int(truth.majority_members.sum()),
        "wrong_majority": int(lost_majority.sum()),
        "family": float(lost.any()),
        "family_majority": float(lost_majority.any()),
        "dominated": int((~truth.members).sum()),
        "found": int((~truth.members & ~kept).sum()),
    }


def run_race(values: np.ndarray, settings: RaceSettings, truth: Truth) -> tuple[RaceState, int, int]:
    """Race by the rules of the package on values that are known; also the relations settled, and wrongly so."""
    state = start_race(NAMES, GRID, settings)
    settled = wrong = 0
    while not (planned := plan(state, len(values))).over:
        rows = sorted({order.instance for order in planned.orders})
        seen = np.full((len(rows), TIMEPOINTS, ALGORITHMS), np.nan)
        for order in planned.orders:
            place, until = NAMES.index(order.algorithm), int(order.until)
            seen[order.instance - rows[0], :until, place] = values[order.instance, :until, place]
        table = state.table.extended(seen, [str(row) for row in rows])
        observed = replace(state, table=table, cost=state.cost + planned.cost)
        posterior = infer(observed, len(state.rounds) + 1)
        after = decide(observed, posterior)
        out = ~np.isin(NAMES, after.pareto_set)
        # A disputed pair is settled without a claim about its order.
        disputed = judge(observed, posterior, table).disputed
        newly = after.resolved & ~state.resolved & ~out[:, None] & ~out & ~disputed
        ahead = newly & (compare(posterior, settings.epsilon).p_better >= settings.alpha)
        settled += int(ahead.sum())
        wrong += int((ahead & (truth.first[:, :, None] < truth.first[:, None] - settings.epsilon)).sum())
        state = after
    return state, settled, wrong


def regret(state: RaceState, truth: Truth) -> float:
    """Share of first places, averaged over time, that the choice loses against the best one."""
    result = RaceResult(state=state, stopped="analyzed", _posterior=infer(state, len(state.rounds), check=True))
    ratings = result.robust_posterior(result.pareto_set) if state.settings.guard == "counts" else result.posterior
    chosen = select(ratings, among=result.pareto_set).algorithm
    value = truth.first.mean(axis=0)
    return float(value.max() - value[NAMES.index(chosen)])


def f_race(values: np.ndarray, level: float = 0.05, first: int = 10) -> tuple[np.ndarray, float]:
    """F-race at every timepoint; returns who is kept, and the cost."""
    kept, cost = np.ones(ALGORITHMS, dtype=bool), 0.0
    for seen in range(1, len(values) + 1):
        cost += kept.sum() * GRID[-1]
        if seen < first or kept.sum() < 2:
            continue
        worse = np.ones((TIMEPOINTS, kept.sum()), dtype=bool)
        for t in range(TIMEPOINTS):
            worse[t] = _friedman_worse(values[:seen, t, kept], level)
        kept[np.flatnonzero(kept)[worse.all(axis=0)]] = False
    return kept, cost


def _friedman_worse(values: np.ndarray, level: float) -> np.ndarray:
    """Who is significantly worse than the best by rank sums, if Friedman's test finds any difference."""
    blocks, k = values.shape
    ranks = stats.rankdata(values, axis=1)
    sums, squares = ranks.sum(axis=0), float((ranks**2).sum())
    baseline = blocks * k * (k + 1) ** 2 / 4
    if squares == baseline:  # nothing but ties
        return np.zeros(k, dtype=bool)
    statistic = (k - 1) * ((sums - blocks * (k + 1) / 2) ** 2).sum() / (squares - baseline)
    if stats.chi2.sf(statistic, k - 1) >= level:
        return np.zeros(k, dtype=bool)
    freedom = (blocks - 1) * (k - 1)
    spread = 2 * blocks * (1 - statistic / (blocks * (k - 1))) * (squares - baseline) / freedom
    return sums - sums.min() > stats.t.isf(level / 2, freedom) * np.sqrt(max(spread, 0.0))


def wilcoxon_holm(values: np.ndarray, level: float = 0.05) -> tuple[np.ndarray, float]:
    """Signed-rank tests of all ordered pairs, each at its least significant timepoint, with Holm's correction."""
    p = np.ones((ALGORITHMS, ALGORITHMS))
    for i in range(ALGORITHMS):
        for j in range(ALGORITHMS):
            difference = values[:, :, j] - values[:, :, i]
            if i != j and (difference != 0).any(axis=0).all():
                p[i, j] = stats.wilcoxon(difference, alternative="greater", axis=0, method="approx").pvalue.max()
    pairs = np.argwhere(~np.eye(ALGORITHMS, dtype=bool))
    order = np.argsort(p[pairs[:, 0], pairs[:, 1]])
    kept = np.ones(ALGORITHMS, dtype=bool)
    for step, place in enumerate(order):
        i, j = pairs[place]
        if p[i, j] > level / (len(pairs) - step):
            break
        kept[j] = False
    return kept, float(len(values) * ALGORITHMS * GRID[-1])


def alarm(job: tuple[Kind, int, int, int]) -> bool:
    """Whether the check of the model fires."""
    kind, instances, seed, draws = job
    values = Generator(kind, seed).sample(instances, np.random.default_rng([seed, instances]))
    check = fit(RankingTable.from_values(values, algorithms=NAMES, timepoints=GRID), seed=seed, draws=draws).check
    return check is not None and not check.fits


def print_alarms(options: argparse.Namespace) -> None:
    """Print the share of alarms for each generator and number of instances."""
    for kind in ("plackett-luce", *KINDS):
        for instances in ALARM_SIZES:
            jobs = [(kind, instances, seed, options.draws) for seed in range(options.alarms)]
            with ProcessPoolExecutor(options.workers) as pool:
                share = float(np.mean(list(pool.map(alarm, jobs, chunksize=10))))
            report_figure(
                f"{kind:13}{instances:5d} instances: {share:7.2%} alarms of {options.alarms}",
                f"alarms, {kind}, {instances} instances",
                share,
                "false alarms: at most 0.02" if kind == "plackett-luce" else "power",
            )


def instances_ratio(moments: list[dict[str, int]], others: list[dict[str, int]]) -> float | None:
    """Instances that eliminations took, relative to those of another rule, where both eliminated the algorithm."""
    pairs = [
        (mine[name], other[name]) for mine, other in zip(moments, others, strict=True) for name in mine.keys() & other
    ]
    return sum(mine for mine, _ in pairs) / sum(other for _, other in pairs) if pairs else None


def main() -> None:
    """Race, print a line for each generator and rule, and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=300, help="for each generator and rule")
    parser.add_argument("--instances", type=int, default=120, help="at most, in each race")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--rule", choices=RULES, action="append")
    parser.add_argument("--alarms", type=int, metavar="N", help="tables for each generator and size, instead of races")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parse_arguments(parser, {"races": 2, "instances": 24, "draws": 200})
    if options.alarms:
        print_alarms(options)
        return
    print(f"{'generator':13}{'rule':17}{'wrong':>6}{'of':>6}{'share':>8}{'family':>8}", end="")
    print(f"{'majority: wrong':>17}{'of':>6}{'family':>8}{'found':>7}{'cost':>7}", end="")
    print(f"{'instances':>11}{'settled wrong':>15}{'regret':>8}")
    rows = []
    seeds = range(options.first_seed, options.first_seed + options.races)
    rules = options.rule or RULES
    for kind in options.kind or KINDS:
        base: float = 0.0
        first_moments: list[dict[str, int]] = []
        jobs = [(rules, kind, seed, options.instances, options.draws) for seed in seeds]
        with ProcessPoolExecutor(options.workers) as pool:
            cases = list(pool.map(one_case, jobs, chunksize=4))
        for rule in rules:
            races = [case[rule] for case in cases]
            moments = [found.pop("eliminated_at") for found in races]
            total = {key: sum(found[key] for found in races) for key in races[0]}
            base, first_moments = base or total["cost"], first_moments or moments
            row = {"generator": kind, "rule": rule, "races": len(races), **total, "cost_ratio": total["cost"] / base}
            row["instances_ratio"] = instances_ratio(moments, first_moments)
            rows.append(row)
            share = total["wrong"] / total["true"]
            settled = f"{total['settled_wrong'] / total['settled']:.2%}" if total.get("settled") else ""
            longer = f"{row['instances_ratio']:.2f}" if row["instances_ratio"] else ""
            loss = f"{total['regret'] / len(races):.3f}" if "regret" in total else ""
            report_figure(
                f"{kind:13}{rule:17}{total['wrong']:6d}{total['true']:6d}{share:8.2%}"
                f"{total['family'] / len(races):8.2%}{total['wrong_majority']:17d}{total['true_majority']:6d}"
                f"{total['family_majority'] / len(races):8.2%}{total['found'] / max(total['dominated'], 1):7.0%}"
                f"{total['cost'] / base:7.2f}{longer:>11}{settled:>15}{loss:>8}",
                f"true members eliminated, {kind}, {rule}",
                share,
                "1 - alpha: 0.01",
                "lower",
            )
    if options.output:
        about = {key: getattr(options, key) for key in ("instances", "draws", "first_seed")}
        options.output.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
