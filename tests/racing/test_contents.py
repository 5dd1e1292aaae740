"""What a result says about itself in tables and JSON, of a small one that is made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import race_by_hand, table_of

from polarbear_plugins import RaceResult
from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.state import Elimination
from polarbear_plugins.rankings.ends import EarlyEnds


@pytest.fixture(scope="module")
def told() -> RaceResult:
    return race_by_hand()


def with_stored(told: RaceResult, *stored: str) -> RaceResult:
    return replace(told, state=replace(told.state, stored=stored))


def test_the_text_of_a_result_counts_and_names(told: RaceResult) -> None:
    assert repr(told) == (
        "RaceResult(2 of 5 algorithms in the Pareto set (a, b), 3 rounds, 6 instances, stopped: max_rounds)"
    )
    table = table_of(np.ones((1, 3, 5)), algorithms=told.algorithms, timepoints=told.timepoints)
    short = replace(told, state=replace(told.state, table=table, rounds=told.rounds[2:]), stopped="resolved")
    assert repr(short) == (
        "RaceResult(3 of 5 algorithms in the Pareto set (d, a, b), 1 round, 1 instance, stopped: resolved)"
    )


def test_a_pair_is_open_where_it_is_not_settled(told: RaceResult) -> None:
    assert told.open_pairs == (("a", "b", (10.0, 100.0)),)
    assert not told.resolved
    assert told.state.resolved_share == pytest.approx(0.9)  # nine of ten pairs
    # Of stored rivals nothing is to be settled.
    assert with_stored(told, "a", "b").resolved
    assert not with_stored(told, "a", "c").resolved
    assert with_stored(told, "d", "c").state.resolved_share == pytest.approx(8 / 9)


def test_running_everything_costs_all_runs_in_full_but_those_that_are_stored(told: RaceResult) -> None:
    assert told.full_cost == 6 * 5 * 2000
    assert with_stored(told, "d", "c").full_cost == 6 * 3 * 2000
    assert told.cost == 4500.0


def test_instances_count_as_run_where_a_newcomer_was(told: RaceResult) -> None:
    assert told.state.instances_run == 6
    # Only d ran, on three of them.
    assert with_stored(told, "a", "b", "c", "e").state.instances_run == 3


def test_the_table_of_algorithms_has_what_each_did(told: RaceResult) -> None:
    summary = told.summary()
    assert list(summary.index) == ["d", "a", "c", "b", "e"]
    assert list(summary["status"]) == ["out", "in", "out", "in", "out"]
    assert summary["round"].tolist()[::2] == [2, 3, 3]
    assert summary["by"].tolist()[::2] == ["a", "a", "b"]
    assert summary["probability"].tolist()[::2] == [0.93, 0.91, 0.96]
    assert summary["round"].isna().tolist() == [False, True, False, True, False]
    assert summary["instances"].tolist() == [3, 6, 6, 6, 6]
    assert summary["cost"].tolist() == [6000.0, 12000.0, 12000.0, 12000.0, 12000.0]
    assert summary["failed"].tolist() == [0, 0, 2, 0, 0]
    assert "stored" not in summary
    stored = with_stored(told, "d", "c").summary()
    assert stored["stored"].tolist() == [True, False, True, False, False]
    assert stored["cost"].tolist() == [0.0, 12000.0, 0.0, 12000.0, 12000.0]


def test_what_a_run_was_held_at_after_its_end_is_not_paid_for(told: RaceResult) -> None:
    table = replace_ends(
        told, (EarlyEnds("b", "hold", 2, 10.0, 100.0, 1500.0), EarlyEnds("b", "hold", 1, 10.0, 10.0, 500.0))
    )
    summary = replace(told, state=replace(told.state, table=table)).summary()
    assert summary["cost"]["b"] == 10_000.0
    assert summary["cost"]["a"] == 12_000.0


def replace_ends(told: RaceResult, ends: tuple[EarlyEnds, ...]) -> Any:
    algorithms, timepoints, repetitions, tolerance, values, instances, weights, *_ = told.state.table.parts()
    table = type(told.state.table)
    return table.from_parts(
        algorithms, timepoints, repetitions, tolerance, values, instances, weights, None, False, list(ends)
    )


def test_the_tables_have_a_row_for_each_round_elimination_rival_pair_and_failure(told: RaceResult) -> None:
    rivals = {"a": ("b", 0.25), "b": ("a", 0.5), "e": ("b", 0.96), "c": ("a", 0.91)}
    last = replace(told.rounds[2], rivals=rivals, resolved=(("a", "e"),))
    told = replace(told, state=replace(told.state, rounds=(*told.rounds[:2], last)))
    rounds = told.to_pandas("rounds")
    assert rounds.iloc[2].to_dict() == {
        "round": 3,
        "batch": 2,
        "instances": 6,
        "cost": 4500.0,
        "eliminated": 2,
        "left": 2,
        "settled_pairs": 1,
        "resolved_share": pytest.approx(0.9),
        "good": True,
        "next_batch": 2,
    }
    assert rounds["left"].tolist() == [1, 1, 2]  # nobody is ever without rivals but the last
    assert rounds["good"].tolist() == [False, True, True]
    eliminations = told.to_pandas("eliminations")
    assert eliminations.values.tolist() == [
        [2, "d", "a", 0.93, False],
        [3, "e", "b", 0.96, False],
        [3, "c", "a", 0.91, False],
    ]
    assert list(eliminations) == ["round", "algorithm", "by", "probability", "without_model"]
    assert told.to_pandas("rivals").values.tolist() == [
        [3, "a", "b", 0.25],
        [3, "b", "a", 0.5],
        [3, "e", "b", 0.96],
        [3, "c", "a", 0.91],
    ]
    assert told.to_pandas("open_pairs").values.tolist() == [["a", "b", 10.0], ["a", "b", 100.0]]
    assert told.to_pandas("failures").values.tolist() == [["c", "f2", "it broke"], ["c", "f3", "too slow"]]
    algorithms = told.to_pandas("algorithms")
    assert list(algorithms["by"].astype(object).where(algorithms["by"].notna(), "-")) == ["a", "-", "a", "-", "b"]


def test_json_has_the_contents_of_the_result(told: RaceResult) -> None:
    data = told.to_dict()
    assert data["about"].keys() == {"version"}
    assert data["stopped"] == "max_rounds"
    assert data["resolved"] is False
    assert data["algorithms"] == ["d", "a", "c", "b", "e"]
    assert data["timepoints"] == [10.0, 100.0, 2000.0]
    assert data["pareto_set"] == ["a", "b"]
    assert data["eliminations"][0] == {"algorithm": "d", "by": "a", "probability": 0.93, "round": 2}
    assert data["instances"] == ["f1", "f2", "f3", "f4", "f5", "f6"]
    assert data["cost"] == 4500.0
    assert data["full_cost"] == 60_000.0
    assert [finished["number"] for finished in data["rounds"]] == [1, 2, 3]
    assert data["open_pairs"] == [{"pair": ["a", "b"], "timepoints": [10.0, 100.0]}]
    assert data["failures"][1] == {"algorithm": "c", "instance": "f3", "reason": "too slow"}
    assert data["ratings"] == told.posterior.mean_ratings.tolist()
    assert [row[0] for row in data["instances_seen"]] == [3, 3, 3]
    relations = data["relations"]
    # a is better than b in three of the four draws at 10, in two at 100 and in none at 2000.
    assert [at[1][3] for at in relations["p_better"]] == [0.75, 0.5, 0.0]
    assert [at[3][1] for at in relations["p_better"]] == [0.25, 0.5, 1.0]
    assert [at[1][3] for at in relations["p_equivalent"]] == [0.0, 0.25, 0.0]
    assert relations["p_anytime"] is None  # not known for independent timepoints
    assert data["check"] is None
    assert data["scope"] is None
    assert data["p_any_wrong"] == told.p_any_wrong
    assert data["second_opinion"]["certain"] == []
    assert data["diagnostics"]["good"] is True
    assert "stored" not in data
    assert "groups" not in data
    assert with_stored(told, "d").to_dict()["stored"] == ["d"]


def test_json_says_what_groups_do(told: RaceResult) -> None:
    effect = GroupEffect(scope="same", groups=2, instances=6, p=0.5, inflation=np.ones(3), spread=np.zeros(3))
    data = replace(told, _posterior=replace(told.posterior, groups=effect)).to_dict()
    assert data["scope"] == effect.to_json()


def test_numbers_that_json_does_not_have_are_null(told: RaceResult) -> None:
    found = Diagnostics(engine="native", route="by hand", good=False, k_hat=np.inf)
    posterior = replace(told.posterior, diagnostics=found)
    assert replace(told, _posterior=posterior).to_dict()["diagnostics"]["k_hat"] is None
    assert "ratings" not in replace(told, _posterior=None).to_dict()


def test_runs_end_as_a_race_stopped_them_or_nobody_knows_how(told: RaceResult) -> None:
    identities = tuple(Identity(f"f{number}", {"dimension": number}) for number in range(1, 7))
    given = list(replace(told, identities=identities).trajectories())
    assert len(given) == 6 * 4 + 3
    assert {run.end for run in given} == {"stopped"}
    assert {run.instance: run.dimension for run in given} == {f"f{number}": number for number in range(1, 7)}
    analyzed = list(replace(told, stopped="analyzed").trajectories())
    assert {run.end for run in analyzed} == {"unknown"}
    assert {run.dimension for run in analyzed} == {None}


def test_a_result_survives_its_file_with_all_its_contents(told: RaceResult, tmp_path: Any) -> None:
    held = Elimination("b", "a", 0.95, 3)
    rounds = (*told.rounds[:2], replace(told.rounds[2], held=(held,), newcomers=("b",)))
    identities = tuple(Identity(f"f{number}", {"dimension": number}) for number in range(1, 7))
    state = replace(told.state, rounds=rounds, newcomers=("b",), stored=("d",))
    logs = told.posterior.log_ratings - np.logaddexp.reduce(told.posterior.log_ratings, axis=2, keepdims=True)
    posterior = replace(told.posterior, log_ratings=logs)
    result = replace(told, state=state, _posterior=posterior, identities=identities, about={"study": "s"})
    again = RaceResult.load(result.save(tmp_path / "result.npz"))
    assert again.to_dict() == result.to_dict()
    assert again.rounds[-1].held == (held,)
    assert again.state.newcomers == ("b",)
    assert again.state.stored == ("d",)
    assert again.state.batch == 2
    assert again.identities == identities
    assert again.settings == result.settings
