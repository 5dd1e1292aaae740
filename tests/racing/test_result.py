from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import column_kinds, synthetic_race, table_of, wins_table

from polarbear_plugins import RaceResult, RaceSettings, RankingTable, analyze, race, rank
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.racing import forecast as forecast_module
from polarbear_plugins.racing.betting import second_opinion
from polarbear_plugins.racing.forecast import forecast
from polarbear_plugins.racing.posteriors import checked, infer
from polarbear_plugins.racing.simulation import _Thresholds
from polarbear_plugins.racing.state import Elimination, Failure, Round, check_rounds
from polarbear_plugins.report.words import conclusion

SETTINGS = RaceSettings(seed=1, draws=1000)


def test_existing_data_are_judged_as_by_a_race_of_one_round() -> None:
    clear = analyze(wins_table([20], 20), SETTINGS)
    assert (clear.pareto_set, clear.resolved, clear.stopped) == (("a",), True, "analyzed")
    assert [(out.algorithm, out.by) for out in clear.eliminations] == [("b", "a")]
    assert clear.open_pairs == ()
    doubtful = analyze(wins_table([12], 20), SETTINGS)
    assert doubtful.pareto_set == ("a", "b")
    assert doubtful.open_pairs == (("a", "b", (1.0,)),)
    settled_once = analyze(wins_table([20, 12, 20], 20), SETTINGS)
    assert settled_once.open_pairs == (("a", "b", (2.0,)),)


def test_an_analysis_costs_what_its_runs_cost() -> None:
    values = np.zeros((2, 3, 2))
    values[1, 2, 1] = np.nan
    one = table_of(values, timepoints=[1, 5, 10])
    result = analyze(one, SETTINGS)
    assert result.cost == 10 + 10 + 10 + 5
    assert result.full_cost == 40
    assert result.summary()["cost"].tolist() == [20, 15]


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    result = race("synthetic", "synthetic", range(1, 6), replace(SETTINGS, max_rounds=3), workers=0)
    loaded = RaceResult.load(result.save(tmp_path / "race.npz"))
    assert loaded.to_json() == result.to_json()
    assert np.array_equal(loaded.posterior.log_ratings, result.posterior.log_ratings)
    assert loaded.state.table == result.state.table
    assert loaded.state.batch == result.state.batch
    assert loaded.identities == result.identities
    assert [identity.name for identity in loaded.identities] == list(result.state.table.instances)
    assert str(loaded) == str(result)


def test_failures_and_newcomers_survive_a_file_and_are_counted(tmp_path: Path) -> None:
    result = analyze(wins_table([12], 20), SETTINGS)
    failures = tuple(Failure(name, f"i{place}", "it crashed") for place, name in enumerate("aba"))
    result = replace(result, failures=failures, state=replace(result.state, newcomers=("b",)))
    loaded = RaceResult.load(result.save(tmp_path / "race.npz"))
    assert loaded.failures == failures
    assert loaded.state.newcomers == ("b",)
    assert loaded.summary()["failed"].to_dict() == {"a": 2, "b": 1}


def test_a_result_of_another_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = analyze(wins_table([12], 20), SETTINGS)
    monkeypatch.setattr("polarbear_plugins.racing.result.FORMAT", 99)
    path = result.save(tmp_path / "race.npz")
    monkeypatch.undo()
    with pytest.raises(SourceError, match=r"race\.npz.*format 99"):
        RaceResult.load(path)


def test_instances_are_counted_once_however_many_runs_they_have() -> None:
    repeated = table_of([[[1.0, 2.0]], [[2.0, 1.0]], [[1.0, np.nan]]], timepoints=[5], instances=["i", "i", "j"])
    result = analyze(repeated, SETTINGS)
    assert result.summary()["instances"].tolist() == [2, 1]
    assert "1 round, 2 instances, stopped: analyzed" in repr(result)


