from __future__ import annotations

import itertools
import math
import tracemalloc
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.plackett_luce.ties import tie_gradient, tie_hessian, tie_value, tie_value_and_gradient


@dataclass(frozen=True)
class Tie:
    x: np.ndarray
    block: np.ndarray
    rest: np.ndarray

    @property
    def k(self) -> int:
        return len(self.block)

    @property
    def both(self) -> np.ndarray:
        return np.concatenate([self.block, self.rest])


def tie_of(k: int, worse: int, *, bystanders: int = 1, spread: float = 2.0, seed: int = 0) -> Tie:
    random = np.random.default_rng([k, worse, seed])
    n = k + worse + bystanders
    places = random.permutation(n)
    return Tie(random.uniform(-spread, spread, size=n), places[:k], places[k : k + worse])


@st.composite
def ties(draw: st.DrawFn, most: int = 8) -> Tie:
    k, worse, bystanders = draw(st.integers(1, most)), draw(st.integers(0, 3)), draw(st.integers(0, 2))
    spread = draw(st.sampled_from([0.1, 3.0, 30.0]))
    n = k + worse + bystanders
    x = draw(arrays(np.float64, n, elements=st.floats(-spread, spread), fill=st.nothing()))
    places = np.array(draw(st.permutations(range(n))))
    return Tie(x, places[:k], places[k : k + worse])


