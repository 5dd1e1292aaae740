"""A race whose runs are started elsewhere, one at a time, and end in any order.

The caller hands over everything known and gets back where the race stands: the same data give the same answer in every
process.  The only state is a cache of the last answer, from which the next one continues.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.lookahead import ahead
from polarbear_plugins.racing.posteriors import check_inference, infer
from polarbear_plugins.racing.rules import decide, enter, plan, retire
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Order, Plan, RaceState, StopReason, start_race
from polarbear_plugins.rankings.stream import rank_cells
from polarbear_plugins.trajectories.timepoints import as_timepoints

Cell: TypeAlias = tuple[str, str]
Runs: TypeAlias = Sequence[FloatArray]
# Finished runs of each algorithm and instance: the best value at each timepoint, minimised.
Cells: TypeAlias = Mapping[Cell, Runs]


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
    retired
        Algorithms that have left the model, in that order: by which rival each was eliminated, and how much higher the
        mean log-rating of that rival was.
    """

    round: int
    state: RaceState | None
    posterior: Posterior | None
    orders: tuple[Order, ...] = ()
    newcomers: int = 0
    over: StopReason | None = None
    retired: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    def mean_log_ratings(self) -> dict[str, float]:
        """Mean log-rating of each algorithm that has been rated, higher is better.

        One that has left the model keeps its distance from the rival that eliminated it, so that all values are on the
        scale of those in the race.
        """
        if self.posterior is None:
            return {}
        ratings = _mean_log_ratings(self.posterior)
        for name, (rival, gap) in reversed([*self.retired.items()]):  # the rival was retired later, if at all
            ratings.setdefault(name, ratings[rival] - gap)
        return ratings

    def ahead(self, instances: int, newcomers: Sequence[str] = ()) -> Iterator[tuple[str, int]]:
        """Cells that later rounds will probably ask for: as in any race, and all of newcomers that have not entered."""
        drawn = 0 if self.state is None else len(self.state.table.instances)
        yield from ((name, place) for place in range(drawn) for name in newcomers)
        if self.state is not None:
            yield from ((order.algorithm, order.instance) for order in ahead(self.state, self.orders, instances))
        yield from ((name, place) for place in range(drawn, instances) for name in newcomers)


