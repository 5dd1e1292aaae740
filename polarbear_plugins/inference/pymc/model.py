"""The PyMC model of a task, with the same density as that of the native engine."""

from __future__ import annotations

import functools
import logging
import math
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.inference.task import Task
from polarbear_plugins.plackett_luce.likelihood import Likelihood, helmert
from polarbear_plugins.priors import Dirichlet, HierarchicalDirichlet, TemporalPrior

# Names of numpy functions that PyTensor calls differently.
_OTHER_NAMES = {
    "absolute": "abs",
    "array": "as_tensor",
    "asarray": "as_tensor",
    "concat": "concatenate",
    "divide": "true_div",
    "multiply": "mul",
    "negative": "neg",
    "subtract": "sub",
}


class _Symbolic:
    """PyTensor under numpy's names, for the methods of a prior."""

    def __init__(self, pytensor_module: Any, numpy_module: Any = np) -> None:
        self._pytensor, self._numpy = pytensor_module, numpy_module

    def __getattr__(self, name: str) -> Any:
        if name == "linalg":
            return _Symbolic(self._pytensor.linalg, np.linalg)
        function = getattr(self._pytensor, _OTHER_NAMES.get(name, name), None)
        if function is not None:
            return function
        constant = getattr(self._numpy, name, ...)
        if constant is None or isinstance(constant, type | float):
            return constant  # newaxis, float64, pi
        raise AttributeError(
            f"A prior uses {self._numpy.__name__}.{name}, and PyTensor, which runs it symbolically, has no function of "
            'that name. Use another function, or engine="native".'
        )


def build_model(task: Task, *, who: str = "build_model") -> Any:
    """PyMC model of a task, with the same density as that of the native engine.

    Its variables are unconstrained: ``eta[timepoint, contrast]`` under Dirichlet priors, together with ``log_kappa``
    under the hierarchical one; ``u[coefficient, contrast]`` and the hyperparameters ``phi`` under temporal priors.

    Parameters
    ----------
    who
        What needs PyMC; named in the error if it is missing.
    """
    pm, pt = load("pymc", who), load("pytensor.tensor", who)
    still = load("pytensor.gradient", who).disconnected_grad
    statistics, prior = task.statistics, task.prior
    timepoints, n = statistics.timepoints, statistics.algorithms
    if n < 2:
        raise InvalidInputError(f"{who}: needs at least two algorithms, got {n}.")
    if statistics.ties:
        largest = max(tie.block.size for tie in statistics.ties)
        raise InvalidInputError(
            f"{who}: ties of up to {largest} algorithms are too large for the PyMC engines. "
            'Use engine="native", which integrates over them.'
        )
    likelihood = Likelihood(statistics)
    with pm.Model() as model:
        if isinstance(prior, Dirichlet | HierarchicalDirichlet):
            eta = pm.Flat("eta", shape=(timepoints, n - 1))
        elif isinstance(prior, TemporalPrior):
            eta = _temporal(prior, task, n - 1, pm, pt)
        else:
            raise InvalidInputError(
                f"{who}: prior {prior.name!r} is neither a Dirichlet prior nor a TemporalPrior "
                "(hyperparameters, start, factor, log_hyperprior)."
            )
        utilities = pt.dot(eta, helmert(n).T)
        # The density is invariant under a shift of all utilities, and so is its gradient.
        shifted = utilities - still(utilities.max(axis=1, keepdims=True))
        theta = pt.exp(shifted)
        density = (shifted * likelihood.wins).sum(axis=1) - pt.concatenate(
            [
                (pt.log(pt.dot(theta[block.timepoints], block.members_of(slice(None)).T)) * block.counts).sum(axis=1)
                for block in likelihood.blocks
            ]
        )
        # A Dirichlet(alpha) prior of the ratings, in the space of the utilities: alpha times the sum of log-ratings.
        log_ratings = shifted.sum(axis=1) - n * pt.log(theta.sum(axis=1))
        if isinstance(prior, Dirichlet):
            density += prior.alpha * log_ratings
        elif isinstance(prior, HierarchicalDirichlet):
            log_kappa = pm.Flat("log_kappa", shape=())
            kappa = pt.exp(log_kappa)
            density += pt.gammaln(kappa) - n * pt.gammaln(kappa / n) + kappa / n * log_ratings
            pm.Potential("hyperprior", math.log(prior.rate) + log_kappa - prior.rate * kappa)
        pm.Potential("rankings", density)  # one entry for each timepoint; PyMC sums them
    return model


