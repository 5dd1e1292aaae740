"""Values, tables and grids at the ends of what is allowed: finite posteriors, honest diagnostics, whole files."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path

import numpy as np
import pytest

from polarbear_plugins import (
    Posterior,
    RaceResult,
    RaceSettings,
    RankingTable,
    Trajectory,
    compare,
    fit,
    log_timepoints,
    rank,
    select,
    select_portfolio,
)
from polarbear_plugins.errors import InferenceWarning
from polarbear_plugins.inference.native.quality import parallel_chains
from polarbear_plugins.racing.analysis import analyze

PRIORS = ["dirichlet", "bspline"]
LARGEST, SMALLEST, DENORMAL = 1.7e308, 2.3e-308, 5e-324
DRAWS = 500


def table_of(values: np.ndarray, timepoints: np.ndarray | None = None) -> RankingTable:
    _, times, algorithms = values.shape
    grid = np.arange(1.0, times + 1) if timepoints is None else timepoints
    return RankingTable.from_values(values, algorithms=[f"a{i}" for i in range(algorithms)], timepoints=grid)


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).gumbel(size=shape)


def fitted(table: RankingTable, prior: str = "dirichlet") -> Posterior:
    """Fit, and see that there is a warning if and only if the posterior is not good enough."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        posterior = fit(table, prior, draws=DRAWS, seed=1)
    assert [warning.category for warning in seen] == ([] if posterior.diagnostics.good else [InferenceWarning])
    return posterior


def check(posterior: Posterior) -> None:
    """Refuse a posterior that is not finite, or that claims more than it can."""
    assert np.isfinite(posterior.log_ratings).all()
    np.testing.assert_allclose(posterior.ratings.sum(axis=-1), 1.0, rtol=1e-9)
    found = posterior.diagnostics
    assert found.effective_draws is not None
    assert 0 < found.effective_draws <= posterior.draws
    if found.memory is None:  # no moves: only weights
        assert found.k_hat is not None
        assert found.good == (found.effective_draws > 0.5 * posterior.draws and found.k_hat < 0.7)
    elif found.good:
        assert found.memory < max(0.1, 3.5 / math.sqrt(parallel_chains(posterior.draws)))
        assert found.effective_draws >= posterior.draws / 20
        assert len(np.unique(posterior.log_ratings[:, 0, 0])) > posterior.draws / 4
    assert found.good == (not found.problems)
    relations = compare(posterior)
    for probability in (relations.p_better, relations.p_equivalent):
        assert ((probability >= 0) & (probability <= 1)).all()
    off_diagonal = ~np.eye(len(posterior.algorithms), dtype=bool)
    both = relations.p_better + relations.p_better.transpose(0, 2, 1)
    np.testing.assert_allclose(both[:, off_diagonal], 1.0)
    for choice in (select(posterior), select(posterior, preference="worst", risk="quantile:0.05")):
        assert np.isfinite(list(choice.scores.values())).all()
        assert choice.expected_regret >= 0
    assert 0 <= select_portfolio(posterior, size=2).expected_regret <= 1