class AsynchronousRace:
    """The rules of a race for runs that end in any order.

    Parameters
    ----------
    settings
        As for :func:`polarbear_plugins.race`; they need a seed.
    room
        Number of algorithms to keep in the race: whenever there are fewer, newcomers are asked for, also when all
        pairs are settled.  Eliminated algorithms then leave the model, whose size would grow with the race.  ``None``:
        the race is over when all pairs are settled.

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
        if settings.replications > 1:
            raise InvalidInputError(
                f"replications={settings.replications}: here each candidate runs once on an instance. Leave it out."
            )
        check_inference(settings)
        self.settings = settings
        self.timepoints = as_timepoints(timepoints)
        self.room = room
        # Instances and rounds of the last answer; replaced as a whole, so that threads may ask at the same time.
        self._last: tuple[tuple[str, ...], tuple[_Round, ...]] = (), ()

    def standing(self, cells: Cells, instances: Sequence[str], entrants: Mapping[int, Sequence[str]]) -> Standing:
        """Where the race stands.

        Parameters
        ----------
        cells
            All finished runs.  Those of rounds that are over are compared with those of the last call, which is
            quickest if they are the same objects.
        instances
            Names of the instances, in the order in which the race draws them.
        entrants
            The algorithms that enter at the beginning of each round; the first round needs at least two.
        """
        names = tuple(instances)
        rounds = self._unchanged_rounds(cells, names, entrants)
        while True:
            number = len(rounds) + 1
            before = rounds[-1].decided if rounds else _Decided(None, None, {})
            current = self._begin_round(before, names, tuple(entrants.get(number, ())), number)
            if current is None:
                here = len(entrants.get(1, ()))
                return Standing(round=1, state=None, posterior=None, newcomers=max((self.room or 2) - here, 2 - here))
            self._last = names, (*rounds, current)
            standing = self._stopped_at(current, before, number, cells)
            if standing is not None:
                return standing
            runs = tuple(cells[cell] for cell in current.cells)
            asked = dict.fromkeys(cell for each in (*rounds, current) for cell in each.cells)
            rounds.append(replace(current, runs=runs, decided=self._decide(current, before, cells, asked, names)))

    def _unchanged_rounds(
        self, cells: Cells, instances: tuple[str, ...], entrants: Mapping[int, Sequence[str]]
    ) -> list[_Round]:
        """Decided rounds of the last answer, up to the first one that rests on something else now."""
        known, rounds = self._last
        unchanged: list[_Round] = []
        for one in rounds if instances == known else ():
            if one.decided.state is None or one.entrants != tuple(entrants.get(one.number, ())):
                break
            if not all(map(operator.is_, map(cells.get, one.cells), one.runs)):
                runs = tuple(cells.get(cell, ()) for cell in one.cells)
                if not all(map(_same_runs, runs, one.runs)):
                    break
                one = replace(one, runs=runs)  # the same objects next time
            unchanged.append(one)
        return unchanged

    def _begin_round(
        self, before: _Decided, instances: tuple[str, ...], names: tuple[str, ...], number: int
    ) -> _Round | None:
        """The next round with its newcomers and orders; ``None`` if the race has too few algorithms to start."""
        known, rounds = self._last
        if len(rounds) == number and known == instances:
            last = rounds[-1]
            if last.entrants == names and last.began_with is before.state:
                return last
        state = self._enter_all(before.state, names)
        if state is None:
            return None
        planned = plan(state, len(instances))
        cells = tuple((order.algorithm, instances[order.instance]) for order in planned.orders)
        return _Round(number, names, before.state, state, planned, cells)

    def _stopped_at(self, current: _Round, before: _Decided, number: int, cells: Cells) -> Standing | None:
        """Where the race stands if it cannot decide the current round yet; ``None`` if it can."""
        state, planned = current.state, current.planned
        standing = Standing(round=number, state=state, posterior=before.posterior, retired=before.retired)
        settled = planned.over in ("resolved", "instances")
        if planned.over and (self.room is None or not settled):
            return replace(standing, over=planned.over)
        wanted = 0 if self.room is None else max(self.room - len(state.pareto_set), int(settled))
        if wanted > 0 and not self._catching_up(state, planned.orders):
            return replace(standing, newcomers=wanted)
        missing = tuple(order for order, cell in zip(planned.orders, current.cells, strict=True) if not cells.get(cell))
        return replace(standing, orders=missing) if missing else None

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
        self, current: _Round, before: _Decided, cells: Cells, asked: Collection[Cell], instances: tuple[str, ...]
    ) -> _Decided:
        state = current.state
        last = max(len(state.table.instances), *(order.instance + 1 for order in current.planned.orders))
        inside = set(state.algorithms)
        every = {cell: cells[cell] for cell in asked if cell[0] in inside}
        once = {cell: runs[:1] for cell, runs in every.items()}
        table = rank_cells(state.algorithms, self.timepoints, once, instances[:last])
        observed = replace(state, table=table, cost=state.cost + current.planned.cost)
        repeated = observed
        if any(len(runs) > 1 for runs in every.values()):
            repeated = replace(observed, table=rank_cells(state.algorithms, self.timepoints, every, instances[:last]))
        posterior = infer(repeated, len(state.rounds) + 1)
        after = decide(observed, posterior, repeated.table)
        if self.room is None:
            return _Decided(after, posterior, {})
        return _retire_eliminated(after, posterior, before.retired)


@dataclass(frozen=True, slots=True, eq=False)
class _Decided:
    """What is known after a round: its state, its posterior, and all that have left the model."""

    state: RaceState | None
    posterior: Posterior | None
    retired: Mapping[str, tuple[str, float]]


def _retire_eliminated(state: RaceState, posterior: Posterior, before: Mapping[str, tuple[str, float]]) -> _Decided:
    """Take eliminated algorithms out of the model, which needs two: beside a single survivor the last one stays."""
    out = [one for one in state.eliminations if one.algorithm in state.algorithms]
    leaving = out[: len(out) - max(2 - len(state.pareto_set), 0)]
    ratings = _mean_log_ratings(posterior)
    gaps = {one.algorithm: (one.by, ratings[one.by] - ratings[one.algorithm]) for one in leaving}
    return _Decided(retire(state, gaps), posterior, {**before, **gaps})


@dataclass(frozen=True, slots=True, eq=False)
class _Round:
    """A round with its newcomers and orders; once it is over, with the runs that it rests on and what it decided."""

    number: int
    entrants: tuple[str, ...]
    began_with: RaceState | None
    state: RaceState
    planned: Plan
    cells: tuple[Cell, ...]
    runs: tuple[Runs, ...] = ()
    decided: _Decided = _Decided(None, None, {})


def _same_runs(one: Runs, other: Runs) -> bool:
    return one is other or (len(one) == len(other) and all(map(np.array_equal, one, other)))


def _mean_log_ratings(posterior: Posterior) -> dict[str, float]:
    means = posterior.log_ratings.mean(axis=(0, 1)).tolist()
    return dict(zip(posterior.algorithms, means, strict=True))
