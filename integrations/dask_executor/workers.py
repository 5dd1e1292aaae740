"""The workers of a scheduler: who is there, with how many threads, and who is left out and why."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from polarbear_plugins.execution.requests import UnfitWorkerError
from polarbear_plugins.integrations.dask_executor.versions import (
    describe_difference,
    describe_misfit,
    needed_versions,
    present_versions,
)

ANSWER_WITHIN = 10.0  #: seconds for workers to report their versions, which a run checks again, or to end runs


class Workers:
    """Changed only in the thread of the client's event loop; its dictionaries are replaced, so others may read them.

    Parameters
    ----------
    client
        A client of ``distributed``.
    announce
        Tells the user something, once for each key.
    """

    def __init__(self, client: Any, announce: Callable[[str, str], None]) -> None:
        self.client, self._announce = client, announce
        self.threads: dict[str, int] = {}
        self.refused: dict[str, str] = {}

    @property
    def capacity(self) -> int:
        """Threads of those that fit."""
        threads, refused = self.threads, self.refused
        return sum(count for worker, count in threads.items() if worker not in refused)

    @property
    def fit(self) -> list[str]:
        """Those that can perform runs."""
        return sorted(self.threads.keys() - self.refused.keys())

    async def update(self, again: bool = False) -> None:
        """Query the scheduler for its workers, and new workers for their versions."""
        before, self.threads = self.threads, dict(await self.client.scheduler.ncores())
        self.refused = {worker: reason for worker, reason in self.refused.items() if worker in self.threads}
        newcomers = list(self.threads if again else self.threads.keys() - before.keys())
        if not newcomers:
            return
        asking = self.client.run(present_versions, workers=newcomers, on_error="return", asynchronous=True)
        try:
            found = await asyncio.wait_for(asking, ANSWER_WITHIN)
        except TimeoutError:
            return
        for worker, have in found.items():
            if isinstance(have, Exception):
                if "ModuleNotFoundError" in repr(have):  # other errors are temporary, or recur when a run begins
                    self.refuse(worker, f"it has no polarbear-plugins that fits ({have})")
                continue
            reason = describe_misfit(have, needed_versions())
            if reason is not None:
                self.refuse(worker, reason)
            elif (other := describe_difference(have, needed_versions())) is not None:
                self._announce(other, f"The worker {worker}: {other}. Its runs may differ from those of others.")

    def refuse(self, worker: str, reason: str) -> None:
        """Leave a worker out."""
        self.refused = {**self.refused, worker: reason}
        self.threads = {worker: 1, **self.threads}  # it may have joined after the last query
        if self.fit:
            self._announce(worker + reason, f"The worker {worker} is left out: {reason}.")

    def no_fit_worker(self) -> UnfitWorkerError:
        """The error if all of them are left out."""
        worker, reason = next(iter(self.refused.items()))
        return UnfitWorkerError(
            f"No worker of the scheduler at {self.client.scheduler.address} can take part. The worker {worker}: "
            f"{reason.rstrip('.')}. Install the same versions on all machines."
        )
