from __future__ import annotations

import itertools
import logging
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from builders import table_of
from scipy import stats

from polarbear_plugins import RankingTable, compare, fit
from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.inference.dependence import EvidenceShift
from polarbear_plugins.inference.native.engine import native as run_native
from polarbear_plugins.inference.pymc import chains, engines
from polarbear_plugins.inference.pymc import model as pymc_model
from polarbear_plugins.inference.pymc.chains import nuts
from polarbear_plugins.inference.pymc.engines import PYMC_ENGINES, laplace
from polarbear_plugins.inference.pymc.model import build_model
from polarbear_plugins.inference.task import Draws, Task
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.plackett_luce.subsets import statistics_of
from polarbear_plugins.priors import (
    BUILT_IN_PRIORS,
    BSpline,
    Dirichlet,
    GaussianProcess,
    HierarchicalDirichlet,
    HilbertSpaceGaussianProcess,
    Prior,
    RandomWalk,
    SparseGaussianProcess,
    TemporalPrior,
)

pymc = pytest.importorskip("pymc")

KERNELS = ("matern32", "matern52", "se")
PRIORS: dict[str, Prior] = {
    "dirichlet": Dirichlet(alpha=0.7),
    "hierarchical-dirichlet": HierarchicalDirichlet(rate=0.3),
    "random-walk": RandomWalk(),
    "bspline": BSpline(degree=2),
    **{f"gp {kernel}": GaussianProcess(kernel=kernel) for kernel in KERNELS},
    **{f"sparse-gp {kernel}": SparseGaussianProcess(kernel=kernel, inducing=4) for kernel in KERNELS},
    **{f"hsgp {kernel}": HilbertSpaceGaussianProcess(kernel=kernel, basis=7) for kernel in KERNELS},
}
# Few draws and steps: enough to see an engine run.
SHORT: dict[str, dict[str, Any]] = {
    "nuts": {"sampler": "pymc", "cores": 1, "chains": 2, "tune": 100},
    "pathfinder": {"paths": 2},
    "laplace": {},
    "advi": {"iterations": 300},
    "fullrank-advi": {"iterations": 300},
}


def random_ranks(rows: int, timepoints: int, n: int, seed: int = 0) -> np.ndarray:
    """Rankings of algorithms that change places over time."""
    rng = np.random.default_rng(seed)
    utilities = np.linspace(1, -1, n) * np.linspace(1, -1, timepoints)[:, None]
    return (np.argsort(np.argsort(-utilities - rng.gumbel(size=(rows, timepoints, n)))) + 1).astype(np.int16)


