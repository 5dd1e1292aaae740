"""In which order newcomers should meet stored rivals: what the first instances of an archive say about all of them.

    python benchmarks/evidence/archive_order.py --orders 500

Seven algorithms run on instances of the 24 BBOB functions.  Each in turn is the newcomer, the others are stored.  Its
share of wins over each rival on the first instances is compared with that on all of them, for three orders: the
balanced one of a race against an archive, a plain random one, and the one that begins where the stored rivals differ
most, in units of their median value.  Printed: the root mean squared error of the share, and its bias in favour of the
better one of the two, that is, how much surer than all instances the first ones look.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from polarbear_plugins import rank
from polarbear_plugins.experiments.archives import balanced_order
from polarbear_plugins.integrations.bbob import BbobSuite
from polarbear_plugins.plugins.manager import load_plugins

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


def parse() -> argparse.Namespace:
    """Options of the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, default=500, help="random orders of each kind")
    parser.add_argument("--instances", type=int, default=5, help="of each function")
    parser.add_argument("--budget", type=int, default=500, help="evaluations of a run")
    parser.add_argument("--first", type=int, default=24, help="instances that newcomers have met")
    return parse_arguments(parser, {"orders": 20, "instances": 2, "budget": 60})


def main() -> None:
    """Run the algorithms, order the instances, compare."""
    options = parse()
    suite = BbobSuite("bbob", instances=range(1, options.instances + 1))
    identities = list(suite.identities(0))
    algorithms = load_plugins().portfolio("modcma-ssa")
    runs = [
        algorithm.run(suite.build(identity), options.budget, place)
        for place, identity in enumerate(identities)
        for algorithm in algorithms
    ]
    table = rank(runs, [options.budget])
    groups = {identity.name: identity.group for identity in identities}
    strata = [groups[name] for name in table.instances]
    values = table.values[:, 0]
    errors: dict[str, list[float]] = {"balanced": [], "random": [], "rivals differ most": []}
    biases: dict[str, list[float]] = {name: [] for name in errors}
    for new in range(values.shape[1]):
        rivals = np.delete(np.arange(values.shape[1]), new)
        stored = values[:, rivals]
        spread = stored.std(axis=1) / np.maximum(np.abs(np.median(stored, axis=1)), 1e-300)
        wins = (values[:, [new]] < stored) + 0.5 * (values[:, [new]] == stored)
        truth = wins.mean(axis=0)
        better = np.where(truth >= 0.5, 1.0, -1.0)
        for seed in range(options.orders):
            orders = {
                "balanced": balanced_order(strata, seed),
                "random": np.random.default_rng(seed).permutation(len(wins)),
                "rivals differ most": np.argsort(-spread, kind="stable"),
            }
            for name, order in orders.items():
                off = wins[order[: options.first]].mean(axis=0) - truth
                errors[name] += (off**2).tolist()
                biases[name] += (off * better).tolist()
    print(f"share of wins on the first {options.first} of {len(values)} instances")
    print(f"{'order':20} {'error':>8} {'bias':>8}")
    for name, found in errors.items():
        bias = float(np.mean(biases[name]))
        line = f"{name:20} {np.sqrt(np.mean(found)):8.3f} {bias:8.3f}"
        report_figure(line, f"bias of the order: {name}", bias, "all instances", "lower")


if __name__ == "__main__":
    main()
