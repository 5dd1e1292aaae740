"""How many instances a gate needs to notice a difference, beside five Wilcoxon tests with as many false alarms.

    python benchmarks/evidence/gates.py --simulations 300 --output gates.json

A new version is compared with the one before at five budgets.  On each instance the difference of the two has a normal
part that is correlated between budgets (0.8 from one to the next), unless said otherwise, plus an effect in standard
deviations.  Both procedures judge the same simulated data.  Wilcoxon's signed-rank tests (ties by Pratt's method, one
for each budget) reject beyond a critical value that gives them, on data without an effect that have the same shape, the
same rate of false alarms at any budget as the gate has there.

Printed: instances at which a difference is noticed at some budget with probability 0.8, and an interval of it from the
number of simulations; false alarms if the two are equal, for several numbers of instances and shares of ties; how often
"equivalent" is said at a win share just outside epsilon; what comes of adding instances until the gate decides; and of
versions that are not equal and win equally often.
"""

import argparse
import json
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import beta, rankdata

from polarbear_plugins.measures.paired_verdicts import calibrate, judge_leads

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

BUDGETS = 5
LEVEL = 0.05  # false alarms of 1 % would take ten times as many simulations to compare
EPSILON = 0.05
FLIPS = 999
SIZES = (10, 16, 25, 40, 63, 100, 158, 251)
POWER = 0.8


class Case(NamedTuple):
    """A kind of difference between two versions."""

    name: str
    effect: float
    last: int = BUDGETS  # budgets that have the effect: the first ones
    ties: float = 0.0
    scales: float = 0.0  # of the logarithms of the scales of instances
    scaled: bool = True  # whether the effect is in the scale of the instance
    freedom: int = 0  # of Student's t distribution instead of a normal one


CASES = (
    Case("normal, effect 0.3", 0.3),
    Case("normal, effect 0.5", 0.5),
    Case("normal, effect 0.8", 0.8),
    Case("effect 0.5 at the first two budgets only", 0.5, last=2),
    Case("half of the instances tie, effect 0.5", 0.5, ties=0.5),
    Case("nine in ten instances tie, effect 1", 1.0, ties=0.9),
    Case("scales of instances differ, effect 0.5 of each", 0.5, scales=2.0),
    Case("scales of instances differ, same effect on all", 0.5, scales=2.0, scaled=False),
    Case("heavy tails (t with 2 degrees of freedom), effect 0.5", 0.5, freedom=2),
)


def differences(case: Case, instances: int, rng: np.random.Generator, effect: float | None = None) -> np.ndarray:
    """Differences of the two versions, positive where the new one is better: ``[instance, budget]``."""
    noise = rng.normal(size=(instances, BUDGETS))
    for t in range(1, BUDGETS):
        noise[:, t] = 0.8 * noise[:, t - 1] + 0.6 * noise[:, t]
    if case.freedom:
        noise /= np.sqrt(rng.chisquare(case.freedom, (instances, 1)) / case.freedom)
    size = np.where(np.arange(BUDGETS) < case.last, case.effect if effect is None else effect, 0.0)
    scale = np.exp(case.scales * rng.normal(size=(instances, 1)))
    values = scale * (size + noise) if case.scaled else size + scale * noise
    return np.where(rng.random((instances, 1)) < case.ties, 0.0, values)


def largest_z(values: np.ndarray) -> float:
    """Largest of the standardized signed-rank sums of the budgets."""
    ranks = np.where(values == 0, 0.0, rankdata(np.abs(values), axis=0))
    spread = np.sqrt((ranks**2).sum(axis=0))
    return float(np.max(np.abs((np.sign(values) * ranks).sum(axis=0)) / np.maximum(spread, 1e-300)))


def judge(case: Case, instances: int, effect: float | None, seed: int) -> tuple[bool, float]:
    """Whether the gate decides at some budget, and the largest z of the Wilcoxon tests."""
    values = differences(case, instances, np.random.default_rng([seed, instances, effect is None]), effect)
    return decides(np.sign(values), LEVEL, seed), largest_z(values)


