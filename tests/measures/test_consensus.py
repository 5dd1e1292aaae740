from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import RankingTable
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures import consensus_ranking, pairwise_wins, permutation_order, rank_reversals

# Table 6 of YAHPO Gym (Pfisterer et al. 2022): real, surrogate and tabular benchmarks.
REAL = ["BO_GP_DF", "BO_GP_RS", "BO_RF_RS", "BO_NN_RS", "BO_NN_DF", "HB", "BO_RF_DF", "RS"]
SURROGATE = ["BO_GP_DF", "BO_GP_RS", "BO_RF_RS", "BO_NN_RS", "HB", "BO_NN_DF", "BO_RF_DF", "RS"]
TABULAR = ["BO_GP_DF", "BO_GP_RS", "BO_RF_DF", "HB", "BO_RF_RS", "BO_NN_DF", "BO_NN_RS", "RS"]


def wins_of(rankings: np.ndarray) -> pd.DataFrame:
    names = [f"a{k}" for k in range(rankings.shape[1])]
    return pd.DataFrame((rankings[:, :, None] < rankings[:, None, :]).sum(axis=0), index=names, columns=names)


@st.composite
def ranking_sets(draw: st.DrawFn) -> np.ndarray:
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    return np.array(draw(st.lists(st.lists(st.integers(1, 3), min_size=shape[1], max_size=shape[1]), min_size=1)))


@given(ranking_sets())
def test_kemeny_has_the_fewest_reversals_of_all_orders_and_counts_them(rankings: np.ndarray) -> None:
    above = wins_of(rankings)
    best = consensus_ranking(above)
    costs = {
        order: sum(above.loc[behind, ahead] for ahead, behind in itertools.combinations(order, 2))
        for order in itertools.permutations(above.index)
    }
    optimal = [order for order, cost in costs.items() if cost == min(costs.values())]
    assert best.reversals == min(costs.values())
    assert best.optima == len(optimal)
    assert best.order in optimal
    for name, first, last in zip(best.order, best.first, best.last, strict=True):
        places = [order.index(name) + 1 for order in optimal]
        assert (first, last) == (min(places), max(places))


@given(ranking_sets())
def test_scores_are_those_of_brute_force(rankings: np.ndarray) -> None:
    above = wins_of(rankings)
    borda, copeland = consensus_ranking(above, "borda"), consensus_ranking(above, "copeland")
    margins = {a: {b: above.loc[a, b] - above.loc[b, a] for b in above} for a in above}
    points = {a: sum(margins[a].values()) for a in above}
    duels = {a: sum(np.sign(list(margins[a].values()))) for a in above}
    for found, scores in ((borda, points), (copeland, duels)):
        for name, first, last in zip(found.order, found.first, found.last, strict=True):
            assert first == 1 + sum(score > scores[name] for score in scores.values())
            assert last == sum(score >= scores[name] for score in scores.values())
        assert list(found.first) == sorted(found.first)
        assert found.reversals >= consensus_ranking(above).reversals


def test_one_ranking_is_its_own_consensus() -> None:
    above = wins_of(np.array([[2, 3, 1]]))
    for method in ("kemeny", "borda", "copeland"):
        found = consensus_ranking(above, method)
        assert (found.order, found.reversals, found.decided) == (("a2", "a0", "a1"), 0, True)
        assert str(found) == "a2 > a0 > a1"


def test_a_cycle_is_not_decided() -> None:
    above = wins_of(np.array([[1, 2, 3], [3, 1, 2], [2, 3, 1]]))
    best = consensus_ranking(above)
    assert (best.optima, best.decided, str(best)) == (3, False, "a0 = a1 = a2")
    assert best.to_json()["last"] == {"a0": 3, "a1": 3, "a2": 3}


def test_shares_of_a_third_count_as_equal_whatever_the_rounding() -> None:
    above = wins_of(np.array([[1, 2, 3], [3, 1, 2], [2, 3, 1]])) / 3 * 0.1
    assert consensus_ranking(above).optima == 3
    assert consensus_ranking(above, "borda").first == (1, 1, 1)


def test_sixteen_algorithms_are_the_most_for_kemeny() -> None:
    rankings = np.array([np.random.default_rng(seed).permutation(16) for seed in range(5)])
    best = consensus_ranking(wins_of(rankings))
    assert best.reversals <= consensus_ranking(wins_of(rankings), "borda").reversals
    with pytest.raises(InvalidInputError, match=r"at most 16 algorithms, got 17. Use borda or copeland"):
        consensus_ranking(wins_of(np.arange(17)[None]))


def test_the_consensus_rankings_of_yahpo_gym_differ_as_its_table_says() -> None:
    assert permutation_order(REAL, REAL) == 1
    assert permutation_order(REAL, SURROGATE) == 2
    assert permutation_order(REAL, TABULAR) == 5
    assert rank_reversals(REAL, SURROGATE) == 1
    assert rank_reversals(REAL, TABULAR) == rank_reversals(TABULAR, REAL) == 8


def test_runs_of_an_instance_are_averaged_before_they_win() -> None:
    values = [[[1.0, 2.0]], [[9.0, 2.0]], [[1.0, 2.0]], [[3.0, 3.0]]]
    table = RankingTable.from_values(values, algorithms=["a", "b"], timepoints=[5], instances=["f", "f", "g", "h"])
    assert pairwise_wins(table).to_dict("index") == {"a": {"a": 0, "b": 1}, "b": {"a": 1, "b": 0}}


@pytest.mark.parametrize(
    ("above", "message"),
    [
        (pd.DataFrame([[0, 1], [1, 0]], index=["a", "b"], columns=["b", "a"]), "square table"),
        (pd.DataFrame([[0, -1], [1, 0]], index=["a", "b"], columns=["a", "b"]), "not negative"),
        ([[0, 1], [1, 0]], "square table"),
    ],
)
def test_other_tables_are_refused(above: pd.DataFrame, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        consensus_ranking(above)


def test_orders_of_other_names_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="two orders of the same names"):
        rank_reversals(["a", "b"], ["a", "c"])
