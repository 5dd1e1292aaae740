"""Finding plugins and calling them."""

from __future__ import annotations

import functools
import importlib.metadata
import inspect
import itertools
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pluggy

from polarbear_plugins.errors import (
    STORED,
    InvalidInputError,
    PluginWarning,
    UnknownNameError,
    describe_exception,
    foreign_text,
)
from polarbear_plugins.plugins import hookspecs
from polarbear_plugins.plugins.hookspecs import PROJECT
from polarbear_plugins.problems.given import as_portfolio
from polarbear_plugins.problems.protocols import Algorithm, Suite
from polarbear_plugins.regular_files import check_regular
from polarbear_plugins.trajectories.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """A loaded plugin, and the first line of documentation of each hook it implements."""

    name: str
    module: str
    distribution: str
    hooks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FailedPlugin:
    """A plugin that could not be loaded, and why."""

    name: str
    module: str
    distribution: str
    reason: str


class Plugins:
    """Loaded plugins.  Created by :func:`load_plugins`; tests and notebooks may :meth:`register` their own."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self._installed: list[InstalledPlugin] = []
        self._failed: list[FailedPlugin] = []

    @property
    def installed(self) -> tuple[InstalledPlugin, ...]:
        """Plugins that work, by name."""
        return tuple(sorted(self._installed, key=lambda plugin: plugin.name))

    @property
    def failed(self) -> tuple[FailedPlugin, ...]:
        """Plugins that could not be loaded, by name."""
        return tuple(sorted(self._failed, key=lambda plugin: plugin.name))

    def register(self, plugin: object, name: str, *, distribution: str = "", module: str | None = None) -> None:
        """Add a plugin: any object with hook implementations.

        :raises InvalidInputError: it implements no hook, a hook that does not exist, or one with wrong arguments; or
            it, or its name, is registered already.
        """
        if self.manager.is_registered(plugin):
            raise InvalidInputError(f"plugin {name!r}: it is already registered as {self.manager.get_name(plugin)!r}.")
        if self.manager.has_plugin(name):
            raise InvalidInputError(f"plugin {name!r}: another one is already registered under that name.")
        try:
            self.manager.register(plugin, name)
            self.manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as problem:
            if self.manager.is_registered(plugin):
                self.manager.unregister(plugin)
            # Remove what pluggy added for an unknown hook.
            for hook in [hook for hook in vars(self.manager.hook) if not hasattr(hookspecs, hook)]:
                if not hook.startswith("_"):
                    delattr(self.manager.hook, hook)
            raise InvalidInputError(f"plugin {name!r}: {foreign_text(problem, STORED)}") from None
        hooks = {
            caller.name: _first_line(implementation.function)
            for caller in self.manager.get_hookcallers(plugin) or []
            for implementation in caller.get_hookimpls()
            if implementation.plugin is plugin
        }
        if not hooks:
            self.manager.unregister(plugin)
            raise InvalidInputError(
                f"plugin {name!r} implements no hook. Mark its functions with @polarbear_plugins.hookimpl."
            )
        self._installed.append(InstalledPlugin(name, module or _module_of(plugin), distribution, hooks))

    def load(self, entry_point: importlib.metadata.EntryPoint) -> None:
        """Load and register the plugin of an entry point; a failure is recorded in ``failed`` and warned about."""
        origin = entry_point.dist
        distribution = f"{origin.name} {origin.version}" if origin else ""
        try:
            self.register(entry_point.load(), entry_point.name, distribution=distribution, module=entry_point.value)
        # A foreign module may fail in any way on import, including sys.exit; the other plugins still load.
        except (Exception, SystemExit) as problem:
            known = isinstance(problem, InvalidInputError)
            reason = foreign_text(problem, STORED) if known else describe_exception(problem, with_place=False)
            self._failed.append(FailedPlugin(entry_point.name, entry_point.value, distribution, reason))
            whose = f" of {distribution}" if distribution else ""
            warnings.warn(
                f"The plugin {entry_point.name!r}{whose} could not be loaded ({reason}). The others were.",
                PluginWarning,
                stacklevel=3,
            )

    def read_trajectories(self, /, *sources: object, **options: object) -> Iterable[Trajectory]:
        """Trajectories in sources, from the adapters; see :func:`polarbear_plugins.read_trajectories`."""
        for source in sources:
            if isinstance(source, str | Path):
                check_regular(source)
        ask = self.manager.hook.polarbear_read_trajectories
        together = ask(source=list(sources), options=options) if len(sources) > 1 else None
        if together is not None:
            return together
        each = [
            self._require_result(ask(source=source, options=options), "polarbear_read_trajectories", "source", source)
            for source in sources
        ]
        return each[0] if len(each) == 1 else itertools.chain.from_iterable(each)

    def suite(self, name: str, /, **options: object) -> Suite:
        """Suite of a registered name."""
        result = self.manager.hook.polarbear_suite(name=name, options=options)
        return self._require_result(result, "polarbear_suite", "suite", name)

    def portfolio(self, name: str, /, **options: object) -> tuple[Algorithm, ...]:
        """Algorithms of a registered name."""
        result = self.manager.hook.polarbear_portfolio(name=name, options=options)
        algorithms: Sequence[Algorithm] = self._require_result(result, "polarbear_portfolio", "portfolio", name)
        return as_portfolio(algorithms)

    def executor(self, address: str, /, **options: object) -> Executor:
        """Executor at an address."""
        result = self.manager.hook.polarbear_executor(address=address, options=options)
        return self._require_result(result, "polarbear_executor", "executor", address)

    def _require_result(self, result: Any, hook: str, what: str, asked_for: object) -> Any:
        """Result of a first-result hook; without one, raise an error that lists the plugins asked."""
        if result is not None:
            return result
        asked = [f"{plugin.name} ({plugin.hooks[hook]})" for plugin in self.installed if hook in plugin.hooks]
        if isinstance(asked_for, str | Path):
            text = str(asked_for)
            name = repr(text if len(text) <= 300 else f"{text[:140]}...{text[-140:]}")
            name += " (there is no such file)" if what == "source" and _is_missing_file(text) else ""
        else:
            name = f"of type {type(asked_for).__name__}"
        raise UnknownNameError(
            f"No plugin knows the {what} {name}. "
            f"Asked: {'; '.join(asked) or 'none, since no plugin provides any'}."
            + (f" Could not be asked: {', '.join(plugin.name for plugin in self.failed)}." if self._failed else "")
        )


def load_plugins(entry_points: Iterable[importlib.metadata.EntryPoint] | None = None) -> Plugins:
    """Load every installed plugin.

    A plugin that cannot be loaded is a :class:`PluginWarning` and an entry in ``failed``; the others are loaded.

    Parameters
    ----------
    entry_points
        What to load; by default everything announced under the entry point group ``polarbear``.

    Examples
    --------
    >>> "table" in [plugin.name for plugin in load_plugins().installed]
    True
    """
    plugins = Plugins()
    if entry_points is None:
        entry_points = importlib.metadata.entry_points(group=PROJECT)
    for entry_point in sorted(entry_points, key=lambda entry_point: (entry_point.name, entry_point.value)):
        plugins.load(entry_point)
    return plugins


@functools.cache
def installed_plugins() -> Plugins:
    """Installed plugins, loaded once per process, when first needed."""
    return load_plugins()


def read_trajectories(*sources: object, plugins: Plugins | None = None, **options: object) -> Iterable[Trajectory]:
    """Trajectories from a file, folder, data frame, study or anything else that an installed adapter reads.

    Parameters
    ----------
    sources
        A path, a URL, a pandas DataFrame, an object that an adapter knows.  Several are read together if an adapter
        accepts them together, otherwise one by one.
    plugins
        Plugins to ask; by default all that are installed.
    options
        Options of the adapter.  For tables: ``columns``, ``maximize``, ``horizon``, ``objectives``.

    Raises
    ------
    UnknownNameError
        No adapter recognises the source; the message lists the adapters and what they accept.
    SourceError
        The source is damaged; the message names the place.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"algorithm": ["csa", "csa"], "instance": 1, "time": [1, 5], "value": [3.0, 2.5]})
    >>> list(read_trajectories(frame))
    [Trajectory(algorithm='csa', instance='1', seed=0, 2 steps to 2.5 at time 5, watched until 5)]
    """
    return (plugins or installed_plugins()).read_trajectories(*sources, **options)


def _is_missing_file(path: str) -> bool:
    try:
        return "://" not in path and not Path(path).exists()
    except (OSError, ValueError):  # not a valid file name
        return True


def _first_line(function: object) -> str:
    return (inspect.getdoc(function) or "says nothing about itself").partition("\n")[0].rstrip(".")


def _module_of(plugin: object) -> str:
    return str(getattr(plugin, "__name__", type(plugin).__qualname__))