def test_the_settings_say_how_many_draws() -> None:
    assert len(analyze(wins_table([12], 20), replace(SETTINGS, draws=300)).posterior.log_ratings) == 300


def test_the_settings_say_whether_repetition_over_time_is_corrected() -> None:
    settings = replace(SETTINGS, prior="bspline", draws=200)
    repeated = wins_table([12] * 6, 20)  # the same order at all timepoints
    auto, none = (analyze(repeated, replace(settings, dependence=mode)).posterior for mode in ("auto", "none"))  # type: ignore[arg-type]
    assert auto.ratings.std(axis=0).mean() > 1.2 * none.ratings.std(axis=0).mean()


def test_an_analysis_with_repetitions_and_weights_survives_its_file(tmp_path: Path) -> None:
    repeated = RankingTable.from_values(
        [[[1.0, 2.0]], [[2.0, 1.0]], [[1.0, 2.0]]],
        algorithms=["a", "b"],
        timepoints=[1],
        instances=["f", "f", "g"],
        weights=[1, 2, 3],
    )
    loaded = RaceResult.load(analyze(repeated, SETTINGS).save(tmp_path / "analysis.npz"))
    assert loaded.state.table == repeated
    assert loaded.state.table.weights.tolist() == [0.5, 1, 3]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = analyze(wins_table([12], 20), SETTINGS).save(tmp_path / "race.npz")
    content = path.read_bytes()
    for damaged in (b"", b"no archive", content[: len(content) // 2]):
        path.write_bytes(damaged)
        with pytest.raises(SourceError, match=r"race\.npz"):
            RaceResult.load(path)
    with pytest.raises(SourceError, match="no such file"):
        RaceResult.load(tmp_path / "none.npz")


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    result = analyze(wins_table([12], 20), SETTINGS)
    with pytest.raises(SourceError, match="cannot be written"):
        result.save(tmp_path / "no such folder" / "race.npz")
    path = result.save(tmp_path / "race.npz")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_what_was_loaded_or_analyzed_cannot_be_entered() -> None:
    with pytest.raises(InvalidInputError, match="resume"):
        analyze(wins_table([12], 20), SETTINGS).enter({"c": print})


def test_a_posterior_depends_on_the_number_of_the_round_and_the_seed_only() -> None:
    state = analyze(wins_table([12], 20), SETTINGS).state
    assert np.array_equal(infer(state, 3).log_ratings, infer(state, 3).log_ratings)
    assert not np.array_equal(infer(state, 3).log_ratings, infer(state, 4).log_ratings)


def test_ranking_the_runs_of_a_result_again_gives_its_table() -> None:
    result = race("synthetic", "synthetic", range(1, 6), replace(SETTINGS, max_rounds=3), workers=0)
    again = rank(result.trajectories(), result.timepoints, algorithms=result.algorithms)
    order = [again.instances.index(name) for name in result.state.table.instances]
    assert np.array_equal(again.ranks[order], result.state.table.ranks)
    assert sum(run.horizon for run in result.trajectories()) == result.cost


# How many more instances.


def test_a_settled_race_needs_no_more_instances() -> None:
    result = analyze(wins_table([20], 20), SETTINGS)
    assert (result.forecast().median, result.forecast().high) == (0, 0)


def test_the_closer_a_pair_the_more_instances_it_needs() -> None:
    needed = [
        analyze(wins_table([wins], 40), replace(SETTINGS, epsilon=0.0)).forecast().median for wins in (27, 25, 23)
    ]
    assert all(count is not None for count in needed)
    assert needed == sorted(needed, key=lambda count: count or 0)
    assert needed[0] != needed[-1]


def test_the_forecast_is_about_right_for_a_clear_difference() -> None:
    # 70 % wins of 30: p = 0.7 needs (2.33 * 0.5 / 0.2)^2 = 34 instances or so, with the doubt that 30 leave.
    found = forecast((state := analyze(wins_table([21], 30), replace(SETTINGS, epsilon=0.0))).state, state.posterior)
    assert found.low is not None
    assert found.median is not None
    assert found.low <= 16  # the next batch
    assert found.median < 60


def test_equivalence_within_the_rope_needs_fewer_instances_when_the_rope_is_wide() -> None:
    narrow, wide = (
        analyze(wins_table([30], 60), replace(SETTINGS, epsilon=epsilon)).forecast().median for epsilon in (0.05, 0.2)
    )
    assert wide is not None
    assert narrow is None or narrow > wide


def test_crossing_resolution_needs_fewer_instances_than_strict() -> None:
    crossing_pair = wins_table([38, 20, 2], 40)
    strict, crossing = (
        analyze(crossing_pair, replace(SETTINGS, resolution=mode, epsilon=0.0, alpha=0.999)).forecast().median
        for mode in ("strict", "crossing")
    )
    assert crossing is not None
    assert strict is None or strict > crossing


def test_eliminating_without_a_model_needs_more_instances_and_full_runs() -> None:
    clear = wins_table([24, 24], 40)
    model, direct = (
        analyze(clear, replace(SETTINGS, rule=rule, epsilon=0.0)).forecast()  # type: ignore[arg-type]
        for rule in ("posterior", "anytime-valid")
    )
    assert model.median is not None
    assert direct.median is not None
    assert 1.5 * model.median < direct.median < 10 * model.median
    # One timepoint is settled already, and is run all the same.
    half = replace(SETTINGS, epsilon=0.0, rule="anytime-valid")
    found = analyze(wins_table([24, 2], 40), half).forecast()
    ended = np.isfinite(found.instances) & (found.instances > 0)
    assert ended.any()
    assert found.costs[ended] == pytest.approx(2 * 2 * found.instances[ended])


@pytest.mark.parametrize("algorithms", [2, 5])
def test_the_forecast_of_the_rule_without_a_model_asks_for_what_its_e_values_need(algorithms: int) -> None:
    # A pair is dominated by that many standard deviations when the e-value reaches the threshold of closed testing.
    settings = replace(SETTINGS, rule="anytime-valid")
    deviations = _Thresholds.of(settings, algorithms).quantile
    assert deviations > _Thresholds.of(SETTINGS, algorithms).quantile
    instances = 400
    wins = round(instances / 2 + deviations * np.sqrt(instances) / 2)
    evidence = second_opinion(wins_table([wins], instances)).log_e_values[0, 1]
    assert evidence == pytest.approx(np.log(algorithms / 0.01), abs=1.5)
    assert _Thresholds.of(settings, 9).quantile > _Thresholds.of(settings, 3).quantile


def test_a_forecast_reads_as_a_sentence() -> None:
    assert "more instances (80 % interval" in str(analyze(wins_table([12], 20), SETTINGS).forecast())


def test_values_that_grow_are_analyzed_and_given_again() -> None:
    table = table_of([[[1.0, 2.0], [3.0, 1.0]]])
    result = analyze(table, RaceSettings(seed=1))
    assert [run.best.tolist() for run in result.trajectories()] == [[1, 3], [2, 1]]


def test_the_dictionary_of_a_result_is_what_its_json_says() -> None:
    result = analyze(wins_table([12], 20), SETTINGS)
    assert result.to_dict() == json.loads(result.to_json())


def test_wording_a_conclusion_simulates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    result = analyze(wins_table([12], 20), SETTINGS)
    assert not result.resolved
    expected = str(result.forecast(20))
    with monkeypatch.context() as patched:
        patched.setattr(forecast_module, "Simulations", None)
        assert "not settled" in conclusion(result)
        assert "would likely settle" not in conclusion(result)
    assert f"; {expected} would likely settle it" in conclusion(result, forecast=result.forecast(20))


ROUND = Round(
    number=3,
    batch=8,
    instances=24,
    cost=240.0,
    eliminations=(Elimination("c", "a", 0.997, 3),),
    resolved=(("a", "b"),),
    resolved_share=1.0,
    rivals={"a": ("b", 0.2), "c": ("a", 0.997)},
    good=True,
    next_batch=16,
    newcomers=("d",),
    held=(Elimination("b", "a", 0.993, 3),),
)


def test_an_analysis_without_a_seed_has_the_seed_0_and_else_the_settings_it_was_given() -> None:
    settings = RaceSettings(alpha=0.9, draws=100)
    assert analyze(wins_table([3], 4), settings).settings == replace(settings, seed=0)


def test_a_round_survives_json() -> None:
    assert Round.from_json(json.loads(json.dumps(asdict(ROUND)))) == ROUND


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"number": -1}, "number"),
        ({"instances": 2.5}, "instances"),
        ({"cost": "much"}, "cost"),
        ({"good": 3}, "good"),
        ({"next_batch": 10**9}, r"next_batch.*1,000,000"),
        ({"rivals": {"a": ["b", None]}}, "rivals"),
        ({"invented": 1}, "Round: the field 'invented' is unknown"),
        ({"eliminations": [{**asdict(ROUND.eliminations[0]), "algorithm": ""}]}, "algorithm"),
        ({"eliminations": [{**asdict(ROUND.eliminations[0]), "why": ""}]}, "Elimination: the field 'why' is unknown"),
        ({"held": [{**asdict(ROUND.held[0]), "probability": "high"}]}, "probability"),
    ],
)
def test_a_round_that_no_race_writes_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        Round.from_json({**asdict(ROUND), **change})


