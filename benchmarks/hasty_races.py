"""Races that rank whatever has finished: the mistake that a schedule without barriers invites.

What has finished early is not a fair sample where speed and quality are correlated.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
from recorded_races import Truth, look
from schedule_replays import Pool, Setup

from polarbear_plugins import RaceSettings, RankingTable
from polarbear_plugins.racing.rules import last_unresolved
from polarbear_plugins.racing.state import Order, RaceState, start_race

#: ``"complete"``: instances are ranked in the order in which their last run ends.  ``"partial"``: every instance is
#: ranked as far as its runs have ended.
MISTAKES = ("complete", "partial")


def race_hastily(truth: Truth, settings: RaceSettings, full: np.ndarray, workers: int, mistake: str) -> RaceState:
    """Race over the instances of ``full``, deciding as soon as enough has finished, whatever it is."""
    timepoints = np.arange(1.0, truth.values.shape[1] + 1)
    state = start_race(truth.names, timepoints, settings)
    pool = Pool(Setup(workers), full, float(timepoints[-1]), truth.names)
    seen = np.full((len(full), *truth.values.shape[1:]), np.nan)
    waiting = _instance_by_instance(state, pool, len(full))
    ranked: list[int] = []  # places of the instances, in the order of their rankings
    now, since, names = 0.0, 0, last_unresolved(state)
    while names:
        for order in itertools.islice(waiting, pool.free):
            pool.begin(order, now)
        ended = pool.end_next()
        if ended is not None:
            now, order = ended
            steps, column = int(order.until), truth.names.index(order.algorithm)
            seen[order.instance, :steps, column] = truth.values[order.instance, :steps, column]
            whole = all((name, order.instance) in pool.finished for name in names)
            since += whole if mistake == "complete" else 1
        if ended is None or since >= state.batch * (1 if mistake == "complete" else len(names)):
            ranked += [place for place in _rankable(seen, pool, names, mistake) if place not in set(ranked)]
            table = RankingTable(truth.names, timepoints).extended(seen[ranked], [f"i{place}" for place in ranked])
            state = look(replace(state, table=table))
            since, names = 0, last_unresolved(state)
            pool.stop(now, lambda order, names=names: order.algorithm not in names)
            waiting = _instance_by_instance(state, pool, len(full))
        if ended is None:
            break
    return state


def _rankable(seen: np.ndarray, pool: Pool, names: Collection[str], mistake: str) -> list[int]:
    """Places of instances on which all algorithms have finished, or any two."""
    if mistake == "complete":
        return [place for place in range(len(seen)) if all((name, place) in pool.finished for name in names)]
    return np.flatnonzero((~np.isnan(seen[:, 0])).sum(axis=1) >= 2).tolist()


def _instance_by_instance(state: RaceState, pool: Pool, count: int) -> Iterator[Order]:
    until = {name: float(state.timepoints[place]) for name, place in last_unresolved(state).items()}
    for place, (name, time) in itertools.product(range(count), until.items()):
        if (name, place) not in pool.begun:
            yield Order(name, place, time)
