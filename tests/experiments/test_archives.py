"""Races against an archive: only newcomers run, and the result is that of an ordinary race."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import assert_same_result, change_journal
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, analyze, race, rank, resume
from polarbear_plugins.errors import InvalidInputError, PolarBearError, SourceError
from polarbear_plugins.experiments.archives import balanced_order, match_archive
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.plugins.synthetic import SyntheticAlgorithm, SyntheticSuite
from polarbear_plugins.problems.given import GivenSuite, SampledSuite
from polarbear_plugins.problems.protocols import Identity, Problem
from polarbear_plugins.report.words import conclusion
from polarbear_plugins.seeds import derived_seed

GRID = [1, 5, 20]
PROBLEMS = [f"p{number}" for number in range(60)]
SETTINGS = RaceSettings(seed=3, draws=300, batch_size=6, batch_min=3, guard="none")
Run = Callable[[str, float, int], Trajectory]


def search(level: float) -> Run:
    """Lower levels are better, with noise; every call is counted."""

    def run(_: str, horizon: float, seed: int) -> Trajectory:
        calls[level] += 1
        rng = np.random.default_rng(seed)
        times = np.arange(1.0, horizon + 1)
        return Trajectory(
            algorithm="?",
            instance="?",
            times=times,
            best=level + 0.5 * rng.normal() - np.log(times) * (1 + 0.1 * rng.random()),
            horizon=horizon,
        )

    return run


calls: Counter[float] = Counter()
ALL: dict[str, Run] = {"good": search(0.0), "middling": search(0.4), "bad": search(1.0)}
TWIN = search(0.001)  # as good as the good one


@pytest.fixture(autouse=True)
def _count_from_zero() -> None:
    calls.clear()


def stored(*names: str, problems: list[str] = PROBLEMS, seed: int = 3, **labels: Any) -> list[Trajectory]:
    """Runs that a race with this seed would make."""
    return [
        replace(
            ALL[name](problem, 20.0, derived_seed(seed, "run", name, problem)),
            algorithm=name,
            instance=problem,
            **labels,
        )
        for name in names
        for problem in problems
    ]


def against(*rivals: str, new: str = "good", **options: Any) -> RaceResult:
    chosen = {"settings": SETTINGS, "workers": 0, **options}
    if rivals:
        chosen["against"] = stored(*rivals)
    return race({new: ALL[new]}, PROBLEMS, GRID, **chosen)


def test_only_the_newcomer_runs_and_only_that_is_charged() -> None:
    runs = stored("middling", "bad")
    calls.clear()
    result = against(against=runs)
    assert set(calls) == {0.0}
    assert result.stopped == "resolved"
    assert result.resolved
    assert result.pareto_set == ("good",)
    ran = result.state.instances_run
    assert 0 < ran == calls[0.0] < len(PROBLEMS)
    assert result.rounds[-1].instances == ran
    summary = result.summary()
    assert summary["stored"].to_dict() == {"bad": True, "middling": True, "good": False}
    assert summary["cost"].to_dict() == {"bad": 0.0, "middling": 0.0, "good": result.cost}
    assert result.cost <= 20 * ran
    assert result.full_cost == 20 * 60
    assert summary["instances"].to_dict() == {"bad": 60, "middling": 60, "good": ran}
    assert result.to_pandas("algorithms")["stored"].tolist() == [True, True, False]
    assert "stored" not in race(ALL, PROBLEMS, GRID, replace(SETTINGS, max_rounds=1), workers=0).summary()


def test_every_run_is_that_of_an_ordinary_race_and_so_is_the_result() -> None:
    settings = replace(SETTINGS, epsilon=0.2)
    ordinary = race(ALL, PROBLEMS, GRID, settings, workers=0)
    result = against("middling", "bad", settings=settings)
    assert set(result.pareto_set) == set(ordinary.pareto_set) == {"good"}
    tables = [found.state.table for found in (result, ordinary)]
    values = [
        {
            (name, instance): table.values[row, :, column]
            for row, instance in enumerate(table.instances)
            for column, name in enumerate(table.algorithms)
        }
        for table in tables
    ]
    common = [key for key in values[1] if not np.isnan([values[0][key][-1], values[1][key][-1]]).any()]
    assert {name for name, _ in common} == set(ALL)
    for key in common:
        np.testing.assert_array_equal(values[0][key], values[1][key])


def test_where_nothing_can_be_settled_the_data_are_those_of_all_runs_together() -> None:
    rivals = stored("good", "bad")
    settings = replace(SETTINGS, epsilon=0.0, draws=4000)
    result = race({"twin": TWIN}, PROBLEMS, GRID, settings, workers=0, against=rivals)
    assert result.stopped == "instances"
    assert result.cost == result.full_cost
    twin = [
        replace(TWIN(name, 20, derived_seed(3, "run", "twin", name)), algorithm="twin", instance=name)
        for name in PROBLEMS
    ]
    table = result.state.table
    expected = rank([*rivals, *twin], GRID, algorithms=table.algorithms)
    rows = [table.instances.index(name) for name in expected.instances]
    np.testing.assert_array_equal(table.values[rows], expected.values)
    # The same rankings in another order: the posteriors agree up to the noise of their draws.
    whole = analyze(expected, settings)
    ratings = [found.posterior.ratings.mean(axis=0) for found in (result, whole)]
    np.testing.assert_allclose(*ratings, atol=0.02)


def test_the_result_does_not_depend_on_workers() -> None:
    names = [f"{seed}-{number}" for seed, number in itertools.product([derived_seed(3, "instances")], range(1, 41))]
    rivals = [SyntheticAlgorithm("rival", np.zeros(3), 0.0)]
    suite = SyntheticSuite()
    runs = [rival.run(suite.build(Identity(name)), 3.0, 7) for rival in rivals for name in names]
    results = [
        race(
            [SyntheticAlgorithm("new", np.ones(3), 0.0), SyntheticAlgorithm("newer", np.array([0.5, 1.0, 2.0]), 0.0)],
            suite,
            [1, 2, 3],
            SETTINGS,
            workers=workers,
            against=runs,
        )
        for workers in (0, 2)
    ]
    assert_same_result(*results)
    assert set(results[0].state.table.instances) == set(names)


def test_a_race_that_was_stopped_is_resumed_without_the_archive_and_ends_alike(tmp_path: Path) -> None:
    runs = [run for name in ("middling", "bad") for seed in (0, 1) for run in stored(name, seed=seed)]
    runs = [replace(run, seed=number) for number, run in enumerate(runs)]
    settings = replace(SETTINGS, alpha=0.999, epsilon=0.0)
    options: dict[str, Any] = {"against": runs, "tolerance": 1e-3}
    whole = against(settings=settings, **options)
    assert len(whole.rounds) > 2
    path = tmp_path / "race.db"
    part = against(settings=replace(settings, max_rounds=1), journal=path, **options)
    assert len(part.rounds) == 1
    assert_same_result(load_result(path), part)
    calls.clear()
    resumed = resume(path, {"good": ALL["good"]}, PROBLEMS, workers=0, max_rounds=100)
    assert sum(calls.values()) == whole.state.instances_run - part.state.instances_run
    assert resumed.state.table == whole.state.table
    assert resumed.rounds == whole.rounds
    assert resumed.about["against"] == whole.about["against"]
    assert resumed.state.table.tolerance == 1e-3
    assert resumed.summary().loc["good", "cost"] == resumed.cost  # one run, however many it meets
    assert_same_result(load_result(path), resumed)


def test_a_result_survives_saving(tmp_path: Path) -> None:
    result = against("middling", "bad", settings=replace(SETTINGS, max_rounds=2))
    loaded = RaceResult.load(result.save(tmp_path / "result.npz"))
    assert_same_result(loaded, result)
    assert loaded.state.stored == ("bad", "middling")
    assert loaded.summary().equals(result.summary())


def test_a_race_with_groups_of_the_archive_is_resumed(tmp_path: Path) -> None:
    runs = [run.in_group(f"g{run.instance[-1]}") for run in stored("bad")]
    path = tmp_path / "race.db"
    against(against=runs, settings=replace(SETTINGS, max_rounds=1, alpha=0.9999), journal=path)
    resumed = resume(path, {"good": ALL["good"]}, PROBLEMS, workers=0, max_rounds=2)
    table = resumed.state.table
    assert dict(zip(table.instances, table.groups, strict=True)) == {name: f"g{name[-1]}" for name in PROBLEMS}


def test_a_saved_result_with_other_stored_rivals_is_refused(tmp_path: Path) -> None:
    result = against("bad", settings=replace(SETTINGS, max_rounds=1))
    for stored_names in (("nobody",), ("bad", "good")):
        odd = replace(result, state=replace(result.state, stored=stored_names))
        with pytest.raises(SourceError, match="stored: expected some of the algorithms"):
            RaceResult.load(odd.save(tmp_path / "odd.npz"))


def test_words_about_open_pairs_name_those_that_the_race_is_about() -> None:
    rivals = [replace(run, algorithm=name) for run in stored("good") for name in ("one", "two")]
    settings = replace(SETTINGS, epsilon=0.0, max_rounds=1)
    result = race({"twin": TWIN}, PROBLEMS, GRID, settings, workers=0, against=rivals)
    assert len(result.open_pairs) == 3
    assert "2 pairs are not settled (one and twin; two and twin), stopped after as many rounds" in conclusion(result)


def test_the_figure_of_the_budget_shows_what_was_run() -> None:
    pytest.importorskip("matplotlib")
    from polarbear_plugins.plots import plot_allocation

    result = against("bad", settings=replace(SETTINGS, max_rounds=1))
    axes = plot_allocation(result)
    drawn = np.ma.getmaskarray(axes.collections[0].get_array()).reshape(2, -1)  # type: ignore[arg-type]
    assert drawn.all(axis=1).tolist() == [True, False]


def test_a_third_algorithm_enters_later_with_and_without_a_journal(tmp_path: Path) -> None:
    entered = [
        against("bad", new="middling", **options).enter({"good": ALL["good"]}, workers=0)
        for options in ({}, {"journal": tmp_path / "race.db"})
    ]
    for result in entered:
        assert result.algorithms == ("bad", "middling", "good")
        assert result.state.stored == ("bad",)
        assert result.pareto_set == ("good",)
    assert entered[0].state.table == entered[1].state.table
    assert load_result(tmp_path / "race.db").state.stored == ("bad",)


def test_a_changed_suite_is_refused_on_resuming(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    against("bad", settings=replace(SETTINGS, max_rounds=1, alpha=0.9999), journal=path)
    with pytest.raises(InvalidInputError, match=r"no longer has the instance 'p.*another suite"):
        resume(path, {"good": ALL["good"]}, ["other"], workers=0, max_rounds=2)
    with pytest.raises(InvalidInputError, match="the portfolio lacks good"):
        resume(path, {"other": ALL["good"]}, PROBLEMS, workers=0, max_rounds=2)


def test_a_journal_with_damaged_stored_runs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "race.db"
    against("bad", settings=replace(SETTINGS, max_rounds=1), journal=path)
    change_journal(path, "UPDATE stored SET best = x'00' WHERE place = 3")
    with pytest.raises(SourceError, match=r"race.db, table stored: damaged \("):
        load_result(path)


def test_limits_stop_a_race_against_an_archive() -> None:
    assert against("bad", settings=replace(SETTINGS, max_cost=45)).cost <= 45
    result = against("good", new="middling", settings=replace(SETTINGS, max_rounds=1, alpha=0.999))
    assert result.stopped == "max_rounds"
    forecast = result.forecast()
    ended = np.isfinite(forecast.costs)
    assert ended.any()
    assert (forecast.costs[ended] <= 20 * forecast.instances[ended]).all()  # the newcomer alone costs something


def test_settings_of_ordinary_races_apply() -> None:
    guarded = against("middling", "bad", settings=replace(SETTINGS, guard="counts"))
    valid = against("middling", "bad", settings=replace(SETTINGS, rule="anytime-valid", alpha=0.9))
    assert guarded.pareto_set == valid.pareto_set == ("good",)
    joint = against("bad", settings=replace(SETTINGS, elimination="joint", prior="random-walk"))
    assert joint.pareto_set == ("good",)


def test_every_failed_run_is_an_error() -> None:
    def broken(*_: object) -> Trajectory:
        raise ValueError("broken")

    with pytest.raises(PolarBearError, match="Every run of the first round failed"), pytest.warns(match="broken"):
        race({"broken": broken}, PROBLEMS, GRID, SETTINGS, workers=0, against=stored("bad"))


def test_timepoints_are_by_default_those_of_the_archive() -> None:
    result = race({"good": ALL["good"]}, PROBLEMS, settings=SETTINGS, workers=0, against=stored("bad"))
    assert (result.timepoints[0], result.timepoints[-1]) == (1, 20)
    with pytest.raises(InvalidInputError, match="say with timepoints= where to compare"):
        race(ALL, PROBLEMS, settings=SETTINGS, workers=0)


# Matching


def test_instances_match_by_name_and_what_does_not_is_counted() -> None:
    runs = stored("bad", problems=["p1", "p2", "elsewhere", "p3", "nowhere"])
    result = against(against=runs)
    assert set(result.state.table.instances) == {"p1", "p2", "p3"}
    assert result.about["against"] == {
        "sources": None,
        "options": {},
        "runs": 3,
        "instances": 3,
        "not_in_suite": 2,
        "not_in_suite_examples": ["elsewhere", "nowhere"],
        "not_in_archive": 57,
        "targets": {},
        "early_ends": [],
    }


def test_nothing_in_common_is_an_error_with_examples_of_both() -> None:
    with pytest.raises(InvalidInputError, match=r"'given' have no instance in common: the archive has 'x1', 'x2', the"):
        against(against=stored("bad", problems=["x1", "x2"]))
    with pytest.raises(InvalidInputError, match=r"the suite 'p\d+', 'p\d+', 'p\d+', \.\.\.\. Choose"):
        against(against=stored("bad", problems=["x1", "x2"]))
    with pytest.raises(InvalidInputError, match=r"the suite '\d+-1', .* only with the same --seed"):
        match_archive(stored("bad"), SyntheticSuite(), 1)
    with pytest.raises(InvalidInputError, match="The archive has no runs"):
        against(against=[])


def test_an_archive_is_read_from_sources(tmp_path: Path) -> None:
    runs = stored("middling", "bad")
    path = tmp_path / "archive.csv"
    frame = pd.concat([run.to_pandas() for run in runs]).rename(columns={"value": "loss"})
    frame.to_csv(path, index=False)
    result = against(against=path, against_options={"columns": "value=loss"})
    given = against(against=runs)
    assert_same_result(result, given, about=False)
    assert result.about["against"]["sources"] == [str(path)]
    assert result.about["against"]["options"] == {"columns": "value=loss"}
    several = against(against=[path, replace(runs[0], seed=9)], against_options={"columns": "value=loss"})
    assert several.about["against"]["sources"] is None
    assert several.about["against"]["runs"] == len(runs) + 1
    with pytest.raises(InvalidInputError, match="against_options are for sources"):
        against(against=runs, against_options={"columns": "value=loss"})


def test_groups_are_those_of_the_suite_or_else_those_of_the_archive() -> None:
    labelled = stored("bad", group="easy")
    assert set(against(against=labelled).state.table.groups) == {"easy"}
    suite = GivenSuite([Grouped(Identity(name, {}, f"g{name[1]}", True)) for name in PROBLEMS])
    result = race({"good": ALL["good"]}, suite, GRID, SETTINGS, workers=0, against=labelled)
    table = result.state.table
    assert dict(zip(table.instances, table.groups, strict=True)) == {name: f"g{name[1]}" for name in PROBLEMS}
    assert table.fixed_groups


class Grouped:
    def __init__(self, identity: Identity) -> None:
        self.identity = identity


class Unhelpful:
    """A suite without ``identity_named``."""

    name = "unhelpful"

    def identities(self, _: int, /) -> Iterator[Identity]:
        return iter([Identity("p1"), Identity("p2")])

    def build(self, identity: Identity, /) -> Problem:
        raise NotImplementedError


def test_a_suite_need_not_know_about_archives() -> None:
    matched = match_archive(stored("bad", problems=["p2", "p7"]), Unhelpful(), 1)
    assert [identity.name for identity in matched.identities] == ["p2"]
    assert matched.about["not_in_archive"] == 1


def test_instances_of_a_function_that_draws_them_are_found_whatever_the_seed() -> None:
    suite = SampledSuite(lambda rng: rng.random())
    drawn = list(itertools.islice(suite.identities(5), 3))
    runs = stored("bad", problems=[identity.name for identity in drawn])
    matched = match_archive([*runs, *stored("bad", problems=["05-1", "5-x"])], suite, 1)
    assert list(matched.identities) == drawn
    assert matched.about["not_in_archive"] is None
    assert matched.about["not_in_suite"] == 2


def test_incumbents_that_become_worse_may_be_stored() -> None:
    up = [
        Trajectory(algorithm="up", instance=name, times=[1, 5], best=[1.0, 2.0], horizon=20, incumbent=True)
        for name in PROBLEMS
    ]
    assert against(against=up).state.table.values[0, :, 0].tolist() == [1, 2, 2]


# The order of the instances


@examples(max_examples=200)
@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 2**31))
def test_every_beginning_has_each_stratum_in_proportion(strata: list[int], seed: int) -> None:
    order = balanced_order(strata, seed)
    assert sorted(order) == list(range(len(strata)))
    sizes = Counter(strata)
    for length in range(len(order) + 1):
        found = Counter(strata[place] for place in order[:length])
        # Some share of each stratum, the same for all of them, up to one instance.
        least = max(((found[name] - 1) / size for name, size in sizes.items()), default=0.0)
        most = min(((found[name] + 1) / size for name, size in sizes.items()), default=1.0)
        assert least <= most


def test_every_instance_is_as_likely_as_any_other_at_every_place() -> None:
    strata = ["a"] * 6 + ["b"] * 3 + ["c"]
    seeds = 4000
    first_half = np.zeros(len(strata))
    for seed in range(seeds):
        first_half[balanced_order(strata, seed)[:5]] += 1
    # Half of the places, for instances of large and of small strata.
    np.testing.assert_allclose(first_half / seeds, 0.5, atol=5 * 0.5 / np.sqrt(seeds))


def test_the_order_depends_on_the_seed_and_not_on_results() -> None:
    def instances(runs: list[Trajectory], seed: int) -> list[str]:
        rivals = match_archive(runs, GivenSuite(PROBLEMS), 1).rivals(GRID, seed)
        return [identity.name for identity in rivals.instances]

    assert instances(stored("bad"), 3) == instances(stored("good", "bad")[::-1], 3)
    assert instances(stored("bad"), 3) != instances(stored("bad"), 4)


def test_instances_are_balanced_over_groups_and_dimensions() -> None:
    runs = [
        Trajectory(
            algorithm="a",
            instance=name,
            times=[1],
            best=[1.0],
            horizon=20,
            group=f"g{place % 3}",
            dimension=2 + place % 2,
        )
        for place, name in enumerate(PROBLEMS)
    ]
    matched = match_archive(runs, GivenSuite(PROBLEMS), 1)
    strata = {run.instance: (run.group, run.dimension) for run in runs}
    for seed in range(10):
        first = matched.rivals(GRID, seed).instances[:6]
        assert {strata[identity.name] for identity in first} == set(strata.values())
