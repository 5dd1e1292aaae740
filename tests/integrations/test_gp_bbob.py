from __future__ import annotations

import itertools
import math
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run_example
from scipy import stats

from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.integrations import gp_bbob as module
from polarbear_plugins.integrations.gp_bbob import PRIORS, GpBbobProblem, GpBbobSuite, Mixture
from polarbear_plugins.integrations.gp_bbob.distributions import as_distribution
from polarbear_plugins.integrations.gp_bbob.mixture import _thresholds
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import BoxProblem, Identity
from polarbear_plugins.testing import check_suite


def _suite(**options: object) -> GpBbobSuite:
    plugins = Plugins()
    plugins.register(module, "gp-bbob")
    suite = plugins.suite("gp-bbob", **options)
    assert isinstance(suite, GpBbobSuite)
    return suite


def _problem(seed: int = 1, **options: object) -> GpBbobProblem:
    pytest.importorskip("ioh")
    suite = GpBbobSuite({"dimension": 3, **options})
    problem = suite.build(next(suite.identities(seed)))
    assert isinstance(problem, GpBbobProblem)
    return problem


def _mixture(seed: int = 0, **changes: Any) -> Mixture:
    parameters: dict[str, Any] = {
        "dimension": 3,
        "temperature": 0.6,
        "features": 64,
        "lengthscale": 3.0,
        "amplitude": 1.0,
        "sparsity": as_distribution(changes.pop("sparsity", PRIORS["sparsity"]), "sparsity"),
        "sparsity_features": 32,
        "sparsity_lengthscale": 1.0,
        "sparsity_amplitude": 1.0,
        "field_seed": [seed],
    }
    return Mixture(**{**parameters, **changes})


def _points(count: int, dimension: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-5, 5, (count, dimension))


def test_the_suite_keeps_the_contract() -> None:
    pytest.importorskip("ioh")
    suite = check_suite(module, "gp-bbob", {"dimension": "normal(5, 2)[2, 9]"}, count=4)
    problem = suite.build(next(suite.identities(1)))
    assert isinstance(problem, BoxProblem)
    assert (set(problem.lower.tolist()), set(problem.upper.tolist())) == ({-5.0}, {5.0})