def repeating_runs() -> RankingTable:
    """Runs whose noise persists over time, while the ratings change a little."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(40, 12, 3))
    for t in range(1, 12):
        noise[:, t] = 0.95 * noise[:, t - 1] + np.sqrt(1 - 0.95**2) * noise[:, t]
    gumbel = -np.log(-np.log(stats.norm.cdf(noise)))
    return table_of(-0.3 * np.sin(np.linspace(0, 6, 12)[:, None] + 2 * np.arange(3)) - gumbel)


def make_task(prior: Prior, ranks: np.ndarray, draws: int = 100, seed: int = 0) -> Task:
    rows, timepoints, _ = ranks.shape
    return Task(
        statistics=statistics_of(ranks, np.ones(rows)),
        time=np.linspace(0, 1, timepoints) if timepoints > 1 else np.zeros(1),
        prior=prior,
        draws=draws,
        seed=np.random.SeedSequence(seed),
    )


def small_task(prior: Prior, draws: int = 100, seed: int = 0) -> Task:
    return make_task(prior, random_ranks(15, 6 if isinstance(prior, TemporalPrior) else 3, 3), draws, seed)


def quickly_compiled() -> Any:
    """Let PyTensor interpret what it would compile to C, which takes longer than such a small model takes.

    Without a compiler, too: loops, of which a Hessian has some, are compiled in any mode where there is one.
    """
    import pytensor

    return pytensor.config.change_flags(mode="FAST_COMPILE", cxx="")


def ratings(done: Draws) -> np.ndarray:
    exponentials = np.exp(done.utilities)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def expected_log_density(task: Task, point: dict[str, np.ndarray]) -> float:
    """Log-density of a point up to a constant, without PyMC."""
    prior, contrasts = task.prior, helmert(task.statistics.algorithms).T
    likelihood = Likelihood(task.statistics)
    if isinstance(prior, TemporalPrior):
        utilities = prior.factor(point["phi"], task.time) @ point["u"] @ contrasts
        value = likelihood.value(utilities) + prior.log_hyperprior(point["phi"]) + stats.norm.logpdf(point["u"]).sum()
        if task.evidence_shift is not None:
            value += task.evidence_shift(prior.factor(point["phi"], task.time))
        return float(value)
    utilities = point["eta"] @ contrasts
    theta = np.exp(utilities)
    theta /= theta.sum(axis=-1, keepdims=True)
    value = likelihood.value(utilities) + np.log(theta).sum()  # the second is the Jacobian
    if isinstance(prior, HierarchicalDirichlet):
        kappa = np.exp(point["log_kappa"])
        value += stats.expon.logpdf(kappa, scale=1 / prior.rate) + point["log_kappa"]
        alpha = kappa / theta.shape[1]
    else:
        assert isinstance(prior, Dirichlet)
        alpha = prior.alpha
    return float(value + sum(stats.dirichlet.logpdf(row, np.full(row.size, alpha)) for row in theta))


def some_shift(timepoints: int, directions: int) -> EvidenceShift:
    """A shift as from rankings that almost repeat."""
    rng = np.random.default_rng(6)
    distance = np.abs(np.subtract.outer(np.arange(timepoints), np.arange(timepoints)))
    return EvidenceShift(
        observed=2 * rng.normal(size=(timepoints, directions)),
        scale=rng.uniform(1, 3, size=(timepoints, directions)),
        correlated=0.9**distance,
        weighted=np.diag(rng.uniform(2, 5, size=timepoints)),
    )


@pytest.fixture(scope="module", params=PRIORS)
def case(request: pytest.FixtureRequest) -> tuple[Task, Any, Callable[[dict[str, np.ndarray]], float]]:
    """A task, its model and the model's log-density, on rankings with ties, gaps and an empty timepoint.

    Under temporal priors the evidence of the hyperparameters is shifted.
    """
    ranks = random_ranks(15, 6, 4)
    ranks[:3, 1] = [1, 2, 2, 4]
    ranks[3:5, 2] = [0, 1, 1, 1]
    ranks[5:9, 4] = [2, 0, 1, 0]
    ranks[:, 3] = 0
    task = make_task(PRIORS[request.param], ranks)
    if isinstance(task.prior, TemporalPrior):
        task = replace(task, evidence_shift=some_shift(timepoints=6, directions=3))
    model = build_model(task)
    return task, model, model.compile_logp(mode="FAST_COMPILE")


def random_points(task: Task, model: Any, count: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(5)
    centre = {"phi": task.prior.start} if isinstance(task.prior, TemporalPrior) else {}
    return [
        {v.name: centre.get(v.name, 0.0) + rng.normal(scale=0.7, size=v.type.shape) for v in model.free_RVs}
        for _ in range(count)
    ]


def test_all_built_in_priors_are_tried() -> None:
    assert {prior.name for prior in PRIORS.values()} == set(BUILT_IN_PRIORS)


def test_a_model_has_the_density_that_its_prior_and_the_rankings_say(case: Any) -> None:
    task, model, log_density = case
    points = random_points(task, model, 6)
    differences = [log_density(point) - expected_log_density(task, point) for point in points]
    assert np.ptp(differences) < 1e-9


def test_the_gradient_of_a_model_is_that_of_its_density(case: Any) -> None:
    task, model, log_density = case
    [point, step] = random_points(task, model, 2)
    gradient = model.compile_dlogp(mode="FAST_COMPILE")(point)
    width = 1e-5
    ends = [log_density({name: point[name] + sign * width * step[name] for name in point}) for sign in (1, -1)]
    along = np.concatenate([step[variable.name].ravel() for variable in model.free_RVs])
    assert (ends[0] - ends[1]) / (2 * width) == pytest.approx(gradient @ along, rel=1e-6)


def test_draws_are_converted_as_the_model_does(case: Any) -> None:
    task, model, _ = case
    points = random_points(task, model, 3)
    stacked = {name: np.stack([point[name] for point in points]) for name in points[0]}
    utilities, hyperparameters = pymc_model.convert(task, stacked)
    if isinstance(task.prior, TemporalPrior):
        latent = [task.prior.factor(point["phi"], task.time) @ point["u"] for point in points]
        expected = dict(zip(task.prior.hyperparameters, stacked["phi"].T, strict=True))
    else:
        latent = [point["eta"] for point in points]
        expected = {name: values for name, values in stacked.items() if name == "log_kappa"}
    np.testing.assert_allclose(utilities, np.stack(latent) @ helmert(4).T)
    assert hyperparameters.keys() == expected.keys()
    assert all(np.array_equal(hyperparameters[name], expected[name]) for name in expected)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [pytest.param("pymc", marks=pytest.mark.long), "nutpie"])
def test_nuts_finds_the_beta_posterior_of_two_algorithms(sampler: Any) -> None:
    pytest.importorskip(sampler)
    alpha, wins, rows = 0.7, 12, 15
    ranks = np.tile(np.array([[1, 2]], dtype=np.int16), (rows, 1, 1))
    ranks[wins:] = [[2, 1]]
    done = nuts(make_task(Dirichlet(alpha=alpha), ranks, draws=2001, seed=3), sampler=sampler, cores=1)
    exact = stats.beta(alpha + wins, alpha + rows - wins)
    first = ratings(done)[:, 0, 0]
    assert first.shape == (2001,)
    assert first.mean() == pytest.approx(exact.mean(), abs=5 * exact.std() / 500**0.5)
    assert first.std() == pytest.approx(exact.std(), rel=0.12)
    assert done.diagnostics.good, done.diagnostics
    assert done.diagnostics.divergences == 0
    assert done.diagnostics.r_hat is not None
    assert done.diagnostics.r_hat < 1.01
    assert done.diagnostics.effective_draws is not None
    assert done.diagnostics.effective_draws > 400


def log_likelihoods(ranks: np.ndarray, utilities: np.ndarray) -> np.ndarray:
    """Log-probability of rankings without ties at ``utilities[draw, timepoint, algorithm]``, place by place."""
    value = np.zeros(len(utilities))
    timepoints = range(ranks.shape[1])
    for ranking, t in itertools.product(ranks, timepoints):
        order = np.argsort(ranking[t])
        for place in range(order.size - 1):
            left = utilities[:, t, order[place:]]
            value += left[:, 0] - np.log(np.exp(left).sum(axis=1))
    return value


@pytest.mark.slow
@pytest.mark.long
def test_nuts_agrees_with_weighted_draws_from_the_prior() -> None:
    rng, count = np.random.default_rng(1), 40_000
    prior, ranks = RandomWalk(), random_ranks(5, 3, 3)
    log_scale = rng.normal(prior.scale[0], prior.scale[1], count)
    first = prior.first * rng.standard_normal((count, 1, 2))
    steps = np.exp(log_scale)[:, None, None] * np.sqrt(0.5) * rng.standard_normal((count, 2, 2))
    utilities = np.cumsum(np.concatenate([first, steps], axis=1), axis=1) @ helmert(3).T
    weights = np.exp(log_likelihoods(ranks, utilities))
    weights /= weights.sum()
    theta = np.exp(utilities - utilities.max(axis=-1, keepdims=True))
    theta /= theta.sum(axis=-1, keepdims=True)

    done = nuts(make_task(prior, ranks, draws=1000), sampler="pymc", cores=1, tune=500)

    assert done.diagnostics.good, done.diagnostics
    mean = np.tensordot(weights, theta, 1)
    sd = np.sqrt(np.tensordot(weights, (theta - mean) ** 2, 1))
    # Standard errors of both, with a little to spare for the correlation of the chain.
    assert (np.abs(ratings(done).mean(axis=0) - mean) < 4 * sd * np.sqrt(weights @ weights + 1 / 400)).all()
    np.testing.assert_allclose(ratings(done).std(axis=0), sd, rtol=0.15)
    centre = weights @ log_scale
    error = np.sqrt(weights @ (log_scale - centre) ** 2 * (weights @ weights + 1 / 300))
    assert done.hyperparameters["log_scale"].mean() == pytest.approx(centre, abs=4 * error)


@pytest.mark.slow
@pytest.mark.long
def test_nuts_and_the_native_engine_agree_on_rankings_that_repeat() -> None:
    table = repeating_runs()
    native, by_nuts = (
        fit(table, "random-walk", engine, seed=1, time_scale="linear", engine_options=options)
        for engine, options in (("native", {}), ("nuts", {"chains": 2, "cores": 1}))
    )
    assert native.diagnostics.good
    assert by_nuts.diagnostics.good
    np.testing.assert_array_less(np.abs(compare(native).p_better - compare(by_nuts).p_better), 0.035)
    np.testing.assert_array_less(np.abs(compare(native).p_anytime - compare(by_nuts).p_anytime), 0.035)
    expected, found = (posterior.hyperparameters["log_scale"] for posterior in (native, by_nuts))
    assert abs(found.mean() - expected.mean()) < 0.15 * expected.std()
    assert found.std() == pytest.approx(expected.std(), rel=0.15)

    # The shift of the evidence matters here.
    def unshifted(task: Task) -> Draws:
        assert task.evidence_shift is not None
        return run_native(replace(task, evidence_shift=None))

    without = fit(table, "random-walk", unshifted, seed=1, time_scale="linear").hyperparameters["log_scale"]
    assert expected.mean() - without.mean() > expected.std()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "name"),
    [
        *(
            pytest.param(engine, "random-walk", marks=pytest.mark.long)
            for engine in ("nuts", "laplace", "fullrank-advi")
        ),
        *(pytest.param(engine, "hierarchical-dirichlet", marks=pytest.mark.long) for engine in ("nuts", "laplace")),
        ("nuts", "dirichlet"),
        ("laplace", "dirichlet"),
        ("advi", "random-walk"),
        ("fullrank-advi", "dirichlet"),
        ("pathfinder", "dirichlet"),
    ],
)
def test_an_engine_gives_as_many_draws_as_asked_for_and_the_same_for_the_same_seed(engine: str, name: str) -> None:
    prior = PRIORS[name]
    timepoints = 6 if isinstance(prior, TemporalPrior) else 3
    with nullcontext() if engine == "nuts" else quickly_compiled():
        done, again, other = (PYMC_ENGINES[engine](small_task(prior, 101, seed), **SHORT[engine]) for seed in (7, 7, 8))
    assert done.utilities.shape == (101, timepoints, 3)
    assert done.utilities.dtype == np.float64
    assert np.isfinite(done.utilities).all()
    expected = {"dirichlet": (), "hierarchical-dirichlet": ("log_kappa",), "random-walk": ("log_scale",)}[name]
    assert tuple(done.hyperparameters) == expected
    for values in done.hyperparameters.values():
        assert values.shape == (101,)
        assert np.isfinite(values).all()
    np.testing.assert_array_equal(done.utilities, again.utilities)
    assert not np.array_equal(done.utilities, other.utilities)
    assert done.diagnostics.engine == engine
    assert done.diagnostics.good == (not done.diagnostics.problems)
    assert done.diagnostics.effective_draws is not None
    if engine != "nuts":
        assert done.diagnostics.k_hat is not None
        assert done.diagnostics.k_hat <= 0.7 or not done.diagnostics.good


@pytest.mark.slow
def test_laplace_has_the_covariance_of_the_curvature_at_the_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    task = small_task(Dirichlet(alpha=0.7), draws=20_000)
    # The density at each draw, which only tells how good the approximation is, would take most of the time.
    monkeypatch.setattr(engines, "_log_densities", lambda _, points, parts: np.zeros((len(points["eta"]), parts)))
    with quickly_compiled():
        utilities = laplace(task).utilities
    mode, contrasts = utilities.mean(axis=0), helmert(3)
    theta = np.exp(mode) / np.exp(mode).sum(axis=1, keepdims=True)
    information = Likelihood(task.statistics).information(mode)
    information += 0.7 * 3 * (theta[:, :, None] * np.eye(3) - theta[:, :, None] * theta[:, None, :])
    for t in range(3):
        covariance = contrasts @ np.linalg.inv(contrasts.T @ information[t] @ contrasts) @ contrasts.T
        np.testing.assert_allclose(np.cov(utilities[:, t].T), covariance, rtol=0.06, atol=0.004)


@pytest.mark.slow
def test_an_approximation_is_good_where_the_posterior_is_normal_and_not_elsewhere() -> None:
    with quickly_compiled():
        many = laplace(make_task(Dirichlet(), random_ranks(2000, 3, 3), draws=1000)).diagnostics
        few = laplace(make_task(RandomWalk(), random_ranks(3, 6, 3), draws=1000)).diagnostics
    assert many.good, many
    assert many.k_hat is not None
    assert many.k_hat <= 0.7
    assert not few.good
    assert few.k_hat is not None
    assert f"Pareto k {few.k_hat:.2f}, above 0.7" in few.problems[0]


@pytest.mark.slow
def test_an_approximation_that_has_hardly_begun_is_not_good() -> None:
    with quickly_compiled():
        diagnostics = PYMC_ENGINES["advi"](small_task(Dirichlet(), 1000), iterations=10).diagnostics
    assert not diagnostics.good
    assert diagnostics.problems[0] == "it was still improving after 10 iterations"
    assert "probabilities may be off" in diagnostics.problems[1] or "Pareto k" in diagnostics.problems[1]


def test_chains_that_agree_are_good_and_a_stray_one_is_not() -> None:
    utilities = np.random.default_rng(0).normal(size=(4000, 2, 3))
    hyperparameters = {"scale": np.random.default_rng(1).normal(size=4000)}
    r_hat, effective = chains._chain_diagnostics(utilities, hyperparameters, 4)
    assert chains._chain_problems(r_hat, effective, 4, 4000) == ()
    utilities[3::4, 1, 0] += 1.0  # the chains come in turn
    r_hat, effective = chains._chain_diagnostics(utilities, hyperparameters, 4)
    [disagree, few, diverged] = chains._chain_problems(r_hat, effective, 5, 4000)
    assert "R-hat" in disagree
    assert "independent ones" in few
    assert diverged == "5 of 4000 draws diverged (a higher target_accept may help)"


def test_chains_too_short_to_judge_are_not_good() -> None:
    assert len(chains._chain_problems(np.nan, np.nan, 0, 8)) == 2


class Line:
    """A prior of one's own: straight lines, written with more of numpy than the built-in priors need."""

    name = "line"
    hyperparameters = ("log_level", "log_slope")
    start = np.array([0.0, -1.0])

    def factor(self, phi: Any, time: np.ndarray, xp: Any = np, /) -> Any:
        covariance = xp.array([[2.0, 0.5], [0.5, 1.0]]) + xp.pi * 0
        lines = xp.stack([xp.exp(phi[0]) * np.ones(time.size), xp.exp(phi[1]) * time], axis=1)
        return xp.multiply(lines, 1.0) @ xp.linalg.cholesky(covariance)

    def log_hyperprior(self, phi: Any, xp: Any = np, /) -> Any:
        return -0.5 * xp.sum(phi**2)


