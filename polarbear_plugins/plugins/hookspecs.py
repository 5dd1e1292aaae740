"""The hooks: what a plugin can provide.

A plugin is a module (or object) with functions of these names, marked with ``hookimpl`` and registered under the entry
point group ``polarbear``.  The first line of an implementation's docstring is what users read about it: in
``polarbear plugins``, and in the message when no plugin recognises a name or a source.  An implementation may leave out
arguments it does not need.  All plugin modules are imported together: import heavy packages inside functions.
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
    """A section that a plugin adds to a report: a title, and HTML with text from data escaped."""

    title: str
    html: str


@hookspec(firstresult=True)
def polarbear_read_trajectories(source: object, options: Mapping[str, object]) -> Iterable[Trajectory] | None:
    """Turn a source of results into trajectories.  Stops at first non-None result.

    Called by :func:`polarbear_plugins.read_trajectories`.  Do not open a source that is clearly another adapter's, and
    do not change it.

    :param source: what the user passed: a path, a URL, a data frame, a study.
    :param options: further options: keywords in Python, text on the command line.
    :returns: the trajectories, minimised, in any order; ``None`` if ``source`` is not yours.
    :raises SourceError: ``source`` is yours but damaged; names the file, the place and what was expected.
    :raises InvalidInputError: an option is unknown or not valid.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def polarbear_suite(name: str, options: Mapping[str, object]) -> Suite | None:
    """Return the suite of a name.  Stops at first non-None result.

    Also called in the workers of a race, which build problems from their identities: the same name and options must
    give the same suite in every process.

    :param name: what the user wrote, such as ``ma-bbob`` or ``yahpo:lcbench``.
    :param options: further options, such as the dimension.
    :returns: the suite; ``None`` if ``name`` is not yours.
    :raises InvalidInputError: ``name`` is yours but an option is unknown or not valid.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """Return the algorithms of a name.  Stops at first non-None result.

    Also called in the workers of a race: the same name and options must give the same algorithms in every process.

    :param name: what the user wrote, such as ``modcma-ssa``.
    :param options: further options.
    :returns: algorithms with different names; ``None`` if ``name`` is not yours.
    :raises InvalidInputError: ``name`` is yours but an option is unknown or not valid.

    .. versionadded:: 0.1
    """


@hookspec(firstresult=True)
def polarbear_executor(address: str, options: Mapping[str, object]) -> Executor | None:
    """Connect to where runs are executed.  Stops at first non-None result.

    ``polarbear race`` calls ``shutdown()`` on the result.  An executor that handles runs and their timeouts itself is a
    :class:`polarbear_plugins.execution.requests.RunExecutor`.  Do not connect to an address that is not yours.

    :param address: what the user wrote, such as ``dask:tcp://HOST:PORT``.
    :param options: further options.
    :returns: an executor; ``None`` if ``address`` is not yours.
    :raises PolarBearError: ``address`` is yours but cannot be reached.

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_priors() -> Mapping[str, Callable[..., Prior]]:
    """Provide further priors over ratings.  All plugins are called; names must be unique.

    :returns: for each name that ``fit(prior=...)`` accepts, a function from options to the prior
        (``polarbear_plugins.priors``).

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_engines() -> Mapping[str, Engine]:
    """Provide further inference engines.  All plugins are called; names must be unique.

    :returns: for each name that ``fit(engine=...)`` accepts, a function of a ``Task`` and options that returns
        ``Draws`` (``polarbear_plugins.inference.task``).

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_round_finished(state: RaceState) -> None:
    """Called after each round of a race: for progress, logging and dashboards.  All plugins are called.

    Runs in the process that drives the race, between two rounds: return quickly.  Do not change ``state``.

    :param state: the race after the round.

    .. versionadded:: 0.1
    """


@hookspec
def polarbear_report_sections(result: RaceResult) -> Iterable[ReportSection]:
    """Add sections to the report of a result.  All plugins are called.

    :param result: what the report is about.
    :returns: sections, in the order in which they follow the built-in ones.

    .. versionadded:: 0.1
    """
