"""Archives to race against: their runs, matched with the instances that a suite can build."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.journal.journal import Journal
from polarbear_plugins.names import natural_key
from polarbear_plugins.plugins.manager import Plugins, installed_plugins
from polarbear_plugins.problems.protocols import Identity, Suite
from polarbear_plugins.racing.state import RaceState
from polarbear_plugins.racing.stored import StoredRivals, sample_stored, with_groups
from polarbear_plugins.seeds import derived_seed
from polarbear_plugins.trajectories.trajectory import Trajectory

_MOST_LISTED = 10_000  # problems of a suite, to match their names; some suites draw endlessly
_EXAMPLES = 3


@dataclass(frozen=True, slots=True, eq=False)
class MatchedArchive:
    """Runs of an archive on the instances that a suite can build.

    Attributes
    ----------
    runs
        Those runs, with the suite's names of the instances.
    identities
        The instances, in the natural order of their names.
    about
        Where the runs come from, and how many instances match; JSON data.
    """

    runs: tuple[Trajectory, ...]
    identities: tuple[Identity, ...]
    about: Mapping[str, Any]

    def rivals(self, timepoints: ArrayLike, seed: int) -> StoredRivals:
        """Stored rivals of a race with these timepoints and this seed."""
        dimensions = {run.instance: run.dimension for run in self.runs}
        strata = [
            (identity.group, dimensions[identity.name] or identity.parameters.get("dimension"))
            for identity in self.identities
        ]
        order = balanced_order(strata, derived_seed(seed, "instances"))
        instances = tuple(self.identities[place] for place in order)
        values, targets, ends = sample_stored(self.runs, timepoints)
        about = {**self.about, "targets": dict(targets), "early_ends": [each.to_json() for each in ends]}
        return StoredRivals(values, instances, about)


def match_archive(
    against: object,
    suite: Suite,
    seed: int,
    *,
    options: Mapping[str, Any] | None = None,
    plugins: Plugins | None = None,
) -> MatchedArchive:
    """Match an archive with a suite.

    Parameters
    ----------
    against
        What :func:`polarbear_plugins.read_trajectories` reads, a list of such sources, or a list of trajectories.
    seed
        Seed of the race.
    options
        Options of the adapter that reads the sources.

    Raises
    ------
    InvalidInputError
        The archive has no run, or no instance in common with the suite.
    """
    runs, sources = _read(against, options or {}, plugins)
    if not runs:
        raise InvalidInputError("The archive has no runs to race against.")
    names = sorted({run.instance for run in runs}, key=natural_key)
    listed, look_up = _instances_of(suite, seed)
    endless = len(listed) > _MOST_LISTED
    found: dict[str, Identity] = {name: identity for name in names if (identity := look_up(name)) is not None}
    missing = [name for name in names if name not in found]
    if not found:
        advice = "An endless suite draws the same instances only with the same --seed." if endless else ""
        raise InvalidInputError(
            f"The archive and the suite {suite.name!r} have no instance in common: the archive has {_some(names)}, the "
            f"suite {_some(listed)}. Choose functions, instances and dimensions that the archive has, or problems of "
            f"the same names. {advice}".rstrip()
        )
    renamed = tuple(run.changed(instance=found[run.instance].name) for run in runs if run.instance in found)
    identities = {identity.name: identity for identity in found.values()}
    unused = [name for name in listed if name not in identities]
    about = {
        "sources": sources,
        "options": dict(options or {}),
        "runs": len(renamed),
        "instances": len(identities),
        "not_in_suite": len(missing),
        "not_in_suite_examples": missing[:_EXAMPLES],
        "not_in_archive": None if endless else len(unused),
    }
    return MatchedArchive(renamed, tuple(with_groups(identities.values(), renamed)), about)


def balanced_order(strata: Sequence[object], seed: int) -> list[int]:
    """Places in a random order in which every stretch has each stratum in proportion.

    The instances of a stratum are shuffled and spread evenly from a random start, so that each instance is as likely
    as any other at every place, and each beginning is a stratified sample of all.  The order must not depend on
    results: instances chosen because the rivals differ on them would be another population than that of the ratings.

    >>> order = balanced_order(["a"] * 4 + ["b"] * 2, seed=1)
    >>> sorted("aaaabb"[place] for place in order[:3])
    ['a', 'a', 'b']
    """
    rng = np.random.default_rng(seed)
    members: dict[object, list[int]] = {}
    for place, stratum in enumerate(strata):
        members.setdefault(stratum, []).append(place)
    positions = np.empty(len(strata))
    for places in members.values():
        positions[rng.permutation(places)] = (np.arange(len(places)) + rng.random()) / len(places)
    return [int(place) for place in np.argsort(positions, kind="stable")]


def restore_rivals(journal: Journal, about: Mapping[str, Any], state: RaceState, suite: Suite) -> StoredRivals:
    """Stored rivals of a journal, on instances that the suite gives now, which should be those that it gave then."""
    _, look_up = _instances_of(suite, state.settings.seed or 0)
    restored = []
    for then in journal.instances:
        now = look_up(then.name)
        if now is None:
            raise InvalidInputError(
                f"{journal.path}: the suite {suite.name!r} no longer has the instance {then.name!r} of this race: it "
                "is another suite, or another version of it."
            )
        # Without groups of the suite they are those that the archive named.
        restored.append(now if now.group is not None else replace(now, group=then.group, fixed_group=then.fixed_group))
    return StoredRivals(journal.stored(state.timepoints.size), tuple(restored), about.get("against") or {})


def _instances_of(suite: Suite, seed: int) -> tuple[dict[str, Identity], Callable[[str], Identity | None]]:
    """The first instances of a suite by name, and a function that finds one by the name that an archive gives it."""
    drawn = itertools.islice(suite.identities(derived_seed(seed, "instances")), _MOST_LISTED + 1)
    listed = {identity.name: identity for identity in drawn}
    return listed, getattr(suite, "identity_named", listed.get)


def _read(
    against: object, options: Mapping[str, Any], plugins: Plugins | None
) -> tuple[list[Trajectory], list[str] | None]:
    """Runs of an archive, and its sources by name; ``None`` if not all have one."""
    parts = list(against) if isinstance(against, list | tuple) else [against]
    given = [part for part in parts if isinstance(part, Trajectory)]
    sources = [part for part in parts if not isinstance(part, Trajectory)]
    if not sources and options:
        raise InvalidInputError("against_options are for sources that an adapter reads, not for a list of runs.")
    read = (plugins or installed_plugins()).read_trajectories(*sources, **options) if sources else ()
    named = [str(source) for source in sources if isinstance(source, str | Path)]
    return [*given, *read], named if len(named) == len(parts) else None


def _some(names: Iterable[str]) -> str:
    first = [short(name) for name in itertools.islice(names, _EXAMPLES + 1)]
    return ", ".join(first[:_EXAMPLES]) + (", ..." if len(first) > _EXAMPLES else "")
