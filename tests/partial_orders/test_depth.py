from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from builders import column_kinds
from command_line import run_example
from hypothesis import given, settings
from numpy.typing import NDArray

from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.partial_orders import PartialOrder
from polarbear_plugins.partial_orders.criteria import orders_of_functions, read_criteria
from polarbear_plugins.partial_orders.depth import depth_changes, measure_depth, ufg_depth
from polarbear_plugins.partial_orders.order import from_criteria
from polarbear_plugins.partial_orders.sums import estimate_candidates
from polarbear_plugins.partial_orders.witness import PackedOrders
from polarbear_plugins.partial_orders.work import TooMuchWorkError, Work

Edges = frozenset[tuple[int, int]]


def all_posets(items: int) -> list[Edges]:
    """Every partial order, by trying all relations."""
    pairs = list(itertools.permutations(range(items), 2))
    found = []
    for chosen in itertools.product([False, True], repeat=len(pairs)):
        edges = frozenset(itertools.compress(pairs, chosen))
        if all((b, a) not in edges for a, b in edges) and all(
            (a, d) in edges for a, b in edges for c, d in edges if b == c
        ):
            found.append(edges)
    return found


POSETS = {items: all_posets(items) for items in (2, 3, 4)}


def closure(members: Sequence[Edges], posets: Sequence[Edges]) -> frozenset[Edges]:
    """The operator gamma of the paper, literally."""
    if not members:
        return frozenset()
    common, union = frozenset.intersection(*members), frozenset.union(*members)
    return frozenset(poset for poset in posets if common <= poset <= union)


def plain_generic_sets(distinct: Sequence[Edges], posets: Sequence[Edges]) -> list[tuple[Edges, ...]]:
    """Sets with the conditions C1 and C2, by looking at all of their parts."""
    found = []
    for size in range(1, len(distinct) + 1):
        for members in itertools.combinations(distinct, size):
            whole = closure(members, posets)
            parts = (closure(part, posets) for k in range(size) for part in itertools.combinations(members, k))
            if frozenset(members) < whole and frozenset().union(*parts) != whole:
                found.append(members)
    return found


def plain_depth(observed: Sequence[Edges], posets: Sequence[Edges], of: Sequence[Edges]) -> list[float]:
    """Definition B.1 of the paper."""
    distinct = list(dict.fromkeys(observed))
    weights = {
        members: math.prod(observed.count(member) / len(observed) for member in members)
        for members in plain_generic_sets(distinct, posets)
    }
    total = sum(weights.values())
    return [
        sum(weight for members, weight in weights.items() if poset in closure(members, posets)) / total
        if total
        else 0.0
        for poset in of
    ]


def as_order(edges: Edges, items: int) -> PartialOrder:
    return PartialOrder.from_edges(range(items), edges)


def drawn(items: int, count: int, seed: int, criteria: int = 3, correlation: float = 0.5) -> list[PartialOrder]:
    """Orders from correlated criteria."""
    rng = np.random.default_rng(seed)
    shape = np.sqrt(correlation), np.sqrt(1 - correlation)
    values = shape[0] * rng.normal(size=(count, items, 1)) + shape[1] * rng.normal(size=(count, items, criteria))
    return [from_criteria(pd.DataFrame(each)) for each in values]


@st.composite
def suites(draw: st.DrawFn) -> list[PartialOrder]:
    return drawn(draw(st.integers(2, 6)), draw(st.integers(2, 9)), draw(st.integers(0, 10**6)), draw(st.integers(1, 4)))


@pytest.mark.parametrize("items", [2, 3, 4])
def test_there_are_as_many_posets_as_known(items: int) -> None:
    assert len(POSETS[items]) == {2: 3, 3: 19, 4: 219}[items]


@given(st.data())
@settings(max_examples=60)
def test_depth_is_that_of_the_plain_enumeration_of_the_definition(data: st.DataObject) -> None:
    items = data.draw(st.sampled_from([2, 3, 3, 4]))
    poset = st.sampled_from(POSETS[items])
    observed = data.draw(st.lists(poset, min_size=2, max_size=6 if items < 4 else 5))
    others = data.draw(st.lists(poset, min_size=1, max_size=3))
    orders = [as_order(edges, items) for edges in observed]
    found = measure_depth(orders, tolerance=0)
    np.testing.assert_allclose(found.depths, plain_depth(observed, POSETS[items], observed), rtol=0, atol=1e-12)
    depths = ufg_depth(orders, of=[as_order(edges, items) for edges in others], tolerance=0)
    np.testing.assert_allclose(depths, plain_depth(observed, POSETS[items], others), rtol=0, atol=1e-12)
    plain = plain_generic_sets(list(dict.fromkeys(observed)), POSETS[items])
    assert found.generic == {
        size: number for size in range(2, 7) if (number := sum(len(members) == size for members in plain))
    }


