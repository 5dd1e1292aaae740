"""How central each test function of a suite is: the depth of its partial order among all of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.partial_orders.order import PartialOrder, names_and_orders
from polarbear_plugins.partial_orders.suite import SuiteDepth
from polarbear_plugins.partial_orders.sums import compatible_orders, sample_sums, sum_over_sets, tail_weights
from polarbear_plugins.partial_orders.witness import PackedOrders
from polarbear_plugins.partial_orders.work import TooMuchWorkError, Watch, Work

if TYPE_CHECKING:
    import pandas as pd


TOLERANCE = 1e-13
MOST_SECONDS = 60.0
AUTOMATIC_SAMPLES = 20_000


def measure_depth(
    orders: Iterable[PartialOrder] | Mapping[str, PartialOrder],
    *,
    of: Iterable[PartialOrder] | Mapping[str, PartialOrder] | None = None,
    tolerance: float = TOLERANCE,
    samples: int | None = None,
    seed: int | None = 0,
    most_seconds: float | None = MOST_SECONDS,
    watch: Watch | None = None,
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
    most_seconds
        CPU seconds that testing all sets may take.  As soon as the first sets show that it would take longer, 20,000
        of the larger sets are drawn instead, with a warning.  ``None``: test all, however long it takes.
    watch
        Called from time to time with the share of the sets that is tested and the CPU seconds left.

    Examples
    --------
    >>> edges = {"f1": [("a", "b")], "f2": [("a", "c")], "f3": [("b", "a"), ("a", "c")], "f4": [("a", "c")]}
    >>> orders = {name: PartialOrder.from_edges("abc", pairs, close=True) for name, pairs in edges.items()}
    >>> found = measure_depth(orders)
    >>> found.central(), found.depths
    (['f2', 'f4'], array([0.6, 1. , 0.6, 1. ]))
    """
    names, observed = names_and_orders(orders, "orders")
    if len(observed) < 2:
        raise InvalidInputError("Depth compares the orders of several test functions, got one. Add others.")
    optimizers = observed[0].optimizers
    wanted_names, wanted = (names, observed) if of is None else names_and_orders(of, "of", optimizers)
    tolerance = as_number(tolerance, "tolerance", at_least=0, below=1)
    limit = None if most_seconds is None else as_number(most_seconds, "most_seconds", at_least=0)
    if samples is not None:
        samples = as_whole_number(samples, "samples", at_least=1)
    # Orders with few edges first: then the witness of a set more often leads to one of the next larger set.
    counts: dict[bytes, int] = {}
    for order in sorted(observed, key=lambda order: order.better.sum()):
        counts[order.better.tobytes()] = counts.get(order.better.tobytes(), 0) + 1
    shape = len(optimizers), len(optimizers)
    distinct = PackedOrders(np.array([np.frombuffer(key, dtype=np.bool_).reshape(shape) for key in counts]))
    weights = np.array(list(counts.values())) / len(observed)
    asked, place = np.unique([order.better for order in wanted], axis=0, return_inverse=True)
    queries, place = PackedOrders(asked), place.reshape(-1)  # numpy 2.0 gives it more dimensions
    # Two orders that are not a union-free generic pair are together in no larger set either, so the pairs alone show
    # whether there is any set, and bound the total from below.
    least = float(weights @ compatible_orders(distinct) @ weights) / 2
    tails = tail_weights(weights)
    largest = max(2, int(np.argmax(tails <= tolerance * least)) - 1) if least > 0 else 2
    seconds = None
    if samples is None:
        try:
            sums = sum_over_sets(distinct, weights, queries, largest, Work(limit, watch))
        except TooMuchWorkError as work:
            samples, seconds = AUTOMATIC_SAMPLES, work.seconds
            _warn_of_sampling(len(distinct), seconds)
    if samples is not None:
        sums = sample_sums(distinct, weights, queries, largest, samples, np.random.default_rng(seed))
    depths = sums.around / sums.total if sums.total > 0 else np.zeros(len(asked))
    bound = float(tails[largest + 1] / sums.total) if sums.total > 0 else 0.0
    errors = sums.errors[place]
    return SuiteDepth(wanted_names, wanted, depths[place], errors, bound, sums.candidates, sums.generic, seconds)


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


def _warn_of_sampling(orders: int, seconds: float) -> None:
    warnings.warn(
        f"Testing all sets of {orders} distinct orders would take about {seconds:.2g} CPU seconds, so "
        f"{AUTOMATIC_SAMPLES:,} of the larger sets are drawn; the depths have standard errors. Draw more (samples), "
        "test fewer (a larger tolerance), or all (most_seconds=None).",
        PolarBearWarning,
        stacklevel=3,
    )


def ufg_depth(
    orders: Iterable[PartialOrder] | Mapping[str, PartialOrder],
    *,
    of: Iterable[PartialOrder] | Mapping[str, PartialOrder] | None = None,
    **options: Any,
) -> FloatArray:
    """Union-free generic depth of partial orders: how central each is among those observed.

    See :func:`polarbear_plugins.partial_orders.measure_depth` for the options; it also returns errors.

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
    return measure_depth(orders, of=of, **options).depths
