"""How long runs take, judged by those that have finished."""

from __future__ import annotations

from polarbear_plugins.execution.requests import Request

_WEIGHT = 0.2  # of the newest run; the first one in a process takes longer, because of what it imports


class RunTimes:
    """Expected seconds of runs: averages over the last runs of each algorithm, in proportion to the horizon."""

    def __init__(self) -> None:
        self._by_algorithm: dict[str, float] = {}
        self._of_any: float | None = None

    @property
    def of_any(self) -> float | None:
        """Seconds that a run of any algorithm takes; ``None`` if nothing has finished."""
        return self._of_any

    def note(self, request: Request, seconds: float) -> None:
        """Add a run that has finished."""
        for_unit = seconds / request.horizon
        before = self._by_algorithm.get(request.algorithm_name, for_unit)
        self._by_algorithm[request.algorithm_name] = before + _WEIGHT * (for_unit - before)
        self._of_any = seconds if self._of_any is None else self._of_any + _WEIGHT * (seconds - self._of_any)

    def expected(self, request: Request) -> float | None:
        """Seconds that a run will probably take; ``None`` if none of its algorithm has finished."""
        for_unit = self._by_algorithm.get(request.algorithm_name)
        return None if for_unit is None else for_unit * request.horizon
