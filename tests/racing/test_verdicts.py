"""What a round may decide: elimination and settlement agree, and the probability that something was wrong."""

from __future__ import annotations

import numpy as np
import pytest
from builders import posterior_of_logs, table_of, wins_table
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Posterior, RaceSettings, analyze
from polarbear_plugins.racing.rules import decide, plan
from polarbear_plugins.racing.state import Elimination, RaceState, start_race
from polarbear_plugins.racing.verdicts import p_any_wrong

# b is worse than a in 9 of 10 draws at each timepoint, in different draws: at all at once in 8 of 10.
APART = [[[1.0, 0.0], [1.0, 0.0]]] * 8 + [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]


def state(algorithms: int, timepoints: int, **settings: object) -> RaceState:
    options = {"alpha": 0.9, "seed": 0, "guard": "none", **settings}
    return start_race("abcdef"[:algorithms], range(1, timepoints + 1), RaceSettings(**options))  # type: ignore[arg-type]


def out(*pairs: str) -> list[Elimination]:
    """Eliminations, from the eliminated and its rival."""
    return [Elimination(eliminated, by, 0.99, 1) for eliminated, by in pairs]


# Joint elimination


@pytest.mark.parametrize("resolution", ["strict", "crossing"])
def test_a_pair_that_joint_elimination_may_still_decide_stays_open(resolution: str) -> None:
    joint = decide(state(2, 2, elimination="joint", resolution=resolution), posterior_of_logs(APART))
    assert joint.pareto_set == ("a", "b")
    assert not joint.resolved[:, 0, 1].any()
    assert not joint.resolved[:, 1, 0].any()
    assert plan(joint).over is None
    pointwise = decide(state(2, 2, resolution=resolution), posterior_of_logs(APART))
    assert pointwise.pareto_set == ("a",)
    assert pointwise.resolved.all()


def test_a_pair_that_no_elimination_can_decide_is_settled_under_joint_elimination_too() -> None:
    crossed = posterior_of_logs([[[1.0, 0.0], [0.0, 1.0]]] * 10)
    assert decide(state(2, 2, elimination="joint"), crossed).resolved.all()
    in_part = posterior_of_logs([[[1.0, 0.0], [1.0, 0.0]]] * 5 + [[[1.0, 0.0], [0.0, 1.0]]] * 5)
    assert decide(state(2, 2, elimination="joint", epsilon=0.0), in_part).resolved[:, 0, 1].tolist() == [True, False]


@pytest.mark.parametrize("guard", ["none", "counts"])
@pytest.mark.parametrize("instances", range(6, 14))
def test_one_that_lost_every_run_is_not_kept_in_a_race_called_resolved(instances: int, guard: str) -> None:
    settings = RaceSettings(
        seed=1,
        draws=400,
        elimination="joint",
        prior="random-walk",
        dependence="none",
        guard=guard,  # type: ignore[arg-type]
    )
    result = analyze(wins_table([instances] * 4, instances), settings)
    assert result.resolved == (result.pareto_set == ("a",))


@given(st.integers(0, 200), st.sampled_from([0.7, 0.9]), st.sampled_from(["strict", "crossing"]))
def test_of_two_that_are_both_kept_and_settled_neither_is_surely_better_throughout(
    seed: int, alpha: float, resolution: str
) -> None:
    rng = np.random.default_rng(seed)
    logs = 1.5 * rng.normal(size=(1, 2, 4)) + rng.normal(size=(30, 2, 4))
    race = decide(state(4, 2, alpha=alpha, elimination="joint", resolution=resolution), posterior_of_logs(logs))
    for i, j in np.argwhere(race.resolved.all(axis=0)):
        if i != j and {race.algorithms[i], race.algorithms[j]} <= set(race.pareto_set):
            assert ((logs[:, :, i] > logs[:, :, j]).mean(axis=0) < alpha).any()


