"""The race as a pure state machine: ``plan``, ``observe``, ``decide``.

Nothing here runs an algorithm, reads a clock or touches a file; :mod:`polarbear_plugins.experiments.races` does.  A
state never changes; each step returns the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import Elimination, Order, Plan, RaceState, Round
from polarbear_plugins.racing.verdicts import Verdict, judge
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.trajectories.trajectory import Trajectory, sample_staircase

# A posterior that is not good enough decides nothing; after this many in a row more data will not help.
_POOR_ROUNDS = 5
_LEAST_GROWTH = 0.02
_LARGEST_GROWTH = 0.25  # under the rule that is valid whenever one looks
Count: TypeAlias = int | NDArray[np.int_] | FloatArray


def plan(
    state: RaceState,
    available: int | None = None,
    *,
    is_paid: Callable[[Order], bool] = lambda _: False,
    spent: float | None = None,
) -> Plan:
    """Runs of the next round: which algorithm, on which instance, until which timepoint.

    Parameters
    ----------
    available
        Number of instances in all; ``None`` if unlimited.
    is_paid
        Whether a run was made ahead of time, and costs nothing more.
    spent
        Cost of everything begun so far; by default that of the runs that the race rests on.
    """
    settings, drawn = state.settings, len(state.table.instances)
    if state.settled:
        return Plan((), "resolved")
    if settings.max_rounds is not None and len(state.rounds) >= settings.max_rounds:
        return Plan((), "max_rounds")
    if len(state.rounds) >= _POOR_ROUNDS and not any(done.good for done in state.rounds[-_POOR_ROUNDS:]):
        return Plan((), "inference")
    orders = catch_up(state, state.batch)
    if not orders:
        batch = state.batch if available is None else min(state.batch, available - drawn)
        if batch <= 0:
            return Plan((), "instances")
        running = [(name, float(state.timepoints[place])) for name, place in last_unresolved(state).items()]
        orders = [Order(name, place, until) for place in range(drawn, drawn + batch) for name, until in running]
    if settings.max_cost is not None:
        budget = settings.max_cost - (state.cost if spent is None else spent)
        orders = _affordable(orders, budget / settings.replications, is_paid, drawn)
    return Plan(tuple(orders), None if orders else "max_cost")


def _affordable(orders: list[Order], budget: float, is_paid: Callable[[Order], bool], drawn: int) -> list[Order]:
    """The first orders that a budget is enough for; new instances, from place ``drawn`` on, with all their runs."""
    costs = [0.0 if is_paid(order) else order.until for order in orders]
    count = int(np.searchsorted(np.cumsum(costs), budget, side="right"))
    while 0 < count < len(orders) and orders[count].instance == orders[count - 1].instance >= drawn:
        count -= 1
    return orders[:count]


def observe(state: RaceState, trajectories: Iterable[Trajectory]) -> RaceState:
    """State after the runs of a round, given in the order of the plan.  New instances get the next places.

    With replications, an algorithm has as many runs on an instance, which are paired with those of the others in the
    order in which they are given; their rows share the weight of the instance.
    """
    table = state.table
    rows_of = _rows_by_instance(table)
    columns = {name: column for column, name in enumerate(table.algorithms)}
    known = len(table)
    values: dict[int, FloatArray] = {}
    names: list[str] = []
    groups: list[str | None] = []
    fixed_groups = True
    cost = 0.0
    for runs in _runs_by_cell(trajectories, state.settings.replications):
        first = runs[0]
        if first.algorithm not in columns:
            raise InvalidInputError(f"{first!r}: the race has no such algorithm.")
        if first.instance not in rows_of:
            rows_of[first.instance] = [known + len(names) + place for place in range(len(runs))]
            values |= {row: np.full(table.values.shape[1:], np.nan) for row in rows_of[first.instance]}
            names += [first.instance] * len(runs)
            groups += [first.group] * len(runs)
            fixed_groups = fixed_groups and first.fixed_group
        sampled = [sample_staircase(run, table.timepoints) for run in runs]
        # Where stored rivals have repeated runs, the one of a newcomer meets each of them.
        for place, row in enumerate(rows_of[first.instance]):
            if row not in values:
                values[row] = np.array(table.values[row])
            column = values[row][:, columns[first.algorithm]]
            if not np.isnan(column[0]):
                raise InvalidInputError(f"{first!r}: the algorithm already has a run on that instance.")
            column[:] = np.maximum(sampled[place % len(runs)], state.targets.get(first.instance, -np.inf))
        cost += sum(run.horizon for run in runs)
    if any(row < known for row in values):
        # A newcomer joins existing rankings, which are computed again.
        rows = np.array(table.values)
        for row in range(known):
            rows[row] = values.get(row, rows[row])
        table = _with_values(table, table.algorithms, rows)
    if names:
        rows = np.stack([values[known + place] for place in range(len(names))])
        table = table.extended(rows, names, None, groups, fixed_groups)
    return replace(state, table=table, cost=state.cost + cost)


def _runs_by_cell(trajectories: Iterable[Trajectory], replications: int) -> list[list[Trajectory]]:
    """Runs of each algorithm on each instance, in the order of the first one.

    :raises InvalidInputError: there are not as many of them as there are replications.
    """
    cells: dict[tuple[str, str], list[Trajectory]] = {}
    for run in trajectories:
        cells.setdefault((run.instance, run.algorithm), []).append(run)
    for runs in cells.values():
        if len(runs) > replications:
            raise InvalidInputError(f"{runs[-1]!r}: the algorithm already has a run on that instance.")
        if len(runs) < replications:
            raise InvalidInputError(
                f"{runs[-1]!r}: expected {replications} runs of the algorithm on that instance, got {len(runs)}."
            )
    return list(cells.values())


def _rows_by_instance(table: RankingTable) -> dict[str, list[int]]:
    names = table.instances
    rows: dict[str, list[int]] = {}
    for row, place in enumerate(table.instance_index.tolist()):
        rows.setdefault(names[place], []).append(row)
    return rows


def _with_values(table: RankingTable, algorithms: tuple[str, ...], values: FloatArray) -> RankingTable:
    """Table of the same instances with other values, and possibly more algorithms."""
    empty = RankingTable(algorithms, table.timepoints, tolerance=table.tolerance)
    names, groups, index = table.instances, table.groups, table.instance_index.tolist()
    of_row = [groups[place] for place in index] if groups else None
    return empty.extended(values, [names[place] for place in index], None, of_row, table.fixed_groups)


def decide(state: RaceState, posterior: Posterior, rankings: RankingTable | None = None) -> RaceState:
    """State after a round: dominated algorithms eliminated, pairs settled, size of the next batch chosen.

    Parameters
    ----------
    rankings
        The rankings of the posterior if they are not those of the state, such as with repeated runs.
    """
    settings, number = state.settings, len(state.rounds) + 1
    names, before = state.algorithms, state.pareto_set
    verdict = judge(state, posterior, state.table if rankings is None else rankings)
    good = posterior.diagnostics.good
    inside = np.isin(names, before)
    eliminations: tuple[Elimination, ...] = ()
    held: tuple[Elimination, ...] = ()
    if good or settings.rule == "anytime-valid":  # which needs no posterior
        eliminations = _eliminate(state, verdict, verdict.eliminates, number)
    out = np.isin(names, [elimination.algorithm for elimination in eliminations])
    resolved = state.resolved | out[:, None] | out[None, :]
    if good:
        resolved = resolved | verdict.settled
        kept = _eliminate(state, verdict, verdict.held, number)
        held = tuple(one for one in kept if one.algorithm not in {done.algorithm for done in eliminations})
    was_open, is_open = (~matrix.all(axis=0) for matrix in (state.resolved, resolved))
    survivors = inside & ~np.isin(names, [elimination.algorithm for elimination in eliminations])
    newcomers = tuple(order.algorithm for order in _first_orders(replace(state, resolved=resolved)))
    newly = np.argwhere(np.triu(was_open & ~is_open & survivors[:, None] & survivors[None, :], 1))
    open_before, open_after = (int(np.triu(matrix & state.contested, 1).sum()) for matrix in (was_open, is_open))
    finished = Round(
        number=number,
        batch=state.batch,
        instances=state.instances_run,
        cost=state.cost,
        eliminations=eliminations,
        resolved=tuple((names[i], names[j]) for i, j in newly),
        resolved_share=replace(state, resolved=resolved).resolved_share,
        rivals=_rivals(names, inside, verdict.probability),
        good=good,
        next_batch=int(next_batch(state.batch, open_before, open_after, state.instances_run, settings)),
        newcomers=newcomers,
        held=held,
    )
    rounds = (*state.rounds, finished)
    return replace(state, resolved=resolved, rounds=rounds, batch=finished.next_batch, newcomers=newcomers)


def enter(state: RaceState, algorithm: str) -> RaceState:
    """State with a newcomer, which catches up on the instances drawn so far before the race continues."""
    name = as_name(algorithm, "name of an algorithm")
    if name in state.algorithms or name in {out.algorithm for out in state.eliminations}:
        raise InvalidInputError(f"{name!r} is already in the race.")
    table = state.table
    absent = np.full((*table.values.shape[:2], 1), np.nan)
    rows = np.concatenate((table.values, absent), axis=2)
    wider = _with_values(table, (*table.algorithms, name), rows)
    resolved = np.zeros((table.timepoints.size, len(wider.algorithms), len(wider.algorithms)), dtype=bool)
    resolved[:, :-1, :-1] = state.resolved
    out = ~np.isin(wider.algorithms, (*state.pareto_set, name))
    resolved[:, -1, -1] = True
    resolved[:, -1, out] = resolved[:, out, -1] = True
    return replace(state, table=wider, resolved=resolved, newcomers=(*state.newcomers, name))


def retire(state: RaceState, algorithms: Collection[str]) -> RaceState:
    """State without some eliminated algorithms, whose runs leave the model; the rounds still name them.

    The inverse of :func:`enter`, for a race that newcomers keep entering: with everybody in the model, a round would
    cost the more the longer the race lasts.
    """
    if not algorithms:
        return state
    surviving = sorted(set(algorithms) & set(state.pareto_set))
    if surviving:
        raise InvalidInputError(f"{surviving[0]!r} is still in the race. Retire only eliminated algorithms.")
    stay = [place for place, name in enumerate(state.algorithms) if name not in algorithms]
    names = tuple(state.algorithms[place] for place in stay)
    return replace(
        state,
        table=_with_values(state.table, names, state.table.values[:, :, stay]),
        resolved=state.resolved[np.ix_(range(state.timepoints.size), stay, stay)],
        newcomers=tuple(name for name in state.newcomers if name not in algorithms),
    )


def _eliminate(state: RaceState, verdict: Verdict, by: BoolArray, number: int) -> tuple[Elimination, ...]:
    """Eliminate dominated algorithms, those with most dominators first, while a dominator is still in the race.

    In this order a chain of dominances is eliminated from its weak end, and a cycle (possible for small alpha only)
    cannot empty the race.
    """
    names = state.algorithms
    inside = [names.index(name) for name in state.pareto_set]
    dominated = {j: [i for i in inside if i != j and by[i, j]] for j in inside}
    eliminations: list[Elimination] = []
    for j in sorted(inside, key=lambda j: -len(dominated[j])):
        rivals = [i for i in dominated[j] if i in inside]
        if rivals:
            best = max(rivals, key=lambda i: verdict.evidence[i, j])
            eliminations.append(Elimination(names[j], names[best], float(verdict.probability[best, j]), number))
            inside.remove(j)
    return tuple(eliminations)


def _rivals(names: tuple[str, ...], inside: BoolArray, probability: FloatArray) -> dict[str, tuple[str, float]]:
    rivals = {}
    for j in np.flatnonzero(inside):
        others = [i for i in np.flatnonzero(inside) if i != j]
        if others:
            best = max(others, key=lambda i: probability[i, j])
            rivals[names[j]] = (names[best], float(probability[best, j]))
    return rivals


def next_batch(
    batch: Count, open_before: Count, open_after: Count, instances: Count, settings: RaceSettings
) -> NDArray[np.int_]:
    """Twice as many instances if no pair was settled, half as many if more than a fifth were; vectorized over races.

    A batch is at least a fiftieth of the instances so far.  Fewer change next to nothing, and with batches of one size
    the inference of all rounds together would grow with the square of the race.
    """
    batch, newly_settled = np.asarray(batch), np.subtract(open_before, open_after)
    fewer = np.where(newly_settled > 0.2 * np.asarray(open_before), batch // 2, batch)
    wanted = np.where(newly_settled == 0, 2 * batch, fewer)
    if settings.rule == "anytime-valid":  # looking often does no harm, and looking late costs instances
        wanted = np.minimum(wanted, np.multiply(_LARGEST_GROWTH, instances).astype(np.int_))
    bounded = np.clip(wanted, settings.batch_min, settings.batch_max)
    return np.maximum(bounded, np.ceil(np.multiply(_LEAST_GROWTH, instances)).astype(np.int_))


def last_unresolved(state: RaceState) -> dict[str, int]:
    """For each algorithm with open pairs, the place of its last unresolved timepoint (equation 32)."""
    last = state.timepoints.size - 1
    until = {}
    for place, name in enumerate(state.algorithms):
        open_at = np.flatnonzero(~state.resolved[:, place].all(axis=1))
        if open_at.size:
            until[name] = last if state.settings.needs_full_runs else int(open_at[-1])
    return until


def catch_up(state: RaceState, most: int | None) -> list[Order]:
    """Orders for newcomers on earlier instances, in the order of the instances, at most so many for each newcomer."""
    orders = [order for name in _behind(state) for order in _missed(state, name)[:most]]
    return sorted(orders, key=lambda order: (order.instance, _behind(state).index(order.algorithm)))


def _first_orders(state: RaceState) -> list[Order]:
    """Next order of each newcomer that has not caught up yet."""
    return [orders[0] for name in _behind(state) if (orders := _missed(state, name))]


def _behind(state: RaceState) -> tuple[str, ...]:
    """Algorithms that may have to catch up: newcomers, and against stored rivals all that can run.

    There they run on no other instances than those of the archive, so one that had caught up may have to go on when
    another one enters.
    """
    return tuple(name for name in state.algorithms if name not in state.stored) if state.stored else state.newcomers


def _missed(state: RaceState, name: str) -> list[Order]:
    """Orders for a newcomer on earlier instances where it can still be compared.

    Each ends at the last timepoint at which a rival with an open pair was observed.
    """
    table = state.table
    if not len(table):
        return []
    place = state.algorithms.index(name)
    open_with = ~state.resolved[:, place]
    if state.settings.needs_full_runs:
        open_with = np.broadcast_to(open_with.any(axis=0), open_with.shape)
    comparable: BoolArray = np.logical_or.reduce(_observable(state) & open_with, axis=2)
    comparable[~np.isnan(table.values[:, 0, place])] = False
    if len(table) > len(table.instances):
        by_row, comparable = comparable, np.zeros((len(table.instances), table.timepoints.size), dtype=bool)
        np.logical_or.at(comparable, table.instance_index, by_row)
    places = np.flatnonzero(comparable.any(axis=1))
    ends = comparable.shape[1] - 1 - np.argmax(comparable[places, ::-1], axis=1)
    return [Order(name, int(at), float(state.timepoints[end])) for at, end in zip(places, ends, strict=True)]


def _observable(state: RaceState) -> BoolArray:
    """``[row, timepoint, algorithm]``: whether it was observed there, or will be.

    Stored rivals do not run on new instances, so newcomers that are not settled among each other meet on those of the
    archive, as far as a stored rival was watched there.
    """
    observed: BoolArray = ~np.isnan(state.table.values)
    if state.stored:
        watched: BoolArray = np.logical_or.reduce(observed[:, :, np.isin(state.algorithms, state.stored)], axis=2)
        for place in (state.algorithms.index(name) for name in _behind(state)):
            to_come = ~observed[:, 0, place]
            observed[to_come, :, place] = watched[to_come]
    return observed