def test_a_round_without_one_of_its_fields_is_refused() -> None:
    data = asdict(ROUND)
    del data["newcomers"]
    with pytest.raises(KeyError, match="newcomers"):
        Round.from_json(data)


def test_a_round_of_an_earlier_version_held_nothing() -> None:
    data = asdict(ROUND)
    del data["held"]
    assert Round.from_json(data) == replace(ROUND, held=())


@pytest.mark.parametrize("where", ["by", "rivals", "rival", "newcomers", "held", "held by"])
def test_rounds_of_other_algorithms_are_refused(where: str) -> None:
    check_rounds([ROUND], "abcd")
    strange = {
        "by": replace(ROUND, eliminations=(Elimination("c", "stranger", 0.997, 3),)),
        "rivals": replace(ROUND, rivals={"stranger": ("b", 0.2)}),
        "rival": replace(ROUND, rivals={"a": ("stranger", 0.2)}),
        "newcomers": replace(ROUND, newcomers=("stranger",)),
        "held": replace(ROUND, held=(Elimination("stranger", "a", 0.993, 3),)),
        "held by": replace(ROUND, held=(Elimination("b", "stranger", 0.993, 3),)),
    }[where]
    with pytest.raises(ValueError, match="'stranger', which is none of the algorithms"):
        check_rounds([strange], "abcd")