def decides(leads: np.ndarray, level: float, seed: int) -> bool:
    """Whether the gate says better or worse at some budget."""
    p, _ = calibrate(leads, level, seed, FLIPS)
    return bool((p <= level).any())


def power_at(case: Case, instances: int, simulations: int, run: Callable[..., Any]) -> dict[str, Any]:
    """Power of both, with equal false alarms."""
    empty = np.array(list(run(partial(judge, case, instances, 0.0), range(simulations), chunksize=50)))
    found = np.array(list(run(partial(judge, case, instances, None), range(simulations), chunksize=50)))
    alarms = int(empty[:, 0].sum())
    critical = np.sort(empty[:, 1])[simulations - alarms - 1]  # exceeded as often as the gate raises an alarm
    return {
        "instances": instances,
        "false_alarms": alarms / simulations,
        "gate": float(found[:, 0].mean()),
        "wilcoxon": float((found[:, 1] > critical).mean()),
    }


def instances_for(powers: np.ndarray, sizes: np.ndarray) -> float:
    """Number of instances with the wanted power, between those simulated; ``nan`` if none has it."""
    rising = np.maximum.accumulate(powers)
    place = int(np.searchsorted(rising, POWER))
    if place == 0 or place == rising.size:
        return float(sizes[0]) if place == 0 else np.nan
    part = (POWER - rising[place - 1]) / (rising[place] - rising[place - 1])
    return float(np.exp(np.log(sizes[place - 1]) + part * np.log(sizes[place] / sizes[place - 1])))


def needed(rows: list[dict[str, Any]], who: str, simulations: int) -> list[float]:
    """Instances for the power: the estimate, and a 95 % interval from the number of simulations."""
    rng, sizes = np.random.default_rng(0), np.array([row["instances"] for row in rows], dtype=float)
    powers = np.array([row[who] for row in rows])
    drawn = [instances_for(rng.binomial(simulations, powers) / simulations, sizes) for _ in range(500)]
    return (
        [instances_for(powers, sizes), *np.nanquantile(drawn, [0.025, 0.975]).tolist()]
        if any(np.isfinite(drawn))
        else [np.nan] * 3
    )


def false_alarm(instances: int, ties: float, level: float, pairs: int, seed: int) -> bool:
    """Whether the gate decides anything although the two are equal; ``pairs`` runs on each instance."""
    rng = np.random.default_rng([seed, instances, pairs, int(10 * ties)])
    case = Case("", 0.0, ties=ties)
    leads = np.mean([np.sign(differences(case, instances, rng)) for _ in range(pairs)], axis=0)
    return decides(leads, level, seed)


def false_equivalence(instances: int, ties: float, seed: int) -> bool:
    """Whether the gate says "equivalent" at some budget although the win share is epsilon and a bit from 1/2."""
    rng = np.random.default_rng([seed, instances, 7])
    excess = 2 * (EPSILON + 1e-9) / (1 - ties)  # of wins over losses, among pairs that do not tie
    uniform = np.broadcast_to(rng.random((instances, 1)), (instances, BUDGETS))  # all budgets alike
    again = rng.random((instances, BUDGETS))
    level = np.where(rng.random((instances, BUDGETS)) < 0.8, uniform, again)
    leads = np.where(level < (1 + excess) / 2, 1.0, -1.0)
    leads = np.where(rng.random((instances, BUDGETS)) < ties, 0.0, leads)
    return "equivalent" in judge_leads(leads, 0.01, EPSILON, seed, FLIPS).verdicts


def alarm_by_adding(seed: int) -> bool:
    """Whether the gate decides at any of ten looks, after 10, 20, ..., 100 instances, although the two are equal."""
    values = differences(CASES[0], 100, np.random.default_rng([seed, 9]), 0.0)
    return any(decides(np.sign(values[:until]), 0.01, seed) for until in range(10, 101, 10))


