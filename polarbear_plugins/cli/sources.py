"""The sources of runs that several commands read."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

from polarbear_plugins.checks import FloatArray
from polarbear_plugins.errors import UnknownNameError
from polarbear_plugins.journal.replay import load_result
from polarbear_plugins.plugins.manager import Plugins, load_plugins
from polarbear_plugins.trajectories.trajectory import Trajectory

__all__ = ["read_runs", "read_sources"]


def read_sources(plugins: Plugins, sources: Sequence[str], options: Mapping[str, str]) -> list[Trajectory]:
    """Read several sources by an adapter that takes them together, or each by itself."""
    if len(sources) > 1:
        together = plugins.manager.hook.polarbear_read_trajectories(source=list(sources), options=options)
        if together is not None:
            return list(together)
    return list(itertools.chain.from_iterable(plugins.read_trajectories(source, **options) for source in sources))


def read_runs(sources: Sequence[str], options: Mapping[str, str]) -> tuple[list[Trajectory], FloatArray | None]:
    """Read the runs of a source, or of a race from its journal or its saved result, which no adapter reads.

    A race knows its runs at its timepoints only, which come with them.
    """
    try:
        return read_sources(load_plugins(), sources, options), None
    except UnknownNameError:
        if len(sources) == 1 and Path(sources[0]).is_file():
            result = load_result(sources[0])
            return list(result.trajectories()), result.timepoints
        raise
