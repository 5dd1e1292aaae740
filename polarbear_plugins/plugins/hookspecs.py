"""The hooks: what a plugin can provide.

A plugin is a module (or object) with functions of these names, marked with ``hookimpl`` and announced under the entry
point group ``polarbear``.  The first line of an implementation's docstring is what users read about it: in
``polarbear plugins``, and in the message when nobody recognises a name or a source.  An implementation may leave out
arguments it does not need.  Modules of plugins are imported whenever any plugin is: import what is heavy inside the
functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pluggy

from polarbear_plugins.problems.protocols import Algorithm, Suite
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    from polarbear_plugins.inference.task import Engine
    from polarbear_plugins.priors.base import Prior
    from polarbear_plugins.racing.result import RaceResult
    from polarbear_plugins.racing.state import RaceState

PROJECT = "polarbear"

hookspec = pluggy.HookspecMarker(PROJECT)
#: Marks a function as the implementation of a hook.
hookimpl = pluggy.HookimplMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A section that a plugin adds to a report: a title, and HTML in which text from data is escaped."""

    title: str
    html: str


@hookspec(firstresult=True)
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Turn a source of results into trajectories.  Stops at first non-None result.

    Asked by :func:`polarbear_plugins.read_trajectories`.  Do not open a source that is clearly another adapter's, and
    do not change it.

    :param source: what the user handed over: a path, a URL, a data frame, a study.
    :param options: further wishes, as keywords in Python and as text from the command line.
    :returns: the curves, minimised, in any order; ``None`` if ``source`` is not yours.
    :raises SourceError: ``source`` is yours but damaged; names the file, the place and what was expected.
    :raises InvalidInputError: an option is unknown or means nothing.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """Make the suite of a name.  Stops at first non-None result.

    Also asked in the workers of a race, which build problems from their identities: the same name and options must
    give the same suite in every process.

    :param name: what the user asked for, such as ``ma-bbob`` or ``yahpo:lcbench``.
    :param options: further wishes, such as the dimension.
    :returns: the suite; ``None`` if ``name`` is not yours.
    :raises InvalidInputError: ``name`` is yours but an option is unknown or means nothing.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """Make the algorithms of a name.  Stops at first non-None result.

    Also asked in the workers of a race: the same name and options must give the same algorithms in every process.

    :param name: what the user asked for, such as ``modcma-ssa``.
    :param options: further wishes.
    :returns: algorithms with different names; ``None`` if ``name`` is not yours.
    :raises InvalidInputError: ``name`` is yours but an option is unknown or means nothing.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def polarbear_executor(address: str, options: Mapping[str, object]) -> Executor | None:
    """Connect to where runs are executed.  Stops at first non-None result.

    ``polarbear race`` calls ``shutdown()`` on what it gets.  An executor that knows what a run is, and keeps its time,
    is a :class:`polarbear_plugins.execution.requests.RunExecutor`.  Do not connect to an address that is not yours.

    :param address: what the user asked for, such as ``dask:tcp://HOST:PORT``.
    :param options: further wishes.
    :returns: an executor; ``None`` if ``address`` is not yours.
    :raises PolarBearError: ``address`` is yours but cannot be reached.

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_priors() -> Mapping[str, Callable[..., Prior]]:
    """Provide further priors over ratings.  Everybody is asked; a name may be given once.

    :returns: for each name that ``fit(prior=...)`` shall know, what makes the prior (``polarbear_plugins.priors``) from
        its options.

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_engines() -> Mapping[str, Engine]:
    """Provide further inference engines.  Everybody is asked; a name may be given once.

    :returns: for each name that ``fit(engine=...)`` shall know, a function of a ``Task`` and options that returns
        ``Draws`` (``polarbear_plugins.inference.task``).

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_round_finished(state: RaceState) -> None:
    """Learn that a round of a race is over: for progress, logging and dashboards.  Everybody is told.

    Called in the process that drives the race, between two rounds: return soon.  Do not change ``state``.

    :param state: the race after the round.

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_report_sections(result: RaceResult) -> Iterable[ReportSection]:
    """Add sections to the report of a result.  Everybody is asked.

    :param result: what the report is about.
    :returns: sections, in the order in which they shall stand behind the built-in ones.

    .. versionadded:: 0.1
    """
