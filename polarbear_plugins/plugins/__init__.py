"""Hook specifications, the plugin manager, and two plugins without dependencies."""

from polarbear_plugins.plugins.hookspecs import ReportSection, hookimpl
from polarbear_plugins.plugins.manager import FailedPlugin, InstalledPlugin, Plugins, load_plugins, read_trajectories

__all__ = [
    "FailedPlugin",
    "InstalledPlugin",
    "Plugins",
    "ReportSection",
    "hookimpl",
    "load_plugins",
    "read_trajectories",
]
