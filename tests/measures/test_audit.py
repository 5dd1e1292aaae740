from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.audit import Audit, audit_scores
from polarbear_plugins.measures.sign_flips import corrected_p, flip_signs
from polarbear_plugins.planning.sample_size import number_of_instances

NAMES = ("a", "b", "c", "d", "e")


def audit(scores: FloatArray, **options: object) -> Audit:
    names = [f"{k}" for k in range(scores.shape[1])]
    return audit_scores(scores, names, **{"better": "higher", "flips": 999, **options})  # type: ignore[arg-type]


def board(instances: int = 40, algorithms: int = 5, seed: int = 0, step: float = 0.4) -> FloatArray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(instances, 1)) + rng.normal(size=(instances, algorithms)) - step * np.arange(algorithms)


@given(st.integers(1, 8), st.integers(0, 6), st.integers(0, 2))
def test_two_algorithms_that_solve_or_not_get_the_exact_p_of_mcnemar(wins: int, losses: int, same: int) -> None:
    first = np.array([1.0] * wins + [0.0] * losses + [1.0] * same)
    second = np.array([0.0] * wins + [1.0] * losses + [1.0] * same)
    found = audit(np.stack([first, second], axis=1), flips=2**15)
    assert found.exact
    assert found.p[0, 1] == pytest.approx(binomtest(wins, wins + losses).pvalue)


@given(st.lists(st.floats(-2, 2).map(lambda value: round(value, 3)), min_size=2, max_size=9))
def test_few_instances_have_the_p_value_of_all_flips(differences: list[float]) -> None:
    d = np.array(differences)
    found = audit(np.stack([d, np.zeros(len(d))], axis=1))
    sums = [
        abs(sum(s * x for s, x in zip(signs, d, strict=True))) for signs in itertools.product((1, -1), repeat=len(d))
    ]
    assert found.exact
    assert found.p[0, 1] == pytest.approx(np.mean(np.array(sums) >= abs(d.sum()) - 1e-9))


@pytest.mark.parametrize("instances", [1, 2, 5])
def test_with_few_instances_nothing_is_told_apart_whatever_the_scores(instances: int) -> None:
    found = audit(np.outer(np.ones(instances), [100.0, 50.0, 0.0]))
    assert found.least_units == 6
    assert found.separated_pairs == 0
    assert found.rank_intervals == ((1, 3),) * 3
    assert found.tie_groups == ((0, 2),)
    # The spread over so few is not known: no plan.
    assert [pair.needed for pair in found.neighbours] == [None, None]
    assert [pair.detectable for pair in found.neighbours] == [None, None]


def test_six_instances_can_tell_two_algorithms_apart_and_fewer_groups_cannot() -> None:
    scores = np.outer(np.ones(6), [1.0, 0.0]) + np.arange(12).reshape(6, 2) % 5 / 100
    assert audit(scores).separable == 1
    assert audit(scores, groups=list("uvwxyy")).separable == 0


def test_a_rank_interval_counts_who_is_told_apart() -> None:
    found = audit(board())
    for place, (low, high) in enumerate(found.rank_intervals):
        assert low == 1 + found.told_apart[:, place].sum()
        assert high == len(NAMES) - found.told_apart[place].sum()
        assert low <= place + 1 <= high
    assert 0 < found.separated_pairs < 10


def test_a_tie_group_is_a_longest_run_without_a_pair_told_apart() -> None:
    found = audit(board(algorithms=12, step=0.15))
    n = len(found.algorithms)
    runs = [
        (first, last)
        for first, last in itertools.combinations(range(n), 2)
        if not found.told_apart[first : last + 1, first : last + 1].any()
    ]
    longest = [
        (first, last)
        for first, last in runs
        if not any((f <= first and last <= g) and (f, g) != (first, last) for f, g in runs)
    ]
    assert list(found.tie_groups) == longest
    assert len(longest) > 1


def test_every_neighbour_told_apart_is_a_border_of_tie_groups() -> None:
    found = audit(board(instances=200, step=0.3))
    for place, pair in enumerate(found.neighbours):
        inside = any(first <= place < last for first, last in found.tie_groups)
        assert inside != pair.told_apart


def test_the_order_and_the_scores_are_those_of_the_means() -> None:
    scores = board(instances=400)[:, ::-1]
    found = audit(scores)
    assert found.algorithms == ("4", "3", "2", "1", "0")
    np.testing.assert_allclose(found.scores, scores.mean(axis=0)[::-1])
    np.testing.assert_allclose([pair.difference for pair in found.neighbours], -np.diff(found.scores))


