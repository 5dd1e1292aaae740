from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import gamma, kv
from scipy.stats import invgamma, lognorm

from polarbear_plugins.errors import InvalidInputError
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

KERNELS = ["matern32", "matern52", "se"]
TEMPORAL = [GaussianProcess, SparseGaussianProcess, HilbertSpaceGaussianProcess, RandomWalk, BSpline]


def times(count: int) -> np.ndarray:
    """Timepoints from 0 to 1, unevenly spaced."""
    return np.linspace(0, 1, count) ** 1.5 if count > 1 else np.zeros(1)


def covariance(prior: TemporalPrior, phi: list[float], time: np.ndarray) -> np.ndarray:
    factor = prior.factor(np.array(phi), time)
    return np.asarray(factor @ factor.T)


def kernel_matrix(kernel: str, amplitude: float, lengthscale: float, time: np.ndarray) -> np.ndarray:
    """Covariance by the general formulas: Matern functions through the modified Bessel function."""
    distance = np.abs(time[:, None] - time) / lengthscale
    if kernel == "se":
        return amplitude**2 * np.exp(-(distance**2) / 2)
    nu = {"matern32": 1.5, "matern52": 2.5}[kernel]
    r = math.sqrt(2 * nu) * np.where(distance > 0, distance, 1.0)
    correlation = 2 ** (1 - nu) / gamma(nu) * r**nu * kv(nu, r)
    return amplitude**2 * np.where(distance > 0, correlation, 1.0)


@pytest.mark.parametrize("make", TEMPORAL)
@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_the_factor_of_a_temporal_prior_has_a_row_for_each_timepoint(make: Callable[[], Any], count: int) -> None:
    prior = make()
    factor = prior.factor(prior.start, times(count))
    columns = {
        "gp": count,
        "sparse-gp": min(10, count),
        "hsgp": getattr(prior, "basis", None),
        "random-walk": count,
        "bspline": max(4, count // 2),
    }
    assert factor.shape == (count, columns[prior.name])
    assert np.isfinite(factor).all()
    assert np.abs(factor).sum(axis=1).all()


@pytest.mark.parametrize("make", TEMPORAL)
def test_a_temporal_prior_names_its_hyperparameters_and_starts_where_they_are_likely(make: Callable[[], Any]) -> None:
    prior = make()
    assert isinstance(prior, TemporalPrior)
    assert prior.start.shape == (len(prior.hyperparameters),)
    here = prior.log_hyperprior(prior.start)
    for step in np.concatenate([np.eye(prior.start.size), -np.eye(prior.start.size)]):
        assert prior.log_hyperprior(prior.start + 4 * step) < here


@pytest.mark.parametrize("make", [Dirichlet, HierarchicalDirichlet])
def test_dirichlet_priors_do_not_pool_over_time(make: Callable[[], Any]) -> None:
    assert isinstance(make(), Prior)
    assert not isinstance(make(), TemporalPrior)


def test_the_built_in_priors_go_by_their_names() -> None:
    assert {name: make.name for name, make in BUILT_IN_PRIORS.items()} == {name: name for name in BUILT_IN_PRIORS}
    assert set(BUILT_IN_PRIORS) == {
        "dirichlet",
        "hierarchical-dirichlet",
        "gp",
        "sparse-gp",
        "hsgp",
        "random-walk",
        "bspline",
    }


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lengthscale", [0.1, 0.5, 2.0])
def test_the_covariance_of_a_gp_is_its_kernel(kernel: Any, lengthscale: float) -> None:
    time = times(12)
    prior = GaussianProcess(kernel=kernel, jitter=1e-9)
    expected = kernel_matrix(kernel, 1.7, lengthscale, time)
    found = covariance(prior, [math.log(1.7), math.log(lengthscale)], time)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


def test_jitter_is_added_to_the_diagonal_of_the_correlation() -> None:
    phi, time = [math.log(3.0), math.log(0.4)], times(5)
    difference = covariance(GaussianProcess(jitter=0.01), phi, time) - covariance(GaussianProcess(), phi, time)
    np.testing.assert_allclose(difference, 9.0 * (0.01 - 1e-6) * np.eye(5), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("lengthscale", [0.2, 0.6])
def test_an_hsgp_with_many_functions_and_a_wide_boundary_is_the_gp(kernel: Any, lengthscale: float) -> None:
    time = times(12)
    prior = HilbertSpaceGaussianProcess(kernel=kernel, basis=500, boundary=12.0)
    found = covariance(prior, [math.log(1.3), math.log(lengthscale)], time)
    np.testing.assert_allclose(found, kernel_matrix(kernel, 1.3, lengthscale, time), atol=2e-3)


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_hsgp_has_by_default_what_likely_lengthscales_need(kernel: Any) -> None:
    time, prior = times(12), HilbertSpaceGaussianProcess(kernel=kernel)
    short, middle, long = invgamma(3.0, scale=1.0).ppf([0.1, 0.5, 0.9])
    for lengthscale in (short, middle, long):
        found = covariance(prior, [0.0, math.log(lengthscale)], time)
        np.testing.assert_allclose(found, kernel_matrix(kernel, 1.0, lengthscale, time), atol=0.05)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("inducing", [8, 20])
def test_a_sparse_gp_with_a_point_for_each_timepoint_is_the_gp(kernel: Any, inducing: int) -> None:
    phi, time = [math.log(1.3), math.log(0.3)], times(8)
    found = covariance(SparseGaussianProcess(kernel=kernel, inducing=inducing, jitter=1e-8), phi, time)
    np.testing.assert_allclose(found, kernel_matrix(kernel, 1.3, 0.3, time), atol=1e-5)


def test_a_sparse_gp_with_fewer_points_has_less_variance_between_them_and_never_more() -> None:
    phi, time = [0.0, math.log(0.2)], times(30)
    variance = np.diag(covariance(SparseGaussianProcess(inducing=4), phi, time))
    assert variance.max() <= 1 + 1e-9
    assert variance.min() < 0.9
    np.testing.assert_allclose(variance[[0, -1]], 1.0, atol=1e-5)  # the points include both ends


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_covariance_of_a_random_walk_grows_with_the_time_that_two_timepoints_share(count: int) -> None:
    time = times(count)
    found = covariance(RandomWalk(first=0.8), [math.log(2.5)], time)
    np.testing.assert_allclose(found, 0.8**2 + 2.5**2 * np.minimum(time[:, None], time), atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"basis": 15}, {"basis": 6, "degree": 2}, {"basis": 1, "degree": 0}])
