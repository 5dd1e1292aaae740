"""A race whose runs are started elsewhere, one at a time, and end in any order.

The caller hands over everything known and gets back where the race stands: the same data give the same answer in every
process.  The only state is a cache.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.posteriors import check_inference, infer
from polarbear_plugins.racing.rules import decide, enter, plan
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Order, RaceState, StopReason, start_race
from polarbear_plugins.rankings.stream import rank_cells
from polarbear_plugins.trajectories.timepoints import as_timepoints

# Finished runs of each algorithm and instance: the best value at each timepoint, minimised.
Cells = Mapping[tuple[str, str], Sequence[FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """Where a race stands.

    Attributes
    ----------
    round
        Number of the current round.
    state, posterior
        After the last finished round; ``None`` before there is one.
    orders
        Unfinished runs of the current round; their ``instance`` is a place in the list of instances.
    newcomers
        Number of newcomers that the race waits for before it continues.
    over
        Why the race is over; ``None`` if it is not.
    """

    round: int
    state: RaceState | None
    posterior: Posterior | None
    orders: tuple[Order, ...] = ()
    newcomers: int = 0
    over: StopReason | None = None

    def ahead(self, instances: int, newcomers: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
        """Cells that later rounds will probably ask for: algorithms with open pairs, instance by instance."""
        names = list(newcomers)
        if self.state is not None:
            resolved = self.state.resolved
            names = [name for place, name in enumerate(self.state.algorithms) if not resolved[:, place].all()] + names
        return ((name, place) for place in range(instances) for name in dict.fromkeys(names))


class AsynchronousRace:
    """The rules of a race for runs that end in any order.

    Parameters
    ----------
    settings
        As for :func:`polarbear_plugins.race`; they need a seed.
    room
        Number of algorithms to keep in the race: whenever there are fewer, newcomers are asked for, also when all
        pairs are settled.  ``None``: the race is over when all pairs are settled.

    Examples
    --------
    >>> race = AsynchronousRace(RaceSettings(seed=1, batch_size=1, batch_min=1), [1.0])
    >>> race.standing({}, ["f1", "f2"], {1: ["a", "b"]}).orders
    (Order(algorithm='a', instance=0, until=1.0), Order(algorithm='b', instance=0, until=1.0))
    >>> import numpy as np
    >>> race.standing({("b", "f1"): [np.array([3.0])]}, ["f1", "f2"], {1: ["a", "b"]}).orders
    (Order(algorithm='a', instance=0, until=1.0),)
    """

    def __init__(self, settings: RaceSettings, timepoints: ArrayLike, room: int | None = None) -> None:
        if settings.seed is None:
            raise InvalidInputError("An asynchronous race needs settings with a seed.")
        check_inference(settings)
        self.settings = settings
        self.timepoints = as_timepoints(timepoints)
        self.room = room
        self._decided: dict[bytes, tuple[RaceState, Posterior]] = {}

    def standing(self, cells: Cells, instances: Sequence[str], entrants: Mapping[int, Sequence[str]]) -> Standing:
        """Where the race stands.

        Parameters
        ----------
        cells
            All finished runs.
        instances
            Names of the instances, in the order in which the race draws them.
        entrants
            The algorithms that enter at the beginning of each round; the first round needs at least two.
        """
        state: RaceState | None = None
        posterior: Posterior | None = None
        asked: dict[tuple[str, str], None] = {}
        key = b""
        for number in itertools.count(1):
            state = self._enter_all(state, entrants.get(number, ()))
            if state is None:
                here = len(entrants.get(1, ()))
                return Standing(round=1, state=None, posterior=None, newcomers=max((self.room or 2) - here, 2 - here))
            planned = plan(state, len(instances))
            settled = planned.over in ("resolved", "instances")
            if planned.over and (self.room is None or not settled):
                return Standing(round=number, state=state, posterior=posterior, over=planned.over)
            wanted = 0 if self.room is None else max(self.room - len(state.pareto_set), int(settled))
            if wanted > 0 and not self._catching_up(state, planned.orders):
                return Standing(round=number, state=state, posterior=posterior, newcomers=wanted)
            missing = tuple(o for o in planned.orders if not cells.get((o.algorithm, instances[o.instance])))
            if missing:
                return Standing(round=number, state=state, posterior=posterior, orders=missing)
            done = [(order.algorithm, instances[order.instance]) for order in planned.orders]
            asked |= dict.fromkeys(done)
            key = _digest(key, entrants.get(number, ()), {cell: cells[cell] for cell in done})
            if key not in self._decided:
                self._decided[key] = self._decide(state, cells, asked, instances, planned.cost)
            state, posterior = self._decided[key]
        raise AssertionError  # a count has no end

    def _enter_all(self, state: RaceState | None, names: Sequence[str]) -> RaceState | None:
        if state is None:
            if len(names) < max(self.room or 2, 2):
                return None
            return start_race(names, self.timepoints, self.settings)
        for name in names:
            state = enter(state, name)
        return state

    @staticmethod
    def _catching_up(state: RaceState, orders: Collection[Order]) -> bool:
        """Whether the next runs are those of earlier newcomers, which come first."""
        return bool(orders) and all(order.instance < len(state.table) for order in orders)

    def _decide(
        self, state: RaceState, cells: Cells, asked: Collection[tuple[str, str]], instances: Sequence[str], cost: float
    ) -> tuple[RaceState, Posterior]:
        last = max(instances.index(instance) for _, instance in asked)
        drawn = instances[: last + 1]
        once = {cell: cells[cell][:1] for cell in asked}
        observed = replace(
            state, table=rank_cells(state.algorithms, self.timepoints, once, drawn), cost=state.cost + cost
        )
        every = {cell: cells[cell] for cell in asked}
        repeated = replace(observed, table=rank_cells(state.algorithms, self.timepoints, every, drawn))
        posterior = infer(repeated, len(state.rounds) + 1)
        return decide(observed, posterior, repeated.table), posterior


def _digest(before: bytes, names: Sequence[str], runs: Mapping[tuple[str, str], Sequence[FloatArray]]) -> bytes:
    """Fingerprint of everything that a round depends on: the rounds before, its entrants and its runs."""
    digest = hashlib.sha256(before)
    digest.update(repr(tuple(names)).encode())
    for cell, values in runs.items():
        digest.update(repr((cell, len(values))).encode())
        for run in values:
            digest.update(run.tobytes())
    return digest.digest()
