from __future__ import annotations

import math

import numpy as np
import pytest
from builders import cells_of, column_kinds, posterior_of_logs, table_of
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins import Posterior, compare, fit
from polarbear_plugins.errors import InvalidInputError


def from_differences(*differences: float) -> Posterior:
    """Two algorithms at one timepoint, the first ahead of the second by these amounts in each draw."""
    return posterior_of_logs(np.array([[[difference, 0.0]] for difference in differences]))


@st.composite
def posteriors(draw: st.DrawFn) -> Posterior:
    shape = draw(st.integers(1, 20)), draw(st.integers(1, 4)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return posterior_of_logs(rng.integers(-2, 3, size=shape) / draw(st.sampled_from([1, 10, 100])))


def test_p_better_is_the_share_of_draws_with_the_higher_rating() -> None:
    relations = compare(from_differences(1.0, 0.5, -0.2, 3.0))
    assert relations.p_better[0, 0, 1] == 0.75
    assert relations.p_better[0, 1, 0] == 0.25


def test_draws_that_are_exactly_equal_count_half_for_each() -> None:
    relations = compare(from_differences(0.0, 0.0, 1.0, -1.0, 1.0))
    assert relations.p_better[0, 0, 1] == pytest.approx(0.6)
    assert relations.p_better[0, 1, 0] == pytest.approx(0.4)


@given(posteriors(), st.sampled_from([0.0, 0.05, 0.3]))
def test_the_relations_are_what_counting_draw_by_draw_gives(one: Posterior, epsilon: float) -> None:
    relations = compare(one, epsilon)
    draws, timepoints, n = one.log_ratings.shape
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            gaps = one.log_ratings[:, :, i] - one.log_ratings[:, :, j]
            for t in range(timepoints):
                wins = sum(1.0 if gap > 0 else 0.5 if gap == 0 else 0.0 for gap in gaps[:, t])
                assert relations.p_better[t, i, j] == pytest.approx(wins / draws)
                chances = 1 / (1 + np.exp(-gaps[:, t]))
                near = sum(abs(chance - 0.5) <= epsilon + 1e-12 for chance in chances)
                assert relations.p_equivalent[t, i, j] == pytest.approx(near / draws)
            always = sum(bool((gaps[draw] > 0).all()) for draw in range(draws))
            assert relations.p_anytime[i, j] == pytest.approx(always / draws)


@given(posteriors())
def test_one_of_two_different_algorithms_is_better(one: Posterior) -> None:
    p_better = compare(one).p_better
    n = p_better.shape[1]
    off = ~np.eye(n, dtype=bool)
    np.testing.assert_allclose((p_better + p_better.transpose(0, 2, 1))[:, off], 1.0)


@given(posteriors())
def test_an_algorithm_is_equivalent_to_itself_and_never_better(one: Posterior) -> None:
    relations = compare(one)
    for t in range(one.timepoints.size):
        assert not np.diag(relations.p_better[t]).any()
        assert (np.diag(relations.p_equivalent[t]) == 1).all()
    assert not np.diag(relations.p_anytime).any()


@given(posteriors())
def test_better_at_all_timepoints_is_never_more_probable_than_at_one(one: Posterior) -> None:
    relations = compare(one)
    assert (relations.p_anytime <= relations.p_better.min(axis=0) + 1e-12).all()


@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.25])
def test_the_limits_of_equivalence_belong_to_it(epsilon: float) -> None:
    width = math.log((0.5 + epsilon) / (0.5 - epsilon))
    inside, outside = from_differences(width, -width), from_differences(width + 1e-9, -width - 1e-9)
    assert compare(inside, epsilon).p_equivalent[0, 0, 1] == 1
    assert compare(outside, epsilon).p_equivalent[0, 0, 1] == 0


def test_without_a_margin_only_equal_draws_are_equivalent() -> None:
    assert compare(from_differences(0.0, 1e-12, -1.0, 0.0), 0).p_equivalent[0, 0, 1] == 0.5


