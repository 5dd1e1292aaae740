"""The native engine: every prior of the package, on numpy and scipy alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from threadpoolctl import threadpool_limits

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.native.hierarchical import sample_hierarchical
from polarbear_plugins.inference.native.independent import Timepoint, sample_timepoints
from polarbear_plugins.inference.native.temporal import sample_temporal
from polarbear_plugins.inference.task import Draws, Task
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.priors import Dirichlet, HierarchicalDirichlet, TemporalPrior


def native(task: Task, *, temper: bool = False) -> Draws:
    """Compute a posterior by importance sampling from a Gaussian approximation, or by tempering from it.

    Parameters
    ----------
    temper
        Whether to temper under a temporal prior even where importance sampling suffices.
    """
    # One BLAS thread: the products are small, and several threads would be slower and round differently.
    with threadpool_limits(1, user_api="blas"):
        if isinstance(task.prior, Dirichlet):
            return _dirichlet(task, task.prior)
        if isinstance(task.prior, HierarchicalDirichlet):
            return _hierarchical(task, task.prior)
        if isinstance(task.prior, TemporalPrior):
            return sample_temporal(task, temper=temper)
    raise InvalidInputError(f"The native engine does not support the prior {task.prior!r}.")


def _dirichlet(task: Task, prior: Dirichlet) -> Draws:
    statistics = task.statistics.with_dirichlet(prior.alpha)
    starts = task.start if isinstance(task.start, np.ndarray) else None
    if starts is not None and starts.shape != (statistics.timepoints, statistics.algorithms):
        starts = None
    done = sample_timepoints(statistics, task.draws, task.seed.spawn(statistics.timepoints), starts)
    return Draws(
        utilities=np.stack([timepoint.utilities for timepoint in done], axis=1),
        diagnostics=_diagnostics(done),
        state=np.array([timepoint.mode for timepoint in done]),
    )


def _diagnostics(done: list[Timepoint]) -> Diagnostics:
    routes = [timepoint.route for timepoint in done]
    poor = [place for place, timepoint in enumerate(done) if timepoint.problems]
    moved = [timepoint for timepoint in done if timepoint.moves]
    return Diagnostics(
        engine="native",
        route=", ".join(f"{routes.count(route)} timepoints by {route}" for route in dict.fromkeys(routes)),
        good=not poor,
        problems=_problems(done, poor),
        k_hat=max((t.k_hat for t in done if t.k_hat is not None), default=None),
        effective_draws=min(timepoint.effective for timepoint in done),
        moves=max(timepoint.moves for timepoint in done),
        acceptance=min((t.acceptance for t in moved if t.acceptance is not None), default=None),
        memory=max((t.memory for t in moved if t.memory is not None), default=None),
    )


def _problems(done: list[Timepoint], poor: list[int]) -> tuple[str, ...]:
    if not poor:
        return ()
    return (f"at {len(poor)} timepoints, first at number {poor[0]}, {'; '.join(done[poor[0]].problems)}",)


def _hierarchical(task: Task, prior: HierarchicalDirichlet) -> Draws:
    done = sample_hierarchical(task.statistics, prior.rate, task.draws, task.seed)
    diagnostics = _diagnostics(done.sampled)
    return Draws(
        utilities=done.utilities,
        hyperparameters={"log_kappa": done.log_kappa},
        diagnostics=replace(
            diagnostics,
            route=f"{done.anchors} values of kappa, {diagnostics.route}",
            good=diagnostics.good and not done.problems,
            problems=diagnostics.problems + done.problems,
        ),
    )