def test_without_a_guard_nothing_is_held_also_in_a_circle_of_dominances() -> None:
    circle = [[[2.0, 1.0, 0.0]], [[0.0, 2.0, 1.0]], [[1.0, 0.0, 2.0]]]
    race = decide(state(3, 1, alpha=0.6), posterior_of_logs(circle))
    assert race.eliminations
    assert race.rounds[-1].held == ()


# The probability that something was wrong


def test_without_eliminations_nothing_is_wrong() -> None:
    for joint in (True, False):
        assert p_any_wrong(posterior_of_logs(APART, joint=joint), []) == 0


def test_one_elimination_is_wrong_if_its_rival_is_not_better() -> None:
    assert p_any_wrong(posterior_of_logs(APART), out("ba")) == pytest.approx(0.2)
    assert p_any_wrong(posterior_of_logs(APART, joint=False), out("ba")) == pytest.approx(0.1)
    assert p_any_wrong(posterior_of_logs(APART), out("ab")) == pytest.approx(1.0)


def test_eliminations_are_wrong_together_or_apart() -> None:
    # b and c are better than a in the same draw of five, or in different ones.
    together = [[[1.0, 0.0, 0.0]]] * 4 + [[[0.0, 1.0, 1.0]]]
    apart = [[[1.0, 0.0, 0.0]]] * 3 + [[[0.0, 1.0, -1.0]], [[0.0, -1.0, 1.0]]]
    for joint in (True, False):
        assert p_any_wrong(posterior_of_logs(together, joint=joint), out("ba", "ca")) == pytest.approx(0.2)
        assert p_any_wrong(posterior_of_logs(apart, joint=joint), out("ba", "ca")) == pytest.approx(0.4)


def test_a_posterior_that_is_not_joint_is_judged_at_its_least_sure_timepoint() -> None:
    logs = np.zeros((10, 2, 2))
    logs[:, :, 0] = 1.0
    logs[:3, 0, 0] = logs[3:5, 1, 0] = -1.0
    assert p_any_wrong(posterior_of_logs(logs, joint=False), out("ba")) == pytest.approx(0.3)
    assert p_any_wrong(posterior_of_logs(logs), out("ba")) == pytest.approx(0.5)


def test_a_rating_as_high_is_not_better() -> None:
    assert p_any_wrong(posterior_of_logs([[[0.0, 0.0]], [[1.0, 0.0]]]), out("ba")) == 0.5


@given(st.integers(0, 100))
def test_it_is_between_that_of_the_least_sure_elimination_and_the_sum_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    posterior: Posterior = posterior_of_logs(rng.normal([1.0, 0.0, -1.0, 0.5], size=(50, 2, 4)))
    eliminations = out("ba", "ca", "db")
    single = [p_any_wrong(posterior, [one]) for one in eliminations]
    assert max(single) <= p_any_wrong(posterior, eliminations) <= min(1.0, sum(single)) + 1e-12


def test_a_result_says_how_likely_one_of_its_eliminations_is_wrong() -> None:
    result = analyze(wins_table([16], 20), RaceSettings(seed=1))
    [elimination] = result.eliminations
    assert result.p_any_wrong == pytest.approx(1 - elimination.probability)
    assert 0 < result.p_any_wrong < 0.01
    assert analyze(wins_table([12], 20), RaceSettings(seed=1)).p_any_wrong == 0
    orders = [[0.0, 1.0, 2.0]] * 12 + [[1.0, 0.0, 2.0]] * 3 + [[1.0, 2.0, 0.0]]
    several = analyze(table_of(np.array(orders)[:, None]), RaceSettings(seed=1, alpha=0.9))
    assert len(several.eliminations) == 2
    sure = [elimination.probability for elimination in several.eliminations]
    assert 1 - min(sure) <= several.p_any_wrong + 1e-12 <= 2 - sum(sure) + 1e-9
    assert several.p_any_wrong == p_any_wrong(several.posterior, several.eliminations)
