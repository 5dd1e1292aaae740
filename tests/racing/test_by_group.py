"""Groups of instances by themselves, and the analysis about the other scope."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from builders import six_groups, table_of, two_kinds

from polarbear_plugins import RaceSettings, analyze
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.task import LikelihoodName
from polarbear_plugins.racing.analysis import analyze_other_scope
from polarbear_plugins.racing.by_group import by_group
from polarbear_plugins.rankings import win_shares

SETTINGS = RaceSettings(seed=1, draws=500)


def test_the_shares_of_a_group_are_those_of_its_instances_at_the_timepoints_asked_for() -> None:
    rng = np.random.default_rng(2)
    table = table_of(rng.integers(3, size=(40, 5, 3)), groups=[f"g{number % 4}" for number in range(40)])
    parts = by_group(table, [0, 3])
    assert [part.group for part in parts] == ["g0", "g1", "g2", "g3"]
    for part, alone in zip(parts, table.split_by_group().values(), strict=True):
        assert part.instances == len(alone.instances) == 10
        assert part.timepoints.tolist() == [1, 4]
        np.testing.assert_allclose(part.shares, win_shares(alone)[[0, 3]])
        assert part.ratings is None


@pytest.mark.parametrize("likelihood", ["rankings", "first-places"])
def test_the_ratings_of_a_group_are_inferred_from_it_alone(likelihood: LikelihoodName) -> None:
    parts = by_group(six_groups(), [0], likelihood=likelihood)
    ratings = np.array([part.ratings for part in parts])[:, 0, 0]
    assert (ratings[:5] > 0.85).all()
    assert ratings[5] < 0.15
    again = by_group(six_groups(), [0], likelihood=likelihood)
    assert [part.to_json() for part in parts] == [part.to_json() for part in again]


def test_most_often_first_is_one_algorithm_or_all_that_tie() -> None:
    values = [[[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0]], [[2.0, 1.0, 3.0]], [[1.0, 2.0, 3.0]], [[2.0, 1.0, 3.0]]]
    clear, tied = by_group(table_of(values, groups=["x", "x", "x", "y", "y"]), [0], likelihood="first-places")
    assert clear.ratings is not None
    assert clear.leaders(0) == (("a",), pytest.approx(2 / 3), clear.ratings[0, 0])
    assert tied.leaders(0) == (("a", "b"), 0.5, None)


def test_what_was_never_compared_is_not_known() -> None:
    nan = np.nan
    values = [[[1.0, 2.0], [1.0, 2.0]], [[1.0, nan], [1.0, 2.0]], [[1.0, nan], [1.0, nan]]]
    both, late, never = by_group(table_of(values, groups=["both", "late", "never"]), [0, 1], likelihood="rankings")
    assert both.leaders(0)[0] == ("a",)
    assert late.leaders(0) == never.leaders(0) == never.leaders(1) == ((), 0.0, None)
    assert late.leaders(1)[0] == ("a",)
    data = json.loads(json.dumps([late.to_json(), never.to_json()], allow_nan=False))
    assert data[0]["win_shares"][0] == data[0]["ratings"][0] == [None, None]
    assert data[1]["ratings"] == [[None, None]] * 2
    assert None not in data[0]["ratings"][1]


def test_data_without_groups_cannot_be_shown_by_group() -> None:
    with pytest.raises(InvalidInputError, match="There are no groups"):
        by_group(table_of([[[1.0, 2.0]]]), [0])


@pytest.mark.parametrize(("scope", "other"), [("new", "same"), ("same", "new")])
def test_the_other_scope_is_what_an_analysis_with_it_says(scope: str, other: str) -> None:
    result = analyze(six_groups(), replace(SETTINGS, groups=scope))
    found = analyze_other_scope(result)
    expected = analyze(six_groups(), replace(SETTINGS, groups=other))
    assert found is not None
    assert found.posterior.groups is not None
    assert found.posterior.groups.scope == other
    assert found.pareto_set == expected.pareto_set != result.pareto_set
    np.testing.assert_array_equal(found.posterior.log_ratings, expected.posterior.log_ratings)


def test_without_groups_that_count_there_is_no_other_scope() -> None:
    assert analyze_other_scope(analyze(table_of([[[1.0, 2.0]]] * 9), SETTINGS)) is None
    assert analyze_other_scope(analyze(six_groups(), replace(SETTINGS, groups="none"))) is None


def test_first_places_give_no_rating_to_an_algorithm_that_is_never_first() -> None:
    mixed = table_of(two_kinds(40).values, groups=["one"] * 40)
    ratings = {}
    kinds: tuple[LikelihoodName, ...] = ("rankings", "first-places")
    for likelihood in kinds:
        [part] = by_group(mixed, [0], likelihood=likelihood)
        assert part.ratings is not None
        ratings[likelihood] = part.ratings[0, 2]
    assert ratings["first-places"] < 0.1 < 0.3 < ratings["rankings"]
