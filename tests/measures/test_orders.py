from __future__ import annotations

import math

import numpy as np
import pytest
from builders import column_kinds, run, run_of, table_of

from polarbear_plugins import Trajectory, fit, rank
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.disagreements import Contradiction, find_contradictions
from polarbear_plugins.measures.ecdf_and_aocc import area_over_curve
from polarbear_plugins.measures.orders import order_by_measures
from polarbear_plugins.trajectories import relative_to_range

GRID = [1, 10, 100]


def runs(count: int = 40, **curves: list[float]) -> list[Trajectory]:
    """The same curves on many instances."""
    return [run_of(name, f"f{k}", best) for k in range(count) for name, best in curves.items()]


def judged(given: list[Trajectory]) -> list[Contradiction]:
    posterior = fit(rank(given, GRID), seed=1)
    return find_contradictions(order_by_measures(given, 100, first=1), posterior)


def test_known_values_and_orders() -> None:
    orders = order_by_measures(runs(a=[1e2, 1e2, 1e-8], b=[1e-3, 1e-3, 1e-3]), 100, first=1, targets=[1, 1e-5])
    assert orders.algorithms == ("a", "b")
    np.testing.assert_allclose(orders.by_measure["AOCC"], [0, 0.495])  # b from time 1 on, half of the way
    np.testing.assert_allclose(orders.by_measure["ECDF area"], [0, 0.5])
    np.testing.assert_allclose(orders.by_measure["final median"], [1e-8, 1e-3])
    assert orders.order("AOCC") == orders.order("ECDF area") == ("b", "a")
    assert orders.order("final median") == ("a", "b")
    assert (orders.runs, orders.left_out, len(orders.instances)) == (80, 0, 40)


def test_only_instances_count_on_which_every_algorithm_was_watched_so_long() -> None:
    given = [
        run_of("a", "both", 1e-3),
        run_of("b", "both", 1e-8),
        run_of("a", "alone", 1e-8),
        run_of("b", "short", 1e2, horizon=50),
        run_of("a", "short", 1e2),
    ]
    orders = order_by_measures(given, 100)
    assert (orders.instances, orders.runs, orders.left_out) == (("both",), 2, 3)
    expected = [area_over_curve(given[0], 100), area_over_curve(given[1], 100)]
    np.testing.assert_allclose(orders.by_measure["AOCC"], expected)


def test_the_table_has_the_ratings_of_each_algorithm_in_its_row() -> None:
    given = runs(loser=[50, 50, 50], winner=[1, 1, 1])
    table = rank(given, GRID, algorithms=["winner", "loser"])  # in another order than by name
    frame = order_by_measures(given, 100).table(fit(table, seed=1), timepoints=2)
    assert list(frame.index) == ["winner", "loser"]
    assert list(frame.columns) == ["AOCC", "ECDF area", "final median", "rating at 1", "rating at 100"]
    assert (frame.loc["winner"] > frame.loc["loser"]).drop("final median").all()
    assert list(order_by_measures(given, 100).table().columns) == ["AOCC", "ECDF area", "final median"]


def test_an_order_that_rankings_confirm_is_no_contradiction() -> None:
    assert judged(runs(a=[1, 1e-1, 1e-2], b=[2, 2, 2])) == []


def test_who_leads_early_and_loses_late_crosses() -> None:
    # b is much better in the end, a was better before.
    [pair] = [pair for pair in judged(runs(a=[1, 0.9, 0.8], b=[1.1, 1.0, 1e-8])) if pair.ahead == "a"]
    assert (pair.kind, pair.lost, pair.won) == ("crossing", ("100",), ("1 to 10",))
    assert (pair.behind, pair.measures) == ("b", ("AOCC", "ECDF area"))


def test_each_order_of_measures_that_differ_is_judged() -> None:
    found = judged(runs(early=[1e-3, 1e-3, 1e-3], late=[50, 50, 1e-8]))
    told = {(pair.ahead, pair.measures, pair.kind) for pair in found}
    assert told == {("early", ("AOCC", "ECDF area"), "crossing"), ("late", ("final median",), "crossing")}


