from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from polarbear_plugins import RaceSettings, RankingTable, load_plugins, race
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plugins import synthetic as module
from polarbear_plugins.plugins.synthetic import draw_log_ratings, pareto_set, synthetic_portfolio, utilities
from polarbear_plugins.testing import check_portfolio, check_suite


def test_the_plugin_keeps_the_contracts() -> None:
    suite = check_suite(module, "synthetic")
    [identity] = itertools.islice(suite.identities(0), 1)
    check_portfolio(module, "synthetic", suite.build(identity), 5.0)


@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_rankings_follow_the_plackett_luce_model(correlation: float) -> None:
    ratings = np.array([0.5, 0.3, 0.2])
    noise = utilities(np.log(ratings)[None, :, None] * np.ones((40_000, 1, 4)), correlation, np.random.default_rng(1))
    for t in (0, 3):
        orders = np.argsort(-noise[:, :, t], axis=1)
        for order in itertools.permutations(range(3)):
            expected = ratings[order[0]] * ratings[order[1]] / (1 - ratings[order[0]])
            share = (orders == order).all(axis=1).mean()
            assert share == pytest.approx(expected, abs=4 * math.sqrt(expected / 40_000))


@pytest.mark.parametrize(("correlation", "low", "high"), [(0.0, -0.03, 0.03), (0.9, 0.85, 0.93), (1.0, 0.999, 1.0)])
def test_neighbouring_timepoints_of_a_run_correlate_as_asked(correlation: float, low: float, high: float) -> None:
    noise = utilities(np.zeros((20_000, 2)), correlation, np.random.default_rng(1))
    assert low <= np.corrcoef(noise.T)[0, 1] <= high + 1e-9


def test_a_run_is_a_valid_trajectory_whose_values_only_fall() -> None:
    [algorithm, *_] = synthetic_portfolio(log_ratings=[[8.0, 0.0], [-8.0, 0.0], [8.0, 0.0]])
    problem = load_plugins().suite("synthetic")
    [identity] = itertools.islice(problem.identities(1), 1)
    run = algorithm.run(problem.build(identity), 3.0, 5)
    assert run.times.tolist() == [1, 2, 3]
    assert (np.diff(run.best) < 0).all()
    assert algorithm.run(problem.build(identity), 2.5, 5).times.tolist() == [1, 2]


def test_a_shorter_run_is_the_beginning_of_the_longer_one() -> None:
    [algorithm, *_] = synthetic_portfolio(3, 10, correlation=0.5)
    problem = load_plugins().suite("synthetic")
    [identity] = itertools.islice(problem.identities(1), 1)
    short, long = (algorithm.run(problem.build(identity), horizon, 5) for horizon in (4.0, 10.0))
    assert np.array_equal(short.best, long.best[:4])


def test_ratings_are_given_or_drawn_from_the_seed() -> None:
    one, other, same = (synthetic_portfolio(4, 6, seed=seed) for seed in (1, 2, 1))
    assert np.array_equal(one[2].log_ratings, same[2].log_ratings)
    assert not np.array_equal(one[2].log_ratings, other[2].log_ratings)
    logs = draw_log_ratings(4, 6, 1)
    assert np.allclose(np.exp(logs).sum(axis=1), 1)
    assert [list(a.log_ratings) for a in one] == logs.T.tolist()


def test_drawn_ratings_are_smooth_over_time() -> None:
    steps = [np.abs(np.diff(draw_log_ratings(5, 50, seed), axis=0)).mean() for seed in range(20)]
    spread = [draw_log_ratings(5, 50, seed).std() for seed in range(20)]
    assert np.mean(steps) < 0.1 * np.mean(spread)


def test_the_true_pareto_set_leaves_out_who_is_worse_at_all_timepoints() -> None:
    assert pareto_set(np.array([[3.0, 1.0, 2.0], [1.0, 0.0, 2.0]])).tolist() == [True, False, True]
    assert pareto_set(np.array([[1.0, 1.0]])).tolist() == [True, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithms": 1}, "algorithms"),
        ({"correlation": 2}, "correlation"),
        ({"log_ratings": [[1.0]]}, "log_ratings"),
        ({"log_ratings": [[1.0, float("nan")]]}, "log_ratings"),
        ({"colour": 1}, "no option 'colour'"),
        ({"seed": "x"}, "seed must be a whole number"),
    ],
)
def test_options_without_meaning_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        load_plugins().portfolio("synthetic", **options)


# The paper's three synthetic examples in spirit.

TIME = np.linspace(0, 1, 12)


def ended_race(log_ratings: np.ndarray, **settings: object) -> tuple[set[str], str]:
    options = {"seed": 1, "draws": 1000, "elimination": "joint", "resolution": "crossing", **settings}
    result = race(
        synthetic_portfolio(log_ratings=log_ratings),
        "synthetic",
        range(1, TIME.size + 1),
        RaceSettings(**options),  # type: ignore[arg-type]
        workers=0,
    )
    return set(result.pareto_set), result.stopped


@pytest.mark.parametrize("prior", ["bspline", "random-walk"])
def test_crossing_trajectories_are_both_kept_and_the_dominated_are_not(prior: str) -> None:
    logs = np.stack([1.5 - 2 * TIME, 2 * TIME - 0.5, -1.5 + 0 * TIME, -2 - TIME, 0.5 - 2 * TIME], axis=1)
    assert pareto_set(logs).tolist() == [True, True, False, False, False]
    assert ended_race(logs, prior=prior) == ({"A", "B"}, "resolved")


def test_a_single_winner_is_left_alone() -> None:
    logs = np.stack([2 + TIME, 1.2 + TIME, *(k / 5 - TIME for k in range(5))], axis=1)
    assert ended_race(logs, prior="bspline") == ({"A"}, "resolved")


def test_near_equivalence_inside_the_rope_keeps_both() -> None:
    # A is a trifle better than B throughout, too little to matter at the start.
    logs = np.stack([0.02 + 1.2 * TIME, 0 * TIME, -3 + 0 * TIME], axis=1)
    kept, stopped = ended_race(logs, prior="bspline", epsilon=0.15)
    assert (kept, stopped) == ({"A", "B"}, "resolved")


def test_the_independent_model_finds_the_same_pareto_set_with_strict_resolution() -> None:
    logs = np.stack([2 - 4 * TIME, 4 * TIME - 2, -4 + 0 * TIME], axis=1)
    modes = {"prior": "dirichlet", "elimination": "pointwise", "resolution": "strict", "epsilon": 0.2}
    assert ended_race(logs, **modes) == ({"A", "B"}, "resolved")


def test_a_table_of_synthetic_values_keeps_the_order_of_the_utilities() -> None:
    portfolio = synthetic_portfolio(log_ratings=[[2.0, 0.0]] * 3)
    suite = load_plugins().suite("synthetic")
    rows = []
    for seed, identity in zip(range(200), suite.identities(0), strict=False):
        runs = [algorithm.run(suite.build(identity), 3.0, 2 * seed + k) for k, algorithm in enumerate(portfolio)]
        rows.append(np.stack([run.best for run in runs], axis=1))
    table = RankingTable.from_values(rows, algorithms=["A", "B"], timepoints=[1, 2, 3])
    assert (table.ranks[:, :, 0] == 1).mean() == pytest.approx(math.exp(2) / (1 + math.exp(2)), abs=0.05)