def closed(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    for middle in range(len(relation)):
        relation = relation | (relation[:, middle, None] & relation[None, middle])
    return relation


def plain_witness(members: Sequence[NDArray[np.bool_]]) -> bool:
    """Whether a set has a witness, by adding edges in all ways."""
    common, union = np.logical_and.reduce(members), np.logical_or.reduce(members)
    count = np.sum(members, axis=0)
    own = [(member & (count == 1), ~member & (count == len(members) - 1)) for member in members]
    pending, seen = [common], set()
    while pending:
        order = pending.pop()
        if order.tobytes() in seen or (order & ~union).any() or np.diagonal(order).any():
            continue
        seen.add(order.tobytes())
        needy = [has for has, lacks in own if not (has & order).any() and not (lacks & ~order).any()]
        if not needy:
            return True
        for i, j in np.argwhere(needy[0]):
            more = order.copy()
            more[i, j] = True
            pending.append(closed(more))
    return False


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("items", "correlation"), [(5, 0.3), (7, 0.6), (9, 0.8), (17, 0.9)])
def test_the_sets_are_those_of_a_plain_enumeration_of_more_optimizers(
    items: int, correlation: float, seed: int
) -> None:
    orders = list(dict.fromkeys(drawn(items, 7, seed, 3, correlation)))
    relations = [order.better for order in orders]
    sums, total = np.zeros(len(orders)), 0.0
    generic: dict[int, int] = {}
    for size in range(2, len(orders) + 1):
        for members in itertools.combinations(relations, size):
            if plain_witness(members):
                generic[size] = generic.get(size, 0) + 1
                total += len(orders) ** -size
                common, union = np.logical_and.reduce(members), np.logical_or.reduce(members)
                around = [not (common & ~one).any() and not (one & ~union).any() for one in relations]
                sums += np.array(around) * len(orders) ** -float(size)
    found = measure_depth(orders, tolerance=0)
    assert found.generic == generic
    np.testing.assert_allclose(found.depths, sums / total, rtol=0, atol=1e-12)


def test_a_union_free_generic_set_may_have_a_part_that_is_none() -> None:
    # All of ab, bc, de and ac together are needed around {ab, bc, ac, de}; but without ac nothing has ab and bc,
    # because ac follows from them.  So sets must not grow only from those that are union-free generic.
    orders = [PartialOrder.from_edges("abcde", [edge]) for edge in [("a", "b"), ("b", "c"), ("d", "e"), ("a", "c")]]
    assert measure_depth(orders).generic == {2: 6, 3: 3, 4: 1}
    assert measure_depth(orders[:3]).generic == {2: 3}


def test_the_example_of_the_paper() -> None:
    # Examples B.1 and B.2.  The sets are those of the paper, {p1, p2}, {p2, p3} and {p1, p3}.  It says that all depths
    # are 2/3; but p2 lies between the intersection (empty) and the union of p1 and p3 too, so that by definition B.1
    # its depth is 1.
    names = ["SGD", "Momentum", "Adam"]
    p1 = PartialOrder.from_edges(names, [("SGD", "Momentum")])
    p2 = PartialOrder.from_edges(names, [("SGD", "Adam")])
    p3 = PartialOrder.from_edges(names, [("Momentum", "SGD"), ("Momentum", "Adam"), ("SGD", "Adam")])
    found = measure_depth([p1, p2, p3])
    assert found.generic == {2: 3}
    assert found.depths == pytest.approx([2 / 3, 1, 2 / 3], abs=1e-15)
    both = PartialOrder.from_edges(names, [("SGD", "Momentum"), ("SGD", "Adam")])
    assert ufg_depth([p1, p2, p3], of=[both]) == pytest.approx([2 / 3], abs=1e-15)  # the p* of the paper


