"""Several runs of each algorithm on an instance: they make the instance known better, and are one instance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import assert_same_result, change_journal

from polarbear_plugins import RaceResult, RaceSettings, Trajectory, load_result, race, rank, resume
from polarbear_plugins.errors import InvalidInputError, RunWarning, SourceError
from polarbear_plugins.report.observations import assumptions

TIMES = [1, 2]
PROBLEMS = [f"p{number}" for number in range(12)]
SETTINGS = RaceSettings(seed=3, draws=300, max_rounds=2, batch_size=4, batch_min=2, replications=3)


def noisy(shift: float) -> Any:
    def run(_: object, horizon: float, seed: int) -> Trajectory:
        first, second = np.random.default_rng(seed).normal(shift, 1, 2)
        return Trajectory(
            algorithm="?", instance="?", times=TIMES, best=[first, min(first, second)], horizon=max(horizon, 2)
        )

    return run


def certain(value: float) -> Any:
    return lambda _, horizon, __: Trajectory(
        algorithm="?", instance="?", times=[1], best=[value], horizon=max(horizon, 2)
    )


PORTFOLIO = {"good": noisy(0.0), "fair": noisy(0.3), "bad": noisy(2.0)}


def run(settings: RaceSettings = SETTINGS, portfolio: Any = None, **options: Any) -> RaceResult:
    return race(portfolio or PORTFOLIO, PROBLEMS, TIMES, settings, workers=0, **options)


def changed(**settings: Any) -> RaceSettings:
    return RaceSettings(**{**SETTINGS.to_json(), **settings})


def test_the_runs_on_an_instance_share_its_weight_and_count_as_one_instance() -> None:
    result = run()
    table = result.state.table
    assert len(table) == 3 * len(table.instances)
    np.testing.assert_allclose(np.bincount(table.instance_index, table.weights), 1.0)
    assert [finished.instances for finished in result.rounds] == [4, len(table.instances)]
    assert result.summary()["instances"].max() == len(table.instances)
    assert len(result.identities) == len(table.instances)
    assert result.cost <= result.full_cost == len(table) * 3 * 2
    assert "together these runs count as one instance" in " ".join(assumptions(result))


def test_replications_that_repeat_exactly_add_nothing_to_the_posterior() -> None:
    portfolio = {"a": certain(1.0), "b": certain(2.0)}
    once, often = (run(changed(replications=count, max_rounds=1), portfolio) for count in (1, 30))
    assert len(often.state.table) == 30 * len(once.state.table)
    np.testing.assert_allclose(once.posterior.ratings, often.posterior.ratings, rtol=1e-9)
    np.testing.assert_allclose(once.second_opinion().evidence, often.second_opinion().evidence, rtol=1e-9)


def test_four_instances_eliminate_nothing_however_often_they_are_run() -> None:
    settings = RaceSettings(seed=1, draws=500, replications=50)
    result = race({"a": certain(1.0), "b": certain(2.0)}, PROBLEMS[:4], TIMES, settings, workers=0)
    assert result.pareto_set == ("a", "b")
    assert result.stopped == "instances"


def test_the_first_replication_is_the_run_without_replications_and_the_others_have_other_seeds() -> None:
    once, often = run(changed(replications=1, max_rounds=1)), run(changed(max_rounds=1))
    first = often.state.table.repetition_index == 0
    np.testing.assert_array_equal(often.state.table.values[first], once.state.table.values)
    values = often.state.table.values[:, 0, 0]
    assert len(set(values.tolist())) == len(values)


def test_the_runs_of_the_result_rank_as_the_race_did() -> None:
    result = run(changed(max_rounds=1))
    again = rank(result.trajectories(), TIMES, algorithms=result.algorithms)
    order = [again.instances.index(name) for name in result.state.table.instances]
    rows = np.concatenate([np.flatnonzero(again.instance_index == place) for place in order])
    np.testing.assert_array_equal(again.values[rows], result.state.table.values)
    np.testing.assert_array_equal(again.weights[rows], result.state.table.weights)


def test_a_race_with_a_journal_is_the_same_after_every_interruption(tmp_path: Path) -> None:
    whole = run(journal=tmp_path / "whole.db")
    assert_same_result(whole, run())
    assert_same_result(whole, load_result(tmp_path / "whole.db"))
    run(changed(max_rounds=1), journal=tmp_path / "stopped.db")
    assert_same_result(whole, resume(tmp_path / "stopped.db", PORTFOLIO, PROBLEMS, workers=0, max_rounds=2))
    change_journal(  # as if killed in the middle of the second round
        tmp_path / "whole.db",
        "DELETE FROM rounds WHERE number = 2",
        "DELETE FROM runs WHERE round = 2 AND place % 3 = 1",
    )
    assert_same_result(whole, resume(tmp_path / "whole.db", PORTFOLIO, PROBLEMS, workers=0))


def test_a_journal_that_lost_one_of_several_runs_is_damaged(tmp_path: Path) -> None:
    run(journal=tmp_path / "race.db")
    change_journal(tmp_path / "race.db", "DELETE FROM runs WHERE round = 1 AND place = 1")
    with pytest.raises(SourceError, match="expected 3 runs of the algorithm on that instance, got 2"):
        load_result(tmp_path / "race.db")


def test_a_newcomer_runs_as_often_and_meets_each_run_once() -> None:
    result = run(changed(max_rounds=1)).enter({"new": noisy(0.1)}, workers=0, max_rounds=2)
    table = result.state.table
    column = table.values[:, 0, table.algorithms.index("new")]
    seen = column[~np.isnan(column)]
    assert len(seen) >= 3
    assert len(set(seen.tolist())) == len(seen)


def test_failures_name_the_instance_and_are_counted_by_run(tmp_path: Path) -> None:
    def sometimes(problem: object, horizon: float, seed: int) -> Trajectory:
        if seed % 3 == 0:
            raise ValueError("unlucky")
        return noisy(0.0)(problem, horizon, seed)

    portfolio = {"good": noisy(0.0), "sometimes": sometimes}
    with pytest.warns(RunWarning, match=r"'sometimes' on 'p\d+#\d' failed"):
        result = run(changed(max_rounds=1), portfolio, journal=tmp_path / "race.db")
    table = result.state.table
    nothing = np.isinf(table.values[:, 0, 1])
    assert len(result.failures) == nothing.sum() > 1
    assert {failure.instance for failure in result.failures} == {
        table.instances[place] for place in table.instance_index[nothing]
    }
    assert load_result(tmp_path / "race.db").failures == result.failures


def test_the_largest_cost_counts_every_run() -> None:
    result = run(changed(max_rounds=None, max_cost=3 * 3 * 2 * 5))
    assert result.cost <= 90
    assert len(result.state.table.instances) == 5
    assert run(changed(max_cost=17)).stopped == "max_cost"


def test_the_suite_may_say_how_often_and_the_settings_overrule_it() -> None:
    from polarbear_plugins.problems.given import GivenSuite

    suite = GivenSuite(PROBLEMS)
    suite.replications = 2  # type: ignore[attr-defined]
    for asked, expected in ((1, 2), (5, 5)):
        result = race(PORTFOLIO, suite, TIMES, changed(replications=asked, max_rounds=1), workers=0)
        assert result.settings.replications == expected
        assert len(result.state.table) == expected * len(result.state.table.instances)


def test_against_an_archive_replications_are_refused() -> None:
    stored = list(run(changed(max_rounds=1)).trajectories())
    with pytest.raises(InvalidInputError, match="3 replications: against an archive a newcomer runs once"):
        run(SETTINGS, {"new": noisy(0.1)}, against=stored)