def test_who_is_far_better_on_a_few_instances_is_reversed() -> None:
    # A little worse on most instances and much better on a few: a mean likes it, rankings do not.
    given = runs(35, usual=[1, 1, 1], lucky=[1.1, 1.1, 1.1])
    given += [run_of(name, f"g{k}", [best] * 3) for k in range(5) for name, best in (("usual", 1.0), ("lucky", 1e-8))]
    [pair] = [pair for pair in judged(given) if pair.ahead == "lucky"]
    assert (pair.kind, pair.behind, pair.lost, pair.won) == ("reversed", "usual", ("1 to 100",), ())
    assert "AOCC" in pair.measures
    assert "final median" not in pair.measures


def test_a_pair_that_rankings_cannot_tell_apart_is_open() -> None:
    [pair] = judged(runs(1, a=[1, 1, 1], b=[2, 2, 2]))
    assert (pair.kind, pair.ahead, pair.lost, pair.won) == ("open", "a", (), ())
    assert 0.5 < pair.highest < 0.99


def test_probabilities_are_those_of_the_algorithms_whatever_the_order_in_the_posterior() -> None:
    given = runs(a=[1, 1e-1, 1e-2], b=[2, 2, 2])
    posterior = fit(rank(given, GRID, algorithms=["b", "a"]), seed=1)
    assert posterior.algorithms == ("b", "a")
    assert find_contradictions(order_by_measures(given, 100), posterior) == []


def test_equal_measures_order_nothing() -> None:
    assert judged(runs(a=[1, 1, 1], b=[1, 1, 1])) == []


def test_relabelling_the_algorithms_relabels_the_contradictions() -> None:
    curves = {"a": [1, 0.9, 0.8], "b": [1.1, 1.0, 1e-8], "c": [5, 5, 1e-4]}
    names = {"a": "z", "b": "x", "c": "y"}
    plain = judged(runs(**curves))
    other = judged(runs(**{names[name]: curve for name, curve in curves.items()}))
    assert len(plain) > 1
    assert {(names[p.ahead], names[p.behind], p.kind, p.lost, p.won) for p in plain} == {
        (p.ahead, p.behind, p.kind, p.lost, p.won) for p in other
    }


def test_words_tell_the_kinds_apart() -> None:
    both: tuple[str, ...] = ("AOCC", "final median")
    more = {"ahead": "a", "behind": "b", "highest": 0.6, "alpha": 0.99}
    crossing = Contradiction(both, kind="crossing", lost=("1 to 5", "9"), won=("50",), **more)  # type: ignore[arg-type]
    assert str(crossing) == (
        "AOCC and final median put a before b, but b is better at 1 to 5 and 9 (P >= 0.99), and a at 50: the budget "
        "decides, which one order hides."
    )
    backward = Contradiction(both[:1], kind="reversed", lost=("1",), won=(), **more)  # type: ignore[arg-type]
    assert str(backward) == (
        "AOCC puts a before b, but b is better at 1 (P >= 0.99), and a surely at no timepoint (P at most 0.60)."
    )
    unsure = Contradiction(both[:1], kind="open", lost=(), won=(), **more)  # type: ignore[arg-type]
    assert str(unsure) == (
        "AOCC puts a before b, but by rankings neither is surely better at any timepoint (P at most 0.60 for a): other "
        "instances may reverse it."
    )


def test_the_plainest_contradictions_come_first() -> None:
    given = runs(35, usual=[1, 1, 1], lucky=[1.1, 1.1, 1.1], late=[90, 90, 0.5])
    others = {"usual": [1.0] * 3, "lucky": [1e-8] * 3, "late": [90, 90, 0.5]}
    given += [run_of(name, f"g{k}", best) for k in range(5) for name, best in others.items()]
    kinds = [pair.kind for pair in judged(given)]
    assert kinds == sorted(kinds, key=("reversed", "crossing", "open").index)
    assert {"reversed", "crossing"} <= set(kinds)