def test_the_depths_of_deepobs_are_the_known_ones(shared: Path) -> None:
    frames = read_criteria(
        shared / "ufg" / "deepobs.csv",
        "Test Problem",
        "Optimizer",
        ["Performance", "Speed"],
        separator=";",
        decimal=",",
    )
    found = measure_depth(orders_of_functions(frames))
    assert found.depths.min() == pytest.approx(0.293838862559242, abs=1e-12)
    assert found.depths.max() == pytest.approx(0.649289099526066, abs=1e-12)
    assert (found.central(), found.outlying()) == (["P2", "P3", "P5"], ["P8"])
    # Figure 1 of the paper: SGD is ahead of both on the outlying function, Adam of SGD of momentum on the central one.
    assert found.order("P8").edges() == [("SGD", "Momentum"), ("SGD", "Adam")]
    assert found.order("P2").covers() == [("SGD", "Momentum"), ("Adam", "SGD")]


def test_the_depths_of_the_dynamic_algorithms_are_the_known_ones(shared: Path) -> None:
    frames = read_criteria(shared / "ufg" / "dynamic-moea.csv", "Test Problem", "Optimizer")
    depths = ufg_depth(orders_of_functions(frames))
    assert depths.min() == pytest.approx(0.172789668572607, abs=1e-12)
    assert depths.max() == pytest.approx(0.390968080293946, abs=1e-12)


@given(suites(), st.randoms())
def test_permuting_the_optimizers_changes_no_depth(orders: list[PartialOrder], random: Any) -> None:
    names = list(orders[0].optimizers)
    random.shuffle(names)
    renamed = [PartialOrder(names, order.better) for order in orders]
    among = [order.among(names) for order in orders]
    assert ufg_depth(renamed) == pytest.approx(ufg_depth(orders), abs=1e-13)
    assert ufg_depth(among) == pytest.approx(ufg_depth(orders), abs=1e-13)


@given(suites())
def test_reversing_all_orders_changes_no_depth(orders: list[PartialOrder]) -> None:
    assert ufg_depth([order.reversed() for order in orders]) == pytest.approx(ufg_depth(orders), abs=1e-13)


@given(suites(), st.randoms())
def test_depths_go_with_their_orders(orders: list[PartialOrder], random: Any) -> None:
    places = list(range(len(orders)))
    random.shuffle(places)
    assert ufg_depth([orders[place] for place in places]) == pytest.approx(ufg_depth(orders)[places], abs=1e-13)


@given(suites())
def test_an_edge_that_no_order_has_makes_the_depth_0(orders: list[PartialOrder]) -> None:
    names = orders[0].optimizers
    missing = np.argwhere(~np.logical_or.reduce([order.better for order in orders]) & ~np.eye(len(names), dtype=bool))
    for i, j in missing[:3]:
        assert ufg_depth(orders, of=[PartialOrder.from_edges(names, [(names[i], names[j])])]) == [0.0]


@given(suites())
def test_lacking_an_edge_that_all_have_makes_the_depth_0(orders: list[PartialOrder]) -> None:
    top = [PartialOrder.from_edges(["top", "end"], [("top", "end")])]
    assert ufg_depth(top * 2).tolist() == [0.0, 0.0]
    names = (*orders[0].optimizers, "first")
    above = [
        PartialOrder.from_edges(names, [*order.edges(), *(("first", name) for name in order.optimizers)])
        for order in orders
    ]
    assert ufg_depth(above, of=[PartialOrder.from_edges(names, [])]) == [0.0]
    assert ufg_depth(above) == pytest.approx(ufg_depth(orders), abs=1e-13)  # what all agree on tells nothing


@given(suites(), st.integers(2, 3))
def test_repeating_all_observations_changes_no_depth(orders: list[PartialOrder], times: int) -> None:
    assert ufg_depth(orders * times)[: len(orders)] == pytest.approx(ufg_depth(orders), abs=1e-12)


def test_without_a_union_free_generic_set_all_depths_are_0() -> None:
    one = PartialOrder.from_edges("abc", [("a", "b")])
    assert ufg_depth([one, one]).tolist() == [0.0, 0.0]
    assert ufg_depth([one, PartialOrder.from_edges("abc", [])]).tolist() == [0.0, 0.0]  # nothing lies between


