"""Powers that plans promise, against simulated experiments.

    python benchmarks/evidence/powers.py --rounds 100000

For each test, effect and level: the number of instances of a plan for power 0.8, the power it promises, the share of
simulated experiments with normal differences in which the test rejected, with its standard error, and what the rule of
thumb by relative efficiency (equation 26 of Campelo and Takahashi) would have planned and reached.  A second table has
several comparisons with Holm's correction: the share of pairs found, if all have the effect, if their tests are
independent, and if all pairs of some algorithms are compared, so that they are not.
"""

import argparse
import itertools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from polarbear_plugins.planning import number_of_instances, power_of
from polarbear_plugins.planning.critical_values import sign_critical, signed_rank_critical

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

EFFICIENCY = {"wilcoxon": 0.86, "sign": 0.637}
CHUNK = 5000


def p_values(samples: np.ndarray) -> np.ndarray:
    """Two-sided p values of t tests over the last axis."""
    count = samples.shape[-1]
    t = samples.mean(axis=-1) / (samples.std(axis=-1, ddof=1) / math.sqrt(count))
    return 2 * stats.t.sf(np.abs(t), count - 1)


def rejects(samples: np.ndarray, test: str, alpha: float) -> np.ndarray:
    """Which samples a two-sided test rejects."""
    count = samples.shape[1]
    if test == "t":
        return p_values(samples) <= alpha
    if test == "sign":
        wins = (samples > 0).sum(axis=1)
        return np.minimum(wins, count - wins) <= sign_critical(count, alpha / 2)
    ranks = np.abs(samples).argsort(axis=1).argsort(axis=1) + 1
    positive = (ranks * (samples > 0)).sum(axis=1)
    return np.minimum(positive, count * (count + 1) // 2 - positive) <= signed_rank_critical(count, alpha / 2)


def simulated(test: str, count: int, effect: float, alpha: float, rounds: int, rng: np.random.Generator) -> float:
    """Share of experiments that reject."""
    if count < 2:
        return 0.0
    sizes = [min(CHUNK, rounds - start) for start in range(0, rounds, CHUNK)]
    return sum(int(rejects(rng.normal(effect, 1, (size, count)), test, alpha).sum()) for size in sizes) / rounds


def holm(p: np.ndarray, alpha: float) -> np.ndarray:
    """Which of the pairs of each experiment are significant after Holm's correction."""
    ordered = np.sort(p, axis=1)
    passed = np.cumprod(ordered <= alpha / np.arange(p.shape[1], 0, -1), axis=1).sum(axis=1)
    return np.argsort(np.argsort(p, axis=1), axis=1) < passed[:, None]


def shares_found(algorithms: int, effect: float, count: int, rounds: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Share of pairs found if tests are independent, and if they are those of all pairs of algorithms."""
    pairs = list(itertools.combinations(range(algorithms), 2))
    alone = holm(p_values(rng.normal(effect, 1, (rounds, len(pairs), count))), 0.05).mean()
    # Each pair of neighbours differs by the effect, others by more, so only neighbours are counted.
    levels = effect * np.arange(algorithms)[:, None] + rng.normal(0, math.sqrt(0.5), (rounds, algorithms, count))
    differences = np.stack([levels[:, j] - levels[:, i] for i, j in pairs], axis=1)
    neighbours = [place for place, (i, j) in enumerate(pairs) if j == i + 1]
    return alone, holm(p_values(differences), 0.05)[:, neighbours].mean()


def main() -> None:
    """Print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parse_arguments(parser, {"rounds": 300})
    rng = np.random.default_rng(options.seed)
    print("test      effect  alpha      n  promised  simulated   (error)   by efficiency: n  simulated")
    for test, effect, alpha in itertools.product(("t", "wilcoxon", "sign"), (3.0, 1.0, 0.5, 0.3), (0.05, 0.005)):
        count = number_of_instances(effect, 0.8, alpha, test)  # type: ignore[arg-type]
        power = power_of(count, effect, alpha, test)  # type: ignore[arg-type]
        found = simulated(test, count, effect, alpha, options.rounds, rng)
        error = math.sqrt(power * (1 - power) / options.rounds)
        rule = math.ceil(number_of_instances(effect, 0.8, alpha) / EFFICIENCY.get(test, 1.0))
        reached = simulated(test, rule, effect, alpha, options.rounds, rng)
        report_figure(
            f"{test:9}{effect:7.1f}{alpha:7.3f}{count:7d}{power:10.4f}{found:11.4f}  ({error:.4f})"
            f"{rule:20d}{reached:11.4f}",
            f"simulated power of {test}, effect {effect:g}, alpha {alpha:g}",
            found,
            f"promised {power:.4f}",
        )
    print("\nalgorithms  pairs  target          n  promised  found, independent  found, all pairs")
    rounds = max(options.rounds // 20, 100)
    for algorithms, target in itertools.product((3, 5), ("worst-case", "mean", "median")):
        pairs = math.comb(algorithms, 2)
        several: Any = {"comparisons": pairs, "power_target": target}
        count = number_of_instances(0.5, **several)
        alone, together = shares_found(algorithms, 0.5, count, rounds, rng)
        report_figure(
            f"{algorithms:10d}{pairs:7d}  {target:11}{count:6d}{power_of(count, 0.5, **several):10.4f}"
            f"{alone:20.4f}{together:18.4f}",
            f"share of pairs found, {algorithms} algorithms, {target}",
            together,
            "planned 0.8",
        )


if __name__ == "__main__":
    main()