def test_a_result_gives_its_tables(raced: RaceResult) -> None:
    algorithms = raced.to_pandas()
    assert column_kinds(algorithms) == {
        "algorithm": "names",
        "status": "text",
        "round": "int",
        "by": "names",
        "probability": "float",
        "instances": "int",
        "cost": "float",
        "failed": "int",
    }
    assert list(algorithms["algorithm"]) == list(raced.algorithms)
    assert algorithms["by"].notna().sum() == len(raced.eliminations) > 0
    rounds = raced.to_pandas("rounds")
    assert list(rounds["round"]) == [1, 2, 3, 4]
    assert rounds["cost"].iloc[-1] == raced.cost
    assert list(rounds["left"]) == list(len(raced.algorithms) - rounds["eliminated"].cumsum())
    assert rounds["eliminated"].sum() == len(raced.eliminations)
    out = raced.to_pandas("eliminations")
    assert [tuple(row) for row in out.itertuples(index=False)] == [
        (each.round, each.algorithm, each.by, each.probability, each.algorithm in raced.certain_without_model)
        for each in raced.eliminations
    ]
    assert column_kinds(out)["without_model"] == "bool"
    rivals = raced.to_pandas("rivals")
    assert len(rivals) == sum(len(finished.rivals) for finished in raced.rounds)
    pairs = raced.to_pandas("open_pairs")
    assert len(pairs) == sum(len(times) for _, _, times in raced.open_pairs) > 0


