"""Races over instances that are grouped by their suite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import assert_same_result

from polarbear_plugins import RaceResult, RaceSettings, load_result, race, resume
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.plugins.synthetic import SyntheticAlgorithm, SyntheticSuite
from polarbear_plugins.problems import Identity

SETTINGS = RaceSettings(seed=5, max_rounds=3, alpha=0.99, draws=200, batch_size=4, batch_min=4)
TIMES = [1, 2, 3]


class Grouped(SyntheticSuite):
    """The synthetic suite, every ``every``-th instance of which is in a group."""

    def __init__(self, every: int = 1, fixed: bool = True) -> None:
        super().__init__()
        self.every, self.fixed = every, fixed

    def identities(self, seed: int, /) -> Iterator[Identity]:
        for place, identity in enumerate(super().identities(seed)):
            grouped = replace(identity, group=f"g{place % 3}", fixed_group=self.fixed)
            yield grouped if place % self.every == 0 else identity


def portfolio(*more: str) -> list[SyntheticAlgorithm]:
    return [SyntheticAlgorithm(name, np.full(3, level)) for level, name in enumerate(("a", "b", *more))]


def raced(suite: Any, settings: RaceSettings = SETTINGS, **options: Any) -> RaceResult:
    return race(portfolio(), suite, TIMES, settings, **{"workers": 0, **options})


def groups_of(result: RaceResult) -> tuple[str, ...]:
    return tuple(f"g{place % 3}" for place in range(len(result.state.table.instances)))


@pytest.mark.parametrize("fixed", [False, True])
def test_the_groups_of_a_race_are_those_of_its_suite(fixed: bool) -> None:
    result = raced(Grouped(fixed=fixed))
    assert result.state.table.groups == groups_of(result)
    assert result.state.table.fixed_groups == fixed
    assert [identity.group for identity in result.identities] == list(groups_of(result))


def test_groups_change_nothing_else_in_a_race() -> None:
    grouped, plain = raced(Grouped()), raced(SyntheticSuite())
    data = grouped.to_dict()
    assert data.pop("groups") == list(groups_of(grouped))
    assert data["scope"]["scope"] == "same"
    assert data | {"scope": None} == plain.to_dict()


def test_a_journal_knows_the_groups(tmp_path: Path) -> None:
    result = raced(Grouped(), journal=tmp_path / "race.db")
    assert_same_result(load_result(tmp_path / "race.db"), result)
    assert load_result(tmp_path / "race.db").state.table == result.state.table


def test_a_resumed_race_keeps_the_groups(tmp_path: Path) -> None:
    whole = raced(Grouped())
    raced(Grouped(), replace(SETTINGS, max_rounds=1), journal=tmp_path / "race.db")
    resumed = resume(tmp_path / "race.db", portfolio(), Grouped(), max_rounds=3, workers=0)
    assert resumed.state.table == whole.state.table


@pytest.mark.parametrize("journal", [False, True])
def test_a_newcomer_races_in_the_same_groups(journal: bool, tmp_path: Path) -> None:
    before = raced(Grouped(), journal=tmp_path / "race.db" if journal else None)
    after = before.enter(portfolio("late")[-1], workers=0, max_rounds=5)
    assert len(after.state.table) > len(before.state.table)
    assert after.state.table.groups == groups_of(after)
    if journal:
        assert load_result(tmp_path / "race.db").state.table == after.state.table


def test_a_journal_from_before_its_suite_had_groups_goes_on_without(tmp_path: Path) -> None:
    whole = raced(SyntheticSuite())
    raced(SyntheticSuite(), replace(SETTINGS, max_rounds=1), journal=tmp_path / "race.db")
    with pytest.warns(PolarBearWarning, match="the problems of the suite, or the code that makes them, are others"):
        resumed = resume(tmp_path / "race.db", portfolio(), Grouped(), max_rounds=3, workers=0)
    assert resumed.state.table == whole.state.table
    assert resumed.identities == whole.identities


def test_a_journal_with_groups_does_not_go_on_with_a_suite_of_others(tmp_path: Path) -> None:
    raced(Grouped(), replace(SETTINGS, max_rounds=1), journal=tmp_path / "race.db")
    for other in (SyntheticSuite(), Grouped(fixed=False)):
        with pytest.raises(InvalidInputError, match="no longer gives the instance"):
            resume(tmp_path / "race.db", portfolio(), other, max_rounds=3, workers=0)


def test_a_suite_groups_all_of_its_instances_or_none() -> None:
    with pytest.raises(InvalidInputError, match=r"has the group 'g0', and '.*' has none"):
        raced(Grouped(every=2))
