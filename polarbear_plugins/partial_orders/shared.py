"""What partial orders have in common, and how often one optimizer is above another in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.partial_orders.order import PartialOrder, names_and_orders

if TYPE_CHECKING:
    import pandas as pd


def above_counts(orders: Iterable[PartialOrder] | Mapping[str, PartialOrder]) -> pd.DataFrame:
    """In how many orders the optimizer of each row is above that of each column, i.e. better.

    The two counts of a pair may add up to less than the number of orders: in the others the two are incomparable.

    Examples
    --------
    >>> above_counts([PartialOrder.from_edges("ab", [("a", "b")])] * 2 + [PartialOrder.from_edges("ab", [])])
       a  b
    a  0  2
    b  0  0
    """
    import pandas as pd

    _, given = names_and_orders(orders, "orders")
    names = list(given[0].optimizers)
    return pd.DataFrame(np.sum([order.better for order in given], axis=0), index=names, columns=names)


def shared_order(orders: Iterable[PartialOrder] | Mapping[str, PartialOrder]) -> PartialOrder:
    """The pairs (better, worse) that all orders share; they form a partial order.

    Examples
    --------
    >>> one = PartialOrder.from_edges("abc", [("a", "b"), ("b", "c")], close=True)
    >>> shared_order([one, PartialOrder.from_edges("abc", [("a", "c"), ("b", "c")])])
    PartialOrder(['a', 'b', 'c'], a > c, b > c)
    """
    _, given = names_and_orders(orders, "orders")
    return PartialOrder(given[0].optimizers, np.logical_and.reduce([order.better for order in given]))
