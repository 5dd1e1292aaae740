"""Random search: the baseline that algorithms should beat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from polarbear_plugins.names import as_name
from polarbear_plugins.options import Reader, read_options
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.problems.protocols import (
    Algorithm,
    BoxProblem,
    ChargedProblem,
    ObjectivesProblem,
    Problem,
    SpaceProblem,
    refusal,
)
from polarbear_plugins.trajectories.hypervolume import undominated_volume
from polarbear_plugins.trajectories.recording import Charges, HorizonReached, Recorder, as_axis
from polarbear_plugins.trajectories.trajectory import Trajectory

_NO_POINTS = (
    "it runs on boxes (lower, upper, evaluate) and configuration spaces (space, evaluate), and the problem is neither"
)
_NUMBERS_AT_ONCE = 4096  # drawn in one call, without changing the numbers


@dataclass(frozen=True, slots=True)
class RandomSearch:
    """Independent uniform points from a box, or configurations from a space.

    Parameters
    ----------
    name
        Name of the algorithm.
    axis
        What the horizon of a run counts: ``evaluations``, or ``seconds`` of wall-clock time.  Where evaluations have
        their own costs, ``evaluations`` counts costs.
    """

    name: str = "RS"
    axis: str = "evaluations"

    def __post_init__(self) -> None:
        as_name(self.name, "name of an algorithm")
        as_axis(self.axis)

    def refuses(self, problem: Problem, /) -> str | None:
        """Why it cannot run on a problem; ``None`` if it can."""
        if isinstance(problem, BoxProblem | SpaceProblem | ChargedProblem | ObjectivesProblem):
            return None
        return _NO_POINTS

    def run(self, problem: Problem, horizon: float, seed: int, /) -> Trajectory:
        """Draw points and evaluate them until the horizon."""
        rng = np.random.default_rng(seed)
        if isinstance(problem, ObjectivesProblem) or (
            isinstance(problem, ChargedProblem) and self.axis == "evaluations"
        ):
            return _search_charged(problem, horizon, rng).trajectory(
                algorithm=self.name, instance=problem.identity.name, seed=seed
            )
        recorder = Recorder(self.axis, horizon)
        if not recorder.over:
            try:
                if isinstance(problem, BoxProblem):
                    _search_box(problem, recorder, rng)
                elif isinstance(problem, SpaceProblem):
                    _search_space(problem, recorder, rng)
                else:
                    raise refusal(self, problem, _NO_POINTS)
            except HorizonReached:
                pass
        return recorder.trajectory(algorithm=self.name, instance=problem.identity.name, seed=seed)


@hookimpl
def polarbear_portfolio(name: str, options: Mapping[str, object]) -> Sequence[Algorithm] | None:
    """random-search: uniform points, on boxes and configuration spaces; options axis (evaluations, seconds), name."""
    if name != "random-search":
        return None
    readers: dict[str, Reader] = {"axis": lambda value, _: as_axis(value), "name": as_name}
    return [RandomSearch(**read_options(options, readers, "The portfolio 'random-search'"))]


def _search_box(problem: BoxProblem, recorder: Recorder, rng: np.random.Generator) -> None:
    lower, upper = np.asarray(problem.lower, dtype=np.float64), np.asarray(problem.upper, dtype=np.float64)
    objective = recorder.watch(problem.evaluate)
    shape = (max(1, _NUMBERS_AT_ONCE // lower.size), lower.size)
    while True:
        for x in rng.uniform(lower, upper, shape):
            objective(x)


def _search_space(problem: SpaceProblem, recorder: Recorder, rng: np.random.Generator) -> None:
    objective = recorder.watch(problem.evaluate)
    while True:
        objective(problem.space.sample(rng))


def _search_charged(problem: ChargedProblem | ObjectivesProblem, horizon: float, rng: np.random.Generator) -> Charges:
    charges = Charges(horizon)
    if isinstance(problem, ChargedProblem):
        while charges.room():
            value, cost = problem.measure(problem.space.sample(rng))
            if not charges.pay(cost, value):
                break
        return charges
    found: list[tuple[float, ...]] = []
    while charges.room():
        values, cost = problem.measure_objectives(problem.space.sample(rng))
        if not charges.pay(cost):
            break
        found.append(values)
    return charges.with_values(undominated_volume(found))