class FixedLine:
    """A prior without hyperparameters."""

    name = "fixed-line"
    hyperparameters = ()
    start = np.empty(0)

    def factor(self, phi: Any, time: np.ndarray, xp: Any = np, /) -> Any:
        assert len(phi) == 0
        return xp.stack([np.ones(time.size), time], axis=1)

    def log_hyperprior(self, phi: Any, xp: Any = np, /) -> Any:  # noqa: ARG002
        return 0.0


@pytest.mark.slow
def test_a_prior_of_ones_own_works() -> None:
    task = small_task(Line())
    model = build_model(task)
    log_density = model.compile_logp(mode="FAST_COMPILE")
    points = random_points(task, model, 4)
    assert np.ptp([log_density(point) - expected_log_density(task, point) for point in points]) < 1e-9
    with quickly_compiled():
        done = laplace(task)
    assert done.utilities.shape == (100, 6, 3)
    assert tuple(done.hyperparameters) == ("log_level", "log_slope")
    # Straight lines: second differences vanish.
    assert np.abs(np.diff(done.utilities, n=2, axis=1)).max() < 1e-9


@pytest.mark.slow
def test_a_prior_without_hyperparameters_works() -> None:
    with quickly_compiled():
        done = laplace(small_task(FixedLine(), draws=1000))
    assert done.utilities.shape == (1000, 6, 3)
    assert done.hyperparameters == {}


