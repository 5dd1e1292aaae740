from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from builders import table_of

from polarbear_plugins import RankingTable, compare, fit
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.inference.fitting import scaled_time
from polarbear_plugins.inference.native import precision, temporal
from polarbear_plugins.inference.native.importance import antithetic_normals
from polarbear_plugins.inference.native.modes import GridPoint, Modes, find_centre
from polarbear_plugins.inference.native.quality import distinct_share
from polarbear_plugins.inference.native.tempering import Particles
from polarbear_plugins.inference.native.temporal import neighbours, spread_over_cells
from polarbear_plugins.inference.task import Task
from polarbear_plugins.plackett_luce.subsets import statistics_of
from polarbear_plugins.priors import BSpline, GaussianProcess, RandomWalk, TemporalPrior


class Autoregression:
    """A Markov process that forgets, with more coefficients than timepoints."""

    name, hyperparameters, start = "autoregression", ("log_scale",), np.zeros(1)

    def factor(self, phi, time, xp=np, /):  # type: ignore[no-untyped-def]
        gap = np.abs(time[:, None] - time)
        root = np.linalg.cholesky(np.exp(-5 * gap) + 1e-12 * np.eye(time.size))
        return xp.exp(phi[0]) * np.hstack([root, np.zeros((time.size, 2))])

    def log_hyperprior(self, phi, xp=np, /):  # type: ignore[no-untyped-def]  # noqa: ARG002
        return -0.5 * phi[0] ** 2


PRIORS = {"random-walk": RandomWalk(), "bspline": BSpline(basis=70), "autoregression": Autoregression()}


