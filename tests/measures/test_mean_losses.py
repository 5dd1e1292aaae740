"""Mean losses: the formulas equal brute force, and the answer has the symmetries of the question."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.mean_losses import _LOGITS, MeanModel

# At these places of the grid the formulas are compared with brute force.
PLACES = (90, 114, 130)


def table(seed: int = 0, instances: int = 5, algorithms: int = 4, missing: float = 0.25) -> FloatArray:
    rng = np.random.default_rng(seed)
    losses = (
        rng.normal(size=algorithms) + 3 * rng.normal(size=(instances, 1)) + rng.normal(size=(instances, algorithms))
    )
    losses[rng.random(losses.shape) < missing] = np.nan
    losses[0], losses[1:, 0] = np.nan_to_num(losses[0]), np.nan_to_num(losses[1:, 0])  # all are compared with the first
    return losses


def matern(algorithms: int) -> FloatArray:
    scaled = np.sqrt(5) * np.abs(np.arange(algorithms)[:, None] - np.arange(algorithms)) / 2
    return (1 + scaled + scaled**2 / 3) * np.exp(-scaled)


def ratio_at(place: int, losses: FloatArray) -> float:
    return float(np.exp(-_LOGITS[place])) / float((~np.isnan(losses)).sum(axis=0).max())


def noise_of(share: float, places: NDArray[np.intp], rows: NDArray[np.intp]) -> FloatArray:
    """Covariance of the noise of some losses, of which a share is common to neighbours on the same instance."""
    correlation = share * matern(4) + (1 - share) * np.eye(4)
    return (rows[:, None] == rows) * correlation[np.ix_(places, places)]


def regression(
    losses: FloatArray, correlation: FloatArray, ratio: float, paired: bool, share: float = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and covariance of instances and effects together, for unit noise, by normal equations."""
    rows, columns = np.nonzero(~np.isnan(losses))
    instances = len(losses) if paired else 1
    design = np.zeros((rows.size, instances + losses.shape[1]))
    design[np.arange(rows.size), rows if paired else 0] = 1
    design[np.arange(rows.size), instances + columns] = 1
    weighted = design.T @ np.linalg.inv(noise_of(share, columns, rows) if share else np.eye(rows.size))
    precision = weighted @ design
    precision[instances:, instances:] += np.linalg.inv(ratio * correlation)
    covariance = np.linalg.inv(precision)
    return covariance @ weighted @ losses[rows, columns], covariance


# Pairing, correlation of the means, and which share of the noise neighbours have in common; the place of that fit.
KINDS = [
    (True, False, 0.0, 0),
    (True, True, 0.0, 1),
    (True, True, 0.6, 3),
    (False, False, 0.0, 0),
    (False, True, 0.0, 1),
]


