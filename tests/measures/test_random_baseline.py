from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import PolarBearError
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.measures.random_baseline import RandomBaseline, make_baseline, smallest_of

VALUES = st.lists(st.floats(-5, 5), min_size=1, max_size=8)


def baseline(instances: int = 3, random: int = 40, seed: int = 0) -> RandomBaseline:
    rng = np.random.default_rng(seed)
    values: dict[str, FloatArray] = {f"f{k}": rng.lognormal(size=random + k) for k in range(instances)}
    return make_baseline(values, {name: float(found.min()) for name, found in values.items()}, [4, 8, 12])


@given(VALUES, st.data())
def test_the_expected_smallest_is_the_mean_over_all_choices(values: list[float], data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(values)))
    choices = [min(chosen) for chosen in itertools.combinations(values, number)]
    assert smallest_of(np.array(values), number) == pytest.approx(np.mean(choices), abs=1e-12)


def test_the_weights_stay_exact_for_as_many_evaluations_as_the_challenge_pooled() -> None:
    # The smallest of m of 1, ..., n drawn without replacement is (n + 1) / (m + 1) on average.
    n = 32_768
    for number in (1, 128, 15_512, n):
        assert smallest_of(np.arange(1.0, n + 1), number) == pytest.approx((n + 1) / (number + 1), rel=1e-9)


def test_the_clip_has_the_loss_1_and_the_best_value_the_loss_0() -> None:
    found = make_baseline({"f": np.array([1.0, 2.0, 3.0, np.inf])}, {"f": 1.0}, [1, 2])
    np.testing.assert_allclose(found.pooled[0], [0, 1, 1, 1], atol=1e-11)
    assert found.clip[0] == 2
    assert 0 < 1 - found.best[0] < 1e-11
    np.testing.assert_allclose(found.mean[:, 0], [1.75, 1.5])


def test_the_expected_loss_falls_with_every_further_random_evaluation() -> None:
    found = baseline()
    course = [found.expected_loss(m) for m in range(1, found.limit + 1)]
    assert (np.diff(course) < 0).all()


@given(st.integers(1, 40))
def test_a_score_is_worth_as_many_random_evaluations_as_are_expected_to_reach_it(number: int) -> None:
    found = baseline()
    assert found.equivalent(found.expected_loss(number)) == number
    assert found.equivalent(found.expected_loss(number) + 1e-9) == number


def test_what_pooled_random_search_does_not_reach_has_no_equivalent() -> None:
    found = baseline()
    assert found.equivalent(found.expected_loss(found.limit) - 1e-6) is None
    assert found.equivalent(2.0) == 1


def test_random_search_is_not_extrapolated() -> None:
    with pytest.raises(PolarBearError, match="there are 40 random evaluations to pool, which say nothing about 41"):
        baseline().expected_loss(41)


@pytest.mark.parametrize(
    ("values", "best", "message"),
    [
        ([1.0, np.inf, np.inf], 1.0, "f: more than half of the random evaluations failed; there is no scale"),
        ([1.0, 2.0], -np.inf, "f: the best value found is -inf; there is no scale"),
    ],
)
def test_an_instance_without_a_scale_is_refused(values: list[float], best: float, message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        make_baseline({"f": np.array(values)}, {"f": best}, [1])


def test_an_instance_on_which_random_search_is_the_best_search_is_doubtful() -> None:
    values = {"easy": np.array([1.0, 1.0, 1.0, 2.0]), "hard": np.array([1.0, 2.0, 3.0, 4.0])}
    assert make_baseline(values, {"easy": 1.0, "hard": 0.0}, [1]).doubtful == ("easy",)
