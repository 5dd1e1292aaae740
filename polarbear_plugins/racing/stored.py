"""Stored rivals: runs of an archive as the start of a race in which only newcomers run.

It is late entry: the rivals have been observed on every instance of the archive, and the newcomers catch up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import natural_key
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.racing.state import RaceState, start_race
from polarbear_plugins.rankings.ends import EarlyEnds, EndsOfRuns, InstanceRuns, SampledRun
from polarbear_plugins.rankings.groups import GroupsOfRuns
from polarbear_plugins.rankings.stream import check_timepoints_covered, first_value, rank_cells
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory

# Values of the runs of an algorithm on an instance at the timepoints, one array for each run.
StoredValues: TypeAlias = Mapping[tuple[str, str], Sequence[FloatArray]]


@dataclass(frozen=True, slots=True, eq=False)
class StoredRivals:
    """What a race keeps of an archive.

    Attributes
    ----------
    values
        ``values[algorithm, instance]`` of each run at the timepoints.
    instances
        Identities of the instances in the order in which newcomers run on them.
    about
        Where they come from, how the instances of the archive match those of the suite, how runs ended and which values
        count as the best possible; JSON data.
    """

    values: StoredValues
    instances: tuple[Identity, ...]
    about: Mapping[str, Any]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the rivals."""
        return tuple(sorted({algorithm for algorithm, _ in self.values}, key=natural_key))


class StoredRuns(NamedTuple):
    """Stored runs at the timepoints.

    Attributes
    ----------
    targets
        By instance, the worst value with which a stored run was done: whatever is as good is equal to it.
    """

    values: StoredValues
    targets: Mapping[str, float]
    early_ends: tuple[EarlyEnds, ...]


def sample_stored(runs: Sequence[Trajectory], timepoints: ArrayLike) -> StoredRuns:
    """Stored runs at the timepoints, as :func:`polarbear_plugins.rank` would rank them.

    :raises InvalidInputError: two runs have the same seed, or there is no run at some timepoint.
    """
    grid = as_timepoints(timepoints)
    by_instance: dict[str, InstanceRuns] = {}
    for run in runs:
        seeds = by_instance.setdefault(run.instance, {}).setdefault(run.algorithm, {})
        if run.seed in seeds:
            raise InvalidInputError(
                f"Two stored runs of {run.algorithm!r} on instance {run.instance!r} have the seed {run.seed}. Give "
                "repeated runs different seeds, or remove the duplicate."
            )
        seeds[run.seed] = SampledRun.of(run, grid)
    check_timepoints_covered(grid, min(map(first_value, runs)), max(run.horizon for run in runs))
    ends = EndsOfRuns("hold", grid, rivals_follow=True)
    settled = {instance: ends.settle(each) for instance, each in by_instance.items()}
    values = {(name, instance): found for instance, each in settled.items() for name, found in each.items()}
    targets: dict[str, float] = {}
    for run in runs:
        if run.end == "done":
            targets[run.instance] = max(targets.get(run.instance, -np.inf), float(run.best[-1]))
    return StoredRuns(values, targets, ends.found)


def start_against(
    newcomers: Iterable[str],
    timepoints: ArrayLike,
    settings: RaceSettings,
    rivals: StoredRivals,
    tolerance: float = 0.0,
) -> RaceState:
    """State of a race of newcomers against stored rivals before its first run.

    Repeated runs of a rival on an instance share the weight of the instance, as in :func:`polarbear_plugins.rank`; a
    newcomer runs once on it, and that run meets each of them.
    """
    stored, new = rivals.names, tuple(newcomers)
    both = sorted(set(stored) & set(new), key=natural_key)
    if both:
        raise InvalidInputError(
            f"{', '.join(both)}: both the archive and the portfolio have this name. Give the newcomer another name, or "
            "leave the stored one out."
        )
    state = start_race((*stored, *new), timepoints, settings, tolerance)
    groups = {identity.name: identity.group for identity in rivals.instances}
    named = any(group is not None for group in groups.values())
    table = rank_cells(
        state.algorithms,
        state.timepoints,
        rivals.values,
        groups,
        groups if named else None,
        named and all(identity.fixed_group for identity in rivals.instances),
        tolerance,
    )
    ends = [EarlyEnds.from_json(each) for each in rivals.about.get("early_ends", ())]
    return replace(
        state,
        table=table.with_early_ends(ends),
        newcomers=new,
        stored=stored,
        targets={name: as_number(target, "targets") for name, target in dict(rivals.about.get("targets", {})).items()},
    )


def with_groups(identities: Iterable[Identity], runs: Iterable[Trajectory]) -> list[Identity]:
    """Identities with the groups that stored runs name for them, where the suite names none."""
    listed = list(identities)
    if any(identity.group is not None for identity in listed):
        return listed
    groups = GroupsOfRuns()
    for run in runs:
        groups.add(run)
    return [replace(identity, group=groups.of(identity.name), fixed_group=groups.fixed) for identity in listed]
