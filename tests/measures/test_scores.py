from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import column_kinds
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polarbear_plugins import PolarBearError
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.measures.scores import Scores, Studies, incumbents, score_studies

Cells = dict[tuple[str, str], FloatArray]
RANDOM = "RandomSearch"


def made(seed: int = 0, names: tuple[str, ...] = ("tpe", "gp"), studies: int = 4) -> Cells:
    rng = np.random.default_rng(seed)
    return {
        (name, f): rng.lognormal(-0.3 * k, size=(studies + k, 6, 3))
        for k, name in enumerate((RANDOM, *names))
        for f in ("f1", "f2", "f3")
    }


def scores_of(visible: Cells, scored: Cells | None = None) -> Scores:
    return score_studies(Studies(visible=visible, scored=scored, random=[RANDOM]))


@given(
    hnp.arrays(float, (2, 4, 3), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.inf])),
    hnp.arrays(float, (2, 4, 3), elements=st.floats(0, 1)),
)
def test_the_incumbent_is_the_best_by_what_is_visible(visible: FloatArray, scored: FloatArray) -> None:
    for seen, hidden, found in zip(visible, scored, incumbents(visible, scored), strict=True):
        best, value = np.inf, None
        for iteration in range(4):
            first = min(range(3), key=lambda k: seen[iteration, k])
            if value is None or seen[iteration, first] <= best:
                best, value = seen[iteration, first], hidden[iteration, first]
            assert found[iteration] == value


@given(hnp.arrays(float, (3, 5, 2), elements=st.floats(0, 9) | st.just(np.inf)))
def test_the_incumbent_by_the_visible_value_itself_is_the_best_so_far(values: FloatArray) -> None:
    assert np.array_equal(incumbents(values, values), np.minimum.accumulate(values.min(axis=-1), axis=-1))


def test_a_score_is_the_mean_over_instances_of_means_over_studies() -> None:
    visible = {
        (RANDOM, "f"): np.array([[[0.0], [2.0]], [[4.0], [6.0]]]),  # clip 2, best 0
        ("b", "f"): np.array([[[1.0], [5.0]], [[5.0], [0.5]], [[9.0], [np.inf]]]),
        (RANDOM, "g"): np.array([[[10.0], [30.0]]]),  # clip 10, best 9
        ("b", "g"): np.array([[[9.0], [9.5]]]),
    }
    found = scores_of(visible)
    assert found.algorithms == (RANDOM, "b")
    np.testing.assert_allclose(found.by_instance[-1], [[0.5, 1.0], [(0.5 + 0.25 + 1) / 3, 0.0]], atol=1e-10)
    np.testing.assert_allclose(found.by_instance[0], [[0.5, 1.0], [(0.5 + 1 + 1) / 3, 0.0]], atol=1e-10)
    np.testing.assert_allclose(found.leaderboard, 100 * (1 - found.by_instance[-1].mean(axis=1)))
    # Studies of an instance together weigh as much as the instance: 1/6 each of 0.25, 0.5, 1, and 1/2 of 0.
    np.testing.assert_allclose(found.leaderboard_median, [0.0, 87.5], atol=1e-8)


def test_the_median_of_a_leaderboard_is_that_of_all_studies_if_there_are_equally_many() -> None:
    visible = {key: values[:4] for key, values in made(3).items()}
    found = scores_of(visible)
    pooled = [np.median([found.losses[name, f][:, -1] for f in found.instances]) for name in found.algorithms]
    np.testing.assert_allclose(found.leaderboard_median, 100 * (1 - np.array(pooled)))


@given(st.integers(-20, 20), st.integers(0, 50))
def test_the_unit_of_the_values_changes_no_score(power: int, seed: int) -> None:
    visible = made(seed)
    scaled = {(name, f): values * 2.0 ** (power if f == "f1" else 0) for (name, f), values in visible.items()}
    for field in ("by_instance", "mean", "error", "normed_mean", "median", "leaderboard", "leaderboard_median"):
        assert np.array_equal(getattr(scores_of(visible), field), getattr(scores_of(scaled), field))


