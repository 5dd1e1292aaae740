"""PolarBear by the rules of the package, on runs that are known."""

from __future__ import annotations

import warnings
from dataclasses import replace
from importlib import metadata
from typing import Any

import numpy as np
from recorded_races import RecordedRace, RecordedRound
from schedule_replays import Setup, continuously

from polarbear_plugins import RaceSettings
from polarbear_plugins.errors import InferenceWarning, ModelWarning
from polarbear_plugins.racing.posteriors import infer
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.rules import decide, plan
from polarbear_plugins.racing.state import start_race
from rivals.contest import Contest, Verdict

_INFERENCE = 0.05  # seconds of a round's inference, where a run takes a second on average


def version() -> str:
    """Version of the package."""
    return f"polarbear-plugins {metadata.version('polarbear-plugins')}"


def polarbear(
    contest: Contest,
    seed: int,
    *,
    most: int = 300,
    affordable: int | None = None,
    workers: int | None = None,
    **settings: Any,
) -> Verdict:
    """Race with the given settings, the others being the defaults.

    With ``affordable`` a race may cost as much as all algorithms in full on so many instances.  With ``workers`` it has
    no barriers: the answer is that of rounds, and the cost includes what a simulation of so many workers with runs of
    about a second begins ahead of time.

    Each budget gets the algorithm in the Pareto set with the highest mean rating there, from the posterior that
    ``polarbear select`` chooses from: that of first places alone where the model does not fit.
    """
    values = contest.values[:most]
    if affordable is not None:
        settings["max_cost"] = affordable * len(contest.algorithms) * float(contest.timepoints[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        warnings.simplefilter("ignore", ModelWarning)
        race = _run(contest, values, RaceSettings(seed=seed, **settings))
        state = race.final
        result = RaceResult(state=state, stopped="analyzed", _posterior=infer(state, len(state.rounds), check=True))
        posterior = result.robust_posterior(result.pareto_set)
    kept = np.isin(contest.algorithms, result.pareto_set)
    ratings = posterior.ratings.mean(axis=0)[:, [posterior.algorithms.index(name) for name in result.pareto_set]]
    cost = state.cost
    if workers is not None:
        seconds = np.exp(0.2 * np.random.default_rng(seed).standard_normal((len(values), values.shape[2])))
        cost = continuously(race, seconds, Setup(workers)).cost
    return Verdict(kept, np.flatnonzero(kept)[ratings.argmax(axis=1)], cost)


def _run(contest: Contest, values: np.ndarray, settings: RaceSettings) -> RecordedRace:
    """Plan, look up the runs that are ordered, infer, decide, until the race is over."""
    names = contest.algorithms
    state = start_race(names, contest.timepoints, settings)
    rounds = []
    while not (planned := plan(state, len(values))).over:
        rows = sorted({order.instance for order in planned.orders})
        seen = np.full((len(rows), *values.shape[1:]), np.nan)
        for order in planned.orders:
            place = names.index(order.algorithm)
            until = int(np.searchsorted(contest.timepoints, order.until, side="right"))
            seen[order.instance - rows[0], :until, place] = values[order.instance, :until, place]
        table = state.table.extended(seen, [str(row) for row in rows])
        observed = replace(state, table=table, cost=state.cost + planned.cost)
        rounds.append(RecordedRound(state, planned.orders, _INFERENCE))
        state = decide(observed, infer(observed, len(state.rounds) + 1))
    return RecordedRace(len(values), rounds, state)
