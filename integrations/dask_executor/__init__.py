"""Races on many machines: the executors ``dask:tcp://HOST:PORT``, ``dask:tls://HOST:PORT`` and ``dask:local``."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor

from polarbear_plugins.environment import available_cores
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.dask_executor.connecting import connect, start_local
from polarbear_plugins.integrations.dask_executor.executor import DaskExecutor
from polarbear_plugins.options import read_options, whole_number
from polarbear_plugins.plugins.hookspecs import hookimpl

__all__ = ["DaskExecutor", "polarbear_executor"]

_SCHEMES = ("tcp://", "tls://")


@hookimpl
def polarbear_executor(address: str, options: Mapping[str, object]) -> Executor | None:
    """dask:tcp://HOST:PORT or dask:tls://HOST:PORT (option timeout), dask:local (options workers, threads)."""
    kind, colon, where = address.partition(":")
    if kind != "dask" or not colon:
        return None
    who = f"The executor {address!r}"
    if where == "local":
        counts = {"workers": available_cores(), "threads": 1}
        counts |= read_options(options, dict.fromkeys(counts, whole_number(1)), who)
        return start_local(counts["workers"], counts["threads"])
    if not where.startswith(_SCHEMES):
        raise InvalidInputError(f"{who}: expected dask:tcp://HOST:PORT, dask:tls://HOST:PORT or dask:local.")
    return connect(where, **{"timeout": 10, **read_options(options, {"timeout": whole_number(1)}, who)})
