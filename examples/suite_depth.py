"""Which problems of a suite are typical, and which are outlying?  By the partial orders that they give.

    python examples/suite_depth.py --quick
    python examples/suite_depth.py --figure orders.png

The runs of five optimizers of scipy on 20 problems (examples/runs.csv) become a partial order for each problem: one
optimizer is better than another if it is ahead at some budget and behind at none.  The figure needs the extra plots.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from polarbear_plugins import log_timepoints, read_trajectories
from polarbear_plugins.partial_orders import PartialOrder
from polarbear_plugins.partial_orders.criteria import best_at_timepoints, orders_of_functions
from polarbear_plugins.partial_orders.depth import depth_changes, measure_depth, ufg_depth


def main() -> None:
    """Measure the depths of the problems, and say what they show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timepoints", type=int, default=5, help="budgets that count, from 20 to 500 evaluations")
    parser.add_argument("--figure", type=Path, help="draw the most central and the most outlying order")
    parser.add_argument("--quick", action="store_true", help="few problems and budgets")
    options = parser.parse_args()

    runs = read_trajectories(Path(__file__).parent / "runs.csv")
    if options.quick:
        runs = [run for run in runs if run.instance.endswith(("-1", "-2"))]
    grid = log_timepoints(20, 500, 3 if options.quick else options.timepoints, integer=True)
    orders = orders_of_functions(best_at_timepoints(runs, grid))
    found = measure_depth(orders)
    print(found.summary().drop(columns="error").round(3).to_string())
    print(f"most central: {', '.join(found.central())}; most outlying: {', '.join(found.outlying())}")

    common = found.common(5)
    shared = ", ".join(f"{better} > {worse}" for better, worse in common.edges) or "nothing"
    print(f"the five deepest agree on {shared}, and on who is not better than whom in {len(common.non_edges)} pairs")
    spread = found.dispersion()
    print(f"diversity: depths range over {spread['range']:.3f}, {spread['distinct_orders']:.0f} distinct orders")

    names = found.orders[0].optimizers
    guess = PartialOrder.from_edges(names, [(name, "random-search") for name in names if name != "random-search"])
    [depth] = ufg_depth(orders, of=[guess])
    print(f"'all beat random search, and nothing else is certain' has the depth {depth:.3f}")
    changes = depth_changes(orders, ["random-search"])["random-search"]
    print(f"without random search the depths change by {changes.min():+.3f} to {changes.max():+.3f}")

    if options.figure is not None:
        from polarbear_plugins.plots.hasse import save_hasse_diagrams

        ends = [found.central()[0], found.outlying()[0]]
        save_hasse_diagrams([found.order(name) for name in ends], options.figure, titles=ends, highlight=common.edges)
        print(f"saved {options.figure}")


if __name__ == "__main__":
    main()