@pytest.mark.parametrize("count", [1, 2, 3, 30])
def test_the_basis_of_a_bspline_sums_to_its_scale(options: dict[str, Any], count: int) -> None:
    factor = BSpline(**options).factor(np.array([0.7]), times(count))
    np.testing.assert_allclose(factor.sum(axis=1), math.exp(0.7), rtol=1e-12)
    assert (factor >= 0).all()
    assert (np.count_nonzero(factor, axis=1) <= options.get("degree", 3) + 1).all()


@pytest.mark.parametrize(
    ("prior", "log_density"),
    [
        (BSpline(scale=(0.5, 0.7)), lambda phi: lognorm(0.7, scale=math.exp(0.5)).logpdf(math.exp(phi[0])) + phi[0]),
        (RandomWalk(scale=(-1, 2)), lambda phi: lognorm(2, scale=math.exp(-1)).logpdf(math.exp(phi[0])) + phi[0]),
        *(
            (
                make(amplitude=(0.5, 0.7), lengthscale=(2.5, 0.8)),
                lambda phi: (
                    lognorm(0.7, scale=math.exp(0.5)).logpdf(math.exp(phi[0]))
                    + invgamma(2.5, scale=0.8).logpdf(math.exp(phi[1]))
                    + phi[0]
                    + phi[1]
                ),
            )
            for make in (GaussianProcess, SparseGaussianProcess, HilbertSpaceGaussianProcess)
        ),
    ],
    ids=["bspline", "random-walk", "gp", "sparse-gp", "hsgp"],
)
def test_the_hyperprior_is_that_of_the_textbook_on_the_log_scale(
    prior: TemporalPrior, log_density: Callable[[np.ndarray], float]
) -> None:
    points = np.random.default_rng(0).normal(size=(20, prior.start.size))
    differences = [prior.log_hyperprior(phi) - log_density(phi) for phi in points]
    np.testing.assert_allclose(differences, differences[0], atol=1e-10)


@pytest.mark.parametrize(
    ("make", "options", "complaint"),
    [
        (Dirichlet, {"alpha": 0}, "alpha: must be positive"),
        (Dirichlet, {"alpha": -1.0}, "alpha: must be positive"),
        (Dirichlet, {"alpha": "1"}, "alpha: expected a finite number"),
        (Dirichlet, {"alpha": math.nan}, "alpha: expected a finite number"),
        (HierarchicalDirichlet, {"rate": 0.0}, "rate: must be positive"),
        (GaussianProcess, {"kernel": "linear"}, "matern32, matern52, se, got 'linear'"),
        (GaussianProcess, {"amplitude": 1.0}, "amplitude .*expected two numbers"),
        (GaussianProcess, {"amplitude": (0.0, 0.0)}, "amplitude .*must be positive"),
        (GaussianProcess, {"lengthscale": (-1.0, 1.0)}, "lengthscale .*must be positive"),
        (GaussianProcess, {"jitter": 0.0}, "jitter: must be positive"),
        (SparseGaussianProcess, {"inducing": 0}, "inducing must be a whole number of at least 1"),
        (SparseGaussianProcess, {"inducing": 2.5}, "inducing must be a whole number"),
        (HilbertSpaceGaussianProcess, {"boundary": 1.0}, "boundary: must be more than 1, outside the time"),
        (HilbertSpaceGaussianProcess, {"basis": 0}, "basis must be a whole number of at least 1"),
        (HilbertSpaceGaussianProcess, {"kernel": "rbf"}, "matern32, matern52, se, got 'rbf'"),
        (RandomWalk, {"first": 0.0}, "first: must be positive"),
        (RandomWalk, {"scale": (0.0, 1.0, 2.0)}, "scale .*expected two numbers"),
        (RandomWalk, {"scale": (0.0, -1.0)}, "scale .*must be positive"),
        (BSpline, {"basis": 3}, "basis must be larger than the degree 3, got 3"),
        (BSpline, {"degree": -1}, "degree must be a whole number of at least 0"),
        (BSpline, {"scale": "wide"}, "scale .*expected two numbers"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    make: Callable[..., Any], options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        make(**options)
