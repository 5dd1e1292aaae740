from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import rankdata

from polarbear_plugins.rankings.ranks import _by_counting, _by_sorting, ranks_of

INF, NAN = math.inf, math.nan

# Few different values, so that there are many ties; some closer to one another than the tolerances, some at the limits.
FINITE = [-1e6, -2.0, -1.0, -0.1, -0.0, 0.0, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 1e6]
VALUES = [*FINITE, -1.7e308, 5e-324, 1.7e308, INF, -INF]
tolerances = st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.5, 3.0])


def tables(elements: list[float]) -> st.SearchStrategy[np.ndarray]:
    return st.tuples(st.integers(1, 2), st.integers(1, 40)).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.sampled_from(elements), fill=st.nothing())
    )


def reference(values: list[float], tolerance: float) -> list[int]:
    """Take away tie after tie: the best value left, and those at most the tolerance above it."""
    ranks = [0] * len(values)
    left = [place for place, value in enumerate(values) if not math.isnan(value)]
    present = len(left)
    while left:
        best = min(values[place] for place in left)
        tie = [place for place in left if values[place] == best or values[place] - best <= tolerance]
        for place in tie:
            ranks[place] = present - len(left) + 1
        left = [place for place in left if place not in tie]
    return ranks


@given(tables(VALUES))
def test_without_absent_values_the_ranks_are_those_of_scipy(values: np.ndarray) -> None:
    np.testing.assert_array_equal(ranks_of(values), rankdata(values, method="min", axis=-1))


@pytest.mark.parametrize("n", range(1, 41))
def test_many_ties_among_any_number_of_algorithms_rank_as_in_scipy(n: int) -> None:
    random = np.random.default_rng(n)
    for distinct in (1, 2, n, 3 * n):
        values = random.choice(random.normal(size=distinct), size=(50, n))
        np.testing.assert_array_equal(ranks_of(values), rankdata(values, method="min", axis=-1))


@given(tables([*VALUES, NAN]))
def test_the_ranks_are_those_of_the_reference(values: np.ndarray) -> None:
    assert ranks_of(values).tolist() == [reference(row, 0.0) for row in values.tolist()]


@given(tables([*FINITE, NAN, INF, -INF]), tolerances)
def test_the_ranks_within_a_tolerance_are_those_of_the_reference(values: np.ndarray, tolerance: float) -> None:
    assert ranks_of(values, tolerance).tolist() == [reference(row, tolerance) for row in values.tolist()]


@given(tables([*VALUES, NAN]))
def test_counting_and_sorting_agree(values: np.ndarray) -> None:
    counted, by_order = np.full((2, *values.shape), -1, dtype=np.int16)
    _by_counting(values, counted)
    _by_sorting(values, 0.0, by_order)
    np.testing.assert_array_equal(counted, by_order)


@given(tables(FINITE), tolerances)
def test_a_tie_never_spans_more_than_the_tolerance(values: np.ndarray, tolerance: float) -> None:
    for row, ranks in zip(values, ranks_of(values, tolerance), strict=True):
        for place in set(ranks.tolist()):
            tied = row[ranks == place]
            assert tied.max() - tied.min() <= tolerance


@given(tables([*FINITE, NAN]), tolerances)
def test_a_place_is_one_more_than_the_number_of_better_places(values: np.ndarray, tolerance: float) -> None:
    for ranks in ranks_of(values, tolerance).tolist():
        for place in ranks:
            assert place == 0 or place == 1 + sum(0 < other < place for other in ranks)


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_ranking_leaves_its_input_as_it_was(n: int, tolerance: float) -> None:
    values = np.random.default_rng(1).choice([0.0, 1.0, 2.0, NAN, INF], size=(20, n))
    before = values.copy()
    values.flags.writeable = False  # an in-place step would fail
    ranks_of(values, tolerance)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("n", [5, 25])
@pytest.mark.parametrize("tolerance", [0.0, 1.0])
def test_more_rows_than_fit_a_chunk_rank_as_they_do_in_small_blocks(n: int, tolerance: float) -> None:
    random = np.random.default_rng(2)
    values = random.choice([0.0, 1.0, 2.0, 3.0, 4.0, NAN, INF], size=(70_000 // n, n))
    ranks = ranks_of(values, tolerance)
    blocks = [ranks_of(values[start : start + 100], tolerance) for start in range(0, len(values), 100)]
    np.testing.assert_array_equal(ranks, np.concatenate(blocks))


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (0, 4), (2, 0, 4)])
def test_ranks_have_the_shape_of_the_values(shape: tuple[int, ...]) -> None:
    ranks = ranks_of(np.arange(math.prod(shape), dtype=float).reshape(shape))
    assert ranks.dtype == np.int16
    np.testing.assert_array_equal(ranks, np.broadcast_to([1, 2, 3, 4], shape))


def test_values_laid_out_in_any_order_in_memory_rank_the_same() -> None:
    values = np.random.default_rng(3).integers(0, 4, size=(6, 5, 4)).astype(float)
    for view in (np.asfortranarray(values), values[::-1, :, ::-1][::-1, :, ::-1]):
        np.testing.assert_array_equal(ranks_of(view), ranks_of(values))
    np.testing.assert_array_equal(ranks_of(values.T), ranks_of(values.T.copy()))


@pytest.mark.parametrize(
    ("values", "tolerance", "ranks"),
    [
        ([0.3, 0.1, NAN, 0.1, INF], 0.0, [3, 1, 0, 1, 4]),
        ([INF, NAN, INF], 0.0, [1, 0, 1]),
        ([INF, NAN, INF], 0.5, [1, 0, 1]),
        ([NAN, NAN], 0.0, [0, 0]),
        ([NAN, NAN], 0.5, [0, 0]),
        ([-INF, 0.0, -INF, INF], 2.0, [1, 3, 1, 4]),
        ([0.0, -0.0], 0.0, [1, 1]),
        ([0.8, 0.4, 0.0], 0.5, [3, 1, 1]),
        ([0.0, 0.5, 1.0, 1.5], 0.5, [1, 1, 3, 3]),
        ([7.0], 0.0, [1]),
        ([-1.5e308, 1.5e308], 0.5, [1, 2]),  # further apart than the largest number, which must not warn
    ],
)
@pytest.mark.filterwarnings("error")
def test_known_rankings(values: list[float], tolerance: float, ranks: list[int]) -> None:
    assert ranks_of(np.array(values), tolerance).tolist() == ranks
