"""Engines that run in PyMC: the reference for the native engine, and for users' own priors.

All of them use the same model as the native engine.  NUTS draws from its posterior; the others draw from an
approximation, and estimate how far it is from the posterior.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError, PolarBearError, reason
from polarbear_plugins.inference.native.importance import resample, smooth_weights
from polarbear_plugins.inference.pymc.model import build_model, convert, load, silence_pymc, unpack, variable_shapes
from polarbear_plugins.inference.task import Draws, Engine, Task
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.priors import Dirichlet, TemporalPrior
from polarbear_plugins.priors.base import check_positive

Sampler: TypeAlias = Literal["auto", "nutpie", "pymc"]

# Importance weights with a heavier tail than this are useless, even to estimate the error of an approximation.
_LARGEST_K = 0.7
# Largest error of the probability of any event in draws that count as good.
_LARGEST_ERROR = 0.05
# Effective draws that bulk estimates need; fewer for small samples.
_ENOUGH_DRAWS = 400.0
# One divergence in this many draws can be chance.
_DRAWS_PER_DIVERGENCE = 1000


def nuts(
    task: Task,
    *,
    chains: int = 4,
    tune: int = 1000,
    target_accept: float | None = None,
    sampler: Sampler = "auto",
    cores: int | None = None,
    progress: bool = False,
) -> Draws:
    """Draws by the No-U-Turn sampler.

    Parameters
    ----------
    chains, tune
        Number of chains, and of tuning steps of each, which are discarded.
    target_accept
        Acceptance rate to tune for; 0.8 by default, and 0.9 for temporal priors.
    sampler
        ``"nutpie"``, which compiles longer and samples faster, or ``"pymc"``; ``"auto"`` takes nutpie if installed.
    cores
        Number of chains to run at a time; by default the number of cores.
    progress
        Whether to show progress bars and messages.
    """
    who = 'engine="nuts"'
    chains = as_whole_number(chains, "nuts: chains", at_least=1)
    tune = as_whole_number(tune, "nuts: tune", at_least=0)
    cores = None if cores is None else as_whole_number(cores, "nuts: cores", at_least=1)
    if target_accept is None:
        target_accept = 0.9 if isinstance(task.prior, TemporalPrior) else 0.8
    target_accept = as_number(target_accept, "nuts: target_accept")
    if not 0 < target_accept < 1:
        raise InvalidInputError(f"nuts: target_accept must lie between 0 and 1, got {target_accept:g}.")
    if sampler not in get_args(Sampler):
        raise InvalidInputError(f"nuts: sampler: expected {', '.join(get_args(Sampler))}, got {sampler!r}.")
    if sampler == "auto":
        sampler = "nutpie" if importlib.util.find_spec("nutpie") else "pymc"
    how = {"draws": -(-task.draws // chains), "tune": tune, "chains": chains, "target_accept": target_accept}
    with silence_pymc(who, progress):
        model = build_model(task, who=who)
        if sampler == "nutpie":
            nutpie = load("nutpie", who)
            compiled = nutpie.compile_pymc_model(model, backend="numba")
            trace = nutpie.sample(
                compiled, **how, cores=cores, seed=_seeds(task)[0], save_warmup=False, progress_bar=progress
            )
        else:
            trace = load("pymc", who).sample(
                **how,
                cores=cores,
                model=model,
                random_seed=_seeds(task)[0],
                progressbar=progress,
                compute_convergence_checks=False,  # done below
            )
    _check_finished(trace, int(how["draws"]))
    points = {name: _interleave_chains(np.asarray(trace.posterior[name])) for name in variable_shapes(model)}
    utilities, hyperparameters = convert(task, points)
    divergences = int(np.asarray(trace.sample_stats["diverging"]).sum())
    r_hat, effective = _chain_diagnostics(utilities, hyperparameters, chains)
    problems = _chain_problems(r_hat, effective, divergences, len(utilities))
    return Draws(
        utilities=utilities[: task.draws],
        hyperparameters={name: values[: task.draws] for name, values in hyperparameters.items()},
        diagnostics=Diagnostics(
            engine="nuts",
            route=f"{chains} chains of {how['draws']} draws by {sampler}",
            good=not problems,
            problems=problems,
            effective_draws=effective,
            r_hat=r_hat,
            divergences=divergences,
        ),
    )


def _check_finished(trace: Any, draws: int) -> None:
    """Raise KeyboardInterrupt again: both samplers catch it and return the draws made so far."""
    posterior = getattr(trace, "posterior", None)
    if (
        posterior is None
        or posterior.sizes.get("draw", 0) < draws
        or any(np.isnan(np.asarray(values)).any() for values in posterior.data_vars.values())
    ):
        raise KeyboardInterrupt


def pathfinder(task: Task, *, paths: int = 4, jitter: float = 0.5, progress: bool = False) -> Draws:
    """Draws by Pathfinder: normal approximations along the way of a quasi-Newton search, chosen by importance.

    Parameters
    ----------
    paths
        Number of searches.
    jitter
        Largest distance of the start of a search from the start of the model.
    progress
        Whether to show progress bars and messages.
    """
    who = 'engine="pathfinder"'
    paths = as_whole_number(paths, "pathfinder: paths", at_least=1)
    jitter = check_positive(jitter, "pathfinder: jitter")
    seed, choice = _seeds(task)
    with silence_pymc(who, progress):
        model = build_model(task, who=who)
        with _naming_failure(who, ValueError):
            found = load("pymc_extras", who).fit(
                method="pathfinder",
                model=model,
                num_paths=paths,
                num_draws_per_path=max(1000, task.draws),
                jitter=jitter,
                importance_sampling=None,  # its own ignores the weights if as many are drawn as there are
                store_diagnostics=True,
                random_seed=seed,
                progressbar=progress,
                display_summary=progress,
                concurrent=None,  # a path takes less time than a process to start
            )
    densities = [np.asarray(found.sample_stats[f"diagnostics_log{which}_full"]) for which in "PQ"]
    log_weights = np.subtract(*densities).ravel()
    weights, k_hat, effective = _weigh(log_weights)
    rng = np.random.default_rng(choice)
    problems: tuple[str, ...] = ()
    if k_hat <= _LARGEST_K:
        chosen = resample(weights, task.draws, rng)
    else:
        # A few points have all the weight.  Drawing without replacement was nearer to the posterior when tried.
        problems = (_too_far_message(k_hat),)
        chosen = np.argsort(-log_weights - rng.gumbel(size=log_weights.size))[: task.draws]
    points = {name: np.concatenate(np.asarray(found.posterior[name]))[chosen] for name in variable_shapes(model)}
    utilities, hyperparameters = convert(task, points)
    return Draws(
        utilities=utilities,
        hyperparameters=hyperparameters,
        diagnostics=Diagnostics(
            engine="pathfinder",
            route=f"{paths} paths, importance resampling",
            good=not problems,
            problems=problems,
            k_hat=k_hat,
            effective_draws=min(effective, float(task.draws)),
        ),
    )


def laplace(task: Task, *, progress: bool = False) -> Draws:
    """Draws from the normal distribution at the mode of the posterior."""
    who = 'engine="laplace"'
    with silence_pymc(who, progress):
        model = build_model(task, who=who)
        with _naming_failure(who, np.linalg.LinAlgError):
            found = load("pymc_extras", who).find_MAP(
                # With the default method the covariance would be the rough estimate of BFGS.
                method="trust-ncg",
                use_hess=True,
                compute_hessian=True,
                # The default, 1e-8, is below the rounding error of the gradient of a large table.
                options={"gtol": 1e-4},
                model=model,
                freeze_model=False,  # not possible with start values, and there is nothing to freeze
                progressbar=progress,
            )
        problems = () if bool(found.optimizer_result["success"]) else ("the search for the mode did not converge",)
        mean, covariance = (np.asarray(found.fit[name]) for name in ("mean_vector", "covariance_matrix"))
        return _normal_draws(task, model, mean, covariance, "laplace", "normal at the mode", problems)


def advi(task: Task, *, iterations: int = 30_000, progress: bool = False) -> Draws:
    """Draws from the independent normal distributions that come closest to the posterior.

    Parameters
    ----------
    iterations
        Number of stochastic gradient steps.
    progress
        Whether to show progress bars and messages.
    """
    return _variational(task, "advi", iterations, progress)


def fullrank_advi(task: Task, *, iterations: int = 30_000, progress: bool = False) -> Draws:
    """Draws from the multivariate normal distribution that comes closest to the posterior.

    Parameters
    ----------
    iterations, progress
        As for :func:`advi`.
    """
    return _variational(task, "fullrank-advi", iterations, progress)


#: The engines by name.
PYMC_ENGINES: dict[str, Engine] = {
    "nuts": nuts,
    "pathfinder": pathfinder,
    "laplace": laplace,
    "advi": advi,
    "fullrank-advi": fullrank_advi,
}


def _variational(task: Task, engine: str, iterations: int, progress: bool) -> Draws:
    """Draws from the normal distribution with the least divergence from the posterior."""
    who = f'engine="{engine}"'
    iterations = as_whole_number(iterations, f"{engine}: iterations", at_least=1)
    with silence_pymc(who, progress):
        model = build_model(task, who=who)
        with _naming_failure(who, FloatingPointError):
            # The default optimizer is slow, but with faster ones noise kept the fit away from the posterior.
            found = load("pymc", who).fit(
                iterations,
                method=engine.replace("-", "_"),
                model=model,
                random_seed=_seeds(task)[0],
                progressbar=progress,
            )
        problems = (f"it was still improving after {iterations} iterations",) if _is_falling(found.hist) else ()
        mean, covariance = found.mean.eval(), found.cov.eval()
        return _normal_draws(task, model, mean, covariance, engine, f"{iterations} iterations", problems)


def _normal_draws(
    task: Task,
    model: Any,
    mean: FloatArray,
    covariance: FloatArray,
    engine: str,
    route: str,
    problems: tuple[str, ...],
) -> Draws:
    """Draws from a normal approximation, checked against the posterior by importance weights."""
    rng = np.random.default_rng(_seeds(task)[1])
    with _naming_failure(f'engine="{engine}"', np.linalg.LinAlgError):
        factor = np.linalg.cholesky(covariance)
    flat = mean + rng.standard_normal((task.draws, mean.size)) @ factor.T
    points = unpack(flat, variable_shapes(model))
    # Under the Dirichlet prior timepoints are independent, and each has its own weights.
    parts = task.statistics.timepoints if isinstance(task.prior, Dirichlet) else 1
    densities = _log_densities(model, points, parts)
    k_hat, effective, error = 0.0, float(task.draws), 0.0
    for density, part in zip(densities.T, np.array_split(np.arange(mean.size), parts), strict=True):
        proposed = _log_normal(flat[:, part] - mean[part], covariance[np.ix_(part, part)])
        weights, k_here, effective_here = _weigh(density - proposed)
        k_hat, effective = max(k_hat, k_here), min(effective, effective_here)
        # The total variation distance bounds the error of the probability of any event.
        error = max(error, 0.5 * float(np.abs(weights - 1 / weights.size).sum()))
    if k_hat > _LARGEST_K:
        problems += (_too_far_message(k_hat),)
    elif error > _LARGEST_ERROR:
        problems += (f"probabilities may be off by up to {error:.2f} in this approximation",)
    utilities, hyperparameters = convert(task, points)
    return Draws(
        utilities=utilities,
        hyperparameters=hyperparameters,
        diagnostics=Diagnostics(
            engine=engine, route=route, good=not problems, problems=problems, k_hat=k_hat, effective_draws=effective
        ),
    )


def _log_densities(model: Any, points: Mapping[str, FloatArray], parts: int) -> FloatArray:
    """Log-density of the posterior at each point: of each timepoint, or as a whole."""
    density = model.compile_logp(sum=False)
    values = np.empty((len(next(iter(points.values()))), parts))
    for draw in range(len(values)):
        terms = density({name: value[draw] for name, value in points.items()})
        values[draw] = terms[-1] if parts > 1 else sum(float(np.sum(term)) for term in terms)
    return values


def _log_normal(deviations: FloatArray, covariance: FloatArray) -> FloatArray:
    """Log-density of a normal distribution up to a constant."""
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), deviations.T)
    return -0.5 * (whitened**2).sum(axis=0)


def _too_far_message(k_hat: float) -> str:
    return (
        f"the approximation is too far from the posterior to tell how far (Pareto k {k_hat:.2f}, above {_LARGEST_K:g})"
    )


def _weigh(log_weights: FloatArray) -> tuple[FloatArray, float, float]:
    """Smoothed weights, their k-hat and the effective number of draws; points without a density get no weight."""
    known = np.isfinite(log_weights)
    if not known.any():
        return np.full(log_weights.size, 1 / log_weights.size), math.inf, 0.0
    return smooth_weights(np.where(known, log_weights, log_weights[known].min() - 1000.0))


def _is_falling(losses: FloatArray) -> bool:
    """Whether losses were lower in the last tenth than in the tenth before, beyond chance."""
    losses = losses[np.isfinite(losses)]
    count = len(losses) // 10
    if count < 2:
        return True
    before, late = losses[-2 * count : -count], losses[-count:]
    noise = math.sqrt((np.var(before) + np.var(late)) / count)
    return bool(np.mean(before) - np.mean(late) > 3 * noise)


def _chain_diagnostics(
    utilities: FloatArray, hyperparameters: Mapping[str, FloatArray], chains: int
) -> tuple[float, float]:
    """R-hat and effective draws of the log-ratings and hyperparameters, the worst of all."""
    # Imported late, since it imports much of scipy.
    array_stats = importlib.import_module("arviz_stats.base").array_stats
    shifted = utilities - utilities.max(axis=-1, keepdims=True)
    log_ratings = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    columns = [log_ratings.reshape(len(utilities), -1), *(values[:, None] for values in hyperparameters.values())]
    watched = np.concatenate(columns, axis=1).T.reshape(-1, len(utilities) // chains, chains)
    r_hat = np.max(array_stats.rhat(watched, chain_axis=-1, draw_axis=-2))
    effective = np.min(array_stats.ess(watched, chain_axis=-1, draw_axis=-2))
    return float(r_hat), float(effective)


def _chain_problems(r_hat: float, effective: float, divergences: int, draws: int) -> tuple[str, ...]:
    """Problems of the chains, in words."""
    problems = []
    # With few draws R-hat exceeds 1.01 by chance, and the largest of many does so more often.
    largest, enough = min(max(1.01, 1 + 16 / draws), 1.05), min(_ENOUGH_DRAWS, draws / 4)
    if not r_hat <= largest:
        problems.append(f"the chains disagree (R-hat {r_hat:.3f}, above {largest:g})")
    if not effective >= enough:
        problems.append(f"the draws are worth only {effective:.0f} independent ones, below {enough:.0f}")
    if divergences * _DRAWS_PER_DIVERGENCE > draws:
        problems.append(f"{divergences} of {draws} draws diverged (a higher target_accept may help)")
    return tuple(problems)


def _interleave_chains(values: FloatArray) -> FloatArray:
    """``values[chain, draw, ...]`` as one axis that alternates between chains, so that truncation cuts all alike."""
    return np.swapaxes(values, 0, 1).reshape(-1, *values.shape[2:])


@contextmanager
def _naming_failure(who: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn the errors of a failed search into one line that names the engine."""
    try:
        yield
    except PolarBearError:
        raise
    except kinds as problem:
        raise PolarBearError(
            f'{who} failed: {reason(problem).rstrip(".")}. Use engine="native" or engine="nuts".'
        ) from problem


def _seeds(task: Task) -> tuple[int, int]:
    """Seeds for the search or the chains, and for the draws afterwards."""
    first, second = task.seed.generate_state(2)
    return int(first), int(second)