def _temporal(prior: TemporalPrior, task: Task, contrasts: int, pm: Any, pt: Any) -> Any:
    """Latent functions under a temporal prior."""
    time = task.time
    start = np.asarray(prior.start, dtype=np.float64)
    coefficients = prior.factor(start, time).shape[1]
    if start.size:
        phi, xp = pm.Flat("phi", shape=start.shape, initval=start), _Symbolic(pt)
        pm.Potential("hyperprior", pt.as_tensor(prior.log_hyperprior(phi, xp)).sum())
        factor = prior.factor(phi, time, xp)
        if task.evidence_shift is not None:
            pm.Potential("evidence_shift", task.evidence_shift(factor, functools.partial(_log_normal, pt)))
    else:
        factor = prior.factor(start, time)
    u = pm.Normal("u", 0.0, 1.0, shape=(coefficients, contrasts))
    return pt.dot(factor, u)


def _log_normal(pt: Any, x: FloatArray, covariance: Any) -> Any:
    """Log-density of a normal vector up to a constant, for a symbolic covariance."""
    # By the determinant: the gradient of a Cholesky factor takes twice as long, or a hundred times as long where BLAS
    # solves triangular systems of this size in several threads.
    return -0.5 * pt.dot(x, pt.linalg.solve(covariance, x, assume_a="pos")) - 0.5 * pt.linalg.slogdet(covariance)[1]


def convert(task: Task, points: Mapping[str, FloatArray]) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Utilities and hyperparameters at points of the model's variables."""
    contrasts = helmert(task.statistics.algorithms).T
    prior = task.prior
    if not isinstance(prior, TemporalPrior):
        return points["eta"] @ contrasts, {name: values for name, values in points.items() if name != "eta"}
    u = points["u"]
    phi = points.get("phi", np.empty((len(u), 0)))
    latent = np.stack([prior.factor(at, task.time) @ weights for at, weights in zip(phi, u, strict=True)])
    return latent @ contrasts, dict(zip(prior.hyperparameters, phi.T, strict=True))


def variable_shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the variables, in the order in which they are packed into one vector."""
    return {variable.name: variable.type.shape for variable in model.free_RVs}


def unpack(flat: FloatArray, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    """Variables of vectors ``flat[draw, entry]``."""
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
    pieces = np.split(flat, ends[:-1], axis=1)
    return {name: piece.reshape(len(flat), *shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)}


def seeds(task: Task) -> tuple[int, int]:
    """Seeds for the search or the chains, and for the draws afterwards."""
    first, second = task.seed.generate_state(2)
    return int(first), int(second)


def load(module: str, who: str) -> Any:
    """Import a module of the extra ``pymc``."""
    with warnings.catch_warnings():
        # ArviZ, which PyMC imports, announces its next version at every import.
        warnings.filterwarnings("ignore", "\\s*ArviZ is undergoing a major refactor", FutureWarning)
        return require(module, extra="pymc", who=who)


@contextmanager
def silence_pymc(who: str, progress: bool = False) -> Iterator[None]:
    """Silence the messages of PyMC and its companions, unless ``progress`` is set."""
    load("pymc", who)  # importing sets the level of its logger, so it must come first
    loggers = [] if progress else [logging.getLogger(name) for name in ("pymc", "pymc_extras", "pytensor")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        # A search or a chain may step far out, where densities are 0, and steps back: not worth a warning.
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # Raised wherever PyTensor comes from PyPI; the matrices here are too small to need a BLAS library.
            warnings.filterwarnings("ignore", "PyTensor could not link to a BLAS installation", UserWarning)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
