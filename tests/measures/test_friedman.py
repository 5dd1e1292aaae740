from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, studentized_range

from polarbear_plugins import RankingTable
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures import friedman_test
from polarbear_plugins.rankings import mean_ranks


def table_of(values: np.ndarray, **options: object) -> RankingTable:
    names = [f"a{k}" for k in range(values.shape[1])]
    return RankingTable.from_values(values[:, None, :], algorithms=names, timepoints=[10], **options)


def test_statistic_is_scipys_and_p_its_limit() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 6, size=(80, 4)) + np.array([0.0, 0.3, 0.6, 0.9])
    values[::3] = np.round(values[::3])  # with ties
    test, reference = friedman_test(table_of(values)), friedmanchisquare(*values.T)
    assert test.statistic == pytest.approx(reference.statistic)
    assert test.p == pytest.approx(reference.pvalue, abs=0.01)


def test_p_is_exact_for_few_instances() -> None:
    values = np.array([[1.0, 2, 3], [1, 2, 3], [1, 3, 2]])
    seen = friedmanchisquare(*values.T).statistic
    every = [
        friedmanchisquare(*np.array(rows).T).statistic
        for rows in itertools.product(itertools.permutations([1, 2, 3]), repeat=3)
    ]
    exact = np.mean(np.array(every) >= seen - 1e-9)
    assert friedman_test(table_of(values)).p == pytest.approx(exact, abs=0.015)
    assert not friedman_test(table_of(values)).rejects


@pytest.mark.parametrize(("size", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_has_the_quantiles_of_published_tables(size: int, q: float) -> None:
    values = np.random.default_rng(1).random((24, size))
    found = friedman_test(table_of(values)).critical_difference
    assert found == pytest.approx(q * np.sqrt(size * (size + 1) / (6 * 24)), rel=3e-4)


@pytest.mark.parametrize(("count", "size"), [(3, 4), (5, 3), (5, 8), (20, 5)])
def test_equally_good_algorithms_are_told_apart_as_seldom_as_the_level_says(count: int, size: int) -> None:
    ranks = np.random.default_rng(1).permuted(np.broadcast_to(np.arange(size), (8_000, count, size)), axis=-1)
    widest = np.ptp(ranks.mean(axis=1), axis=1)
    critical = studentized_range.ppf(0.95, size, np.inf) / np.sqrt(2) * np.sqrt(size * (size + 1) / (6 * count))
    assert friedman_test(table_of(ranks[0].astype(float))).critical_difference == pytest.approx(critical)
    assert (widest > critical).mean() < 0.055


def test_groups_are_the_largest_sets_within_the_critical_difference() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(40, 4)) + np.array([0.0, 0.7, 1.4, 4.0])
    test = friedman_test(table_of(values))
    assert test.rejects
    far = test.mean_ranks[:, None] - test.mean_ranks
    for one, other in itertools.combinations(range(4), 2):
        together = any({test.algorithms[one], test.algorithms[other]} <= set(group) for group in test.groups())
        assert together == (abs(far[one, other]) <= test.critical_difference)
    assert test.groups()[-1] == ("a3",)


def test_without_a_significant_test_nothing_is_told_apart() -> None:
    test = friedman_test(table_of(np.random.default_rng(3).normal(size=(6, 5))))
    assert not test.rejects
    assert test.groups() == (test.algorithms,)
    all_tie = friedman_test(table_of(np.ones((5, 3))))
    assert (all_tie.p, all_tie.groups()) == (1.0, (("a0", "a1", "a2"),))
    assert all_tie.to_json()["statistic"] is None


def test_runs_on_an_instance_do_not_make_more_instances() -> None:
    values = np.random.default_rng(4).normal(size=(4, 3)) + np.array([0.0, 1.0, 2.0])
    once = friedman_test(table_of(values))
    often = friedman_test(table_of(np.repeat(values, 30, axis=0), instances=np.repeat(["f", "g", "h", "i"], 30)))
    assert (often.count, often.p, often.critical_difference) == (4, once.p, once.critical_difference)


def test_instances_without_all_algorithms_do_not_count() -> None:
    values = np.random.default_rng(5).normal(size=(9, 3))
    values[0, 1] = np.nan
    assert friedman_test(table_of(values)).count == 8
    with pytest.raises(InvalidInputError, match="at least two algorithms on two instances"):
        friedman_test(table_of(values[:2]))


def test_the_seed_decides_the_rearrangements() -> None:
    table = table_of(np.random.default_rng(6).normal(size=(10, 4)))
    assert friedman_test(table, seed=1).p == friedman_test(table, seed=1).p != friedman_test(table, seed=2).p


def test_runs_of_one_instance_are_not_called_instances() -> None:
    values = np.random.default_rng(7).normal(size=(8, 3))
    test = friedman_test(table_of(values, instances=["f"] * 8))
    assert (test.count, test.unit) == (8, "runs")
    assert test.caveat == "runs of an instance count as independent, so it says little about other instances"
    independent = table_of(values, instances=["f", "g"] * 4, repetitions="independent")
    assert (friedman_test(independent).unit, mean_ranks(independent).unit) == ("runs", "runs")
    plain = friedman_test(table_of(values))
    assert (plain.unit, plain.instance_groups, plain.caveat) == ("instances", 0, "")
    assert (mean_ranks(table_of(values)).unit, mean_ranks(table_of(values, instances=["f"] * 8)).unit) == (
        "instances",
        "runs",
    )


def test_grouped_instances_are_said_to_count_as_independent() -> None:
    values = np.random.default_rng(8).normal(size=(8, 3))
    test = friedman_test(table_of(values, groups=["a", "b"] * 4))
    assert test.instance_groups == 2
    assert test.to_json()["caveat"] == "instances count as independent, although they belong to 2 groups"