def alarm_if_skewed(instances: int, seed: int) -> bool:
    """Whether the gate decides between versions that win equally often: one wins often a little, the other rarely much.

    On four of five instances the new version wins five of eight pairs, and on the fifth it loses all.
    """
    wins = np.random.default_rng([seed, 10]).random((instances, 1)) < 0.8
    return decides(np.repeat(np.where(wins, 0.25, -1.0), BUDGETS, axis=1), 0.01, seed)


def share_text(count: int, simulations: int) -> str:
    """A rate, and its 95 % interval."""
    low, high = beta.ppf([0.025, 0.975], [count, count + 1], [simulations - count + 1, simulations - count])
    return f"{count / simulations:.4f} ({np.nan_to_num(low):.4f} to {1.0 if np.isnan(high) else high:.4f})"


def main() -> None:
    """Simulate, print and write the figures down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=300, help="for each case and number of instances")
    parser.add_argument("--equal", type=int, default=2000, help="simulations for false alarms")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="instances")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path)
    options = parse_arguments(parser, {"simulations": 20, "equal": 20, "most": 20})
    data: dict[str, Any] = {"simulations": options.simulations, "equal": options.equal, "level": LEVEL}
    with ProcessPoolExecutor(options.workers) as pool:
        data["false_alarms"] = [alarms(options.equal, *design, pool.map) for design in EQUAL]
        data["false_equivalence"] = [
            rate(
                f"win share {0.5 + EPSILON} on {n} instances, {ties:.0%} ties: said to be equivalent",
                partial(false_equivalence, n, ties),
                options.equal // 4,
                pool.map,
            )
            for n, ties in ((400, 0.0), (1000, 0.0), (400, 0.8))
            if n <= 10 * options.most
        ]
        data["adding"] = rate(
            "equal, looked at ten times while instances were added: any false alarm, level 0.01",
            alarm_by_adding,
            options.equal // 4,
            pool.map,
        )
        data["skewed"] = [
            rate(
                f"not equal, but as many pairs won as lost, on {n} instances: any false alarm, level 0.01",
                partial(alarm_if_skewed, n),
                options.equal,
                pool.map,
            )
            for n in (12, 30, 100)
            if n <= options.most
        ]
        data["cases"] = []
        for case in CASES:
            rows = [power_at(case, n, options.simulations, pool.map) for n in SIZES if n <= options.most]
            both = {who: needed(rows, who, options.simulations) for who in ("gate", "wilcoxon")}
            data["cases"].append({**case._asdict(), "rows": rows, **both})
            texts = [f"{who} {mean:.0f} ({low:.0f} to {high:.0f})" for who, (mean, low, high) in both.items()]
            report_figure(
                f"{case.name}: {', '.join(texts)}",
                f"instances at power 0.8, {case.name}",
                both["gate"][0] / both["wilcoxon"][0],
                "five Wilcoxon tests with as many false alarms",
                "lower",
            )
    if options.output:
        options.output.write_text(json.dumps(data, indent=1) + "\n")


EQUAL = (
    (10, 0.0, 0.01, 1),
    (30, 0.0, 0.01, 1),
    (30, 0.5, 0.01, 1),
    (30, 0.9, 0.01, 1),
    (100, 0.0, 0.01, 1),
    (30, 0.0, 0.01, 5),
    (30, 0.0, 0.05, 1),
    (30, 0.9, 0.05, 1),
)


def alarms(simulations: int, instances: int, ties: float, level: float, pairs: int, run: Callable[..., Any]) -> Any:
    """Rate of false alarms of one design."""
    name = f"equal, {instances} instances of {pairs}, {ties:.0%} ties, level {level:g}: any false alarm"
    return rate(name, partial(false_alarm, instances, ties, level, pairs), simulations, run)


def rate(name: str, judge_once: Callable[[int], bool], simulations: int, run: Callable[..., Any]) -> dict[str, Any]:
    """How often something happens in simulations."""
    count = sum(run(judge_once, range(simulations), chunksize=20))
    report_figure(f"{name}: {share_text(count, simulations)}", name, count / simulations, "the level promised", "lower")
    return {"name": name, "count": count, "simulations": simulations}


if __name__ == "__main__":
    main()
