from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from builders import names, table_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polarbear_plugins.rankings import UNRANKED, RankingTable
from polarbear_plugins.rankings import tallies as module
from polarbear_plugins.rankings.summaries import table_among
from polarbear_plugins.rankings.tallies import Tallies, tally

VALUES = [0.0, 1.0, 2.0, np.inf, np.nan, UNRANKED]


@st.composite
def tables(draw: st.DrawFn) -> RankingTable:
    """Tables with ties, absent and unranked algorithms, repetitions that disagree, and weights."""
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 2), st.integers(2, 5)))
    values = draw(arrays(np.float64, shape, elements=st.sampled_from(VALUES), fill=st.nothing()))
    instances = draw(st.lists(st.sampled_from("uvw"), min_size=shape[0], max_size=shape[0]))
    weights = draw(arrays(np.float64, shape[0], elements=st.sampled_from([0.5, 1.0, 3.0]), fill=st.nothing()))
    repetitions = draw(st.sampled_from(["weight", "independent"]))
    empty = RankingTable(names(shape[2]), range(shape[1]), repetitions=repetitions)
    return empty.extended(values, instances, weights)


@dataclass
class Counted:
    """Counts row by row and pair by pair, as the definition has it."""

    wins: np.ndarray
    ties: np.ndarray
    first: np.ndarray


def counted(table: RankingTable, places: list[int], most: float = np.inf) -> Counted:
    n, timepoints = len(places), table.timepoints.size
    found = Counted(*(np.zeros((timepoints, n, n)) for _ in range(3)))
    units: dict[object, list[int]] = {}
    for row, instance in enumerate(table.instance_index):
        units.setdefault(row if table.repetitions == "independent" else instance, []).append(row)
    for rows in units.values():
        whole = sum(table.weights[row] for row in rows)
        weights = {row: table.weights[row] * min(1.0, most / whole) for row in rows}
        for t in range(timepoints):
            for i, j in [(i, j) for i in range(n) for j in range(n) if i != j]:
                total = lead = 0.0
                for row in rows:
                    all_values = table.values[row, t, places].tolist()
                    mine, theirs = all_values[i], all_values[j]
                    if np.isnan(mine) or np.isnan(theirs):
                        continue
                    ranked = [value for value in all_values if value != UNRANKED and not np.isnan(value)]
                    best = [value == min(ranked) for value in all_values] if ranked else [False] * n
                    found.first[t, i, j] += weights[row] * best[i] / max(1, sum(best))
                    if mine == theirs == UNRANKED:
                        continue
                    # What is unranked is worse than any ranked one, also than one without a value so far.
                    worth = [(value == UNRANKED, value) for value in (mine, theirs)]
                    total += weights[row]
                    lead += weights[row] * (int(worth[0] < worth[1]) - int(worth[0] > worth[1]))
                found.wins[t, i, j] += max(lead, 0.0)
                found.ties[t, i, j] += total - abs(lead)
    return found


def assert_equal(counts: Tallies | Counted, expected: Tallies | Counted) -> None:
    for name in ("wins", "ties", "first"):
        np.testing.assert_allclose(getattr(counts, name), getattr(expected, name), atol=1e-12, err_msg=name)


@given(tables(), st.data())
def test_counts_are_those_of_going_through_all_rows_and_pairs(table: RankingTable, data: st.DataObject) -> None:
    places = data.draw(st.permutations(range(len(table.algorithms))))[: data.draw(st.integers(2, 5))]
    assert_equal(tally(table, places), counted(table, places))
    assert_equal(tally(table), counted(table, list(range(len(table.algorithms)))))


@given(tables(), st.sampled_from([0.25, 1.0, 2.0]))
def test_no_instance_counts_more_than_the_most(table: RankingTable, most: float) -> None:
    assert_equal(tally(table, most=most), counted(table, list(range(len(table.algorithms))), most))
    units = len(table) if table.repetitions == "independent" else len(table.instances)
    assert (tally(table, most=most).compared <= most * units + 1e-9).all()


