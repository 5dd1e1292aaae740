"""Executors on a scheduler that runs, and on one that is started for a race."""

from __future__ import annotations

from polarbear_plugins.errors import PolarBearError, reason
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.dask_executor.executor import WHO, DaskExecutor


def connect(address: str, timeout: float) -> DaskExecutor:
    """Connect to the scheduler at an address; for ``tls://`` with the certificates in Dask's configuration."""
    distributed = require("distributed", extra="dask", who=WHO)
    try:
        # A client without certificates fails, and waits for itself when it is deleted.
        if address.startswith("tls://") and not distributed.Security().get_connection_args("client").get("ssl_context"):
            raise ValueError("Dask's configuration, distributed.comm.tls, names no certificate for this client")
        client = distributed.Client(address, timeout=timeout, set_as_default=False, direct_to_workers=False)
    except (OSError, ValueError, TypeError) as problem:
        raise PolarBearError(f"No scheduler of Dask answers at {address} ({reason(problem)}).") from None
    try:
        return DaskExecutor(client, [client])
    except BaseException:
        client.close()
        raise


def start_local(workers: int, threads: int) -> DaskExecutor:
    """Start a scheduler and workers on this machine, which end with the executor."""
    distributed = require("distributed", extra="dask", who=WHO)
    cluster = distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=threads,
        processes=True,
        dashboard_address="127.0.0.1:0",  # there is a port even without a dashboard, and the default one may be taken
        host="127.0.0.1",
        memory_limit=0,
    )
    client = distributed.Client(cluster, set_as_default=False)
    return DaskExecutor(client, [client, cluster])