@pytest.mark.slow
def test_the_picture_of_the_examples_is_drawn(root: Path, tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    pytest.importorskip("matplotlib")
    run_example("gp_bbob_picture.py", "--points", "9", "--output", tmp_path / "it.png")
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")
    assert (root / "examples" / "gp_bbob.png").stat().st_size < 150_000


# The mixture


@pytest.mark.parametrize("seed", range(5))
def test_weights_sum_to_one_and_exactly_k_functions_count(seed: int) -> None:
    mixture, points = _mixture(seed), _points(500)
    weights, counts = mixture.weights(points), mixture.sparsity(points)
    assert np.allclose(weights.sum(axis=1), 1, rtol=1e-12)
    assert weights.min() >= 0
    assert (np.count_nonzero(weights, axis=1) == counts).all()
    assert counts.min() >= 2
    assert counts.max() <= 24


@pytest.mark.parametrize("seed", range(5))
def test_the_fast_path_at_one_point_equals_the_weights_of_many(seed: int) -> None:
    mixture, points = _mixture(seed), _points(200)
    for point, expected in zip(points, mixture.weights(points), strict=True):
        functions, weights = mixture.active(point)
        full = np.zeros(24)
        full[functions] = weights
        assert np.allclose(full, expected, rtol=1e-9, atol=1e-15)


def test_the_functions_that_count_have_the_largest_logits_in_the_proportions_of_a_softmax() -> None:
    mixture, points = _mixture(1), _points(100)
    logits, weights = mixture.logits(points), mixture.weights(points)
    for z, w, count in zip(logits, weights, mixture.sparsity(points), strict=True):
        chosen = np.sort(np.argsort(z)[-count:])
        assert np.flatnonzero(w).tolist() == chosen.tolist()
        assert np.allclose(np.diff(np.log(w[chosen])), np.diff(z[chosen]))


def test_the_logits_are_a_gaussian_process_with_the_lengthscale_and_amplitude_asked_for() -> None:
    points = np.array([[0.0, 0, 0], [1, 0, 0], [0, 3, 0], [2, 2, 1], [30, 0, 0]])
    # The function of each column is another draw, given the features; several seeds draw the features too.
    drawn = np.concatenate(
        [_mixture(seed, temperature=0.5, amplitude=1.5, lengthscale=3.0).logits(points).T for seed in range(2000)]
    )
    distances = np.linalg.norm(points[0] - points, axis=1)
    expected = 1.5**2 / 0.5**2 * np.exp(-(distances**2) / (2 * 3.0**2))
    assert np.allclose(drawn.mean(axis=0), 0, atol=0.05)
    assert np.allclose((drawn[:, :1] * drawn).mean(axis=0), expected, atol=0.2)
    kurtosis = (drawn[:, 0] ** 4).mean() / (drawn[:, 0] ** 2).mean() ** 2
    assert kurtosis == pytest.approx(3, abs=0.15)


def test_how_many_count_follows_the_truncated_lognormal_and_roughly_ma_bbob() -> None:
    # One point far from another in many fields; the fields have amplitude 1, so that their level is standard normal.
    counts = np.concatenate([_mixture(seed).sparsity(_points(10, seed=seed)) for seed in range(2000)])
    low, high = (math.log(end) for end in (2, 24))
    prior = stats.truncnorm((low - 1.1) / 0.5, (high - 1.1) / 0.5, 1.1, 0.5)
    for count in range(2, 9):
        expected = prior.cdf(math.log(count + 0.5)) - prior.cdf(math.log(count - 0.5))
        assert (counts == count).mean() == pytest.approx(expected, abs=0.012)
    assert counts.mean() == pytest.approx(3.88, abs=0.06)  # MA-BBOB: 3.72


def test_the_thresholds_are_the_inverse_distribution_function_of_the_level() -> None:
    prior = as_distribution(PRIORS["sparsity"], "sparsity")
    thresholds = np.array(_thresholds(prior))
    for level in np.linspace(-4, 4, 201):
        direct = round(prior.quantile(float(stats.norm.cdf(level))))
        assert np.searchsorted(thresholds, level) + 1 == direct


@pytest.mark.parametrize("count", [1, 2, 7, 24])
def test_a_fixed_sparsity_is_the_number_of_functions_everywhere(count: int) -> None:
    mixture, points = _mixture(sparsity=count), _points(50)
    assert set(mixture.sparsity(points)) == {count}
    assert all(len(mixture.active(point)[0]) == count for point in points)


def test_a_low_temperature_or_a_single_function_leaves_the_largest_logit_alone() -> None:
    points = _points(50)
    cold, single = _mixture(3, temperature=1e-6), _mixture(3, sparsity=1)
    winners = _mixture(3).logits(points).argmax(axis=1)
    for mixture in (cold, single):
        assert np.allclose(mixture.weights(points)[np.arange(50), winners], 1)


def test_a_high_temperature_gives_all_that_count_the_same_weight() -> None:
    mixture, points = _mixture(3, temperature=1e9), _points(50)
    weights, counts = mixture.weights(points), mixture.sparsity(points)
    assert np.allclose(weights.max(axis=1), 1 / counts)


def test_a_huge_lengthscale_makes_the_weights_constant_and_a_tiny_one_makes_neighbours_strangers() -> None:
    points = _points(200)
    flat = _mixture(lengthscale=1e9, sparsity_lengthscale=1e9).weights(points)
    assert np.allclose(flat, flat[0])
    rough = _mixture(lengthscale=1e-4, features=128)
    near, far = rough.logits(points).ravel(), rough.logits(points + 0.01).ravel()
    assert abs(np.corrcoef(near, far)[0, 1]) < 0.1


def test_weights_are_continuous_where_the_functions_that_count_stay_the_same() -> None:
    mixture = _mixture(2)
    line = np.linspace([-5, -5, -5], [5, 5, 5], 20_001)
    weights = mixture.weights(line)
    same = ((weights[1:] > 0) == (weights[:-1] > 0)).all(axis=1)
    steps = np.abs(np.diff(weights, axis=0)).max(axis=1)
    assert 0 < np.count_nonzero(~same) < 500  # the active set does change
    assert steps[same].max() < 2e-3
    assert steps[~same].max() > 10 * steps[same].max()  # and there the weights jump


def test_with_all_functions_the_weights_are_continuous_everywhere() -> None:
    steps = np.diff(_mixture(2, sparsity=24).weights(np.linspace([-5, -5, -5], [5, 5, 5], 20_001)), axis=0)
    assert np.abs(steps).max() < 2e-3


# The problem


def test_values_are_the_weighted_sum_of_the_sbox_functions_and_the_offset() -> None:
    ioh = pytest.importorskip("ioh")
    for seed in range(4):
        problem = _problem(seed)
        drawn = problem.identity.parameters
        functions = [ioh.get_problem(i + 1, iid, 3, ioh.ProblemClass.SBOX) for i, iid in enumerate(drawn["instances"])]
        points = _points(50, seed=seed)
        for point, weights in zip(points, problem.mixture.weights(points), strict=True):
            direct = sum(w * f(point) for w, f in zip(weights, functions, strict=True)) + drawn["offset"]
            assert problem.evaluate(point) == pytest.approx(direct, rel=1e-9)


def test_only_functions_that_count_are_evaluated() -> None:
    problem = _problem(sparsity=2)
    for point in _points(50):
        problem.evaluate(point)
    assert sum(function.state.evaluations for function in problem._functions) == 100


def test_the_offset_only_shifts() -> None:
    here, there = _problem(offset=0), _problem(offset=250)
    for point in _points(10):
        assert there.evaluate(point) == pytest.approx(here.evaluate(point) + 250, rel=1e-12)


def test_outside_the_box_a_problem_is_infinite_however_small_a_weight() -> None:
    problem = _problem(temperature=1e-6, sparsity=24)
    assert problem.evaluate([0, 0, 5.01]) == math.inf
    assert math.isfinite(problem.evaluate([5, -5, 5]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_point_that_is_not_finite_is_nan(bad: float) -> None:
    assert math.isnan(_problem().evaluate([1, bad, 2]))


@pytest.mark.parametrize("x", [[1.0], [1.0] * 4, 1.0, [[1.0, 2.0, 3.0]]])
def test_a_point_of_another_dimension_is_refused(x: object) -> None:
    with pytest.raises(InvalidInputError, match="expected 3 numbers"):
        _problem().evaluate(x)  # type: ignore[arg-type]


def test_an_evaluation_does_not_depend_on_those_before() -> None:
    problem, points = _problem(), _points(20)
    first = [problem.evaluate(point) for point in points]
    assert [problem.evaluate(point) for point in points[::-1]] == first[::-1]


def test_the_algorithms_of_a_race_share_one_built_problem() -> None:
    pytest.importorskip("ioh")
    one, other = (next(GpBbobSuite({"dimension": 3}).identities(seed)) for seed in (1, 2))
    suites = [GpBbobSuite({"dimension": 3}) for _ in range(2)]
    first = suites[0].build(one)
    assert suites[1].build(Identity.from_json(one.to_json())) is first
    assert suites[1].build(other) is not first
    assert suites[0].build(one) is first


def test_a_suite_can_be_sent_to_a_worker() -> None:
    pytest.importorskip("ioh")
    suite = GpBbobSuite({"dimension": 3})
    identity = next(suite.identities(8))
    sent = pickle.loads(pickle.dumps(suite))  # noqa: S301 - our own bytes
    assert sent.priors == suite.priors
    assert sent.build(identity) is suite.build(identity)


def test_problems_of_the_same_name_and_other_parameters_are_not_shared() -> None:
    pytest.importorskip("ioh")
    plain, warm = (GpBbobSuite({"dimension": 3, "temperature": t}) for t in (1, 2))
    one, other = next(plain.identities(1)), next(warm.identities(1))
    assert one.name == other.name
    assert plain.build(one) is not warm.build(other)


# The priors


def test_the_priors_are_those_of_table_3() -> None:
    drawn = [identity.parameters for identity in itertools.islice(GpBbobSuite().identities(0), 4000)]
    column = {key: np.array([one[key] for one in drawn]) for key in PRIORS if key != "sparsity"}
    # The cut to a whole number takes off a half on average; the truncation at 320 a little more.
    assert column["dimension"].mean() == pytest.approx(
        stats.truncnorm(-238 / 30, 80 / 30, 240, 30).mean() - 0.5, abs=1.5
    )
    assert column["dimension"].std() == pytest.approx(29.6, abs=1)
    assert column["dimension"].max() <= 319
    assert np.median(column["offset"]) == pytest.approx(0, abs=80)
    assert np.subtract(*np.quantile(column["offset"], [0.75, 0.25])) == pytest.approx(2000, rel=0.08)
    assert (column["instances"].min(), column["instances"].max()) == (1, 999)
    assert column["instances"].shape == (4000, 24)
    assert column["instances"].mean() == pytest.approx(500, abs=3)
    for key, low, high in (("features", 32, 128), ("sparsity_features", 16, 64)):
        assert (column[key].min(), column[key].max()) == (low, high)
        assert column[key].mean() == pytest.approx((low + high) / 2, rel=0.02)
    for key, mean, deviation in (
        ("temperature", -0.5, 0.5),
        ("lengthscale", 2, 1),
        ("amplitude", 0, 0.7),
        ("sparsity_lengthscale", 0, 1),
        ("sparsity_amplitude", 0, 0.7),
    ):
        logs = np.log(column[key])
        assert logs.mean() == pytest.approx(mean, abs=0.06)
        assert logs.std() == pytest.approx(deviation, rel=0.04)
    assert {one["sparsity"] for one in drawn} == {"lognormal(1.1, 0.5)[2, 24]"}
    parameters = np.array([column[key] for key in column if key != "instances"])
    correlations = np.corrcoef(stats.rankdata(parameters, axis=1)) - np.eye(len(parameters))
    assert np.abs(correlations).max() < 0.06


@pytest.mark.parametrize("key", PRIORS)
def test_each_prior_is_an_option_and_changes_nothing_else(key: str) -> None:
    usual, changed = (
        dict(next(suite.identities(4)).parameters)
        for suite in (GpBbobSuite(), GpBbobSuite({key: "7" if key != "dimension" else "20"}))
    )
    assert changed.pop(key) != usual.pop(key)
    assert changed == usual


def test_text_and_numbers_mean_the_same() -> None:
    texts = GpBbobSuite({"dimension": "20", "temperature": "0.5", "lengthscale": "uniform(1, 2)"})
    values = GpBbobSuite({"dimension": 20, "temperature": 0.5, "lengthscale": as_distribution("uniform(1, 2)", "")})
    assert texts.priors == values.priors
    assert next(texts.identities(0)) == next(values.identities(0))


def test_instances_differ_within_a_seed_and_between_seeds() -> None:
    some = [i for seed in (1, 2) for i in itertools.islice(GpBbobSuite().identities(seed), 20)]
    assert len({identity.name for identity in some}) == 40
    assert len({str(identity.parameters["field_seed"]) for identity in some}) == 40


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 5}, rf"The suite 'gp-bbob' has no option 'dim'\. It takes {', '.join(PRIORS)}\."),
        ({"dimension": 1}, "dimension must lie between 2 and 10000, got 1"),
        ({"dimension": "normal(20, 5)"}, r"got normal\(20, 5\)\. Truncate it, as in normal\(240, 30\)\[2, 320\]"),
        ({"dimension": "many"}, "dimension: expected a number or a distribution"),
        ({"instances": "integers(0, 9)"}, "instances must lie between 1 and 200000"),
        ({"features": 0}, "features must lie between 1 and"),
        ({"sparsity": 25}, "sparsity must lie between 1 and 24"),
        ({"sparsity": "lognormal(1.1, 0.5)"}, "Truncate it"),
        ({"temperature": 0}, "temperature must be positive, got 0"),
        ({"lengthscale": "normal(2, 1)"}, "lengthscale must be positive"),
        ({"amplitude": -1}, "amplitude must be positive"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _suite(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": None}, "has no offset; it was not drawn by 'gp-bbob'"),
        ({"field_seed": None}, "has no field_seed"),
        ({"field_seed": 3}, "field_seed must be a list"),
        ({"instances": [1]}, "instances must be 24 whole numbers"),
        ({"instances": [0] * 24}, "instances must be a whole number of at least 1"),
        ({"dimension": 1}, "dimension must be a whole number of at least 2"),
        ({"temperature": "warm"}, "temperature: expected a finite number"),
        ({"sparsity": "few"}, "sparsity: expected a number or a distribution"),
    ],
)
def test_an_identity_of_somebody_else_is_refused(change: dict[str, object], message: str) -> None:
    drawn = {**next(GpBbobSuite({"dimension": 3}).identities(0)).parameters, **change}
    with pytest.raises(InvalidInputError, match=message):
        GpBbobSuite().build(Identity("foreign", {key: value for key, value in drawn.items() if value is not None}))


def test_names_of_others_are_left_to_them() -> None:
    assert module.polarbear_suite("ma-bbob", {}) is None


def test_without_ioh_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ioh", None)
    with pytest.raises(MissingExtraError, match=r"The suite 'gp-bbob' needs 'ioh'.*polarbear-plugins\[ioh\]"):
        _suite()
