"""Who is told about a race while it runs: a watcher given by the caller, and plugins."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from polarbear_plugins.errors import PluginWarning, describe_exception
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.state import RaceState


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a race: its state after the last round, and the runs of the current one (none between rounds)."""

    state: RaceState
    posterior: Posterior | None
    done: int
    planned: int
    failed: int


Watcher = Callable[[Progress], None]


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
