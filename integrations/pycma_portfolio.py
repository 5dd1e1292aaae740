"""Hansen's pycma as algorithms: CMA-ES with restarts, on boxes."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.options import names, read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.protocols import Algorithm, BoxProblem, Problem, refusal
from polarbear_plugins.trajectories.recording import HorizonReached, Recorder
from polarbear_plugins.trajectories.trajectory import Trajectory

_WHO = "The portfolio 'pycma'"
_RESTARTS = 1_000  # more than any horizon allows: the population doubles
_FAILED = 1e300  # pycma compares values and would not know nan
NAMES = ("pycma-ipop", "pycma-bipop")


@dataclass(frozen=True, slots=True)
class PycmaAlgorithm:
    """CMA-ES of pycma, restarted with larger populations (IPOP), or with large and small ones in turn (BIPOP).

    It starts at a point drawn uniformly from the box, again at each restart, with a step size of 0.3 of the ranges;
    everything else is pycma's default.

    Parameters
    ----------
    name
        ``pycma-ipop`` or ``pycma-bipop``.
    """

    name: str

    def refuses(self, problem: Problem, /) -> str | None:
        """Why it cannot run on the problem, if it cannot."""
        return None if isinstance(problem, BoxProblem) else "it runs on boxes (lower, upper, evaluate) only"

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Run until ``horizon`` evaluations; ``nan`` counts as worse than any value."""
        if not isinstance(problem, BoxProblem):
            raise refusal(self, problem, "it runs on boxes (lower, upper, evaluate) only")
        recorder = Recorder("evaluations", horizon)
        if not recorder.over:
            objective = recorder.watch(problem.evaluate)
            with contextlib.suppress(HorizonReached):
                self._minimise(objective, np.asarray(problem.lower), np.asarray(problem.upper), seed)
        return recorder.trajectory(algorithm=self.name, instance=problem.identity.name, seed=seed)

    def _minimise(self, objective: Any, lower: FloatArray, upper: FloatArray, seed: int) -> None:
        """Minimise over the unit cube, so that all coordinates have the same range."""
        cma = _import_pycma()
        rng = np.random.default_rng(seed)
        span = upper - lower

        def evaluate(point: FloatArray) -> float:
            value = float(objective(lower + np.clip(point, 0.0, 1.0) * span))
            return _FAILED if np.isnan(value) else value

        options = {"bounds": [0.0, 1.0], "seed": seed % 2**31 + 1, "verbose": -9, "maxiter": np.inf}
        cma.fmin2(
            evaluate,
            lambda: rng.random(span.size),
            0.3,
            options,
            restarts=_RESTARTS,
            bipop=self.name == "pycma-bipop",
        )


@hookimpl
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """pycma: Hansen's CMA-ES; option algorithms=pycma-ipop,pycma-bipop."""
    if name != "pycma":
        return None
    return pycma_portfolio(read_options(options, {"algorithms": names}, _WHO).get("algorithms"))


def pycma_portfolio(chosen: Sequence[str] | None = None) -> tuple[PycmaAlgorithm, ...]:
    """Algorithms of pycma by their names, all by default."""
    _import_pycma()
    unknown = [name for name in chosen or () if name not in NAMES]
    if unknown:
        raise InvalidInputError(f"{_WHO} has no algorithm {unknown[0]!r}. It has {', '.join(NAMES)}.")
    return tuple(PycmaAlgorithm(name) for name in chosen or NAMES)


def _import_pycma() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about matplotlib, with which it could draw
        return require("cma", extra="cma", who=_WHO)
