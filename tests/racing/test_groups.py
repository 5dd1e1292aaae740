"""Groups of instances in the rules of a race and in its result."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import change_json, run_of, table_of

from polarbear_plugins import RaceResult, RaceSettings, RankingTable, Trajectory, analyze, rank
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.racing import posteriors
from polarbear_plugins.racing.rules import enter, observe
from polarbear_plugins.racing.state import RaceState, start_race

SETTINGS = RaceSettings(seed=1, draws=200)


def start() -> RaceState:
    return start_race("ab", [1], SETTINGS)


def runs(algorithms: str, *instances: str, fixed: bool = False) -> list[Trajectory]:
    """Runs on instances, which are in the group of their first letter."""
    return [
        run_of(algorithm, instance, "abc".index(algorithm), horizon=1, group=instance[0], fixed_group=fixed)
        for instance in instances
        for algorithm in algorithms
    ]


@pytest.mark.parametrize("fixed", [False, True])
def test_what_is_observed_keeps_its_groups(fixed: bool) -> None:
    once = observe(start(), runs("ab", "g1", "h1", fixed=fixed))
    twice = observe(once, runs("ab", "h2", fixed=fixed))
    assert twice.table.groups == ("g", "h", "h")
    assert twice.table.fixed_groups == fixed


@pytest.mark.parametrize("fixed", [False, True])
def test_a_newcomer_changes_no_group(fixed: bool) -> None:
    entered = enter(observe(start(), runs("ab", "g1", "h1", fixed=fixed)), "c")
    assert (entered.table.groups, entered.table.fixed_groups) == (("g", "h"), fixed)
    caught_up = observe(entered, [*runs("c", "g1", "h1", fixed=fixed), *runs("abc", "g2", fixed=fixed)])
    assert (caught_up.table.groups, caught_up.table.fixed_groups) == (("g", "h", "g"), fixed)
    assert not np.isnan(caught_up.table.values).any()


def test_a_race_has_groups_on_all_instances_or_on_none() -> None:
    begun = observe(start(), runs("ab", "g1"))
    with pytest.raises(InvalidInputError, match="instance 'g1' has the group 'g', and 'x' has none"):
        observe(begun, [run_of("a", "x", horizon=1)])


@pytest.mark.parametrize(
    ("groups", "fixed", "in_a_round"),
    [
        ("same", False, "none"),
        ("same", True, "none"),
        ("auto", True, "none"),
        ("auto", False, "auto"),
        ("new", True, "new"),
        ("none", True, "none"),
    ],
)
def test_groups_that_are_all_there_are_are_examined_only_for_a_result(
    groups: Any, fixed: bool, in_a_round: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []
    monkeypatch.setattr(posteriors, "fit", lambda *_, **options: given.append(options["groups"]))
    state = observe(start_race("ab", [1], replace(SETTINGS, groups=groups)), runs("ab", "g1", "h1", fixed=fixed))
    for check in (False, True):
        posteriors.infer(state, 1, check=check)
    assert given == [in_a_round, groups]


# Results


def table(**more: Any) -> RankingTable:
    values = [[[1.0, 2.0]], [[2.0, 1.0]], [[1.0, 2.0]]]
    return table_of(values, instances=["x", "y", "x"], weights=[1, 2, 3], **more)


GROUPED = {"groups": ["g", "h", "g"], "fixed_groups": True}


@pytest.mark.parametrize("more", [{}, {"groups": ["g", "h", "g"]}, GROUPED])
def test_a_saved_result_keeps_the_groups(more: dict[str, Any], tmp_path: Path) -> None:
    loaded = RaceResult.load(analyze(table(**more), SETTINGS).save(tmp_path / "race.npz"))
    assert loaded.state.table == table(**more)


def test_the_file_and_json_of_a_result_without_groups_do_not_mention_any(tmp_path: Path) -> None:
    result = analyze(table(), SETTINGS)
    with np.load(result.save(tmp_path / "race.npz")) as arrays:
        assert not {"groups", "fixed_groups"} & set(json.loads(str(arrays["result"])))
    assert "groups" not in result.to_dict()


def test_the_json_of_a_result_tells_the_group_of_each_instance() -> None:
    data = analyze(table(**GROUPED), SETTINGS).to_dict()
    assert (data["instances"], data["groups"]) == (["x", "y"], ["g", "h"])


def test_the_runs_of_a_result_have_its_groups() -> None:
    result = analyze(table(**GROUPED), SETTINGS)
    again = rank(result.trajectories(), result.timepoints)
    assert dict(zip(again.instances, again.groups, strict=True)) == {"x": "g", "y": "h"}
    assert again.fixed_groups


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data["groups"].pop(), "groups: expected one for each of 3 rows, got 2"),
        (lambda data: data["groups"].append("g"), "groups: expected one for each of 3 rows, got 4"),
        (lambda data: data.update(groups=[1, 2, 1]), "groups: expected a name for each row"),
        (lambda data: data.update(groups="ghg"), "groups: expected a name for each row"),
        (lambda data: data.update(groups=["g", "h", "i"]), "instance 'x' has the groups 'g' and 'i'"),
        (lambda data: data.update(fixed_groups=1), "fixed_groups: expected true or false"),
        (lambda data: data.pop("groups"), "fixed_groups=True says something about groups"),
    ],
)
def test_damaged_groups_in_a_file_are_refused(
    change: Callable[[dict[str, Any]], None], message: str, tmp_path: Path
) -> None:
    path = analyze(table(**GROUPED), SETTINGS).save(tmp_path / "race.npz")
    change_json(path, "result", change)
    with pytest.raises(SourceError, match=rf"race\.npz.*{message}"):
        RaceResult.load(path)
