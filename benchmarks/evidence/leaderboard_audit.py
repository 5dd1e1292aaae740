"""How often an audit of a leaderboard is wrong, and how often its number of instances needed is enough.

    python benchmarks/evidence/leaderboard_audit.py --simulations 1000 --output audit.json

Scores of algorithms whose true means are known are drawn for a number of instances: some or all algorithms are equally
good.  Printed for each kind of scores: how often ``audit_scores`` calls any pair different that is not, or puts it in
the wrong order (nominal: at most 5 %); the same with the corrections that are common instead, both for neighbours only:
a paired bootstrap of the instances with Holm's correction, and without any.

- normal: all equally good, normal scores
- solved: all equally good, solved or not, instances of different difficulty; rarely solved: most of them by nobody
- pairs: ten algorithms, each with a twin that is equally good, twins far from each other
- close: no two are equally good, but neighbours nearly so, so that the order of the scores is often wrong
- skewed: two equally good algorithms, one steady, one that is rarely much better: the assumption of the audit is wrong
- groups: equally good, but each is better in some groups of instances and worse in others

Then, how many neighbours are told apart where algorithms differ by normal amounts, beside a paired t test of neighbours
only with Holm's correction.  At the end, the power with the number of instances needed for a known difference; nominal:
at least 80 %.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import ttest_rel

from polarbear_plugins.measures import audit_scores
from polarbear_plugins.measures.sign_flips import corrected_p, flip_signs
from polarbear_plugins.planning import number_of_instances
from polarbear_plugins.planning.paired_tests import holm_correction

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure

ALPHA = 0.05
RESAMPLES = 1000
Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]  # scores, true means


def normal(algorithms: int) -> Draw:
    """Normal scores, equally good."""
    return lambda rng, n: (rng.normal(size=(n, 1)) + rng.normal(size=(n, algorithms)), np.zeros(algorithms))


def solved(algorithms: int, shape: tuple[float, float]) -> Draw:
    """Solved or not, equally good; the chance of solving an instance has a beta distribution."""

    def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        return 1.0 * (rng.random((n, algorithms)) < rng.beta(*shape, size=(n, 1))), np.zeros(algorithms)

    return draw


def twins(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Five pairs of twins, far from each other."""
    means = np.repeat(np.arange(5.0), 2)
    return means + rng.normal(size=(n, 1)) + rng.normal(size=(n, 10)), means