def test_lower_is_better_of_the_negative_scores() -> None:
    higher, lower = audit(board()), audit(-board(), better="lower")
    assert lower.algorithms == higher.algorithms
    assert lower.rank_intervals == higher.rank_intervals
    np.testing.assert_array_equal(lower.p, higher.p)
    np.testing.assert_allclose(lower.scores, -np.array(higher.scores))


def test_neither_the_order_of_the_algorithms_nor_a_constant_of_an_instance_changes_anything() -> None:
    scores, rng = board(), np.random.default_rng(5)
    order = rng.permutation(5)
    plain = audit(scores)
    other = audit_scores(
        scores[:, order] + 100 * rng.random((40, 1)), [str(k) for k in order], better="higher", flips=999
    )
    assert other.algorithms == plain.algorithms
    assert other.rank_intervals == plain.rank_intervals
    np.testing.assert_array_equal(other.p, plain.p)


def test_no_pair_is_surer_with_more_algorithms_beside_it_than_alone() -> None:
    scores = board(algorithms=8, step=0.1)
    every = audit(scores, flips=4999)
    for i, j in itertools.combinations(range(8), 2):
        one, other = int(every.algorithms[i]), int(every.algorithms[j])
        alone = audit(scores[:, [one, other]], flips=4999)
        assert every.p[i, j] >= alone.p[0, 1] - 1e-12


def test_a_pair_that_is_further_apart_is_never_less_sure() -> None:
    for seed in range(5):
        found = audit(board(instances=12, algorithms=8, seed=seed, step=0.1), seed=seed)
        scores = board(instances=12, algorithms=8, seed=seed, step=0.1)[:, [int(name) for name in found.algorithms]]
        differences = scores[:, :, None] - scores[:, None]
        apart = np.abs(differences.sum(axis=0)) / np.sqrt((differences**2).sum(axis=0) + np.eye(8))
        one, other = np.triu_indices(8, 1)
        order = np.argsort(-apart[one, other])
        assert (np.diff(found.p[one, other][order]) >= 0).all()


def test_the_observation_counts_among_drawn_flips() -> None:
    found = audit(board(instances=60, step=20.0), flips=999)
    assert not found.exact
    assert found.p.min() == 1 / 1000


def test_a_large_constant_costs_no_precision() -> None:
    scores = np.round(board() * 2**9) / 2**9
    np.testing.assert_array_equal(audit(scores + 2.0**40).p, audit(scores).p)


def test_enough_instances_are_needed_for_signs_to_decide_however_large_the_effect() -> None:
    signs = np.array([0.5, 0.5, 0.5, -0.5, -0.5, -0.5])
    steady = 1 + np.array([0.01, -0.01, 0.02, -0.02, 0.0, 0.0])
    found = audit(np.stack([steady, np.zeros(6), signs, -signs], axis=1))
    pair = found.neighbours[0]
    assert (pair.first, pair.second, found.separated_pairs) == ("0", "1", 0)
    # One of the 32 flips makes the last two as different as the first two are.
    assert pair.p == 2 / 32
    # A t test would find an effect of 63 standard deviations with three; the smallest p of eight signs is 1/128.
    assert pair.needed == 8


def test_groups_of_one_instance_are_instances_and_copies_in_a_group_add_nothing() -> None:
    scores = board()
    plain = audit(scores)
    single = audit(scores, groups=[str(k) for k in range(40)])
    copied = audit(np.repeat(scores, 3, axis=0), groups=[str(k) for k in range(40) for _ in range(3)])
    for found in (single, copied):
        np.testing.assert_array_equal(found.p, plain.p)
        assert [pair.needed for pair in found.neighbours] == [pair.needed for pair in plain.neighbours]
        np.testing.assert_allclose(
            [pair.difference for pair in found.neighbours], [pair.difference for pair in plain.neighbours]
        )
    assert (single.groups, copied.groups, copied.instances, copied.units) == (40, 40, 120, 40)


def test_scores_of_groups_of_different_sizes_are_means_over_instances() -> None:
    scores, groups = board(), ["large"] * 20 + [f"small {k}" for k in range(20)]
    found = audit(scores, groups=groups)
    np.testing.assert_allclose(found.scores, np.sort(scores.mean(axis=0))[::-1])
    np.testing.assert_allclose([pair.difference for pair in found.neighbours], -np.diff(found.scores))


def test_identical_algorithms_share_a_place_and_are_never_told_apart() -> None:
    scores = board(instances=100, algorithms=2, step=1.0)
    found = audit(scores[:, [0, 0, 1]])
    assert found.places == (1, 1, 3)
    assert found.p[0, 1] == 1
    assert found.neighbours[0].difference == 0
    assert found.neighbours[0].needed is None
    assert found.neighbours[1].told_apart


