"""How central each test function of a suite is: the depth of its partial order among all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.display.frames import pair_frame
from polarbear_plugins.display.html import summary_table, text
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.partial_orders.order import PartialOrder
from polarbear_plugins.partial_orders.sums import estimate_candidates, sample_sums, sum_over_sets, tail_weights
from polarbear_plugins.partial_orders.witness import PackedOrders

if TYPE_CHECKING:
    import pandas as pd


TOLERANCE = 1e-13
MOST_SETS = 5_000_000


@dataclass(frozen=True, slots=True)
class CommonStructure:
    """What some orders have in common.

    Attributes
    ----------
    edges
        Pairs (better, worse) in all orders.
    non_edges
        Pairs (one, other) such that the one is better than the other in no order.
    functions
        Test functions of the orders.
    """

    functions: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]
    non_edges: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SuiteDepth:
    """Depths of the partial orders of a suite.  Returned by :func:`measure_depth`.

    Attributes
    ----------
    functions
        Names of the test functions, or of the orders given as ``of``.
    orders
        Their partial orders.
    depths
        Their union-free generic depths.
    errors
        Standard error of each depth; 0 if no sets were sampled.
    bound
        Bound on the error of each depth from large sets that were left out.
    tested, generic
        Number of sets tested, and of union-free generic ones among them, by size.
    """

    functions: tuple[str, ...]
    orders: tuple[PartialOrder, ...]
    depths: FloatArray
    errors: FloatArray
    bound: float
    tested: Mapping[int, int] = field(default_factory=dict)
    generic: Mapping[int, int] = field(default_factory=dict)

    def ranking(self) -> list[str]:
        """Test functions from the most central to the most outlying; ties in the given order."""
        return [self.functions[place] for place in np.argsort(-self.depths.round(12), kind="stable")]

    def central(self) -> list[str]:
        """Test functions of the greatest depth."""
        return self._extreme(self.depths.max())

    def outlying(self) -> list[str]:
        """Test functions of the least depth."""
        return self._extreme(self.depths.min())

    def common(self, deepest: int) -> CommonStructure:
        """What the orders of the ``deepest`` most central test functions have in common."""
        count = as_whole_number(deepest, "deepest", at_least=1)
        if count > len(self.functions):
            raise InvalidInputError(f"deepest: there are only {len(self.functions)} orders, got {count}.")
        chosen = self.ranking()[:count]
        names = self.orders[0].optimizers
        relations = np.array([self.order(function).among(names).better for function in chosen])
        none = ~(relations.any(axis=0) | np.eye(len(names), dtype=np.bool_))
        edges, non_edges = (
            tuple((names[i], names[j]) for i, j in np.argwhere(which)) for which in (relations.all(axis=0), none)
        )
        return CommonStructure(tuple(chosen), edges, non_edges)

    def order(self, function: str) -> PartialOrder:
        """Partial order of a test function."""
        if function not in self.functions:
            raise InvalidInputError(f"There is no test function {function!r}.")
        return self.orders[self.functions.index(function)]

    def dispersion(self) -> dict[str, float]:
        """Spread of the depths: a measure of the diversity of the suite for these optimizers.

        Depths that are all low and close to each other mean that no order is well supported by the others.
        Compare suites only for the same optimizers and similar numbers of test functions: both limit the depths.
        """
        return {
            "minimum": float(self.depths.min()),
            "maximum": float(self.depths.max()),
            "range": float(np.ptp(self.depths)),
            "mean": float(self.depths.mean()),
            "standard_deviation": float(self.depths.std()),
            "distinct_orders": len(set(self.orders)),
        }

    def summary(self) -> pd.DataFrame:
        """Table with a row for each test function, the most central first."""
        import pandas as pd

        frame = pd.DataFrame(
            {
                "depth": self.depths,
                "error": self.errors,
                "edges": [int(order.better.sum()) for order in self.orders],
                "undominated": [
                    ", ".join(np.array(order.optimizers)[~order.better.any(axis=0)]) for order in self.orders
                ],
            },
            index=pd.Index(self.functions, name="function"),
        )
        return frame.loc[self.ranking()]

    def to_pandas(self) -> pd.DataFrame:
        """Depths and orders in long form: a row for each test function and ordered pair.

        Columns: ``function``, ``optimizer``, ``other``, ``better`` (whether the optimizer is), and the ``depth`` of the
        function with its ``error``.
        """
        names = self.orders[0].optimizers
        columns = {
            "better": np.array([order.among(names).better for order in self.orders]),
            "depth": self.depths[:, None, None],
            "error": self.errors[:, None, None],
        }
        return pair_frame(names, "optimizer", "other", columns, function=self.functions)

    def _repr_html_(self) -> str:
        what = f"Depths of {len(self.functions)} test functions for {len(self.orders[0].optimizers)} optimizers"
        return f"<p>{text(what)}</p>{summary_table(self.summary(), 'The most central first')}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "optimizers": list(self.orders[0].optimizers),
            "functions": [
                {"function": name, "depth": float(depth), "error": float(error), "edges": order.edges()}
                for name, depth, error, order in zip(self.functions, self.depths, self.errors, self.orders, strict=True)
            ],
            "central": self.central(),
            "outlying": self.outlying(),
            "dispersion": self.dispersion(),
            "bound": self.bound,
            "sets_tested": {str(size): number for size, number in self.tested.items()},
            "sets_generic": {str(size): number for size, number in self.generic.items()},
        }

    def _extreme(self, depth: float) -> list[str]:
        same = np.isclose(self.depths, depth, rtol=0, atol=1e-12)
        return [name for name, chosen in zip(self.functions, same, strict=True) if chosen]


def measure_depth(
    orders: Iterable[PartialOrder] | Mapping[str, PartialOrder],
    *,
    of: Iterable[PartialOrder] | Mapping[str, PartialOrder] | None = None,
    tolerance: float = TOLERANCE,
    samples: int | None = None,
    seed: int | None = None,
    most_sets: int = MOST_SETS,
) -> SuiteDepth:
    """Union-free generic depth: the weighted share of union-free generic sets of observed orders around an order.

    A set of orders is around an order that has every edge common to the set, and no edge that none of them has.  It is
    union-free generic if it is around some order that no proper subset is around.  A set weighs the product of the
    relative frequencies of its members.  Without any such set all depths are 0.

    Parameters
    ----------
    orders
        The observed orders, two or more of the same optimizers; a mapping names their test functions.
    of
        Other orders of the same optimizers whose depth to compute instead.
    tolerance
        Large sets that together change no depth by more than this are left out.
    samples
        Number of larger sets to draw instead of testing all; the result then has standard errors.
    seed
        Seed of the draws.
    most_sets
        Refuse to start if an estimate exceeds this number of sets; a million takes seconds.

    Examples
    --------
    >>> edges = {"f1": [("a", "b")], "f2": [("a", "c")], "f3": [("b", "a"), ("a", "c")], "f4": [("a", "c")]}
    >>> orders = {name: PartialOrder.from_edges("abc", pairs, close=True) for name, pairs in edges.items()}
    >>> found = measure_depth(orders)
    >>> found.central(), found.depths
    (['f2', 'f4'], array([0.6, 1. , 0.6, 1. ]))
    """
    names, observed = _names_and_orders(orders, "orders")
    if len(observed) < 2:
        raise InvalidInputError("Depth compares the orders of several test functions, got one. Add others.")
    optimizers = observed[0].optimizers
    wanted_names, wanted = (names, observed) if of is None else _names_and_orders(of, "of", optimizers)
    tolerance = as_number(tolerance, "tolerance", at_least=0, below=1)
    most_sets = as_whole_number(most_sets, "most_sets", at_least=1)
    # Orders with few edges first: then the witness of a set more often leads to one of the next larger set.
    counts: dict[bytes, int] = {}
    for order in sorted(observed, key=lambda order: order.better.sum()):
        counts[order.better.tobytes()] = counts.get(order.better.tobytes(), 0) + 1
    shape = len(optimizers), len(optimizers)
    distinct = PackedOrders(np.array([np.frombuffer(key, dtype=np.bool_).reshape(shape) for key in counts]))
    weights = np.array(list(counts.values())) / len(observed)
    asked, place = np.unique([order.better for order in wanted], axis=0, return_inverse=True)
    queries, place = PackedOrders(asked), place.reshape(-1)  # numpy 2.0 gives it more dimensions
    # Two orders that are not a union-free generic pair are together in no larger set either (see sums._compatible), so
    # the pairs alone show whether there is any set, and bound the total from below.
    least = sum_over_sets(distinct, weights, queries, 2).total
    tails = tail_weights(weights)
    largest = max(2, int(np.argmax(tails <= tolerance * least)) - 1) if least > 0 else 2
    if samples is not None:
        samples = as_whole_number(samples, "samples", at_least=1)
        sums = sample_sums(distinct, weights, queries, largest, samples, np.random.default_rng(seed))
    else:
        _check_feasible(distinct, largest, most_sets)
        sums = sum_over_sets(distinct, weights, queries, largest)
    depths = sums.around / sums.total if sums.total > 0 else np.zeros(len(asked))
    bound = float(tails[largest + 1] / sums.total) if sums.total > 0 else 0.0
    return SuiteDepth(wanted_names, wanted, depths[place], sums.errors[place], bound, sums.candidates, sums.generic)


def depth_changes(
    orders: Mapping[str, PartialOrder], optimizers: Iterable[str] | None = None, **options: Any
) -> pd.DataFrame:
    """Change in the depth of each test function when an optimizer is left out.

    Parameters
    ----------
    optimizers
        Optimizers to leave out, one at a time; all by default.
    options
        Options of :func:`measure_depth`.

    Returns
    -------
    A row for each test function: its ``depth`` with all optimizers, and for each optimizer the depth without it minus
    the depth with it.
    """
    import pandas as pd

    everyone = measure_depth(orders, **options)
    names = everyone.orders[0].optimizers
    columns = {"depth": everyone.depths}
    for optimizer in names if optimizers is None else optimizers:
        if optimizer not in names:
            raise InvalidInputError(f"{optimizer!r} is not one of the optimizers {', '.join(names)}.")
        others = [name for name in names if name != optimizer]
        rest = {name: order.among(others) for name, order in zip(everyone.functions, everyone.orders, strict=True)}
        columns[optimizer] = measure_depth(rest, **options).depths - everyone.depths
    return pd.DataFrame(columns, index=pd.Index(everyone.functions, name="function"))


def _names_and_orders(
    orders: Iterable[PartialOrder] | Mapping[str, PartialOrder], what: str, optimizers: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], tuple[PartialOrder, ...]]:
    """Names and orders, all with the optimizers in the same sequence."""
    if isinstance(orders, Mapping):
        names, given = [str(name) for name in orders], list(orders.values())
    elif isinstance(orders, Iterable):
        given = list(orders)
        names = [str(number) for number in range(len(given))]
    else:
        raise InvalidInputError(f"{what}: expected partial orders, got {short(orders)}.")
    if not given:
        raise InvalidInputError(f"{what}: expected partial orders, got none.")
    for name, order in zip(names, given, strict=True):
        if not isinstance(order, PartialOrder):
            raise InvalidInputError(f"{what}, {name!r}: expected a PartialOrder, got {short(order)}.")
        optimizers = order.optimizers if optimizers is None else optimizers
        different = sorted(set(order.optimizers) ^ set(optimizers))
        if different:
            raise InvalidInputError(
                f"{what}, {name!r}: all orders must have the same optimizers, but not all have {different[0]!r}."
            )
    same = tuple(order if order.optimizers == optimizers else order.among(optimizers or ()) for order in given)
    return tuple(names), same


def _check_feasible(distinct: PackedOrders, largest: int, most_sets: int) -> None:
    if len(distinct) < 64 and 2 ** len(distinct) <= most_sets:
        return
    sets = estimate_candidates(distinct, largest, np.random.default_rng(0))
    if sets > most_sets:
        raise InvalidInputError(
            f"The depth of {len(distinct)} distinct orders needs about {sets:.1e} sets, more than most_sets "
            f"({most_sets:.1e}). Draw some of them (samples=100_000), accept a tolerance (tolerance=1e-6), or raise "
            "most_sets; a million sets takes seconds."
        )


def ufg_depth(
    orders: Iterable[PartialOrder] | Mapping[str, PartialOrder],
    *,
    of: Iterable[PartialOrder] | None = None,
    tolerance: float = TOLERANCE,
    samples: int | None = None,
    seed: int | None = None,
    most_sets: int = MOST_SETS,
) -> FloatArray:
    """Union-free generic depth of partial orders: how central each is among those observed.

    See :func:`polarbear_plugins.partial_orders.depth.measure_depth` for the parameters; it also returns errors.

    Returns
    -------
    One depth for each order, or for each of ``of`` if given, between 0 and 1.

    Examples
    --------
    >>> one = PartialOrder.from_edges("abc", [("a", "b")])
    >>> two = PartialOrder.from_edges("abc", [("a", "c")])
    >>> three = PartialOrder.from_edges("abc", [("b", "a"), ("a", "c")], close=True)
    >>> ufg_depth([one, two, three])
    array([0.66666667, 1.        , 0.66666667])
    """
    return measure_depth(orders, of=of, tolerance=tolerance, samples=samples, seed=seed, most_sets=most_sets).depths