def check_files(table: RankingTable, prior: str, folder: Path) -> None:
    """Analyze, write and read again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # deserved, as seen before
        result = analyze(table, RaceSettings(seed=1, prior=prior, draws=DRAWS))
    assert json.loads(result.to_json())["algorithms"] == list(table.algorithms)
    again = RaceResult.load(result.save(folder / "result.npz"))
    assert again.state.table == table
    np.testing.assert_array_equal(again.posterior.log_ratings, result.posterior.log_ratings)
    assert again.to_json() == result.to_json()
    check(Posterior.load(result.posterior.save(folder / "posterior.npz")))


# --- values


def scaled(scale: float) -> np.ndarray:
    """Values of different algorithms around a scale, on both sides of 0."""
    values = np.linspace(-1.0, 1.0, 4) + 0.3 * np.random.default_rng(1).uniform(-1, 1, size=(12, 3, 4))
    scaled: np.ndarray = scale * (values / 1.4)
    return scaled


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("scale", [LARGEST, 1e-307])
def test_the_scale_of_the_values_does_not_matter(scale: float, prior: str, tmp_path: Path) -> None:
    table = table_of(scaled(scale))
    posterior = fitted(table, prior)
    usual = fitted(table_of(scaled(1.0)), prior)
    np.testing.assert_array_equal(posterior.log_ratings, usual.log_ratings)
    check(posterior)
    check_files(table, prior, tmp_path)


@pytest.mark.parametrize("prior", PRIORS)
def test_values_from_the_smallest_to_the_largest_number_in_one_table(prior: str, tmp_path: Path) -> None:
    ladder = np.array([-LARGEST, -1.0, -DENORMAL, 0.0, DENORMAL, SMALLEST, 1.0, LARGEST, np.inf])
    rng = np.random.default_rng(2)
    values = np.stack([np.stack([rng.permutation(ladder) for _ in range(3)]) for _ in range(10)])
    table = table_of(values)
    assert (np.sort(table.ranks, axis=-1) == np.arange(1, 10)).all()  # no two of them are equal
    check(fitted(table, prior))
    check_files(table, prior, tmp_path)


def test_trajectories_keep_the_smallest_and_the_largest_numbers() -> None:
    steps = [LARGEST, 1.0, SMALLEST, DENORMAL, 0.0, -DENORMAL, -LARGEST]
    runs = [
        Trajectory(algorithm=name, instance=str(place), times=np.arange(1, 8) + late, best=steps, horizon=10)
        for place in range(5)
        for late, name in enumerate(("early", "late"))
    ]
    table = rank(runs, timepoints=range(1, 9))
    assert table.values[0, :7, 0].tolist() == steps
    assert (table.ranks[:, :7] == [1, 2]).all()
    assert (table.ranks[:, 7] == 1).all()
    check(fitted(table))


@pytest.mark.parametrize(
    ("algorithms", "value", "prior"),
    [
        (2, DENORMAL, "dirichlet"),
        (2, -LARGEST, "bspline"),
        (2, math.inf, "bspline"),
        (13, math.inf, "dirichlet"),  # too many to be taken apart
    ],
)
def test_nothing_but_ties_makes_nobody_better(algorithms: int, value: float, prior: str, tmp_path: Path) -> None:
    table = table_of(np.full((6, 2, algorithms), value))
    posterior = fitted(table, prior)
    check(posterior)
    np.testing.assert_allclose(posterior.ratings.mean(axis=0), 1 / algorithms, atol=0.03)
    if value == math.inf:
        check_files(table, prior, tmp_path)


def test_a_tolerance_of_any_size_gives_ranks() -> None:
    values = scaled(LARGEST)
    for tolerance in (0.0, DENORMAL, 1.0, LARGEST):
        table = RankingTable.from_values(values, algorithms=list("abcd"), timepoints=[1, 2, 3], tolerance=tolerance)
        assert table.ranks.min() == 1
        check(fitted(table))


# --- sizes


@pytest.mark.parametrize("prior", PRIORS)
def test_fifty_algorithms(prior: str, tmp_path: Path) -> None:
    table = table_of(np.linspace(0, 3, 50) - noise(20, 2, 50))
    check(fitted(table, prior))
    if prior == "dirichlet":
        check_files(table, prior, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS)
def test_five_hundred_timepoints(prior: str) -> None:
    check(fitted(table_of(np.linspace(0, 1, 3) - noise(6, 500, 3)), prior))


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("shape", [(1, 1, 2), (1, 2, 30)])
def test_one_instance(shape: tuple[int, int, int], prior: str, tmp_path: Path) -> None:
    table = table_of(-noise(*shape))
    posterior = fitted(table, prior)
    check(posterior)
    assert posterior.ratings.std(axis=0).max() > 0.001  # a single ranking settles nothing
    check_files(table, prior, tmp_path)


@pytest.mark.parametrize("prior", PRIORS)
def test_ten_thousand_instances(prior: str) -> None:
    utilities = np.log([0.5, 0.3, 0.2])
    posterior = fitted(table_of(-utilities - noise(10_000, 2, 3)), prior)
    check(posterior)
    np.testing.assert_allclose(posterior.ratings.mean(axis=0), np.tile([0.5, 0.3, 0.2], (2, 1)), atol=0.02)


def test_ten_thousand_instances_of_hardly_any_equal_rankings() -> None:
    utilities = -np.linspace(0, 1, 14)
    posterior = fitted(table_of(-utilities - noise(10_000, 1, 14)))
    check(posterior)
    truth = np.exp(utilities) / np.exp(utilities).sum()
    error = np.abs(posterior.ratings[:, 0].mean(axis=0) - truth) / posterior.ratings[:, 0].std(axis=0)
    assert error.max() < 4


@pytest.mark.parametrize("prior", PRIORS)
def test_ten_thousand_times_the_same_ranking(prior: str) -> None:
    posterior = fitted(table_of(np.tile(np.arange(4.0), (10_000, 2, 1))), prior)
    check(posterior)
    assert posterior.ratings[:, :, 0].min() > 0.99


def test_timepoints_from_the_smallest_to_the_largest_number() -> None:
    grid = log_timepoints(1e-300, 1e300, 7)
    for prior in PRIORS:
        check(fitted(table_of(np.linspace(0, 1, 3) - noise(8, 7, 3), grid), prior))
