"""Groups of instances: whether they differ, how much, and what holds for a new one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import table_of
from scipy.stats import kstest

from polarbear_plugins import Posterior, RaceSettings, RankingTable, analyze, fit
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.groups import _inflation
from polarbear_plugins.inference.native.engine import native
from polarbear_plugins.inference.task import Draws, Groups, Task
from polarbear_plugins.posterior.group_effect import GroupEffect

DRAWS = 300


def grouped(
    seed: int,
    spread: float,
    *,
    groups: int = 8,
    size: int = 6,
    shape: tuple[int, int] = (1, 4),
    centre: Any = 0.0,
    **more: Any,
) -> RankingTable:
    """Rankings by Gumbel noise; the utilities of a group deviate from the centre by a normal amount."""
    rng = np.random.default_rng(seed)
    own = centre + spread * rng.standard_normal((groups, 1, shape[1]))
    values = -np.repeat(own, size, axis=0) - rng.gumbel(size=(groups * size, *shape))
    names = [f"g{row // size}" for row in range(groups * size)]
    return table_of(values, **{"groups": names, **more})


def infer(table: RankingTable, groups: Groups = "auto", **more: Any) -> Posterior:
    return fit(table, groups=groups, **{"seed": 1, "draws": DRAWS, "check": False, **more})


def effect_of(posterior: Posterior) -> GroupEffect:
    assert posterior.groups is not None
    return posterior.groups


# Where groups say nothing


@pytest.mark.parametrize("groups", ["auto", "new", "same"])
@pytest.mark.parametrize("names", [None, ["g"] * 48, [f"g{row}" for row in range(48)]])
def test_no_group_one_group_and_a_group_for_each_instance_change_nothing(
    groups: Groups, names: list[str] | None
) -> None:
    table = grouped(1, 2.0, groups=8)
    changed = table_of(table.values, **({} if names is None else {"groups": names}))
    plain, posterior = infer(table_of(table.values)), infer(changed, groups)
    np.testing.assert_array_equal(posterior.log_ratings, plain.log_ratings)
    assert posterior.groups is None


def test_groups_that_are_ignored_change_nothing() -> None:
    table = grouped(1, 2.0)
    ignored, plain = infer(table, "none"), infer(table_of(table.values))
    np.testing.assert_array_equal(ignored.log_ratings, plain.log_ratings)
    assert ignored.groups is None


def test_further_instances_of_the_same_groups_have_the_same_ratings_and_a_word_about_groups() -> None:
    table = grouped(1, 2.0)
    same = infer(table, "same")
    np.testing.assert_array_equal(same.log_ratings, infer(table, "none").log_ratings)
    effect = effect_of(same)
    assert (effect.scope, effect.groups, effect.instances) == ("same", 8, 48)
    assert effect.inflation.shape == effect.spread.shape == (1,)


def test_an_unknown_scope_is_refused() -> None:
    for table in (grouped(1, 1.0), table_of(grouped(1, 1.0).values)):
        with pytest.raises(InvalidInputError, match="groups: expected"):
            infer(table, "old")  # type: ignore[arg-type]


# What they are taken for


def test_groups_that_differ_are_a_sample_unless_they_are_all_there_are() -> None:
    table, fixed = grouped(1, 2.0), grouped(1, 2.0, fixed_groups=True)
    assert effect_of(infer(table)).scope == "new"
    assert effect_of(infer(fixed)).scope == "same"
    assert effect_of(infer(fixed, "new")).scope == "new"
    np.testing.assert_array_equal(infer(table).log_ratings, infer(table, "new").log_ratings)
    np.testing.assert_array_equal(infer(fixed).log_ratings, infer(table, "none").log_ratings)


def test_groups_that_look_alike_are_passed_over_unless_new_ones_are_asked_for() -> None:
    # The same instances in each group.
    values = np.tile(np.random.default_rng(1).random((6, 1, 4)), (8, 1, 1))
    table = table_of(values, groups=[f"g{row // 6}" for row in range(48)])
    auto = effect_of(infer(table))
    assert (auto.scope, auto.p) == ("same", 1.0)
    assert auto.inflation.tolist() == [1.0]
    assert effect_of(infer(table, "new")).scope == "new"


# How much they differ


def test_the_more_groups_differ_the_larger_are_inflation_and_spread_and_the_smaller_is_p() -> None:
    effects = [effect_of(infer(grouped(1, spread, groups=12), "same")) for spread in (0.0, 1.0, 3.0)]
    inflations, spreads = ([float(getattr(one, name)[0]) for one in effects] for name in ("inflation", "spread"))
    assert inflations == sorted(inflations)
    assert spreads == sorted(spreads)
    assert inflations[0] < 1.6 < 2.5 < inflations[2]
    assert spreads[0] < 0.5 < 2.0 < spreads[2]
    assert effects[0].p > 0.02
    assert effects[1].p == effects[2].p == 0.002


def test_a_new_group_is_less_certain_than_the_same_ones_and_more_so_the_more_groups_differ() -> None:
    def width(spread: float, groups: Groups) -> float:
        return float(infer(grouped(1, spread, groups=12), groups).log_ratings.std(axis=0).mean())

    assert width(2.0, "new") > 3 * width(2.0, "same")
    assert width(2.0, "new") > 1.5 * width(0.5, "new") > 1.5 * width(0.5, "same")


def test_the_spread_is_estimated_about_right() -> None:
    found = [float(effect_of(infer(grouped(seed, 1.0, groups=16), "new")).spread[0]) for seed in range(5)]
    assert 0.75 < np.mean(found) < 1.3


def test_the_centre_of_groups_is_not_pulled_by_large_ones() -> None:
    # One group of forty prefers b, ten groups of two prefer a: so does a new group, most likely.
    rng = np.random.default_rng(1)
    sizes, signs = [40] + [2] * 10, [1.5] + [-1.5] * 10
    own = np.repeat(signs, sizes)[:, None, None] * np.array([1.0, -1.0])
    table = table_of(own - rng.gumbel(size=(60, 1, 2)), groups=np.repeat([f"g{k}" for k in range(11)], sizes).tolist())
    new, same = (infer(table, groups, draws=1000).ratings[:, 0, 0].mean() for groups in ("new", "same"))  # type: ignore[arg-type]
    assert same < 0.5 < new


def test_a_group_deviates_alike_at_all_timepoints() -> None:
    table = grouped(1, 2.0, groups=12, shape=(5, 3))
    posterior = infer(table, "new", draws=1000)
    logs = posterior.log_ratings[:, :, 0] - posterior.log_ratings[:, :, 1]
    between = np.corrcoef(logs.T)
    assert (between[~np.eye(5, dtype=bool)] > 0.6).all()
    independent = infer(table, "none", draws=1000).log_ratings
    assert (np.abs(np.corrcoef((independent[:, :, 0] - independent[:, :, 1]).T)[~np.eye(5, dtype=bool)]) < 0.2).all()


def test_many_timepoints_have_a_spread_of_their_own_or_that_of_the_nearest() -> None:
    early, late = grouped(1, 0.0, shape=(20, 3)).values, grouped(1, 3.0, shape=(20, 3)).values
    table = table_of(np.concatenate([early, late], axis=1), groups=grouped(1, 0.0).groups)
    effect = effect_of(infer(table, "new"))
    assert effect.spread.shape == effect.inflation.shape == (40,)
    assert effect.spread[:18].max() < effect.spread[22:].min()
    assert len(set(effect.spread.tolist())) == 16


def test_a_timepoint_without_comparisons_has_the_spread_of_the_prior() -> None:
    table = grouped(1, 0.2)
    values = np.concatenate([table.values, np.full((48, 1, 4), np.nan)], axis=1)
    effect = effect_of(infer(table_of(values, groups=table.groups), "new"))
    assert np.isfinite(effect.inflation).all()
    assert effect.spread[0] < effect.spread[1]
    # A half-normal prior with the scale 2, on the grid.
    assert effect.spread[1] == pytest.approx(1.3, abs=0.1)


def test_an_algorithm_that_took_no_part_leaves_the_spread_between_the_others_alone() -> None:
    table = grouped(1, 1.0)
    values = np.concatenate([table.values, np.full((48, 1, 1), np.nan)], axis=2)
    one, other = (effect_of(infer(each, "new")) for each in (table, table_of(values, groups=table.groups)))
    assert other.inflation == pytest.approx(one.inflation, rel=0.05)
    assert other.spread == pytest.approx(one.spread, rel=0.1)


def test_the_same_seed_gives_the_same_groups_and_draws() -> None:
    table = grouped(1, 1.0)
    one, same, other = (infer(table, "new", seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.log_ratings, same.log_ratings)
    assert effect_of(one).to_json() == effect_of(same).to_json()
    assert not np.array_equal(one.log_ratings, other.log_ratings)


def test_the_order_of_groups_does_not_matter() -> None:
    table = grouped(1, 1.5)
    backwards = table_of(table.values[::-1], groups=table.groups[::-1])
    one, other = (effect_of(infer(each, "new", draws=2000)) for each in (table, backwards))
    assert one.inflation == pytest.approx(other.inflation, rel=0.05)
    assert one.spread == pytest.approx(other.spread, rel=0.05)


def test_several_runs_of_an_instance_are_one_instance_of_its_group() -> None:
    table = grouped(1, 2.0)
    rows = np.repeat(np.arange(48), 3)
    repeated = table_of(table.values[rows], groups=[table.groups[row] for row in rows], instances=rows.tolist())
    one, three = effect_of(infer(table, "same")), effect_of(infer(repeated, "same"))
    assert (three.groups, three.instances) == (8, 48)
    assert three.inflation == pytest.approx(one.inflation, rel=0.05)
    assert three.p == one.p == 0.002


def test_the_spread_is_as_large_if_instances_have_many_runs_and_vary_less() -> None:
    found = []
    for seed in range(4):
        runs = grouped(seed, 1.0, groups=12, size=30)
        table = table_of(runs.values, groups=runs.groups, instances=[f"i{row // 10}" for row in range(360)])
        found.append(float(effect_of(infer(table, "new")).spread[0]))
    assert 0.7 < np.mean(found) < 1.3


def test_the_evidence_about_a_new_group_is_divided_by_the_inflation() -> None:
    wins = []

    def engine(task: Task) -> Draws:
        wins.append(task.statistics.wins)
        return native(task)

    table = grouped(1, 2.0, shape=(2, 4))
    new = infer(table, "new", engine=engine)
    infer(table, "none", engine=engine)
    assert effect_of(new).inflation.min() > 1.5
    np.testing.assert_allclose(wins[0] * effect_of(new).inflation[:, None], wins[1])


def test_few_groups_are_not_taken_to_be_all_of_them() -> None:
    # Two groups of two alike: sums of 2 and -2, over 4, times 2 / (2 - 1) for the mean that they share.
    scores = np.array([1.0, 1.0, -1.0, -1.0])[:, None, None]
    assert _inflation(scores, np.array([0, 0, 1, 1])).tolist() == [4.0]
    assert _inflation(scores, np.array([0, 1, 0, 1])).tolist() == [1.0]


# With other parts of a fit


@pytest.mark.parametrize("prior", ["dirichlet", "bspline", "random-walk"])
@pytest.mark.parametrize("likelihood", ["rankings", "first-places"])
def test_new_groups_work_with_every_likelihood_and_over_time(likelihood: str, prior: str) -> None:
    table = grouped(1, 1.5, groups=12, shape=(3, 3), centre=np.array([3.0, 0.0, 0.0]))
    new, none = (
        infer(table, groups, likelihood=likelihood, prior=prior)  # type: ignore[arg-type]
        for groups in ("new", "none")
    )
    assert (new.likelihood, new.joint) == (likelihood, prior != "dirichlet")
    assert np.exp(new.log_ratings).sum(axis=2) == pytest.approx(1)
    assert new.log_ratings.std(axis=0).mean() > 1.5 * none.log_ratings.std(axis=0).mean()
    assert effect_of(new).spread.min() > 0.6
    assert (new.ratings.mean(axis=(0, 1)).argmax(), none.ratings.mean(axis=(0, 1)).argmax()) == (0, 0)


def test_the_model_is_checked_against_the_groups_there_are() -> None:
    # That a new group is uncertain does not make the rankings there are any less likely.
    table = grouped(1, 0.0, groups=4, size=5, shape=(2, 3))
    new, none = (fit(table, seed=1, groups=groups) for groups in ("new", "none"))  # type: ignore[arg-type]
    assert new.check is not None
    assert none.check is not None
    assert new.check.modelled == pytest.approx(none.check.modelled, abs=0.08)


def test_a_race_asks_for_groups_as_its_settings_say() -> None:
    table = grouped(1, 2.0)
    for groups, scope in (("auto", "new"), ("same", "same"), ("new", "new"), ("none", None)):
        found = analyze(table, RaceSettings(seed=1, draws=DRAWS, groups=groups)).posterior.groups  # type: ignore[arg-type]
        assert (None if found is None else found.scope) == scope


# How often it is right


@pytest.mark.slow
@pytest.mark.parametrize("tables", [40, pytest.param(120, marks=pytest.mark.long)])
def test_the_permutation_test_is_uniform_where_groups_do_not_differ(tables: int) -> None:
    found = [effect_of(infer(grouped(seed, 0.0), "same", seed=seed)).p for seed in range(tables)]
    assert kstest(found, "uniform").pvalue > 0.001
    assert np.mean(np.array(found) <= 0.1) < 0.2


@pytest.mark.slow
def test_inflation_is_about_one_where_groups_do_not_differ() -> None:
    found = [float(effect_of(infer(grouped(seed, 0.0), "same", seed=seed)).inflation[0]) for seed in range(60)]
    assert 1.0 <= np.mean(found) < 1.3


@pytest.mark.slow
def test_intervals_cover_the_ratings_of_a_group_that_was_left_out() -> None:
    covered: dict[Groups, list[float]] = {"new": [], "none": []}
    for seed in range(50):
        rng = np.random.default_rng([seed, 1])
        centre = rng.standard_normal(5)
        table = grouped(seed, 1.0, groups=16, size=5, shape=(1, 5), centre=centre)
        left_out = centre + rng.standard_normal(5)
        truth = np.exp(left_out) / np.exp(left_out).sum()
        for groups, each in covered.items():
            ratings = infer(table, groups, seed=seed, draws=1000).ratings[:, 0]
            low, high = np.quantile(ratings, [0.025, 0.975], axis=0)
            each.append(float(((low <= truth) & (truth <= high)).mean()))
    assert np.mean(covered["new"]) >= 0.88
    assert np.mean(covered["none"]) < 0.5