def enumerated(tie: Tie) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, gradient and Hessian from all subsets, one after another as the definition has it."""
    n = len(tie.x)
    inside = np.zeros((2**tie.k - 1, n), dtype=bool)
    inside[:, tie.block] = np.arange(1, 2**tie.k)[:, None] >> np.arange(tie.k) & 1
    weights = 1 / np.array([math.comb(tie.k, size) for size in inside.sum(axis=1)])
    inside[:, tie.rest] = True
    log_worth = np.where(inside, tie.x, -np.inf)
    log_sums = np.logaddexp.reduce(log_worth, axis=1)
    shares = np.exp(log_worth - log_sums[:, None])
    gradient = weights @ shares
    return float(weights @ log_sums), gradient, np.diag(gradient) - (shares * weights[:, None]).T @ shares


def off_diagonal(matrix: np.ndarray) -> np.ndarray:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def check_against_enumeration(tie: Tie) -> None:
    value, gradient, hessian = enumerated(tie)
    np.testing.assert_allclose(tie_value(tie.x, tie.block, tie.rest), value, rtol=1e-12, atol=1e-12 * tie.k)
    np.testing.assert_allclose(tie_gradient(tie.x, tie.block, tie.rest), gradient, rtol=1e-11)
    found = tie_hessian(tie.x, tie.block, tie.rest)
    np.testing.assert_allclose(off_diagonal(found), off_diagonal(hessian), rtol=1e-11)
    np.testing.assert_allclose(found, hessian, rtol=1e-11, atol=1e-13 * tie.k)


@given(ties())
def test_a_tie_is_what_the_enumeration_of_its_subsets_says(tie: Tie) -> None:
    check_against_enumeration(tie)


@pytest.mark.parametrize("k", [9, 10, 11, 12])
@pytest.mark.parametrize("worse", [0, 1, 4])
@pytest.mark.parametrize("spread", [0.01, 3.0, 30.0])
def test_a_large_tie_is_what_the_enumeration_of_its_subsets_says(k: int, worse: int, spread: float) -> None:
    check_against_enumeration(tie_of(k, worse, spread=spread))


@pytest.mark.parametrize("lift", [-60.0, 60.0])
def test_a_tie_far_above_or_below_the_rest_is_what_the_enumeration_of_its_subsets_says(lift: float) -> None:
    tie = tie_of(10, 3)
    tie.x[tie.block] += lift
    check_against_enumeration(tie)


@given(ties(most=5))
@settings(max_examples=30)
def test_a_tie_is_the_average_of_the_log_likelihood_over_its_orders(tie: Tie) -> None:
    total = 0.0
    for order in itertools.permutations(tie.block):
        for place, chosen in enumerate(order):
            contest = [*order[place:], *tie.rest]
            total += tie.x[chosen] - np.logaddexp.reduce(tie.x[contest])
    average = tie.x[tie.block].sum() - tie_value(tie.x, tie.block, tie.rest)
    assert average == pytest.approx(total / math.factorial(tie.k), rel=1e-11, abs=1e-11)


@given(ties())
def test_a_tie_of_one_is_a_choice(tie: Tie) -> None:
    tie = Tie(tie.x, tie.block[:1], tie.rest)
    value, gradient = tie_value_and_gradient(tie.x, tie.block, tie.rest)
    log_sum = np.logaddexp.reduce(tie.x[tie.both])
    shares = np.exp(tie.x[tie.both] - log_sum)
    assert value == pytest.approx(log_sum, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(gradient[tie.both], shares, rtol=1e-11)
    hessian = tie_hessian(tie.x, tie.block, tie.rest)[np.ix_(tie.both, tie.both)]
    np.testing.assert_allclose(hessian, np.diag(shares) - np.outer(shares, shares), rtol=1e-11, atol=1e-14)


@given(st.floats(-30, 30), st.floats(-30, 30), st.floats(-30, 30))
def test_a_tie_of_two_is_half_of_each_order(a: float, b: float, c: float) -> None:
    x = np.array([a, b, c])
    half = (np.logaddexp(a, c) + np.logaddexp(b, c)) / 2
    assert tie_value(x, [0, 1], [2]) == pytest.approx(np.logaddexp.reduce(x) + half, rel=1e-12, abs=1e-12)
    assert tie_value(x, [0, 1], []) == pytest.approx(np.logaddexp(a, b) + (a + b) / 2, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2, 9, 30, 64, 100, 150])
@pytest.mark.parametrize("worse", [0, 1, 7])
def test_among_equals_only_the_sizes_of_the_sets_count(k: int, worse: int) -> None:
    value, gradient = tie_value_and_gradient(np.zeros(k + worse), np.arange(k), np.arange(k, k + worse))
    assert value == pytest.approx(math.lgamma(k + worse + 1) - math.lgamma(worse + 1), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(gradient[k:], sum(1 / size for size in range(worse + 1, k + worse + 1)), rtol=1e-11)


@pytest.mark.parametrize("sizes", [(30, 40, 30), (1, 98, 1), (3, 5, 24)])
@pytest.mark.parametrize("utilities", [(0.0, 1.0, -1.0), (0.0, -3.0, 4.0), (0.0, -25.0, 25.0)])
@pytest.mark.parametrize("rest", [-math.inf, -4.0, 0.0, 9.0])
def test_in_a_huge_tie_with_few_different_utilities_the_subsets_can_be_counted(
    sizes: tuple[int, ...], utilities: tuple[float, ...], rest: float
) -> None:
    k, many, worth, below = sum(sizes), np.array(sizes), np.exp(utilities), math.exp(rest)
    counts = np.array(list(itertools.product(*(range(size + 1) for size in sizes)))[1:])
    weights = np.array([math.prod(map(math.comb, sizes, row)) / math.comb(k, sum(row)) for row in counts.tolist()])
    sums = counts @ worth + below
    shares = counts * worth / sums[:, None]
    pairs = (shares * weights[:, None]).T @ shares - np.diag((weights / sums**2) @ counts * worth**2)
    pairs = pairs[~np.eye(3, dtype=bool)] / np.outer(many, many)[~np.eye(3, dtype=bool)]

    x = np.append(np.repeat(utilities, sizes), rest)
    worse = [k] if below else []
    firsts = np.cumsum(sizes) - sizes
    value, gradient = tie_value_and_gradient(x, np.arange(k), worse)
    hessian = tie_hessian(x, np.arange(k), worse)
    assert value == pytest.approx(weights @ np.log(sums), rel=1e-12, abs=1e-12 * k)
    np.testing.assert_allclose(gradient[firsts], weights @ shares / sizes, rtol=1e-11)
    np.testing.assert_allclose(gradient[k], weights @ (below / sums), rtol=1e-11)
    np.testing.assert_allclose(off_diagonal(-hessian[np.ix_(firsts, firsts)]), pairs, rtol=1e-11)
    np.testing.assert_allclose(-hessian[firsts, k], (weights * below / sums) @ shares / sizes, rtol=1e-11)


@given(ties(), st.floats(-1e3, 1e3))
def test_a_constant_added_to_all_utilities_is_added_to_the_value_once_for_each_of_the_tied(
    tie: Tie, constant: float
) -> None:
    value, gradient = tie_value_and_gradient(tie.x, tie.block, tie.rest)
    moved, moved_gradient = tie_value_and_gradient(tie.x + constant, tie.block, tie.rest)
    assert moved == pytest.approx(value + tie.k * constant, rel=1e-12, abs=1e-11 * tie.k)
    np.testing.assert_allclose(moved_gradient, gradient, rtol=1e-10)  # x + constant is rounded


@pytest.mark.parametrize("k", [1, 9, 40, 100])
@pytest.mark.parametrize("worse", [0, 5])
@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_the_gradient_shares_out_one_win_for_each_of_the_tied(k: int, worse: int, spread: float) -> None:
    tie = tie_of(k, worse, bystanders=3, spread=spread)
    gradient = tie_gradient(tie.x, tie.block, tie.rest)
    assert gradient.sum() == pytest.approx(k, rel=1e-11)
    assert (gradient[tie.both] > 0).all()
    assert not np.delete(gradient, tie.both).any()


@pytest.mark.parametrize(("k", "worse"), [(9, 0), (13, 4), (40, 3)])
def test_the_gradient_is_that_of_finite_differences(k: int, worse: int) -> None:
    tie = tie_of(k, worse)
    steps = 1e-3 * np.eye(len(tie.x))
    ahead, behind = (tie_value(tie.x + sign * steps, tie.block, tie.rest) for sign in (1, -1))
    far_ahead, far_behind = (tie_value(tie.x + sign * steps, tie.block, tie.rest) for sign in (2, -2))
    differences = (8 * (ahead - behind) - (far_ahead - far_behind)) / 12e-3
    np.testing.assert_allclose(tie_gradient(tie.x, tie.block, tie.rest), differences, rtol=0, atol=1e-8)


@pytest.mark.parametrize(("k", "worse"), [(9, 0), (13, 4), (40, 3)])
def test_the_hessian_is_that_of_finite_differences(k: int, worse: int) -> None:
    tie = tie_of(k, worse)
    steps = 1e-3 * np.eye(len(tie.x))
    ahead, behind = (tie_gradient(tie.x + sign * steps, tie.block, tie.rest) for sign in (1, -1))
    far_ahead, far_behind = (tie_gradient(tie.x + sign * steps, tie.block, tie.rest) for sign in (2, -2))
    differences = (8 * (ahead - behind) - (far_ahead - far_behind)) / 12e-3
    np.testing.assert_allclose(tie_hessian(tie.x, tie.block, tie.rest), differences, rtol=0, atol=1e-8)


@pytest.mark.parametrize("k", [1, 2, 9, 40, 100])
@pytest.mark.parametrize("worse", [0, 1, 5])
@pytest.mark.parametrize("spread", [1.0, 30.0])
def test_the_hessian_is_flat_along_a_constant_and_nowhere_bent_down(k: int, worse: int, spread: float) -> None:
    tie = tie_of(k, worse, bystanders=2, spread=spread)
    hessian = tie_hessian(tie.x, tie.block, tie.rest)
    inner = hessian[np.ix_(tie.both, tie.both)]
    np.testing.assert_array_equal(hessian, hessian.T)
    np.testing.assert_allclose(inner.sum(axis=1), 0.0, atol=1e-14 * k)
    assert np.linalg.eigvalsh(inner).min() >= -1e-14 * k
    assert np.count_nonzero(hessian) == np.count_nonzero(inner)


@given(ties(), st.randoms(use_true_random=False))
def test_the_order_within_the_block_and_the_rest_does_not_matter(tie: Tie, random: Random) -> None:
    block, rest = tie.block.tolist(), tie.rest.tolist()
    random.shuffle(block)
    random.shuffle(rest)
    for function in (tie_value, tie_gradient, tie_hessian):
        np.testing.assert_allclose(
            function(tie.x, block, rest), function(tie.x, tie.block, tie.rest), rtol=1e-12, atol=1e-13 * tie.k
        )


@pytest.mark.parametrize("k", [9, 30, 100])
def test_swapping_the_utilities_of_two_of_the_tied_swaps_their_derivatives(k: int) -> None:
    tie = tie_of(k, 3)
    a, b = tie.block[0], tie.block[-1]
    swap = np.arange(len(tie.x))
    swap[[a, b]] = b, a
    value, gradient = tie_value_and_gradient(tie.x, tie.block, tie.rest)
    swapped, swapped_gradient = tie_value_and_gradient(tie.x[swap], tie.block, tie.rest)
    assert swapped == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(swapped_gradient[swap], gradient, rtol=1e-12)
    hessian = tie_hessian(tie.x, tie.block, tie.rest)
    swapped_hessian = tie_hessian(tie.x[swap], tie.block, tie.rest)
    np.testing.assert_allclose(swapped_hessian[np.ix_(swap, swap)], hessian, rtol=1e-12, atol=1e-15)


def test_of_the_rest_only_the_worth_together_matters() -> None:
    tie = tie_of(20, 6, bystanders=0)
    merged = np.append(tie.x[tie.block], np.logaddexp.reduce(tie.x[tie.rest]))
    value, gradient = tie_value_and_gradient(tie.x, tie.block, tie.rest)
    merged_value, merged_gradient = tie_value_and_gradient(merged, np.arange(20), [20])
    assert value == pytest.approx(merged_value, rel=1e-14)
    np.testing.assert_allclose(gradient[tie.block], merged_gradient[:20], rtol=1e-12)
    assert gradient[tie.rest].sum() == pytest.approx(merged_gradient[20], rel=1e-12)


def test_raising_one_of_the_rest_raises_the_value() -> None:
    tie = tie_of(30, 2)
    raised = tie.x.copy()
    raised[tie.rest[0]] += 0.5
    assert tie_value(raised, tie.block, tie.rest) > tie_value(tie.x, tie.block, tie.rest)


@pytest.mark.parametrize("worse", [0, 3])
@pytest.mark.parametrize(("k", "rows"), [(3, 3000), (9, 500), (24, 300), (100, 50)])
def test_each_of_many_rows_is_as_it_is_alone(k: int, rows: int, worse: int) -> None:
    tie = tie_of(k, worse, bystanders=2)
    random = np.random.default_rng(5)
    x = random.normal(size=(rows, len(tie.x))) * random.choice([0.1, 1.0, 20.0], size=(rows, 1))
    values, gradients = tie_value_and_gradient(x, tie.block, tie.rest)
    for row in (*random.integers(0, rows, size=20), 0, rows - 1):
        value, gradient = tie_value_and_gradient(x[row], tie.block, tie.rest)
        assert values[row] == pytest.approx(value, rel=1e-12, abs=1e-12 * k)
        np.testing.assert_allclose(gradients[row], gradient, rtol=1e-11)


def test_a_row_of_large_span_does_not_spoil_the_small_derivatives_of_another() -> None:
    x = np.zeros((2, 13))
    x[0, 10:] = -60.0
    x[1, :3] = -90.0
    block, rest = np.arange(10), [10, 11, 12]
    x[1, rest] = -120.0
    np.testing.assert_allclose(tie_gradient(x, block, rest)[0], tie_gradient(x[0], block, rest), rtol=1e-11)


@given(ties())
@settings(max_examples=20)
def test_value_and_gradient_are_the_same_together_and_apart(tie: Tie) -> None:
    value, gradient = tie_value_and_gradient(tie.x, tie.block, tie.rest)
    assert value == tie_value(tie.x, tie.block, tie.rest)
    np.testing.assert_array_equal(gradient, tie_gradient(tie.x, tie.block, tie.rest))


@pytest.mark.parametrize("shape", [(12,), (3, 12), (2, 3, 12), (0, 12), (2, 0, 12)])
def test_leading_axes_are_kept(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(6).normal(size=shape)
    values, gradients = tie_value_and_gradient(x, np.arange(10), [10])
    assert values.shape == shape[:-1]
    assert gradients.shape == shape
    assert tie_value(x, np.arange(10), [10]).shape == shape[:-1]
    for place in np.ndindex(*shape[:-1]):
        assert values[place] == pytest.approx(tie_value(x[place], np.arange(10), [10]), rel=1e-12)
        np.testing.assert_allclose(gradients[place], tie_gradient(x[place], np.arange(10), [10]), rtol=1e-11)


@pytest.mark.parametrize("spread", [0.0, 100.0, 1000.0])
@pytest.mark.parametrize("worse", [0, 2])
def test_utilities_however_far_apart_are_no_problem(spread: float, worse: int) -> None:
    tie = tie_of(100, worse, spread=spread)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, gradient = tie_value_and_gradient(tie.x, tie.block, tie.rest)
    assert np.isfinite(value)
    assert gradient.sum() == pytest.approx(100, rel=1e-11)
    top = tie.x[tie.both].max()
    assert value <= 100 * (top + math.log(100 + worse))


@pytest.mark.parametrize("gap", [500.0, 1000.0, 1500.0])
@pytest.mark.parametrize("worse", [0, 1, 2])
def test_two_pairs_however_far_apart_are_no_problem(gap: float, worse: int) -> None:
    tie = Tie(np.array([0.0, -gap, -0.5, -gap - 0.5]), np.arange(4 - worse), np.arange(4 - worse, 4))
    value, gradient, hessian = enumerated(tie)
    assert tie_value(tie.x, tie.block, tie.rest) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(tie_gradient(tie.x, tie.block, tie.rest), gradient, rtol=1e-11, atol=1e-200)
    np.testing.assert_allclose(tie_hessian(tie.x, tie.block, tie.rest), hessian, rtol=1e-11, atol=1e-14)


def test_what_is_not_finite_gives_nan_in_its_row_and_for_bystanders_does_not_matter() -> None:
    x = np.random.default_rng(7).normal(size=(5, 13))
    block, rest = np.arange(10), [10, 11]
    value, gradient = tie_value_and_gradient(x, block, rest)
    broken = x.copy()
    broken[0, 3], broken[1, 11], broken[2, 0] = math.nan, math.inf, -math.inf
    broken[:4, 12] = math.nan
    broken_value, broken_gradient = tie_value_and_gradient(broken, block, rest)
    assert np.isnan(broken_value[:3]).all()
    assert np.isnan(broken_gradient[:3, :12]).all()
    np.testing.assert_allclose(broken_value[3:], value[3:], rtol=1e-12)
    np.testing.assert_allclose(broken_gradient[3:], gradient[3:], rtol=1e-11)
    assert np.isnan(tie_hessian(broken[0], block, rest)[:12, :12]).all()
    np.testing.assert_array_equal(tie_hessian(broken[3], block, rest), tie_hessian(x[3], block, rest))


def test_the_inputs_are_left_as_they_were() -> None:
    tie = tie_of(20, 3)
    x = np.tile(tie.x, (40, 1))
    for array in (x, tie.x, tie.block, tie.rest):
        array.flags.writeable = False  # an in-place step would fail
    tie_value_and_gradient(x, tie.block, tie.rest)
    tie_hessian(tie.x, tie.block, tie.rest)


@pytest.mark.parametrize("k", [9, 100])
def test_thousands_of_rows_take_little_memory(k: int) -> None:
    x = np.random.default_rng(8).normal(size=(2000, k + 2))
    tracemalloc.start()
    try:
        tie_gradient(x, np.arange(k), [k])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 50e6


@pytest.mark.parametrize(
    ("block", "rest", "message"),
    [
        ([], [0], "at least one algorithm, got none"),
        ([0, 1, 0], [], "each place may occur once, got 0 2 times"),
        ([0, 1], [2, 1], "each place may occur once, got 1 2 times"),
        ([0, 4], [1], "from 0 to 3, got 0 to 4"),
        ([0, 1], [-1], "from 0 to 3, got -1 to 1"),
        ([0.0, 1.0], [], "which are whole numbers"),
        ([True, False, True, False], [], "which are whole numbers"),
        ([[0, 1]], [2], "must be lists of places"),
    ],
)
def test_a_tie_that_makes_no_sense_is_refused(block: list[int], rest: list[int], message: str) -> None:
    for function in (tie_value, tie_gradient, tie_value_and_gradient, tie_hessian):
        with pytest.raises(InvalidInputError, match=message):
            function(np.zeros(4), block, rest)


def test_a_hessian_is_of_a_single_vector() -> None:
    with pytest.raises(InvalidInputError, match=r"must be a vector, got an array of shape \(2, 4\)"):
        tie_hessian(np.zeros((2, 4)), [0, 1], [])