def test_a_margin_of_five_percent_reaches_up_to_a_rating_of_55_to_45() -> None:
    inside, outside = np.log([[[0.5499, 0.4501]]]), np.log([[[0.5501, 0.4499]]])
    assert compare(posterior_of_logs(inside)).p_equivalent[0, 0, 1] == 1
    assert compare(posterior_of_logs(outside)).p_equivalent[0, 0, 1] == 0


def test_better_at_each_of_two_timepoints_need_not_be_better_at_both() -> None:
    # In 10 draws a is behind at either the first or the second timepoint.
    draws = np.ones((10, 2, 2))
    draws[..., 1] = 0.0
    draws[:4, 0, 0] = -1.0
    draws[4:8, 1, 0] = -1.0
    relations = compare(posterior_of_logs(draws))
    np.testing.assert_allclose(relations.p_better[:, 0, 1], [0.6, 0.6])
    assert relations.p_anytime[0, 1] == pytest.approx(0.2)
    assert relations.p_anytime[1, 0] == 0


def test_the_relations_keep_names_times_and_margin() -> None:
    one = posterior_of_logs(np.zeros((5, 3, 2)))
    relations = compare(one, 0.1)
    assert relations.algorithms == ("a", "b")
    np.testing.assert_array_equal(relations.timepoints, one.timepoints)
    assert (relations.epsilon, relations.joint) == (0.1, True)
    assert repr(relations) == "Relations(2 algorithms, 3 timepoints, epsilon 0.1)"


def test_without_a_joint_posterior_nothing_is_said_about_all_timepoints_at_once() -> None:
    relations = compare(posterior_of_logs(np.zeros((5, 3, 2)), joint=False))
    assert not relations.joint
    with pytest.raises(InvalidInputError, match="needs a joint posterior over time, and prior 'dirichlet' has none"):
        _ = relations.p_anytime


@pytest.mark.parametrize("epsilon", [-0.01, 0.5, 1.0, math.nan, math.inf, "0.1", None])
def test_a_margin_outside_its_range_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidInputError, match="epsilon: expected"):
        compare(from_differences(1.0), epsilon)


@pytest.mark.parametrize("prior", ["dirichlet", "bspline"])
def test_relations_have_a_row_for_each_ordered_pair(prior: str) -> None:
    table = table_of(np.random.default_rng(1).random((6, 4, 3)))
    relations = compare(fit(table, prior, draws=100, seed=1))
    frame = relations.to_pandas()
    assert list(frame) == ["timepoint", "algorithm", "other", "p_better", "p_equivalent", "p_anytime"]
    assert set(column_kinds(frame).values()) == {"float", "names"}
    assert len(frame) == 4 * 3 * 2
    row = frame.query("timepoint == 3 and algorithm == 'c' and other == 'a'").iloc[0]
    assert row["p_better"] == relations.p_better[2, 2, 0]
    assert row["p_equivalent"] == relations.p_equivalent[2, 2, 0]
    if prior == "bspline":
        assert row["p_anytime"] == relations.p_anytime[2, 0]
    else:
        assert frame["p_anytime"].isna().all()


@pytest.mark.parametrize("joint", [True, False])
def test_a_notebook_shows_who_is_better_than_whom_throughout(joint: bool) -> None:
    # a is better in three draws of four at each timepoint, and in two of them at both; c is never better.
    both = [[[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]] * 2
    either = [[[3.0, 2.0, 1.0], [2.0, 3.0, 1.0]], [[2.0, 3.0, 1.0], [3.0, 2.0, 1.0]]]
    page = compare(posterior_of_logs([*both, *either], joint=joint), 0.125)._repr_html_()
    a_b, b_a = ("0.500", "0.000") if joint else ("0.750", "0.250")
    assert cells_of(page) == [
        ["better than", "a", "b", "c"],
        ["a", "", a_b, "1.000"],
        ["b", b_a, "", "1.000"],
        ["c", "0.000", "0.000", ""],
    ]
    where = "all timepoints at once" if joint else "the least sure timepoint"
    assert f"<caption>Probability that the row has the higher rating than the column: {where}</caption>" in page
    assert page.startswith("<p>Relations(3 algorithms, 2 timepoints, epsilon 0.125)</p>")