@given(tables(), st.randoms(use_true_random=False))
def test_relabelling_permutes_the_counts(table: RankingTable, random: object) -> None:
    order = list(range(len(table.algorithms)))
    random.shuffle(order)  # type: ignore[attr-defined]
    counts, permuted = tally(table), tally(table, order)
    for name in ("wins", "ties", "first", "losses", "compared"):
        expected = getattr(counts, name)[:, order][:, :, order]
        np.testing.assert_allclose(getattr(permuted, name), expected, atol=1e-12)


@given(tables())
def test_wins_ties_and_losses_are_all_comparisons(table: RankingTable) -> None:
    counts = tally(table)
    here = table.values
    ranked, there = (here != UNRANKED) & ~np.isnan(here), ~np.isnan(here)
    both = there[..., :, None] & there[..., None, :] & (ranked[..., :, None] | ranked[..., None, :])
    compared = np.einsum("r,rtij->tij", table.weights, both)
    off = ~np.eye(len(table.algorithms), dtype=bool)
    np.testing.assert_allclose(counts.compared[:, off], compared[:, off], atol=1e-12)
    np.testing.assert_allclose(counts.losses, counts.wins.transpose(0, 2, 1))
    np.testing.assert_allclose(counts.ties, counts.ties.transpose(0, 2, 1))


@given(tables())
def test_a_table_that_is_counted_in_parts_has_the_same_counts(table: RankingTable) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_CHUNK", 1)
        in_parts = tally(table)
    assert_equal(in_parts, tally(table))


def test_runs_that_disagree_are_in_part_a_tie() -> None:
    # Three of four runs are won: half a win and half a tie, and no loss.
    values = [[[0.0, 1.0]], [[0.0, 1.0]], [[0.0, 1.0]], [[1.0, 0.0]]]
    counts = tally(table_of(values, instances=["u"] * 4))
    assert (counts.wins[0, 0, 1], counts.ties[0, 0, 1], counts.losses[0, 0, 1]) == (0.5, 0.5, 0)
    independent = tally(table_of(values, instances=["u"] * 4, repetitions="independent"))
    assert (independent.wins[0, 0, 1], independent.ties[0, 0, 1], independent.losses[0, 0, 1]) == (3, 0, 1)


def test_first_places_are_those_among_the_algorithms_of_the_tally() -> None:
    counts = tally(table_of([[[1.0, 2.0, 3.0]], [[3.0, 2.0, 2.0]]]), [1, 2])
    assert counts.first[0].tolist() == [[0, 1.5], [0.5, 0]]


# Tables of some of the algorithms


@given(tables(), st.data())
def test_a_table_among_some_is_one_of_their_values_alone(table: RankingTable, data: st.DataObject) -> None:
    places = data.draw(st.permutations(range(len(table.algorithms))))[: data.draw(st.integers(2, 5))]
    chosen = [table.algorithms[place] for place in places]
    _, timepoints, repetitions, tolerance, values, *rest = table.parts()
    alone = RankingTable.from_parts(chosen, timepoints, repetitions, tolerance, values[:, :, places], *rest)
    assert table_among(table, chosen) == alone
    np.testing.assert_array_equal(table_among(table, chosen).ranks, alone.ranks)


def test_a_table_among_some_keeps_groups_tolerance_repetitions_and_weights() -> None:
    table = table_of(
        [[[1.0, 0.0, 1.4]], [[0.0, 1.0, 2.0]]],
        groups=["g", "h"],
        fixed_groups=True,
        tolerance=0.5,
        repetitions="independent",
        weights=[1, 2],
    )
    among = table_among(table, ["c", "a"])
    assert (among.groups, among.fixed_groups, among.tolerance) == (("g", "h"), True, 0.5)
    assert (among.repetitions, among.weights.tolist()) == ("independent", [1, 2])
    assert among.ranks.tolist() == [[[1, 1]], [[2, 1]]]
