"""Rankings from trajectories: all at once, or block by block as instances become complete."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_whole_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import natural_key
from polarbear_plugins.rankings.comparable import check_comparable
from polarbear_plugins.rankings.ends import Ended, EndsOfRuns, InstanceRuns, SampledRun
from polarbear_plugins.rankings.given import as_algorithms
from polarbear_plugins.rankings.groups import GroupsOfRuns
from polarbear_plugins.rankings.table import RankingTable, Repetitions
from polarbear_plugins.trajectories.runs import check_trajectory
from polarbear_plugins.trajectories.timepoints import as_timepoints, log_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory


def rank(
    trajectories: Iterable[Trajectory],
    timepoints: ArrayLike | None = None,
    repetitions: Repetitions = "weight",
    *,
    algorithms: Sequence[str] | None = None,
    tolerance: float = 0.0,
    ended: Ended = "hold",
) -> RankingTable:
    """Rank algorithms at every timepoint on every instance.

    A run without a value at a timepoint ranks last there; a run that is ``UNRANKED`` there is not better than the
    others, and nothing more is known.  A run that reached its target (``end="done"``) ties from there on with every
    other one that is as good, however far that goes on; one that was stopped (``end="stopped"``) is absent past its
    horizon, which makes the ranking partial.  The table does not depend on the order of the trajectories.  It has the
    groups that they name for their instances: either all of them name one, or none does.

    Parameters
    ----------
    timepoints
        When to compare; :func:`default_timepoints` of the trajectories if not given.
    repetitions
        Several runs of an algorithm on an instance are paired in the order of their seeds.  ``"weight"``: the pairs
        of an instance together count as one instance, and an algorithm with fewer runs than others reuses them.
        ``"independent"``: each pair counts as an instance, and no run is used twice.
    algorithms
        Names, in the order of the table; by default all, sorted by name.
    tolerance
        Values this close tie; by default only equal ones.
    ended
        What counts for a run past its horizon, while others on the same instance were still watched: ``"hold"``, its
        last value, as in a race, where an algorithm that ends by itself keeps what it has; ``"cut"``, nothing.
        ``early_ends`` of the table says to whom it was applied.

    Examples
    --------
    >>> runs = [
    ...     Trajectory(algorithm="csa", instance="f1", times=[1, 10], best=[5.0, 2.0], horizon=20),
    ...     Trajectory(algorithm="msr", instance="f1", times=[4, 12], best=[4.0, 3.0], horizon=20),
    ... ]
    >>> rank(runs, timepoints=[2, 5, 20]).ranks
    array([[[1, 2],
            [2, 1],
            [1, 2]]], dtype=int16)
    """
    wanted = None if algorithms is None else as_algorithms(algorithms)
    given: set[str] = set()
    selected: Iterator[Trajectory] = _select_runs(trajectories, wanted, given)
    if timepoints is None:
        runs = list(selected)
        timepoints = default_timepoints(runs, ended=ended) if runs else [1.0]
        selected = iter(runs)
    grid = as_timepoints(timepoints)
    instances: dict[str, InstanceRuns] = {}
    groups = GroupsOfRuns()
    first, last = np.inf, -np.inf
    for trajectory in selected:
        groups.add(trajectory)
        _add_run(instances.setdefault(trajectory.instance, {}), trajectory, grid)
        first = min(first, first_value(trajectory))
        last = max(last, trajectory.horizon)
    if not given:
        raise InvalidInputError("There are no trajectories to rank.")
    names = sorted(given, key=natural_key)
    missing = [name for name in wanted or () if name not in given]
    if missing:
        raise InvalidInputError(
            f"algorithms: there is no trajectory of {', '.join(missing)}. There are trajectories of {', '.join(names)}."
        )
    empty = RankingTable(
        wanted or names,
        grid,
        repetitions=repetitions,
        tolerance=tolerance,
    )
    check_timepoints_covered(grid, first, last)
    in_order = {name: instances[name] for name in sorted(instances, key=natural_key)}
    table = _append_instances(empty, in_order, groups, ended)
    check_comparable(table)
    return table


class RankingStream:
    """Collects trajectories in any order and returns the rankings of an instance once it is complete.

    Only the values of a run at the timepoints are kept, and only until its instance is complete.

    Parameters
    ----------
    algorithms, timepoints, repetitions, tolerance
        As for :class:`RankingTable`.
    ended
        As for :func:`rank`.
    runs
        How many runs of each algorithm make an instance complete.

    Examples
    --------
    >>> stream = RankingStream(["csa", "msr"], timepoints=[10])
    >>> stream.add(Trajectory(algorithm="msr", instance="f1", times=[4], best=[4.0], horizon=10))
    >>> stream.add(Trajectory(algorithm="csa", instance="f1", times=[1], best=[5.0], horizon=10))
    RankingTable(2 algorithms, timepoints 1 from 10 to 10, 1 instances in 1 rows)
    """

    def __init__(
        self,
        algorithms: Sequence[str],
        timepoints: ArrayLike,
        *,
        runs: int = 1,
        repetitions: Repetitions = "weight",
        tolerance: float = 0.0,
        ended: Ended = "hold",
    ) -> None:
        self._empty = RankingTable(algorithms, timepoints, repetitions=repetitions, tolerance=tolerance)
        self._ended: Ended = as_choice(ended, Ended, "ended")
        self._runs = as_whole_number(runs, "runs", at_least=1)
        self._waiting: dict[str, InstanceRuns] = {}
        self._finished: set[str] = set()
        self._groups = GroupsOfRuns()

    @property
    def waiting(self) -> tuple[str, ...]:
        """Incomplete instances, in the order of their first runs."""
        return tuple(self._waiting)

    def add(self, trajectory: Trajectory) -> RankingTable | None:
        """Add a run; return the rankings of its instance if this run completes it."""
        check_trajectory(trajectory)
        name = trajectory.instance
        if trajectory.algorithm not in self._empty.algorithms:
            raise InvalidInputError(
                f"The stream ranks {', '.join(self._empty.algorithms)}; got a trajectory of {trajectory.algorithm!r}."
            )
        if name in self._finished:
            raise InvalidInputError(
                f"The rankings of instance {name!r} have been returned already; {trajectory!r} comes too late. "
                "Say with runs= how many runs each algorithm has."
            )
        if len(self._waiting.get(name, {}).get(trajectory.algorithm, ())) == self._runs:
            raise InvalidInputError(
                f"{trajectory.algorithm!r} already has {self._runs} run(s) on instance {name!r}, got one more with "
                f"seed {trajectory.seed}. Say with runs= how many runs each algorithm has."
            )
        self._groups.add(trajectory)
        runs = self._waiting.setdefault(name, {})
        _add_run(runs, trajectory, self._empty.timepoints)
        if any(len(runs.get(algorithm, ())) < self._runs for algorithm in self._empty.algorithms):
            return None
        return self._release(name)

    def finish(self) -> Iterator[RankingTable]:
        """Partial rankings of the instances that are still incomplete."""
        for name in self.waiting:
            yield self._release(name)

    def _release(self, name: str) -> RankingTable:
        self._finished.add(name)
        block = _append_instances(self._empty, {name: self._waiting.pop(name)}, self._groups, self._ended)
        self._groups.forget(name)
        return block


def stream_rankings(
    trajectories: Iterable[Trajectory],
    algorithms: Sequence[str],
    timepoints: ArrayLike,
    *,
    runs: int = 1,
    repetitions: Repetitions = "weight",
    tolerance: float = 0.0,
    ended: Ended = "hold",
) -> Iterator[RankingTable]:
    """Blocks of rankings, one for each instance, from trajectories in any order.

    A block comes as soon as its instance is complete; incomplete instances come at the end, as partial rankings.
    See :class:`RankingStream` for the parameters and :meth:`RankingTable.append` for collecting the blocks.
    """
    stream = RankingStream(algorithms, timepoints, runs=runs, repetitions=repetitions, tolerance=tolerance, ended=ended)
    blocks = (stream.add(trajectory) for trajectory in trajectories)
    return itertools.chain((block for block in blocks if block is not None), stream.finish())


def rank_cells(
    algorithms: Sequence[str],
    timepoints: ArrayLike,
    cells: Mapping[tuple[str, str], Sequence[FloatArray]],
    instances: Iterable[str],
    groups: Mapping[str, str | None] | None = None,
    fixed_groups: bool = False,
    tolerance: float = 0.0,
) -> RankingTable:
    """Rank runs by their values at the timepoints: ``cells[algorithm, instance]`` has an array for each run.

    Several runs of an algorithm on an instance are repetitions that share the weight of the instance.  ``groups`` has
    the group of each instance.
    """
    by_instance = {instance: {name: cells.get((name, instance), ()) for name in algorithms} for instance in instances}
    table = RankingTable(algorithms, timepoints, tolerance=tolerance)
    values, names = _pair(table, by_instance)
    of_row = None if groups is None else [groups[name] for name in names]
    return table.extended(values, names, groups=of_row, fixed_groups=fixed_groups)


def default_timepoints(
    trajectories: Iterable[Trajectory], count: int = 50, *, ended: Ended = "hold", last: float | None = None
) -> FloatArray:
    """Log-spaced timepoints from where every algorithm has values on some instance, to the longest budget.

    With ``ended="cut"``, as for :func:`rank`, only as far as every algorithm was watched on some instance.  If all
    times are whole, as with evaluations, so are the timepoints, and there may be fewer than ``count``.  A single
    timepoint is the last one.  Algorithms that never found a value do not count.  ``last`` is another last timepoint.
    """
    count = as_whole_number(count, "default_timepoints: count", at_least=1)
    first: dict[str, float] = {}
    watched: dict[str, float] = {}
    earliest, whole = np.inf, True
    for trajectory in trajectories:
        name = check_trajectory(trajectory).algorithm
        watched[name] = max(watched.get(name, 0.0), trajectory.horizon)
        first[name] = min(first.get(name, np.inf), first_value(trajectory))
        later = trajectory.times[trajectory.times > 0]
        earliest = min(earliest, float(later[0]) if later.size else np.inf)
        whole = whole and bool((later == np.rint(later)).all())
    if not first:
        raise InvalidInputError("timepoints: there are no trajectories to choose them from.")
    found = [name for name, time in first.items() if time < np.inf]
    if not found:
        raise InvalidInputError("timepoints: no run ever found a value. Say which timepoints to compare.")
    start = max(first[name] for name in found)
    stop = max(watched.values()) if ended == "hold" else min(watched[name] for name in found)
    if last is not None:
        if not start <= last <= stop:
            raise InvalidInputError(f"timepoints: the last one must lie between {start:g} and {stop:g}, got {last:g}.")
        stop = last
    if stop < start:
        raise InvalidInputError(
            f"timepoints: no time suits all algorithms: one has its first value at {start:g}, another was watched "
            f"only until {stop:g}. Say which timepoints to compare."
        )
    if count == 1 or start == stop:
        return as_timepoints([stop])
    if start == 0:  # not on the log scale: use the first change after it
        start = min(earliest, stop / 2)
    low, high = float(np.ceil(start)), float(np.floor(stop))
    if whole and low <= high:
        return log_timepoints(low, high, min(count, int(min(high - low, count)) + 1), integer=True)
    return log_timepoints(start, stop, count)


def _select_runs(
    trajectories: Iterable[Trajectory], wanted: Sequence[str] | None, given: set[str]
) -> Iterator[Trajectory]:
    """Runs of the wanted algorithms; adds the names of all algorithms that have runs to ``given``."""
    for trajectory in trajectories:
        given.add(check_trajectory(trajectory).algorithm)
        if wanted is None or trajectory.algorithm in wanted:
            yield trajectory


def first_value(trajectory: Trajectory) -> float:
    """Time of the first value of a run; ``inf`` if there is none."""
    found = np.flatnonzero(trajectory.best < np.inf)
    return float(trajectory.times[found[0]]) if found.size else np.inf


def _add_run(runs: InstanceRuns, trajectory: Trajectory, grid: FloatArray) -> None:
    seeds = runs.setdefault(trajectory.algorithm, {})
    if trajectory.seed in seeds:
        raise InvalidInputError(
            f"Two trajectories of {trajectory.algorithm!r} on instance {trajectory.instance!r} have the seed "
            f"{trajectory.seed}. Give repeated runs different seeds, or remove the duplicate."
        )
    seeds[trajectory.seed] = SampledRun.of(trajectory, grid)


def _append_instances(
    table: RankingTable, instances: Mapping[str, InstanceRuns], groups: GroupsOfRuns, ended: Ended
) -> RankingTable:
    """Append the runs of each instance, in the order of their seeds."""
    ends = EndsOfRuns(ended, table.timepoints)
    values, names = _pair(table, {instance: ends.settle(runs) for instance, runs in instances.items()})
    of_row = [groups.of(name) for name in names]
    return table.extended(values, names, groups=of_row, fixed_groups=groups.fixed).with_early_ends(ends.found)


def _pair(
    table: RankingTable, instances: Mapping[str, Mapping[str, Sequence[FloatArray]]]
) -> tuple[FloatArray, list[str]]:
    """Values and instances of rows that pair the runs of each instance; one without any run gets an empty row."""
    sizes = [max((len(runs) for runs in each.values()), default=0) or 1 for each in instances.values()]
    values = np.full((sum(sizes), table.timepoints.size, len(table.algorithms)), np.nan)
    start = 0
    for size, each in zip(sizes, instances.values(), strict=True):
        for column, algorithm in enumerate(table.algorithms):
            runs = each.get(algorithm, ())
            rows = size if table.repetitions == "weight" and runs else len(runs)
            for row in range(rows):
                values[start + row, :, column] = runs[row % len(runs)]
        start += size
    return values, [name for name, size in zip(instances, sizes, strict=True) for _ in range(size)]


def check_timepoints_covered(grid: FloatArray, first: float, last: float) -> None:
    """Refuse timepoints at which no run has a value."""
    outside = grid[(grid < first) | (grid > last)]
    if outside.size:
        some = ", ".join(f"{timepoint:g}" for timepoint in outside[:3]) + (", ..." if outside.size > 3 else "")
        span = f"from {first:g} to {last:g}" if first < np.inf else "nowhere: none of them found a value"
        raise InvalidInputError(
            f"timepoints: {outside.size} of {grid.size} lie outside every run ({some}). The runs have values {span}."
        )