def test_no_depth_is_off_by_more_than_the_bound() -> None:
    orders = drawn(7, 12, 1)
    exact = measure_depth(orders, tolerance=0)
    assert exact.bound == 0
    for tolerance in (1e-9, 1e-4, 1e-2, 0.5):
        found = measure_depth(orders, tolerance=tolerance)
        assert found.bound <= max(tolerance, found.bound if max(found.tested) == 2 else 0)
        assert np.abs(found.depths - exact.depths).max() <= found.bound + 1e-15
    assert sum(measure_depth(orders, tolerance=1e-2).tested.values()) < sum(exact.tested.values())


def test_sampled_depths_lie_within_their_errors_and_repeat_with_the_seed() -> None:
    orders = drawn(8, 14, 3)
    exact = ufg_depth(orders)
    standardised = []
    for seed in range(20):
        found = measure_depth(orders, samples=500, seed=seed)
        assert (found.errors > 0).all()
        standardised.append((found.depths - exact) / found.errors)
    assert np.mean(np.square(standardised)) == pytest.approx(1, abs=0.35)  # errors are neither too small nor too large
    assert abs(np.mean(standardised)) < 0.4
    again = [measure_depth(orders, samples=500, seed=7) for _ in range(2)]
    assert again[0].depths.tolist() == again[1].depths.tolist()


def test_a_sample_of_everything_is_exact() -> None:
    orders = drawn(5, 8, 3)
    found = measure_depth(orders, samples=2**8)
    assert not found.errors.any()
    assert found.depths == pytest.approx(ufg_depth(orders), abs=1e-14)


def test_the_number_of_candidates_is_estimated_well() -> None:
    orders = drawn(8, 16, 3, criteria=4)
    tested = sum(measure_depth(orders, tolerance=0).tested.values())
    relations = np.array([order.better for order in orders])
    estimates = [estimate_candidates(PackedOrders(relations), 16, np.random.default_rng(seed)) for seed in range(5)]
    assert [sum(estimate.values()) for estimate in estimates] == pytest.approx([tested] * 5, rel=0.2)


def test_what_would_take_too_long_is_sampled_with_a_warning_that_says_how_long_and_what_else_can_be_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("polarbear_plugins.partial_orders.work._PROBE", 0.1)
    monkeypatch.setattr("polarbear_plugins.partial_orders.depth.AUTOMATIC_SAMPLES", 2000)
    orders = drawn(11, 40, 3, criteria=6)
    with pytest.warns(
        PolarBearWarning, match=r"40 distinct orders would take about \d.* CPU seconds.*most_seconds=None"
    ):
        found = measure_depth(orders)
    assert found.seconds_for_all is not None
    assert found.seconds_for_all > 60
    assert 0 < found.errors.max() < 0.01
    with pytest.warns(PolarBearWarning):
        assert measure_depth(orders).depths.tolist() == found.depths.tolist()  # no seed is needed to get it again