def close(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Ten algorithms, each slightly better than the next."""
    means = np.linspace(0, 0.1, 10)
    return means + rng.normal(size=(n, 1)) + rng.normal(size=(n, 10)), means


def skewed(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two with equal means, one always 1, one exponential."""
    return np.stack([np.ones(n), rng.exponential(size=n)], axis=1), np.zeros(2)


CASES: tuple[tuple[str, Draw, tuple[int, ...]], ...] = (
    ("normal, 2 algorithms", normal(2), (6, 10, 30)),
    ("normal, 5 algorithms", normal(5), (6, 10, 30)),
    ("normal, 20 algorithms", normal(20), (10, 30, 100)),
    ("solved, 2 algorithms", solved(2, (1, 1)), (10, 30, 300)),
    ("solved, 20 algorithms", solved(20, (1, 1)), (10, 30, 300)),
    ("rarely solved, 20 algorithms", solved(20, (0.2, 2)), (30, 300)),
    ("pairs, 10 algorithms", twins, (10, 30, 100)),
    ("close, 10 algorithms", close, (10, 30, 100)),
    ("skewed, 2 algorithms", skewed, (10, 30, 100, 300)),
)


def wrong(claims: np.ndarray, means: np.ndarray) -> bool:
    """Whether any claim that i is better than j is not true."""
    return bool((claims & (means[:, None] <= means)).any())


def audit_claims(scores: np.ndarray, groups: list[str] | None, seed: int) -> np.ndarray:
    """``[i, j]``: the audit says that i is better than j, in the order of the columns."""
    names = [f"{k:03}" for k in range(scores.shape[1])]
    found = audit_scores(scores, names, better="higher", groups=groups, level=1 - ALPHA, flips=999, seed=seed)
    order = np.argsort([int(name) for name in found.algorithms])
    claims: np.ndarray = found.told_apart[np.ix_(order, order)]
    return claims


def bootstrap_claims(scores: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same for neighbours by a paired bootstrap of the instances, with Holm's correction and without any."""
    n, algorithms = scores.shape
    counts = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES)
    order = np.argsort(-scores.mean(axis=0), kind="stable")
    better, worse = order[:-1], order[1:]
    behind = (counts @ (scores[:, better] - scores[:, worse]) <= 0).mean(axis=0)
    p = np.minimum(1.0, 2 * behind)
    claims = np.zeros((2, algorithms, algorithms), dtype=bool)
    claims[0, better, worse] = np.array(holm_correction(p.tolist())) <= ALPHA
    claims[1, better, worse] = p <= ALPHA
    return claims[0], claims[1]


def error_rates(draw: Draw, instances: int, simulations: int, seed: int) -> list[float]:
    """Shares of leaderboards with a wrong claim: audit, bootstrap with Holm's correction, bootstrap without."""
    mistakes = np.zeros(3)
    for k in range(simulations):
        rng = np.random.default_rng([seed, k, instances])
        scores, means = draw(rng, instances)
        claims = audit_claims(scores, None, k), *bootstrap_claims(scores, rng)
        mistakes += [wrong(each, means) for each in claims]
    return (mistakes / simulations).tolist()


def group_error_rates(groups: int, simulations: int, seed: int) -> list[float]:
    """The same for ten instances in each group, the audit with the groups and without them."""
    mistakes = np.zeros(2)
    names = [f"g{k}" for k in range(groups) for _ in range(10)]
    for k in range(simulations):
        rng = np.random.default_rng([seed, k, groups])
        scores = np.repeat(rng.normal(size=(groups, 5)), 10, axis=0) + rng.normal(size=(10 * groups, 5))
        mistakes += [wrong(audit_claims(scores, given, k), np.zeros(5)) for given in (names, None)]
    return (mistakes / simulations).tolist()


def neighbours_found(algorithms: int, instances: int, boards: int, seed: int) -> tuple[int, int]:
    """Neighbours told apart by the audit, and by a paired t test of neighbours only with Holm's correction."""
    found = np.zeros(2, dtype=int)
    for k in range(boards):
        rng = np.random.default_rng([seed, k])
        scores = rng.normal(rng.normal(size=algorithms), size=(instances, algorithms))
        scores = scores[:, np.argsort(-scores.mean(axis=0))]
        p = corrected_p(scores, flip_signs(instances, 1999, k)).diagonal(1)
        alone = ttest_rel(scores[:, :-1], scores[:, 1:]).pvalue.tolist()
        found += [(p <= ALPHA).sum(), (np.array(holm_correction(alone)) <= ALPHA).sum()]
    return int(found[0]), int(found[1])


def power_of_plan(binary: bool, simulations: int, seed: int) -> tuple[int, float]:
    """Number of instances needed for a known difference, and how often they tell that pair of three apart."""
    scores = _three(np.random.default_rng(seed), 100_000, binary)  # so many that the difference is the true one
    differences = scores[:, 1] - scores[:, 2]
    needed = number_of_instances(differences.mean() / differences.std(), 0.8, ALPHA, comparisons=3)
    hits = [
        audit_claims(_three(np.random.default_rng([seed, k]), needed, binary), None, k)[1, 2]
        for k in range(simulations)
    ]
    return needed, float(np.mean(hits))


def _three(rng: np.random.Generator, n: int, binary: bool) -> np.ndarray:
    """Three algorithms, the first two equal, the third worse."""
    if binary:
        return 1.0 * (rng.random((n, 3)) < np.array([0.6, 0.6, 0.5]))
    return rng.normal([0.3, 0.3, 0.0], size=(n, 3))


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=1000, help="for each kind of scores (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
    parser.add_argument("--only", default="", help="kinds of scores whose name begins with this, such as pairs")
    parser.add_argument("--output", type=Path, help="JSON file for the figures")
    options = parse_arguments(parser, {"simulations": 10})
    found: dict[str, object] = {}
    print(f"{'wrong in % of the leaderboards':42} {'audit':>6} {'bootstrap, Holm':>16} {'bootstrap':>10}")
    for name, draw, sizes in CASES:
        for n in sizes if name.startswith(options.only) else ():
            rates = error_rates(draw, n, options.simulations, options.seed)
            found[f"{name}, {n} instances"] = rates
            audit, holm, plain = (100 * rate for rate in rates)
            line = f"{f'{name}, {n} instances':42} {audit:6.1f} {holm:16.1f} {plain:10.1f}"
            report_figure(line, f"wrong audits: {name}, {n} instances", rates[0], "at most 0.05", "lower")
    for groups in (6, 10, 30) if "groups".startswith(options.only) else ():
        with_groups, without = group_error_rates(groups, options.simulations, options.seed)
        found[f"{groups} groups"] = [with_groups, without]
        line = f"{f'{groups} groups of 10 instances':42} {100 * with_groups:6.1f}, {100 * without:.1f} without groups"
        report_figure(line, f"wrong audits: {groups} groups", with_groups, "at most 0.05", "lower")
    for algorithms, n in ((10, 100), (20, 100), (50, 300)) if "neighbours".startswith(options.only) else ():
        ours, holm = neighbours_found(algorithms, n, max(1, options.simulations // 10), options.seed)
        found[f"neighbours of {algorithms} algorithms, {n} instances"] = [ours, holm]
        line = (
            f"{algorithms} algorithms, {n} instances: {ours} neighbours told apart, {holm} by Holm's correction alone"
        )
        report_figure(line, f"neighbours told apart: {algorithms} algorithms", ours / max(1, holm), "Holm", "higher")
    for binary in (False, True) if "power".startswith(options.only) else ():
        needed, power = power_of_plan(binary, options.simulations, options.seed)
        kind = "solved" if binary else "normal"
        found[f"power, {kind}"] = [needed, power]
        line = f"{kind}: {needed} instances needed; they tell the pair apart in {power:.1%}"
        report_figure(line, f"power with the instances needed: {kind}", power, "at least 0.8", "higher")
    if options.output:
        options.output.write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