def modes(prior: TemporalPrior, timepoints: int = 90) -> Modes:
    values = np.random.default_rng(1).normal(size=(12, timepoints, 4)) + np.linspace(0, 1, 4)
    values[:, : timepoints // 3] -= np.linspace(0, 2, 4)
    return modes_of(table_of(values), prior)


def modes_of(table: RankingTable, prior: TemporalPrior) -> Modes:
    task = Task(
        statistics=statistics_of(table.ranks, table.weights),
        time=scaled_time(table.timepoints),
        prior=prior,
        draws=100,
        seed=np.random.SeedSequence(0),
    )
    return Modes(task)


@pytest.mark.slow
@pytest.mark.parametrize("phi", [-4.0, -1.0, 0.0, 2.0])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_parts_give_the_posterior_of_the_whole(
    prior: TemporalPrior, phi: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = modes(prior)
    one = search.at(np.array([phi]))
    monkeypatch.setattr(precision, "_PART", 10**6)
    other = modes(prior).at(np.array([phi]))
    parts, whole = one.root.whitener(search.basis), other.root.whitener(search.basis)
    assert len(parts.parts) > 2
    assert len(whole.parts) == 1
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-3)
    np.testing.assert_allclose(one.mode.eta, other.mode.eta, atol=1e-3)
    steps = [each.step(np.eye(each.dimension)).reshape(each.dimension, -1) for each in (parts, whole)]
    covariances = [step.T @ step for step in steps]
    np.testing.assert_allclose(*covariances, atol=1e-3 * np.abs(covariances[0]).max())


@pytest.mark.parametrize("prior", [*PRIORS.values(), GaussianProcess()], ids=[*PRIORS, "gp"])
def test_the_way_back_is_the_transposed_map(prior: TemporalPrior) -> None:
    search = modes(prior)
    whitener = search.at(np.asarray(prior.start)).root.whitener(search.basis)
    step = whitener.step(np.eye(whitener.dimension)).reshape(whitener.dimension, -1)
    pull = np.random.default_rng(2).normal(size=(3, 90, 4))
    np.testing.assert_allclose(whitener.back(pull), pull.reshape(3, -1) @ step.T, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("prior", [*PRIORS.values(), GaussianProcess()], ids=[*PRIORS, "gp"])
def test_where_a_search_begins_does_not_matter(prior: TemporalPrior) -> None:
    start = np.asarray(prior.start, dtype=np.float64)

    def after(*places: float) -> GridPoint:
        search = modes(prior)
        return [search.at(start + place) for place in places][-1]

    for other in (after(1.0, 0.0), after(-3.0, 0.0), after(3.0, 0.0)):
        assert other.log_evidence == pytest.approx(after(0.0).log_evidence, abs=0.01)


# Coordinates

PARTED = {**PRIORS, "gp": GaussianProcess()}
DENSE = {"few coefficients": BSpline(basis=8)}


@cache
def expansion(prior: TemporalPrior) -> tuple[Modes, GridPoint]:
    search = modes(prior)
    return search, search.at(np.asarray(prior.start))


@pytest.mark.parametrize("prior", [*PARTED.values(), *DENSE.values()], ids=[*PARTED, *DENSE])
def test_standard_normal_coordinates_can_be_recovered_from_steps(prior: TemporalPrior) -> None:
    search, point = expansion(prior)
    assert (len(point.coordinates.parts) == 1) == (prior in DENSE.values())
    z = np.random.default_rng(3).normal(size=(6, point.residual.size))
    steps = point.root.steps(z)
    assert steps.shape == (6, *point.v.shape)
    np.testing.assert_allclose(point.root.whitened(steps), z, atol=1e-8)
    # The same steps as those of the map to utilities.
    utilities = point.coordinates.loadings @ steps @ search.basis.T
    np.testing.assert_allclose(point.root.whitener(search.basis).step(z), utilities, atol=1e-8)


@pytest.mark.parametrize("prior", [*PARTED.values(), *DENSE.values()], ids=[*PARTED, *DENSE])
def test_coefficients_can_be_recovered_from_coordinates_and_give_the_same_functions(prior: TemporalPrior) -> None:
    _, point = expansion(prior)
    coordinates = point.coordinates
    v = np.random.default_rng(4).normal(size=(5, *point.v.shape))
    coefficients = coordinates.coefficients(v)
    np.testing.assert_allclose(coordinates.from_coefficients(coefficients), v, atol=1e-8)
    np.testing.assert_allclose(point.factor @ coefficients, coordinates.loadings @ v, atol=1e-8)
    # Coefficients are standard normal under the prior.
    squares = np.einsum("dcq,dcq->d", v, coordinates.precision @ v)
    np.testing.assert_allclose(np.sum(coefficients**2, axis=(1, 2)), squares, rtol=1e-8)


@pytest.mark.parametrize("prior", [*PARTED.values(), *DENSE.values()], ids=[*PARTED, *DENSE])
def test_the_density_of_coefficients_is_that_of_the_coordinates_times_the_determinant(prior: TemporalPrior) -> None:
    _, point = expansion(prior)
    z = np.eye(point.residual.size)
    coefficients = point.coordinates.coefficients(point.root.steps(z)).reshape(len(z), -1)
    _, log_determinant = np.linalg.slogdet(coefficients)
    assert point.root.log_determinant - temporal._log_scale(point) == pytest.approx(-log_determinant, abs=1e-6)


# Averaged approximations


def identical(n: int = 3, instances: int = 8, timepoints: int = 10) -> RankingTable:
    return table_of(np.tile(np.arange(float(n)), (instances, timepoints, 1)))


def noisy(instances: int = 60) -> RankingTable:
    """So many instances that the posterior is nearly Gaussian."""
    return table_of(np.random.default_rng(5).normal(size=(instances, 5, 3)) + np.linspace(0, 0.5, 3))


def averaged(table: RankingTable, phi: float, near: float = 0.0) -> tuple[Modes, GridPoint, GridPoint, np.ndarray]:
    """Search, expansion at the mode, averaged approximation from one for other hyperparameters, and its draws."""
    search = modes_of(table, BSpline())
    point = search.at(np.array([phi]))
    z = antithetic_normals(64, point.residual.size, np.random.default_rng(6))
    return search, point, search.averaged(np.array([phi]), search.at(np.array([phi + near])), z), z


def test_of_a_nearly_gaussian_posterior_the_averaged_approximation_is_the_expansion_at_the_mode() -> None:
    search, point, average, z = averaged(noisy(), 0.0)
    off = point.root.whitened((average.v - point.v)[None])
    assert np.abs(off).max() < 0.15  # standard deviations
    step, other = (each.root.whitener(search.basis).step(np.eye(z.shape[1])) for each in (point, average))
    np.testing.assert_allclose(other.std(axis=0), step.std(axis=0), rtol=0.1, atol=0.01)
    evidence = average.log_evidence + float(search.target(average).remainder(z).mean())
    assert evidence == pytest.approx(point.log_evidence, abs=0.2)


@pytest.mark.parametrize("phi", [1.5, 2.6, 3.5])
def test_of_separated_data_the_averaged_approximation_leaves_much_less_over(phi: float) -> None:
    search, point, average, _ = averaged(identical(), phi)
    z = np.random.default_rng(7).normal(size=(2000, point.residual.size))
    left, less = (float(search.target(each).remainder(z).std()) for each in (point, average))
    assert less < 0.4 * left


@pytest.mark.parametrize("phi", [1.5, 2.6, 3.5])
def test_an_averaged_approximation_has_the_slope_and_curvature_of_the_posterior_on_average(phi: float) -> None:
    search, point, average, _ = averaged(identical(), phi)
    z = antithetic_normals(4000, point.residual.size, np.random.default_rng(7))
    slopes = [search.target(each).gradient(z) for each in (point, average)]
    mode, mean = (float(np.linalg.norm(slope.mean(axis=0))) for slope in slopes)
    assert mean < 0.1 * mode
    # By Stein's identity this is the mean curvature of the remainder.
    assert np.mean(z * slopes[0]) < -1
    assert np.mean(z * slopes[1]) == pytest.approx(0.0, abs=0.15)


@pytest.mark.parametrize("near", [-1.5, 0.0, 1.5])
@pytest.mark.parametrize("phi", [0.0, 2.5, 4.0])
@pytest.mark.parametrize("table", [identical(), noisy()], ids=["separated", "noisy"])
def test_an_averaged_approximation_is_never_worse_than_its_start(
    table: RankingTable, phi: float, near: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    bounds: list[float] = []
    bound = Modes._bound

    def recorded(*arguments: Any) -> Any:
        bounds.append((found := bound(*arguments)).value)
        return found

    monkeypatch.setattr(Modes, "_bound", recorded)
    search, _, average, z = averaged(table, phi, near)
    assert bound(search, average.coordinates, average.root, average.v, z).value == pytest.approx(max(bounds), abs=1e-9)
    assert len(bounds) > 2


def test_the_residual_of_an_averaged_approximation_is_the_slope_of_the_posterior_at_its_centre() -> None:
    search, _, average, _ = averaged(identical(), 2.0)
    target = search.target(average)
    step = 1e-2 * np.eye(average.residual.size)
    squares = -0.5 * np.sum(step**2, axis=1)
    up, down = target.remainder(step) + squares, target.remainder(-step) + squares
    np.testing.assert_allclose((up - down) / 2e-2, average.residual, atol=2e-3 * (1 + np.abs(average.residual).max()))


# The grid


@pytest.mark.parametrize("axes", [np.diag([0.5, 2.0]), np.array([[0.6, -0.3], [0.2, 0.9]])])
def test_spreading_over_cells_keeps_mean_and_variance(axes: np.ndarray) -> None:
    rng = np.random.default_rng(8)
    places = rng.binomial(6, [0.5, 0.3], size=(20_000, 2)).astype(float)
    phis = 1.5 + places @ axes.T
    spread = spread_over_cells(phis, axes, rng)
    np.testing.assert_allclose(spread.mean(axis=0), phis.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(np.cov(spread.T), np.cov(phis.T), atol=0.03 * np.cov(phis.T).max())
    assert len(np.unique(spread[:, 0])) == 20_000
    assert np.abs(np.linalg.solve(axes, (spread - phis).T)).max() < 0.8  # not far outside their cells


def test_draws_of_a_single_grid_point_are_spread_over_its_cell() -> None:
    spread = spread_over_cells(np.full((20_000, 1), 3.0), np.array([[0.5]]), np.random.default_rng(9))
    assert spread.mean() == pytest.approx(3.0, abs=0.01)
    assert spread.std() == pytest.approx(0.5 / np.sqrt(12), rel=0.02)


LEARNING = [
    pytest.param(BSpline(), id="bspline"),
    pytest.param(RandomWalk(), id="random-walk", marks=pytest.mark.slow),
    pytest.param(GaussianProcess(), id="gp", marks=pytest.mark.slow),
]


def family_of(table: RankingTable, prior: TemporalPrior, seed: int = 1) -> temporal._GridFamily:
    search = modes_of(table, prior)
    return temporal._GridFamily(search, *find_centre(search, None), np.random.default_rng(seed))


@pytest.mark.parametrize("same_coefficients", [True, False])
@pytest.mark.parametrize("prior", LEARNING)
def test_a_jump_and_its_way_back_are_equally_likely(prior: TemporalPrior, same_coefficients: bool) -> None:
    """Between grid points of the same posterior, draws are taken there and back with ratios of 1 to each other."""
    family = family_of(identical(timepoints=2), prior)
    rng = np.random.default_rng(10)
    particles = family.start(3000, rng)
    before = np.bincount(particles.which, minlength=len(family.points)) / 3000
    # Draws of the approximation are the posterior at temperature 0: jumps must leave it as it is.
    for _ in range(10):
        particles = family._jump(particles, 0.0, rng, same_coefficients)
        np.testing.assert_allclose(particles.remainder, family.remainder(particles.which, particles.z), atol=1e-4)
    after = np.bincount(particles.which, minlength=len(family.points)) / 3000
    np.testing.assert_allclose(after, before, atol=0.045)
    np.testing.assert_allclose(particles.z.mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(particles.z.std(axis=0), 1, atol=0.07)


@pytest.mark.parametrize("prior", LEARNING)
def test_a_jump_at_the_same_coefficients_keeps_them(prior: TemporalPrior) -> None:
    family = family_of(identical(timepoints=2), prior)
    rng = np.random.default_rng(11)
    particles = family.start(200, rng)
    other = rng.permutation(particles.which)

    def coefficients(which: np.ndarray, z: np.ndarray) -> np.ndarray:
        return np.array(
            [
                (here := family.points[k]).coordinates.coefficients(here.v + here.root.steps(row[None])[0])
                for k, row in zip(which, z, strict=True)
            ]
        )

    there = family._moved(particles.which, other, particles.z)
    np.testing.assert_allclose(coefficients(other, there), coefficients(particles.which, particles.z), atol=1e-7)
    np.testing.assert_allclose(family._moved(other, particles.which, there), particles.z, atol=1e-7)


def test_the_grid_grows_where_draws_go() -> None:
    family = family_of(identical(), BSpline())
    places = dict(family._places)
    edge = max(places, key=lambda place: place[0])
    rng = np.random.default_rng(12)
    particles = family.start(500, rng)
    there = np.full(500, places[edge])
    particles = Particles(there, particles.z, family.remainder(there, particles.z))
    family.jump(particles, 1.0, rng)
    beyond = (edge[0] + 1,)
    assert beyond not in places
    assert beyond in family._places
    np.testing.assert_allclose(
        family.points[family._places[beyond]].phi, family.points[places[edge]].phi + family.axes[:, 0], rtol=1e-9
    )


def test_a_grid_that_begins_small_grows_to_the_same_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"dependence": "none", "draws": 4000}
    plain = fit(identical(), "bspline", seed=1, **options).hyperparameters["log_scale"]
    monkeypatch.setattr(temporal, "_FIRST_GRID", 2)
    grown = fit(identical(), "bspline", seed=2, **options)
    found = grown.hyperparameters["log_scale"]
    assert grown.diagnostics.good
    assert int(grown.diagnostics.route.split()[0]) > 4
    assert found.mean() == pytest.approx(plain.mean(), abs=0.06)
    assert found.std() == pytest.approx(plain.std(), rel=0.1)


def test_draws_at_an_edge_of_the_grid_that_could_not_grow_are_not_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporal, "_MAX_GRID", 3)
    with pytest.warns(InferenceWarning, match="of the draws are at the edge of the grid of hyperparameters"):
        posterior = fit(identical(), "bspline", seed=1, dependence="none", draws=1000)
    assert posterior.diagnostics.route.startswith("3 grid points")
    assert not posterior.diagnostics.good


def test_a_few_draws_at_the_edge_of_the_grid_are_no_problem() -> None:
    family = family_of(identical(), BSpline())
    edge = family._places[max(family._places, key=lambda place: place[0])]
    inside = family._places[(0,)]
    assert family.problems(np.repeat([inside, edge], [990, 10])) == ()
    assert family.problems(np.repeat([inside, edge], [900, 100])) == (
        "10% of the draws are at the edge of the grid of hyperparameters",
    )


def test_neighbours_are_one_step_along_one_axis() -> None:
    assert set(neighbours((0, 2))) == {(1, 2), (-1, 2), (0, 3), (0, 1)}


# Identical rankings: an algorithm that always wins is ordinary data


@pytest.mark.parametrize("seed", [0, 1])
def test_of_identical_rankings_the_scale_is_that_of_long_markov_chains(seed: int) -> None:
    posterior = fit(identical(), "bspline", seed=seed, dependence="none")
    scale = posterior.hyperparameters["log_scale"]
    assert posterior.diagnostics.good
    assert scale.mean() == pytest.approx(2.597, abs=0.05)
    assert scale.std() == pytest.approx(0.512, abs=0.06)
    assert compare(posterior).p_anytime[0, 1] > 0.9


LONG_CHAINS: dict[str, dict[str, float]] = {
    "random-walk": {"log_scale": 3.52},
    "hsgp": {"log_amplitude": 3.35, "log_lengthscale": 0.91},
}


@pytest.mark.slow
@pytest.mark.parametrize("prior", [pytest.param("random-walk", marks=pytest.mark.long), "hsgp"])
def test_of_six_algorithms_in_the_same_order_hyperparameters_are_those_of_long_markov_chains(prior: str) -> None:
    posterior = fit(identical(6, 30, 20), prior, seed=0, dependence="none")
    assert posterior.diagnostics.good
    for name, mean in LONG_CHAINS[prior].items():
        found = posterior.hyperparameters[name]
        assert found.mean() == pytest.approx(mean, abs=0.12 * found.std())
    if prior == "random-walk":
        assert posterior.hyperparameters["log_scale"].std() == pytest.approx(0.47, rel=0.12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::polarbear_plugins.errors.InferenceWarning")
def test_a_posterior_of_a_few_copies_is_never_good(monkeypatch: pytest.MonkeyPatch) -> None:
    # It once was: of two distinct draws, with a probability of 0 that the algorithm that always won is better.
    monkeypatch.setattr(temporal, "_MOST_WORK", 1.5e10)  # it gives up sooner than it would, but not before it tempers
    posterior = fit(identical(6, 30, 100), "bspline", seed=0, draws=2000)
    wins = compare(posterior, 0.05).p_anytime[0, 1]
    good = posterior.diagnostics.good
    assert not good or (distinct_share(posterior.log_ratings) >= 0.25 and wins > 0.9)
    assert wins > 0.9
    assert not good or posterior.diagnostics.effective_draws > 100
