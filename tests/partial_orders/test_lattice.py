from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from polarbear_plugins.arrays import BoolArray
from polarbear_plugins.partial_orders import from_criteria, measure_depth
from polarbear_plugins.partial_orders.lattice import Lattice
from polarbear_plugins.partial_orders.levels import which_are_generic
from polarbear_plugins.partial_orders.sums import _sum_over_branches, _sum_over_lattice
from polarbear_plugins.partial_orders.witness import Family, PackedOrders, WitnessSearch, has_own_marks
from polarbear_plugins.partial_orders.work import Work


def relations(count: int, items: int, seed: int, criteria: int = 3, correlation: float = 0.6) -> BoolArray:
    """Distinct orders from correlated criteria."""
    rng, orders = np.random.default_rng(seed), {}
    while len(orders) < count:
        values = np.sqrt(correlation) * rng.normal(size=(items, 1))
        values = values + np.sqrt(1 - correlation) * rng.normal(size=(items, criteria))
        orders[from_criteria(pd.DataFrame(values))] = None
    return np.array([order.better for order in orders])


def family_of(sets: list[tuple[int, ...]], orders: PackedOrders) -> Family:
    return Family.of(np.array(sets, dtype=np.uint16).T, orders)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("items", [3, 5, 9, 20])
def test_candidates_are_the_sets_in_which_each_member_has_its_own_mark(items: int, seed: int) -> None:
    orders = PackedOrders(relations(8, items, seed))
    expected = set()
    for size in range(2, 7):
        sets = list(itertools.combinations(range(8), size))
        good = has_own_marks(family_of(sets, orders), orders)
        expected |= {sum(1 << member for member in each) for each in itertools.compress(sets, good)}
    assert set(Lattice(orders.relations).candidates(6).tolist()) == expected


@pytest.mark.parametrize(("items", "correlation"), [(5, 0.5), (9, 0.9), (20, 0.2)])
def test_what_two_halves_show_to_be_generic_is(items: int, correlation: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polarbear_plugins.partial_orders.lattice._FEW", 0)
    orders = PackedOrders(relations(9, items, 1, correlation=correlation))
    lattice = Lattice(orders.relations)
    candidates = lattice.candidates(9)
    left = lattice.leave_out_simple(candidates, np.random.default_rng(0))
    shown = np.setdiff1d(candidates, left)
    assert shown.size
    assert which_are_generic(shown, orders, Work()).all()


@pytest.mark.parametrize(("items", "correlation"), [(4, 0.2), (7, 0.6), (11, 0.5), (24, 0.8)])
@pytest.mark.parametrize("few", [0, 10**6])
def test_both_ways_to_go_through_the_sets_give_the_same_sums(
    items: int, correlation: float, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polarbear_plugins.partial_orders.lattice._FEW", few)
    orders = PackedOrders(relations(12, items, 2, correlation=correlation))
    queries = PackedOrders(relations(40, items, 3, correlation=correlation))
    weights = np.random.default_rng(0).dirichlet(np.ones(12))
    one = _sum_over_lattice(orders, weights, queries, 9, Work())
    other = _sum_over_branches(orders, weights, queries, 9, Work())
    assert one.generic == other.generic
    assert one.total == pytest.approx(other.total, rel=1e-14)
    np.testing.assert_allclose(one.around, other.around, rtol=0, atol=1e-15)


@pytest.mark.parametrize("count", [16, 17, 18])
def test_arrays_larger_than_a_block_are_gone_through_as_well(count: int) -> None:
    orders = PackedOrders(relations(count, 4, 5, criteria=2))
    weights = np.full(count, 1 / count)
    one = _sum_over_lattice(orders, weights, orders, count, Work())
    other = _sum_over_branches(orders, weights, orders, count, Work())
    assert one.generic == other.generic
    np.testing.assert_allclose(one.around, other.around, rtol=0, atol=1e-15)


def test_two_orders_that_differ_in_one_edge_are_in_no_generic_set() -> None:
    better = np.zeros((2, 3, 3), dtype=np.bool_)
    better[1, 0, 1] = True
    orders = PackedOrders(better)
    assert not _sum_over_lattice(orders, np.full(2, 0.5), orders, 2, Work()).generic
    # One has the edge and the other lacks it, but no order does both.
    assert not any(Lattice(better)._shown(np.array(half))[3] for half in itertools.product([False, True], repeat=3))
    assert measure_depth([from_criteria(pd.DataFrame({"x": [1, 2]}))] * 2).depths.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_the_halves_what_they_show_to_be_generic_is_also_where_orders_share_edges(seed: int) -> None:
    better = np.unique(
        relations(7, 5, seed, criteria=2, correlation=0.3) | np.triu(np.ones((5, 5), dtype=bool), 2), axis=0
    )
    better = np.array([each for each in better if is_order(each)])
    orders, lattice = PackedOrders(better), Lattice(better)
    candidates = lattice.candidates(len(better))
    generic = which_are_generic(candidates, orders, Work())
    for half in itertools.product([False, True], repeat=5):
        assert generic[lattice._shown(np.array(half))[candidates]].all()


def is_order(better: BoolArray) -> bool:
    steps = better.astype(int)
    return not (better & better.T).any() and not (((steps @ steps) > 0) & ~better).any()


@pytest.mark.parametrize(("items", "size"), [(6, 3), (11, 5), (20, 6)])
def test_forbidden_edges_are_updated_to_what_they_would_be_from_the_beginning(items: int, size: int) -> None:
    orders = PackedOrders(relations(9, items, 4))
    search = WitnessSearch(family_of(list(itertools.combinations(range(9), size)), orders), orders)
    columns = np.arange(search.found.size)
    diagonal, edges = orders.bits.diagonal, orders.bits.pack(np.ones((1, items, items), dtype=np.bool_))
    states = search._evaluate(
        search._begin(columns, search.family.common | diagonal, search.family.transpose | diagonal)
    )
    steps = 0
    while states.column.size:
        extended, _ = search._extend(states)
        again = search._begin(extended.column, extended.relation, extended.transpose)
        assert not ((extended.forbidden ^ again.forbidden) & edges).any()
        states, steps = search._evaluate(extended), steps + 1
    assert steps > 1