@pytest.mark.parametrize("count", [20, 26])
def test_sets_are_tested_within_the_limit_or_drawn(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For both ways to go through the sets: all sets of few orders, and sets that grow from others."""
    orders = drawn(4, count, 3, criteria=3)
    seen: list[tuple[float, float]] = []
    monkeypatch.setattr("polarbear_plugins.partial_orders.work._PROBE", 0.0)
    exact = measure_depth(orders, most_seconds=None, watch=lambda share, left: seen.append((share, left)))
    assert exact.seconds_for_all is None
    assert not exact.errors.any()
    shares = [share for share, _ in seen]
    assert shares == sorted(shares)
    assert 0 < shares[0] <= shares[-1] <= 1
    assert seen[-1][1] == pytest.approx(0, abs=0.5)
    with pytest.warns(PolarBearWarning, match="are drawn"):
        found = measure_depth(orders, most_seconds=0)
    assert found.seconds_for_all is not None
    assert np.abs(found.depths - exact.depths).max() <= 5 * found.errors.max()


def test_common_structure_of_the_deepest() -> None:
    found = measure_depth({f"f{i}": order for i, order in enumerate(drawn(5, 9, 4, correlation=0.7))})
    common = found.common(3)
    assert list(common.functions) == found.ranking()[:3]
    assert sorted(found.depths)[-3:] == sorted(found.depths[found.functions.index(name)] for name in common.functions)
    deepest = [set(found.order(name).edges()) for name in common.functions]
    assert set(common.edges) == set.intersection(*deepest)
    assert set(common.non_edges) == set(itertools.permutations("01234", 2)) - set.union(*deepest)
    assert common.edges
    with pytest.raises(InvalidInputError, match="only 9 orders"):
        found.common(10)
    with pytest.raises(InvalidInputError, match="no test function 'f9'"):
        found.order("f9")


def test_dispersion_and_summary_describe_the_depths() -> None:
    found = measure_depth({f"f{i}": order for i, order in enumerate(drawn(5, 8, 3))})
    spread = found.dispersion()
    assert spread["range"] == pytest.approx(spread["maximum"] - spread["minimum"])
    assert spread["standard_deviation"] == pytest.approx(np.std(found.depths, ddof=1))
    summary = found.summary()
    assert summary.index[0] in found.central()
    assert summary.index[-1] in found.outlying()
    assert summary["depth"].is_monotonic_decreasing
    assert found.to_dict()["functions"][0]["depth"] == found.depths[0]


def test_the_change_without_an_optimizer_is_the_depth_of_the_others_minus_the_depth_of_all() -> None:
    orders = {f"f{i}": order for i, order in enumerate(drawn(5, 8, 3))}
    changes = depth_changes(orders)
    assert list(changes) == ["depth", "0", "1", "2", "3", "4"]
    rest = {name: order.among("0124") for name, order in orders.items()}
    np.testing.assert_allclose(changes["depth"] + changes["3"], ufg_depth(rest), rtol=0, atol=1e-14)
    with pytest.raises(InvalidInputError, match="'x' is not one of the optimizers"):
        depth_changes(orders, ["x"])


@pytest.mark.parametrize(
    ("orders", "options", "message"),
    [
        (drawn(3, 1, 0), {}, "several test functions, got one"),
        ([], {}, "expected partial orders, got none"),
        (5, {}, "expected partial orders, got 5"),
        (["a > b"], {}, "'0': expected a PartialOrder"),
        ([*drawn(3, 2, 0), *drawn(4, 1, 0)], {}, "'2': all orders must have the same optimizers"),
        (drawn(3, 2, 0), {"of": drawn(4, 1, 0)}, "of, '0': all orders must have the same optimizers"),
        (drawn(3, 2, 0), {"tolerance": 1}, "tolerance"),
        (drawn(3, 2, 0), {"tolerance": float("nan")}, "tolerance"),
        (drawn(3, 2, 0), {"samples": 0}, "samples must be a whole number of at least 1"),
        (drawn(3, 2, 0), {"most_seconds": -1}, "most_seconds: expected a number"),
    ],
)
def test_bad_input_is_refused(orders: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ufg_depth(orders, **options)


def test_many_optimizers_and_orders_fit() -> None:
    orders = drawn(64, 3, 0, criteria=2, correlation=0.9)
    assert ufg_depth(orders) == pytest.approx(ufg_depth([order.reversed() for order in orders]), abs=1e-14)
    assert ufg_depth(drawn(4, 300, 0), samples=300, seed=0).shape == (300,)


@pytest.mark.slow
def test_the_example_tells_central_from_outlying_problems() -> None:
    assert "most central: rosenbrock-1; most outlying: ellipsoid-1" in run_example("suite_depth.py", "--quick")


def test_depths_are_told_with_the_pairs_of_each_function() -> None:
    order = PartialOrder.from_edges("abc", [("a", "b"), ("b", "c")], close=True)
    other = PartialOrder.from_edges("cba", [("c", "a")])
    depth = measure_depth({"f1": order, "f2": other}).to_pandas()
    assert column_kinds(depth) == {
        "function": "names",
        "optimizer": "names",
        "other": "names",
        "better": "bool",
        "depth": "float",
        "error": "float",
    }
    second = depth[(depth["function"] == "f2") & depth["better"]]
    assert list(zip(second["optimizer"], second["other"], strict=True)) == [("c", "a")]


def test_the_time_of_the_work_counts_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("polarbear_plugins.partial_orders.work.time.process_time", lambda: clock[0])
    seen: list[tuple[float, float]] = []
    work = Work(limit=60, watch=lambda share, left: seen.append((share, left)))
    clock[0] = 50.0  # spent on what all sets have in common
    work.start(100)
    clock[0] = 52.0
    work.advance(10)
    assert seen == [(0.1, 18.0)]
    clock[0] = 70.0
    with pytest.raises(TooMuchWorkError) as problem:
        work.advance(5)
    assert problem.value.seconds == pytest.approx(20 / 0.15)
