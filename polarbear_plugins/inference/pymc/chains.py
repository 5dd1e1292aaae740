"""The No-U-Turn sampler, by PyMC or nutpie, and what its chains tell of their own quality."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.inference.pymc.model import build_model, convert, load, seeds, silence_pymc, variable_shapes
from polarbear_plugins.inference.task import Draws, Task
from polarbear_plugins.posterior.posterior import Diagnostics
from polarbear_plugins.priors import TemporalPrior

Sampler: TypeAlias = Literal["auto", "nutpie", "pymc"]

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
                compiled, **how, cores=cores, seed=seeds(task)[0], save_warmup=False, progress_bar=progress
            )
        else:
            trace = load("pymc", who).sample(
                **how,
                cores=cores,
                model=model,
                random_seed=seeds(task)[0],
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
