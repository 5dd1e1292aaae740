from __future__ import annotations

import numpy as np
import pytest
from builders import table_of

from polarbear_plugins.inference.fitting import scaled_time
from polarbear_plugins.inference.native import precision
from polarbear_plugins.inference.native.temporal import GridPoint, Modes
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
    table = table_of(values)
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