@given(st.floats(-3, 3), st.integers(0, 50))
def test_a_shift_of_the_values_changes_no_score(shift: float, seed: int) -> None:
    visible = made(seed)
    shifted = {key: values + shift for key, values in visible.items()}
    np.testing.assert_allclose(scores_of(visible).mean, scores_of(shifted).mean, atol=1e-9)


def test_a_bend_of_the_values_changes_scores_which_is_why_rankings_stand_beside_them() -> None:
    visible = made()
    bent = {key: values**3 for key, values in visible.items()}
    assert np.abs(scores_of(visible).mean[-1] - scores_of(bent).mean[-1]).min() > 0.01


@given(st.permutations(["tpe", "gp"]), st.integers(0, 50))
def test_other_names_for_the_algorithms_permute_the_scores(names: list[str], seed: int) -> None:
    visible = made(seed)
    other = dict(zip(["tpe", "gp"], names, strict=True)) | {RANDOM: RANDOM}
    renamed = scores_of({(other[name], f): values for (name, f), values in visible.items()})
    original = scores_of(visible)
    places = [renamed.algorithms.index(other[name]) for name in original.algorithms]
    for field in ("by_instance", "mean", "normed_mean", "median"):
        assert np.array_equal(getattr(renamed, field)[:, places], getattr(original, field))
    assert [renamed.equivalents[k] for k in places] == list(original.equivalents)


def test_the_order_of_the_studies_changes_no_score() -> None:
    visible = made()
    turned = {key: values[::-1] for key, values in visible.items()}
    np.testing.assert_allclose(scores_of(visible).mean, scores_of(turned).mean, rtol=1e-12)


def test_scores_never_get_worse_with_iterations_if_scored_by_what_is_visible() -> None:
    found = scores_of(made())
    assert (np.diff(found.mean, axis=0) <= 0).all()
    assert (found.mean > 0).all()


def test_random_search_is_worth_about_itself_and_a_better_algorithm_more() -> None:
    rng = np.random.default_rng(5)
    visible = {(RANDOM, f"f{k}"): rng.random((60, 10, 2)) for k in range(12)}
    visible |= {("better", f"f{k}"): rng.random((60, 10, 2)) * rng.random((60, 10, 2)) for k in range(12)}
    found = scores_of(visible)
    worth = dict(zip(found.algorithms, found.equivalents, strict=True))
    assert worth[RANDOM] is not None
    assert abs(worth[RANDOM] - 20) <= 3
    assert worth["better"] is None or worth["better"] > 60
    assert found.efficiencies[found.algorithms.index(RANDOM)] == worth[RANDOM] / 20
    assert abs(found.normed_mean[-1, found.algorithms.index(RANDOM)] - 1) < 0.1


def test_bootstrapped_scores_lie_around_the_scores() -> None:
    found = scores_of(made())
    resampled = found.bootstrap(20_000, seed=3)
    np.testing.assert_allclose(resampled.losses.mean(axis=0), found.mean[-1], atol=0.005)
    low, high = resampled.interval()
    assert ((low <= found.mean[-1]) & (found.mean[-1] <= high)).all()


def test_equivalents_are_of_scores_by_the_visible_values_only() -> None:
    visible = made()
    with pytest.raises(PolarBearError, match="Random-search equivalents need scores by the visible values"):
        _ = scores_of(visible, made(seed=1)).equivalents
    assert scores_of(visible, visible).equivalents == scores_of(visible).equivalents


def test_an_evaluation_that_failed_counts_as_the_clip() -> None:
    visible = made()
    visible["tpe", "f1"] = np.full_like(visible["tpe", "f1"], np.inf)
    found = scores_of(visible)
    assert found.by_instance[-1, found.algorithms.index("tpe"), 0] == 1
    assert np.isfinite(found.leaderboard).all()