def test_instances_needed_are_those_of_the_plan_for_the_pairs_that_are_still_open() -> None:
    scores = board(instances=60, algorithms=3, step=0.4)
    found = audit(scores)
    assert found.separated_pairs == 1  # the first and the last
    pair = found.neighbours[0]
    differences = scores[:, int(pair.first)] - scores[:, int(pair.second)]
    still = 3 - found.separated_pairs
    assert not pair.told_apart
    assert pair.needed == number_of_instances(
        differences.mean() / differences.std(ddof=1), 0.8, 0.05, comparisons=still
    )
    assert pair.needed > 60
    assert audit(scores, power=0.9).neighbours[0].needed > pair.needed  # type: ignore[operator]


def test_a_difference_that_never_varies_is_told_apart_as_soon_as_signs_can() -> None:
    constant = np.outer(np.ones(6), [2.0, 1.0, 0.0])
    assert audit(constant).separated_pairs == 3
    assert audit(constant[:5]).separated_pairs == 0


def claims(scores: FloatArray, seed: int) -> BoolArray:
    """``[i, j]``: i is called better than j, by what an audit rests on, without its plans."""
    p = corrected_p(scores, flip_signs(len(scores), 199, seed))
    ahead = scores.sum(axis=0)
    return (p <= 0.05) & (ahead[:, None] > ahead)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("instances", [7, 25])
def test_equally_good_algorithms_are_rarely_told_apart(binary: bool, instances: int) -> None:
    wrong = 0
    for seed in range(500):
        rng = np.random.default_rng(seed)
        scores = rng.random((instances, 6))
        if binary:
            scores = 1.0 * (scores < rng.random((instances, 1)))
        wrong += claims(scores, seed).any()
    assert wrong <= 40  # 25 expected at most, with a standard deviation of 4.9


def test_no_pair_is_put_in_the_wrong_order_where_some_are_equal_and_some_are_not() -> None:
    means, wrong, right = np.repeat([0.0, 0.5, 2.0], 2), 0, 0
    for seed in range(500):
        found = claims(means + np.random.default_rng(seed).normal(size=(30, 6)), seed)
        wrong += (found & (means[:, None] <= means)).any()
        right += found.sum()
    assert wrong <= 40
    assert right > 500 * 8  # all eight pairs that are far apart, and some of the others


def test_the_same_seed_gives_the_same_audit_and_the_json_is_json() -> None:
    one, other = audit(board(), seed=3), audit(board(), seed=3)
    assert one.to_json() == other.to_json()
    data = json.loads(json.dumps(one.to_json(), allow_nan=False))
    assert data["neighbours_told_apart"] == one.separable
    assert [row["name"] for row in data["algorithms"]] == list(one.algorithms)
    assert (audit(board(), seed=4).p != one.p).any()


def test_the_table_has_a_row_for_each_algorithm_and_a_notebook_shows_it() -> None:
    found = audit(board())
    frame = found.to_pandas()
    assert list(frame.index) == list(found.algorithms)
    assert frame["lowest_rank"].tolist() == [low for low, _ in found.rank_intervals]
    assert frame["lead"].iloc[:-1].tolist() == [pair.difference for pair in found.neighbours]
    assert f"{found.separable} of 4 neighbours can be told apart" in found._repr_html_()


@pytest.mark.parametrize(
    ("scores", "names", "options", "message"),
    [
        (np.ones((3, 2)), ["a"], {}, r"with 1 algorithms, got the shape \(3, 2\)"),
        (np.ones((3, 1)), ["a"], {}, "expected at least two different names, got a"),
        (np.ones((3, 2)), ["a", "a"], {}, "expected at least two different names, got a, a"),
        (np.array([[1.0, 2.0], [1.0, np.nan]]), ["a", "b"], {}, "that of 'b' on instance 1 is nan"),
        (np.ones((3, 2)), ["a", "b"], {"groups": ["g"]}, "groups: expected one for each of 3 instances, got 1"),
        (np.ones((3, 2)), ["a", "b"], {"better": "larger"}, 'better: expected "higher" or "lower"'),
        (np.ones((3, 2)), ["a", "b"], {"level": 1}, "level: expected"),
        (np.ones((3, 2)), ["a", "b"], {"power": 0.01}, "power: expected"),
    ],
)
def test_bad_scores_are_refused(scores: FloatArray, names: list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        audit_scores(scores, names, **{"better": "higher", **options})  # type: ignore[arg-type]