@pytest.mark.parametrize(("paired", "correlated", "share", "which"), KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_mean_and_variance_are_those_of_the_regression(
    paired: bool, correlated: bool, share: float, which: int, place: int
) -> None:
    losses = table()
    correlation = matern(4) if correlated else np.eye(4)
    model = MeanModel(losses, [matern(4)], paired=paired, common=[share] if share else [])
    means, variances = (each[place] for each in model._fits[which].moments())
    together, covariance = regression(losses, correlation, ratio_at(place, losses), paired, share)
    instances = len(losses) if paired else 1
    # The mean loss of an algorithm is that of the instances, plus its effect.
    to_means = np.hstack([np.full((4, instances), 1 / instances), np.eye(4)])
    assert model._unit * means == pytest.approx(to_means @ together)
    assert variances == pytest.approx(np.diag(to_means @ covariance @ to_means.T))


@pytest.mark.parametrize("paired", [True, False])
def test_weights_are_those_of_the_marginal_likelihood(paired: bool) -> None:
    losses = table(1)
    model = MeanModel(losses, [matern(4)], common=[0.6], paired=paired)
    rows, columns = np.nonzero(~np.isnan(losses))
    groups = (rows[:, None] == np.unique(rows)) * 1.0 if paired else np.ones((rows.size, 1))
    # Contrasts that are free of the instances, as in restricted maximum likelihood.
    contrasts = np.linalg.svd(groups)[0][:, groups.shape[1] :]
    values = contrasts.T @ losses[rows, columns]
    expected = []
    alone = [(np.eye(4), 0.0), (matern(4), 0.0), (0.8 * matern(4) + 0.2 * np.eye(4), 0.0)]
    for correlation, share in [*alone, (matern(4), 0.6)][: 4 if paired else 3]:
        for place in PLACES:
            noise = noise_of(share, columns, rows) if share else np.eye(rows.size)
            covariance = ratio_at(place, losses) * correlation[np.ix_(columns, columns)] + noise
            covariance = contrasts.T @ covariance @ contrasts
            # The density with the scale of the noise integrated out, and the prior of a uniform share.
            sizes = np.linalg.slogdet(covariance)[1], np.log(values @ np.linalg.solve(covariance, values))
            shrinkage = 1 / (1 + np.exp(-_LOGITS[place]))
            expected.append(-0.5 * sizes[0] - 0.5 * values.size * sizes[1] + np.log(shrinkage * (1 - shrinkage)))
    found = [fit.log_weights[place] for fit in model._fits for place in PLACES]
    assert np.diff(found) == pytest.approx(np.diff(expected))


@pytest.mark.parametrize("common", [(), (0.9,)])
@pytest.mark.parametrize("paired", [True, False])
def test_draws_have_the_moments_of_the_posterior(paired: bool, common: tuple[float, ...]) -> None:
    losses = table(2, instances=12)
    model = MeanModel(losses, [matern(4)], paired=paired, common=common)
    draws = model.draw(40_000, np.random.default_rng(1))
    assert draws.mean(axis=0) == pytest.approx(model.means, abs=0.02)
    # Draws leave the uncertainty of the common level out.
    assert (draws.std(axis=0) <= 1.01 * model.spread).all()
    fits = [fit for weights, fit in zip(model._weights, model._fits, strict=True) if weights.any()]
    level = max(fit.data.level_variance for fit in fits) * model.noise**2
    assert (draws.var(axis=0) >= 0.94 * (model.spread**2 - 1.1 * level)).all()


@pytest.mark.parametrize(("which", "share"), [(1, 0.0), (3, 0.6)])
def test_draws_at_one_ratio_are_correlated_as_the_regression_says(which: int, share: float) -> None:
    losses, place = table(3), PLACES[1]
    fit = MeanModel(losses, [matern(4)], common=[0.6])._fits[which]
    freedom = 10_000_000  # the noise is known
    fit = replace(fit, data=replace(fit.data, freedom=freedom))
    draws = fit.draw(np.full(60_000, place), np.random.default_rng(2))
    _, covariance = regression(losses, matern(4), ratio_at(place, losses), True, share)
    relative = np.eye(4) - fit.data.share
    expected = relative @ covariance[-4:, -4:] @ relative.T * fit.sums[place] / freedom
    assert np.cov(draws.T) == pytest.approx(expected, abs=0.02 * expected.max())


def test_noise_that_neighbours_share_does_not_hide_their_difference() -> None:
    rng = np.random.default_rng(5)
    smooth = np.linalg.cholesky(matern(4) + 1e-9 * np.eye(4))
    losses = np.array([0.0, 0.1, 0.2, 0.3]) + (rng.normal(size=(12, 4)) @ smooth.T) + 0.01 * rng.normal(size=(12, 4))
    alone, shared = MeanModel(losses, [matern(4)]), MeanModel(losses, [matern(4)], common=[0.5, 0.9, 0.99])
    assert shared.noise_of_differences(0)[0] == 0
    near, _, far = shared.noise_of_differences(0)[1:]
    assert alone.noise_of_differences(0)[1:] == pytest.approx(np.sqrt(2) * alone.noise)
    assert near < np.sqrt(2) * alone.noise < far


def test_the_same_seed_gives_the_same_draws() -> None:
    model = MeanModel(table())
    one, other = (model.draw(50, np.random.default_rng(3)) for _ in range(2))
    assert (one == other).all()


# Symmetries


def summary(losses: FloatArray) -> FloatArray:
    model = MeanModel(losses, [matern(losses.shape[1])])
    return np.array([*model.means, *model.spread, model.noise])


def test_a_shift_of_an_instance_changes_nothing_but_the_level() -> None:
    losses = table(4)
    shifts = np.array([0.0, 50.0, -3.0, 7.0, 1.0])
    before, after = summary(losses), summary(losses + shifts[:, None])
    before[:4] += shifts.mean()
    assert after == pytest.approx(before)


def test_permuting_algorithms_permutes_the_means() -> None:
    losses, order = table(5), np.array([2, 0, 3, 1])
    one, other = MeanModel(losses, [matern(4)]), MeanModel(losses[:, order], [matern(4)[np.ix_(order, order)]])
    assert other.means == pytest.approx(one.means[order])
    assert other.spread == pytest.approx(one.spread[order])


@pytest.mark.parametrize("factor", [1e-300, 3.0, 1e300])
def test_scaling_scales(factor: float) -> None:
    losses = table(6)
    assert summary(factor * losses) / factor == pytest.approx(summary(losses))


def test_the_number_of_an_unpaired_repetition_means_nothing() -> None:
    losses = table(7, missing=0.0)
    shuffled = np.random.default_rng(4).permuted(losses, axis=0)
    one, other = MeanModel(losses, paired=False), MeanModel(shuffled, paired=False)
    assert other.means == pytest.approx(one.means)
    assert other.noise == pytest.approx(one.noise)


# Shrinkage


def test_the_mean_of_a_few_instances_is_drawn_further_towards_the_level() -> None:
    rng = np.random.default_rng(5)
    losses = rng.normal(size=(12, 10)) + rng.normal(size=10)
    losses[:, 0], losses[:, 1] = losses[:, 2:].mean(axis=1) - 2, losses[:, 2:].mean(axis=1) - 2
    losses[2:, 1] = np.nan  # stopped after two instances
    model = MeanModel(losses)
    assert model.means[0] < model.means[1] < model.means[2:].mean()
    assert model.spread[1] > model.spread[0]


def test_noise_alone_is_drawn_to_one_level() -> None:
    losses = np.random.default_rng(6).normal(size=(10, 40))
    assert np.ptp(MeanModel(losses).means) < 0.5 * np.ptp(losses.mean(axis=0))


def test_neighbours_inform_each_other() -> None:
    rng = np.random.default_rng(7)
    places = np.linspace(0, 1, 30)
    truth = np.sin(6 * places)
    losses = truth + rng.normal(size=(4, 30))
    scaled = np.sqrt(5) * np.abs(places[:, None] - places) / 0.4
    alone, together = MeanModel(losses), MeanModel(losses, [(1 + scaled + scaled**2 / 3) * np.exp(-scaled)])

    def error(model: MeanModel) -> float:
        return float(np.std(model.means - truth))

    assert error(together) < 0.7 * error(alone)
    assert together.spread.mean() < alone.spread.mean()


def test_an_algorithm_that_is_worse_by_far_does_not_hide_the_others() -> None:
    rng = np.random.default_rng(8)
    truth = np.linspace(0, 1, 8)
    losses = truth + 0.01 * rng.normal(size=(10, 8))
    worse = np.column_stack([losses, 1e4 + 0.01 * rng.normal(size=10)])
    model = MeanModel(worse)
    assert model.noise == pytest.approx(0.01, rel=0.3)
    assert model.means[:8] == pytest.approx(truth, abs=0.02)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(9)
    inside = []
    for _ in range(60):
        truth = rng.normal(size=10)
        losses = truth + rng.normal(size=(5, 10)) + 3 * rng.normal(size=(5, 1))
        draws = MeanModel(losses).draw(500, rng)
        # Differences from the mean of all: the level is that of the instances in the data.
        low, high = np.quantile(draws - draws.mean(axis=1, keepdims=True), [0.05, 0.95], axis=0)
        inside.append((low < truth - truth.mean()) & (truth - truth.mean() < high))
    assert np.mean(inside) == pytest.approx(0.9, abs=0.04)


# The ends of the range


def test_losses_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected finite losses, or nan where there is none"):
        MeanModel(np.array([[1.0, np.inf], [1.0, 2.0]]))


@pytest.mark.parametrize(
    "losses", [np.ones((3, 1)), np.array([[1.0, np.nan], [np.nan, 2.0]]), np.full((2, 2), np.nan), np.empty((0, 3))]
)
def test_two_algorithms_must_meet_on_an_instance(losses: FloatArray) -> None:
    with pytest.raises(InvalidInputError, match="expected an instance on which two algorithms were run, got none"):
        MeanModel(losses)


def test_instances_without_any_loss_do_not_count() -> None:
    losses = table(10)
    assert summary(np.vstack([losses, np.full(4, np.nan)])) == pytest.approx(summary(losses))


def test_one_instance_says_who_was_better_and_hardly_how_surely() -> None:
    model = MeanModel(np.array([[1.0, 2.0, 3.0]]))
    best = (model.draw(4000, np.random.default_rng(10)).argmin(axis=1) == 0).mean()
    assert model.means[0] < model.means[1] < model.means[2]
    assert 1 / 3 < best < 0.85


def test_identical_losses_are_a_tie() -> None:
    for losses in (np.ones((4, 3)), np.zeros((4, 3)), np.ones((4, 3)) * np.arange(4.0)[:, None]):
        model = MeanModel(losses)
        assert model.means == pytest.approx(losses.mean(axis=0))
        assert model.noise < 1e-10
        best = np.bincount(model.draw(4000, np.random.default_rng(11)).argmin(axis=1), minlength=3) / 4000
        assert best == pytest.approx([1 / 3] * 3, abs=0.05)


def test_differences_without_noise_are_exact() -> None:
    model = MeanModel(np.arange(3.0) + 10 * np.arange(8.0)[:, None])
    assert model.means == pytest.approx(np.arange(3.0) + 35, abs=1e-3)
    assert model.noise < 1e-3


def test_the_noise_is_at_least_that_of_rounding() -> None:
    losses = np.repeat([[1.0, 2.0, 4.0]], 20, axis=0)
    model = MeanModel(losses, paired=False, resolution=1.0)
    assert model.noise == pytest.approx(1 / np.sqrt(12), rel=0.1)
    rough = table(11)
    assert MeanModel(rough, resolution=0.01).noise == MeanModel(rough).noise


def test_an_algorithm_without_any_run_has_the_level_and_a_wide_spread() -> None:
    losses = np.column_stack([table(12, missing=0.0), np.full(5, np.nan)])
    model = MeanModel(losses)
    assert model.means[4] == pytest.approx(model.means[:4].mean())
    assert model.spread[4] > model.spread[:4].max()


def test_two_algorithms_are_compared_as_by_a_t_test_and_no_surer() -> None:
    rng = np.random.default_rng(12)
    losses = rng.normal(size=(20, 2)) + [0.0, 5.0] + 10 * rng.normal(size=(20, 1))
    model = MeanModel(losses)
    differences = losses[:, 1] - losses[:, 0]
    found = np.diff(model.draw(20_000, rng), axis=1).ravel()
    assert found.mean() == pytest.approx(differences.mean(), abs=0.1)
    t_test = stats.t(19, scale=stats.sem(differences)).std()
    assert t_test < found.std() < 1.15 * t_test
