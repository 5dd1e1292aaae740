"""Runs of two versions of an algorithm in pairs: who won each pair at each budget, and which pairs count as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.names import natural_key
from polarbear_plugins.rankings.ends import EarlyEnds, Ended, EndsOfRuns, SampledRun
from polarbear_plugins.rankings.groups import GroupsOfRuns
from polarbear_plugins.rankings.ranks import UNRANKED_RANK, ranks_of
from polarbear_plugins.rankings.table import Repetitions
from polarbear_plugins.trajectories.runs import check_trajectory
from polarbear_plugins.trajectories.trajectory import Trajectory

#: What counts as one observation, independent of the others.
PairUnit: TypeAlias = Literal["groups", "instances", "pairs"]
#: What the certainty is about if instances belong to groups, as for :func:`polarbear_plugins.fit`.
PairGroups: TypeAlias = Literal["auto", "new", "same", "none"]

_MOST_NAMED = 3  # names in a message


@dataclass(frozen=True, slots=True)
class Pairing:
    """How runs were paired.

    Attributes
    ----------
    instances
        Instances on which there is a pair.
    by_seed, by_instance
        Pairs of runs on the same instance, with the same seed, and with different ones.
    base_left_out, new_left_out
        Runs without a partner.
    one_sided
        Instances that only one of the two has.
    base_without_value, new_without_value
        Runs in pairs that never had a value, and so lose to any that had.
    base_until, new_until
        How far the run of a pair that was watched longest was watched.
    groups
        Groups to which the instances belong; 0 if they are not grouped.
    unit
        What counts as one observation.  Several pairs of an instance, or instances of a group, count together as one.
    """

    instances: int
    by_seed: int
    by_instance: int
    base_left_out: int
    new_left_out: int
    one_sided: int
    base_without_value: int
    new_without_value: int
    base_until: float
    new_until: float
    groups: int
    unit: PairUnit

    @property
    def pairs(self) -> int:
        """All pairs."""
        return self.by_seed + self.by_instance

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {"pairs": self.pairs, **asdict(self)}


class RunPairs(NamedTuple):
    """Outcomes of pairs at budgets.

    ``outcomes[pair, budget]`` is 1 where the new run is better, -1 where it is worse, 0 for a tie, and ``nan`` where
    the two cannot be compared.  ``levels`` says to which instance each pair belongs, and to which group each instance,
    as far as these count together as one.
    """

    outcomes: FloatArray
    levels: tuple[NDArray[np.intp], ...]
    pairing: Pairing
    early_ends: tuple[EarlyEnds, ...]

    def leads(self) -> FloatArray:
        """``[unit, budget]``: share of the pairs of each unit that the new runs win, minus the share that they lose.

        Every instance of a group has the same weight in it, and every pair of an instance in that.
        """
        leads = self.outcomes
        for belongs_to in self.levels:
            leads = _means(leads, belongs_to)
        return leads


def pair_runs(
    base: Iterable[Trajectory],
    new: Iterable[Trajectory],
    budgets: FloatArray,
    *,
    groups: PairGroups = "auto",
    repetitions: Repetitions = "weight",
    tolerance: float = 0.0,
    ended: Ended = "cut",
) -> RunPairs:
    """Pair the runs of two versions on each instance: those of one seed, and the rest in the order of their seeds.

    Examples
    --------
    >>> runs = [Trajectory(algorithm="a", instance="f", seed=seed, times=[1], best=[seed]) for seed in (1, 2, 4)]
    >>> found = pair_runs(runs[:2], runs[1:], np.array([1.0]))
    >>> found.outcomes.tolist(), found.pairing.by_seed, found.pairing.by_instance
    ([[0.0], [-1.0]], 1, 1)
    """
    named = GroupsOfRuns()
    sides = _by_instance(base, named, "base"), _by_instance(new, named, "new")
    shared = sorted(sides[0].keys() & sides[1].keys(), key=natural_key)
    if not shared:
        raise InvalidInputError(
            f"gate: the two have no instance in common; base has {listed(sides[0])}, new has {listed(sides[1])}."
        )
    ends = EndsOfRuns(ended, budgets)
    values: list[tuple[FloatArray, FloatArray]] = []
    paired: dict[str, list[Trajectory]] = {"base": [], "new": []}
    names: list[str] = []
    by_seed = 0
    for instance in shared:
        mine, other = sides[0][instance], sides[1][instance]
        for one, two in _matched(mine, other):
            by_seed += one == two
            names.append(instance)
            pair = {"base": mine[one], "new": other[two]}
            for side, run in pair.items():
                paired[side].append(run)
            settled = ends.settle({side: {0: SampledRun.of(run, budgets)} for side, run in pair.items()})
            values.append((settled["base"][0], settled["new"][0]))
    group_of = {instance: named.of(instance) for instance in shared}
    unit = _unit(group_of, groups, named.fixed, repetitions)
    levels: tuple[NDArray[np.intp], ...] = () if unit == "pairs" else (_positions(names),)
    if unit == "groups":
        levels += (_positions([group_of[instance] for instance in shared]),)
    pairing = Pairing(
        instances=len(shared),
        by_seed=by_seed,
        by_instance=len(names) - by_seed,
        base_left_out=sum(map(len, sides[0].values())) - len(names),
        new_left_out=sum(map(len, sides[1].values())) - len(names),
        one_sided=len(sides[0].keys() ^ sides[1].keys()),
        base_without_value=_without_value(paired["base"]),
        new_without_value=_without_value(paired["new"]),
        base_until=max(run.horizon for run in paired["base"]),
        new_until=max(run.horizon for run in paired["new"]),
        groups=len({group for group in group_of.values() if group is not None}),
        unit=unit,
    )
    return RunPairs(_outcomes(np.array(values), tolerance), levels, pairing, ends.found)


def _by_instance(runs: Iterable[Trajectory], groups: GroupsOfRuns, side: str) -> dict[str, dict[int, Trajectory]]:
    found: dict[str, dict[int, Trajectory]] = {}
    for run in runs:
        groups.add(check_trajectory(run))
        seeds = found.setdefault(run.instance, {})
        if run.seed in seeds:
            raise InvalidInputError(
                f"gate: two runs of {run.algorithm!r} in {side} on instance {run.instance!r} have the seed {run.seed}. "
                "Give repeated runs different seeds, or remove the duplicate."
            )
        seeds[run.seed] = run
    return found


def _without_value(runs: Iterable[Trajectory]) -> int:
    """How many of the runs never had a value."""
    return sum(bool((run.best == np.inf).all()) for run in runs)


def _matched(base: Iterable[int], new: Iterable[int]) -> list[tuple[int, int]]:
    """Pairs of seeds: those that both have, then the others in their order.

    >>> _matched([0, 1, 2, 3], [2, 8, 9])
    [(2, 2), (0, 8), (1, 9)]
    """
    mine, other = set(base), set(new)
    rest = zip(sorted(mine - other), sorted(other - mine), strict=False)
    return [*((seed, seed) for seed in sorted(mine & other)), *rest]


def _outcomes(values: FloatArray, tolerance: float) -> FloatArray:
    """Who won, from ``values[pair, side, budget]``."""
    base, new = np.moveaxis(ranks_of(np.moveaxis(values, 1, -1), tolerance).astype(np.int32), -1, 0)
    # Between two unranked runs nothing is known.
    compared = (base > 0) & (new > 0) & ((base < UNRANKED_RANK) | (new < UNRANKED_RANK))
    return np.where(compared, np.sign(base - new), np.nan)


def _unit(group_of: Mapping[str, str | None], groups: PairGroups, fixed: bool, repetitions: Repetitions) -> PairUnit:
    if len(group_of) == 1 or as_choice(repetitions, Repetitions, "repetitions") == "independent":
        return "pairs"
    count = len(set(group_of.values()))
    about_new = as_choice(groups, PairGroups, "groups") == "new" or (groups == "auto" and not fixed)
    return "groups" if about_new and 1 < count < len(group_of) else "instances"


def _positions(names: Sequence[str | None]) -> NDArray[np.intp]:
    index = {name: place for place, name in enumerate(dict.fromkeys(names))}
    return np.array([index[name] for name in names], dtype=np.intp)


def _means(rows: FloatArray, belongs_to: NDArray[np.intp]) -> FloatArray:
    """Mean of the rows that belong together, without ``nan``; ``nan`` if all are."""
    present = ~np.isnan(rows)
    sums = np.zeros((int(belongs_to.max()) + 1, rows.shape[1]))
    counts = np.zeros_like(sums)
    np.add.at(sums, belongs_to, np.where(present, rows, 0.0))
    np.add.at(counts, belongs_to, present)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def listed(names: Iterable[str]) -> str:
    """The first names, and how many more there are; or that there is no run."""
    ordered = sorted(names, key=natural_key)
    more = f" and {len(ordered) - _MOST_NAMED} more" if len(ordered) > _MOST_NAMED else ""
    return ", ".join(map(short, ordered[:_MOST_NAMED])) + more if ordered else "no run"