def test_runs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="there are no trajectories"):
        order_by_measures([], 100)
    with pytest.raises(InvalidInputError, match="no run of 'b' was watched until 100, the longest until 50"):
        order_by_measures([run_of("a"), run_of("b", horizon=50)], 100)
    with pytest.raises(InvalidInputError, match="no instance on which all of a, b have a run watched until 100"):
        order_by_measures([run_of("a", "f"), run_of("b", "g")], 100)
    with pytest.raises(InvalidInputError, match="values below 0"):
        order_by_measures([run_of("a", best=-1.0)], 100)
    with pytest.raises(InvalidInputError, match="budget: expected a finite number"):
        order_by_measures([run_of("a")], math.nan)
    with pytest.raises(InvalidInputError, match="different algorithms"):
        find_contradictions(order_by_measures([run_of("a")], 100), fit(table_of(np.ones((2, 1, 2))), seed=1))


def test_measures_give_their_values_and_places() -> None:
    runs = [
        run([1, 4], [8, best + seed], algorithm=name, seed=seed, horizon=9)
        for name, best in (("a", 3.0), ("b", 1.0))
        for seed in (0, 1)
    ]
    frame = order_by_measures(runs, 9).to_pandas()
    assert column_kinds(frame) == {"measure": "names", "algorithm": "names", "value": "float", "rank": "int"}
    ranks = frame.set_index(["measure", "algorithm"])["rank"]
    assert [ranks[measure, "b"] for measure in ("AOCC", "ECDF area", "final median")] == [1, 1, 1]


def test_a_relative_scale_takes_the_range_of_each_instance_until_the_budget() -> None:
    curves = {"a": [-3.0, -5.0, -9.0], "b": [-1.0, -2.0, -2.5]}  # the last values come after the budget
    runs = [
        Trajectory(algorithm=name, instance=f"f{k}", times=[0, 5, 20], best=np.array(best) * 10.0**k, horizon=30)
        for name, best in curves.items()
        for k in range(2)
    ]
    found = order_by_measures(runs, 10, scale="relative")
    assert (found.scale, found.lower, found.upper) == ("relative", 0, 1)
    # From -1, the worst, to -5, the best: a is at 1/2 and then at 1, b at 0 and then at 1/4, half of the time each.
    assert found.by_measure["AOCC"] == pytest.approx([0.75, 0.125])
    assert found.by_measure["final median"] == pytest.approx([-27.5, -11])  # in the unit of the values
    later = relative_to_range(runs, 10)[0].best
    assert later == pytest.approx([0.5, 0, -1])


def test_runs_with_equal_values_have_no_regret() -> None:
    same = [Trajectory(algorithm=name, instance="f", times=[1], best=[-2.0], horizon=9) for name in ("a", "b")]
    assert [each.best.tolist() for each in relative_to_range(same)] == [[0.0], [0.0]]
    never = Trajectory(algorithm="a", instance="f", times=[1], best=[math.inf], horizon=9)
    assert relative_to_range([never])[0].best.tolist() == [math.inf]


def test_scales_without_the_bounds_they_need_are_refused() -> None:
    runs = [Trajectory(algorithm=name, instance="f", times=[1], best=[-2.0], horizon=9) for name in ("a", "b")]
    with pytest.raises(InvalidInputError, match="A linear scale needs both bounds"):
        order_by_measures(runs, 9, scale="linear", lower=-3)
    with pytest.raises(InvalidInputError, match="leave out lower and upper"):
        order_by_measures(runs, 9, scale="relative", upper=1)
    with pytest.raises(InvalidInputError, match="expected lower < upper, got 1 and -1"):
        order_by_measures(runs, 9, scale="linear", lower=1, upper=-1)
    with pytest.raises(InvalidInputError, match='scale: expected "log", "linear" or "relative"'):
        order_by_measures(runs, 9, scale="square")  # type: ignore[arg-type]
