"""Who is told about a race while it runs: a watcher given by the caller, and plugins."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from polarbear_plugins.errors import PluginWarning, describe_exception
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.racing.state import Failure, RaceState


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a race: its state after the last round, and the runs of the current one.

    Attributes
    ----------
    done, planned
        Runs of the current round, those that are finished and all; 0 between rounds.
    failed
        Runs that failed for good, so far.
    under_way
        Runs that workers perform or that wait for one.
    ahead
        How many of these are for later rounds.
    waited_for
        Algorithms that the round waits for, with the number of their runs.
    utilisation
        Share of the time of the workers in which they had something to do; ``None`` if the executor does not say how
        many workers it has.
    recent_failures
        The last few runs that failed for good.
    result
        The result so far, between two rounds; otherwise ``None``.  It is ``running``, and the model was not checked.
    """

    state: RaceState
    posterior: Posterior | None
    done: int
    planned: int
    failed: int
    under_way: int = 0
    ahead: int = 0
    waited_for: Mapping[str, int] = field(default_factory=dict)
    utilisation: float | None = None
    recent_failures: tuple[Failure, ...] = ()
    result: RaceResult | None = None


#: Is told how far a race is.  If it returns ``True``, the race stops after the round.
Watcher = Callable[[Progress], object]


def notify_plugins(plugins: Plugins, state: RaceState) -> None:
    """Tell each plugin separately that a round is over, so that a failure in one does not keep it from the others."""
    manager, hook = plugins.manager, "polarbear_round_finished"
    listeners = [implementation.plugin for implementation in getattr(manager.hook, hook).get_hookimpls()]
    for listener in listeners:
        others = [plugin for plugin in listeners if plugin is not listener]
        try:
            manager.subset_hook_caller(hook, others)(state=state)
        except Exception as problem:  # a broken dashboard must not end a race
            name = manager.get_name(listener)
            warnings.warn(
                f"The plugin {name} failed in {hook}: {describe_exception(problem)}.", PluginWarning, stacklevel=2
            )