def test_a_prior_that_pytensor_cannot_run_is_told_why() -> None:
    class Convolving(Line):
        def factor(self, phi: Any, time: np.ndarray, xp: Any = np, /) -> Any:
            return xp.convolve(phi, time)[:, None]

    with pytest.raises(AttributeError, match=r"uses numpy\.convolve, and PyTensor.* has no function of that name"):
        build_model(small_task(Convolving()))


def test_a_prior_of_neither_kind_is_refused() -> None:
    class Nothing:
        name = "nothing"

    with pytest.raises(InvalidInputError, match=r"prior 'nothing' is neither a Dirichlet prior nor a TemporalPrior"):
        build_model(small_task(Nothing()))


def test_large_ties_are_sent_to_the_native_engine() -> None:
    ranks = np.ones((2, 1, 13), dtype=np.int16)
    with pytest.raises(InvalidInputError, match=r'ties of up to 13 algorithms.*Use engine="native"'):
        laplace(make_task(Dirichlet(), ranks))


def test_one_algorithm_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="at least two algorithms, got 1"):
        build_model(make_task(Dirichlet(), np.ones((2, 1, 1), dtype=np.int16)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampler": "blackjax"}, "sampler: expected auto, nutpie, pymc, got 'blackjax'"),
        ({"chains": 0}, "chains must be a whole number of at least 1, got 0"),
        ({"tune": -1}, "tune must be a whole number of at least 0, got -1"),
        ({"cores": 0}, "cores must be a whole number of at least 1, got 0"),
        ({"target_accept": 1.0}, "target_accept must lie between 0 and 1, got 1"),
    ],
)
def test_nuts_refuses_options_without_meaning(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        nuts(small_task(Dirichlet()), **options)


@pytest.mark.slow
def test_nuts_says_nothing_and_leaves_the_logger_alone(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = logging.getLogger("pymc").level
    nuts(small_task(Dirichlet()), **SHORT["nuts"])
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert logging.getLogger("pymc").level == before


@pytest.mark.parametrize("engine", PYMC_ENGINES)
def test_missing_pymc_says_how_to_install_it(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymc", None)
    expected = f"engine=\"{engine}\" needs 'pymc', which is not installed. "
    with pytest.raises(MissingExtraError) as raised:
        PYMC_ENGINES[engine](small_task(Dirichlet()))
    assert str(raised.value) == expected + "Install it with: pip install 'polarbear-plugins[pymc]'"


@pytest.mark.parametrize("engine", ["pathfinder", "laplace"])
def test_missing_pymc_extras_says_how_to_install_it(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymc_extras", None)
    with pytest.raises(MissingExtraError, match=f"engine=\"{engine}\" needs 'pymc_extras'"):
        PYMC_ENGINES[engine](small_task(Dirichlet()))


@pytest.mark.slow
def test_nuts_does_without_nutpie_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nutpie", None)
    done = nuts(small_task(Dirichlet()), **SHORT["nuts"] | {"sampler": "auto"})
    assert done.diagnostics.route == "2 chains of 50 draws by pymc"
    with pytest.raises(MissingExtraError, match="engine=\"nuts\" needs 'nutpie'"):
        nuts(small_task(Dirichlet()), sampler="nutpie")


def test_the_module_imports_without_pymc() -> None:
    script = """
import sys
import polarbear_plugins.inference.pymc.engines
print([name for name in ("pymc", "nutpie", "pymc_extras", "pytensor", "arviz") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_sampler_that_was_interrupted_does_not_pass_for_one_that_finished() -> None:
    arviz = pytest.importorskip("arviz")
    whole = np.ones((2, 10))
    padded = whole.copy()
    padded[1, 7:] = np.nan

    def trace_of(**groups: Any) -> Any:
        return arviz.from_dict(**groups) if arviz.__version__.startswith("0.") else arviz.from_dict(groups)

    chains._check_finished(trace_of(posterior={"u": whole}), 10)
    for trace in (
        trace_of(posterior={"u": whole[:, :4]}),
        trace_of(posterior={"u": padded}),
        trace_of(sample_stats={"diverging": whole}),
    ):
        with pytest.raises(KeyboardInterrupt):
            chains._check_finished(trace, 10)
