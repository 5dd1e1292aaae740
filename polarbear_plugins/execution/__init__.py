"""Running algorithms: requests, local processes, workers and the dispatcher that feeds them."""

from polarbear_plugins.execution.local_processes import LocalProcesses
from polarbear_plugins.execution.requests import RunExecutor

__all__ = [
    "LocalProcesses",
    "RunExecutor",
]