def test_one_instance_leaves_the_error_of_the_mean_open() -> None:
    found = scores_of({key: values for key, values in made().items() if key[1] == "f1"})
    assert np.isinf(found.error).all()


def changed(**cells: Any) -> Cells:
    visible: dict[Any, Any] = made()
    for key, values in cells.items():
        visible[tuple(key.split("__"))] = values
    return visible


@pytest.mark.parametrize(
    ("visible", "message"),
    [
        ({}, "visible: expected the values of at least one study, got none"),
        ({"tpe": np.ones((1, 1, 1))}, r"Expected keys \(algorithm, instance\), got 'tpe'"),
        (changed(tpe__f1=np.ones((2, 6))), r"tpe on f1: expected a non-empty array \[study, iteration, suggestion\]"),
        (changed(tpe__f1=np.ones((0, 6, 3))), r"tpe on f1: expected a non-empty array .*got the shape \(0, 6, 3\)"),
        (changed(tpe__f1=np.full((2, 6, 3), np.nan)), r"tpe on f1: a value is nan\. Use inf for failed evaluations"),
        (
            changed(tpe__f1=np.ones((2, 5, 3))),
            "tpe on f1: expected 6 iterations of 3 suggestions, as of RandomSearch on f1, got 5 of 3",
        ),
        (changed(new__f1=np.ones((2, 6, 3))), r"2 of them are missing \(new on f2, new on f3\)"),
    ],
)
def test_studies_that_cannot_be_scored_are_refused(visible: Any, message: str) -> None:
    with pytest.raises(PolarBearError, match=message):
        scores_of(visible)


def test_scored_values_must_go_with_the_visible_ones() -> None:
    visible = made()
    with pytest.raises(PolarBearError, match="expected the same algorithms and instances in both"):
        scores_of(visible, {key: values for key, values in visible.items() if key[0] != "gp"})
    with pytest.raises(PolarBearError, match=r"gp on f1: visible has the shape \(6, 6, 3\), scored \(5, 6, 3\)"):
        scores_of(visible, {**visible, ("gp", "f1"): visible["gp", "f1"][:5]})


def test_without_random_search_there_are_no_scores() -> None:
    with pytest.raises(
        PolarBearError, match=r"There is no random search among the algorithms \(RandomSearch, gp, tpe\)"
    ):
        score_studies(Studies(visible=made(), random=[]))
    with pytest.raises(PolarBearError, match="random: there is no algorithm 'dice'"):
        score_studies(Studies(visible=made(), random=["dice"]))


def test_scores_and_their_resamples_give_their_losses() -> None:
    rng = np.random.default_rng(1)
    visible = {("rs", "f1"): rng.random((5, 4, 2)), ("rs", "f2"): rng.random((3, 4, 2))}
    visible |= {("good", name): 0.5 * rng.random((2, 4, 2)) for name in ("f1", "f2")}
    scores = score_studies(Studies(visible=visible, random=["rs"]))
    frame = scores.to_pandas()
    assert column_kinds(frame) == {
        "algorithm": "names",
        "instance": "names",
        "study": "int",
        "iteration": "int",
        "loss": "float",
    }
    assert len(frame) == 4 * (5 + 3 + 2 + 2)
    last = frame[frame["iteration"] == 4].groupby(["algorithm", "instance"], observed=True)["loss"].mean()
    np.testing.assert_allclose(last, scores.by_instance[-1].ravel())
    summary = scores.summary()
    assert summary.index.name == "algorithm"
    assert list(summary["leaderboard"]) == sorted(scores.leaderboard, reverse=True)
    resampled = scores.bootstrap(30).to_pandas()
    assert column_kinds(resampled) == {"resample": "int", "algorithm": "names", "loss": "float", "rank": "int"}
    assert len(resampled) == 60
