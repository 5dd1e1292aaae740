from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.partial_orders import PartialOrder, above_counts, from_criteria, shared_order


def random_orders(count: int, seed: int) -> list[PartialOrder]:
    rng = np.random.default_rng(seed)
    return [from_criteria(pd.DataFrame(rng.normal(size=(5, 2)), index=list("vwxyz"))) for _ in range(count)]


def test_counts_are_those_of_the_edges_whatever_the_sequence_of_the_optimizers() -> None:
    orders = random_orders(7, 0)
    turned = [order.among("zyxwv") if place % 2 else order for place, order in enumerate(orders)]
    counts = above_counts(turned)
    for one in "vwxyz":
        for other in "vwxyz":
            assert counts.loc[one, other] == sum((one, other) in order.edges() for order in orders)
    assert above_counts({f"f{place}": order for place, order in enumerate(orders)}).equals(counts)


def test_what_is_shared_is_what_is_above_in_all_orders() -> None:
    orders = random_orders(2, 1)
    counts = above_counts(orders)
    shared = shared_order(orders)
    assert set(shared.edges()) == set.intersection(*(set(order.edges()) for order in orders))
    assert np.array_equal(shared.better, counts.to_numpy() == 2)
    assert shared.edges()


def test_different_optimizers_are_refused() -> None:
    orders = [PartialOrder.from_edges("ab", []), PartialOrder.from_edges("ac", [])]
    for function in (above_counts, shared_order):
        with pytest.raises(InvalidInputError, match="must have the same optimizers"):
            function(orders)
