"""How fast the union-free generic depth of 22 distinct orders of 11 optimizers is, on one core.

    python benchmarks/speed/depth.py
    python benchmarks/speed/depth.py --correlation 0.5

Each order comes from 6 random criteria of given correlation.  A plain enumeration of all sets of fewer orders, a search
in pure Python for each, runs beside it on the same few orders for comparison.  Prints CPU seconds.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from polarbear_plugins.partial_orders import PartialOrder
from polarbear_plugins.partial_orders.depth import TOLERANCE, measure_depth
from polarbear_plugins.partial_orders.order import from_criteria

sys.path.append(str(Path(__file__).parents[1]))
from measuring import parse_arguments, report_figure


def random_orders(
    count: int, items: int, criteria: int, correlation: float, rng: np.random.Generator
) -> list[PartialOrder]:
    """Distinct orders from random criteria; any two criteria have the given correlation."""
    orders: dict[PartialOrder, None] = {}
    while len(orders) < count:
        common, own = rng.normal(size=(items, 1)), rng.normal(size=(items, criteria))
        values = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
        orders[from_criteria(pd.DataFrame(values))] = None
    return list(orders)


def plain_depth(orders: Sequence[PartialOrder]) -> list[float]:
    """Depth of distinct orders by looking at every set of them, with edges as bits of Python's whole numbers."""
    items = len(orders[0].optimizers)
    words = [sum(1 << (i * items + j) for i, j in np.argwhere(order.better).tolist()) for order in orders]
    total, around = 0.0, [0.0] * len(words)
    for size in range(2, len(words) + 1):
        for members in itertools.combinations(words, size):
            if not plain_witness(members, items):
                continue
            common, union = members[0], members[0]
            for member in members:
                common, union = common & member, union | member
            weight = len(words) ** -float(size)
            total += weight
            for place, word in enumerate(words):
                if not common & ~word and not word & ~union:
                    around[place] += weight
    return [each / total for each in around]


def plain_witness(members: Sequence[int], items: int) -> bool:
    """Whether an order lies within a set, but within no part of it."""
    common, union = members[0], 0
    for member in members:
        common, union = common & member, union | member
    own = []
    for place, member in enumerate(members):
        others = members[:place] + members[place + 1 :]
        every, some = others[0], 0
        for other in others:
            every, some = every & other, some | other
        own.append((member & ~some, every & ~member))

    def search(order: int) -> bool:
        for has, lacks in own:
            if has & order or lacks & ~order:
                continue
            for edge in range(items * items):
                if has >> edge & 1:
                    more = closed(order, *divmod(edge, items), items)
                    if not more & ~union and search(more):
                        return True
            return False
        return True

    return search(common)


def closed(order: int, i: int, j: int, items: int) -> int:
    """Transitive closure of an order with one more edge; a cycle gives an edge from an item to itself."""
    below = (order >> (j * items)) & ((1 << items) - 1) | 1 << j
    for above in range(items):
        if above == i or order >> (above * items + i) & 1:
            order |= below << (above * items)
    return order


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--orders", type=int, default=22)
    parser.add_argument("--optimizers", type=int, default=11)
    parser.add_argument("--criteria", type=int, default=6)
    parser.add_argument("--correlation", type=float, action="append", help="0.5, 0.7 and 0.9 by default")
    parser.add_argument("--few", type=int, default=12, help="orders for the plain enumeration")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parse_arguments(parser, {"orders": 10, "few": 9, "correlation": [0.7]})
    for correlation in arguments.correlation or [0.5, 0.7, 0.9]:
        rng = np.random.default_rng(arguments.seed)
        orders = random_orders(arguments.orders, arguments.optimizers, arguments.criteria, correlation, rng)
        start = time.process_time()
        found = measure_depth(orders, tolerance=arguments.tolerance, most_seconds=None)
        ours = time.process_time() - start
        print(
            f"correlation {correlation:g}: {len(orders)} orders of {arguments.optimizers}: {ours:.2f} s, "
            f"{sum(found.tested.values()):,} sets tested, {sum(found.generic.values()):,} union-free generic, "
            f"depths {found.depths.min():.4f}..{found.depths.max():.4f}, off by at most {found.bound:.0e}"
        )
        few = orders[: arguments.few]
        start = time.process_time()
        plain = plain_depth(few)
        middle = time.process_time()
        fast = measure_depth(few, tolerance=0).depths
        end = time.process_time()
        if not np.allclose(plain, fast, rtol=0, atol=1e-12):
            raise SystemExit("The two do not agree.")
        ratio = (middle - start) / (end - middle)
        report_figure(
            f"  {len(few)} of them: {end - middle:.3f} s, plain enumeration {middle - start:.3f} s, ratio {ratio:.0f}",
            f"speed of {len(few)} orders, correlation {correlation:g}",
            ratio,
            "plain enumeration",
            "higher",
        )


if __name__ == "__main__":
    main()