@pytest.mark.parametrize("what", ["eliminations", "rivals", "open_pairs", "failures", "rounds"])
def test_an_empty_table_has_the_columns_and_kinds_of_a_full_one(raced: RaceResult, what: Any) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    empty = synthetic_race(timepoints=2, progress=stop)
    full = RaceResult(
        state=raced.state, stopped="max_rounds", _posterior=None, failures=(Failure("A", "7", "it crashed"),)
    )
    assert len(full.to_pandas(what))
    assert column_kinds(empty.to_pandas(what)) == column_kinds(full.to_pandas(what))


def test_another_table_is_refused(raced: RaceResult) -> None:
    with pytest.raises(InvalidInputError, match=r"to_pandas: expected .*open_pairs.*got 'draws'"):
        raced.to_pandas("draws")  # type: ignore[arg-type]


# Where the model does not fit

KINDS = np.tile([[1.0, 3.0, 2.0, 4.0], [3.0, 1.0, 2.0, 4.0]], (30, 1))[:, None, :]  # c is always second


def test_an_analysis_says_whether_the_model_fits(tmp_path: Path) -> None:
    wrong, right = analyze(table_of(KINDS), SETTINGS), analyze(wins_table([12], 20), SETTINGS)
    assert wrong.check is not None
    assert right.check is not None
    assert (wrong.check.fits, right.check.fits) == (False, True)
    assert wrong.check is wrong.posterior.check
    loaded = RaceResult.load(wrong.save(tmp_path / "race.npz"))
    assert loaded.check is not None
    assert loaded.check.to_json() == wrong.check.to_json()


def test_what_the_guard_held_survives_a_file(tmp_path: Path) -> None:
    result = analyze(table_of(np.repeat(KINDS, 4, axis=0)), SETTINGS)
    assert {one.algorithm for one in result.rounds[-1].held} == {"a", "b"}
    loaded = RaceResult.load(result.save(tmp_path / "race.npz"))
    assert loaded.rounds[-1].held == result.rounds[-1].held


def test_a_race_checks_the_model_at_its_end_as_an_analysis_of_its_data_would(raced: RaceResult) -> None:
    assert raced.check is not None
    again = checked(raced.state, replace(raced.posterior, check=None))
    assert again is not None
    assert again.check is not None
    assert again.check.to_json() == raced.check.to_json()
    assert infer(raced.state, len(raced.rounds)).check is None  # not in each round
    assert checked(raced.state, raced.posterior) is raced.posterior
    inferred = checked(raced.state, None)
    assert inferred is not None
    assert np.array_equal(inferred.log_ratings, raced.posterior.log_ratings)
    assert inferred.check is not None
    assert inferred.check.to_json() == raced.check.to_json()
    assert checked(replace(raced.state, rounds=()), None) is None


def test_the_check_is_of_the_instances_there_are_also_if_the_posterior_is_about_a_new_group() -> None:
    rng = np.random.default_rng(1)
    own = 2 * rng.standard_normal((8, 1, 3))
    values = np.repeat(own, 6, axis=0) - rng.gumbel(size=(48, 1, 3))
    state = analyze(table_of(values, groups=[f"g{row // 6}" for row in range(48)]), SETTINGS).state
    at_once, later = infer(state, 1, check=True), checked(state, infer(state, 1))
    assert later is not None
    assert later.groups is not None
    assert later.groups.scope == "new"
    assert later.check is not None
    assert at_once.check is not None
    assert later.check.to_json() == at_once.check.to_json()
    assert np.array_equal(later.log_ratings, at_once.log_ratings)


def test_the_robust_posterior_is_that_of_first_places_where_the_model_does_not_fit() -> None:
    result = analyze(table_of(KINDS), SETTINGS)
    robust = result.robust_posterior()
    assert robust.likelihood == "first-places"
    assert robust.algorithms == result.algorithms
    assert robust.check is None
    assert robust.ratings[:, 0].mean(axis=0) == pytest.approx([31 / 64, 31 / 64, 1 / 64, 1 / 64], abs=0.01)
    assert np.array_equal(robust.log_ratings, result.robust_posterior().log_ratings)


def test_the_robust_posterior_among_some_counts_first_places_among_them() -> None:
    result = analyze(table_of(KINDS), SETTINGS)
    among = result.robust_posterior(["b", "c"])
    assert (among.algorithms, among.likelihood) == (("b", "c"), "first-places")
    assert among.ratings[:, 0].mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.01)
    alone = result.robust_posterior(["c"])  # nothing to count
    assert alone is result.posterior


def test_the_robust_posterior_is_that_of_the_race_where_the_model_fits() -> None:
    result = analyze(wins_table([12], 20), SETTINGS)
    assert result.robust_posterior() is result.posterior
    assert result.robust_posterior(["a", "b"]) is result.posterior
    unchecked = replace(result, _posterior=replace(result.posterior, check=None))  # of an earlier version
    assert unchecked.check is None
    assert unchecked.robust_posterior() is unchecked.posterior
    misfit = analyze(table_of(KINDS), SETTINGS)
    older = replace(misfit, _posterior=replace(misfit.posterior, check=None))
    assert older.robust_posterior() is older.posterior


def test_the_robust_posterior_keeps_the_prior_of_the_race() -> None:
    settings = replace(SETTINGS, prior="bspline", draws=200)
    values = np.repeat(KINDS, 3, axis=1)
    robust = analyze(table_of(values), settings).robust_posterior(["a", "c"])
    assert (robust.prior, robust.joint, robust.likelihood) == ("bspline", True, "first-places")


def test_the_robust_posterior_among_some_needs_no_run_of_theirs_on_each_instance() -> None:
    values = np.repeat(KINDS, 2, axis=0)
    values[::5, :, 1:3] = np.nan  # neither of the two
    values[1::5, :, 1] = np.nan
    result = analyze(table_of(values), SETTINGS)
    assert result.check is not None
    assert not result.check.fits
    among = result.robust_posterior(["b", "c"])
    wins, losses = (int((values[:, 0, i] < values[:, 0, j]).sum()) for i, j in ((1, 2), (2, 1)))
    assert wins + losses == 72
    assert among.ratings[:, 0, 0].mean() == pytest.approx((wins + 1) / 74, abs=0.01)


@pytest.mark.parametrize(("instances", "certain"), [(8, ()), (20, ("b",))])
def test_an_elimination_is_certain_without_the_model_once_wins_alone_show_it(
    instances: int, certain: tuple[str, ...]
) -> None:
    result = analyze(wins_table([instances], instances), SETTINGS)
    assert [out.algorithm for out in result.eliminations] == ["b"]
    assert result.certain_without_model == certain
    assert list(result.to_pandas("eliminations")["without_model"]) == [bool(certain)]
    assert result.to_dict()["second_opinion"]["certain"] == list(certain)


def test_what_is_left_is_not_named_among_the_eliminations_that_hold_without_the_model() -> None:
    # Direct wins show that d is dominated, but with this alpha of the posterior nobody is eliminated.
    result = analyze(wins_table([20], 20), replace(SETTINGS, alpha=0.9999, draws=500))
    kept = replace(result.state.rounds[0], eliminations=())
    result = replace(result, state=replace(result.state, rounds=(kept,)))
    assert result.second_opinion().certain(0.99)[1]
    assert result.certain_without_model == ()
