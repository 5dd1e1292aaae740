"""Trajectories of live runs, from a logger that is attached to problems of ioh.

``RankingLogger`` is a subclass of a class of ioh, which may not be installed; so it is created on first use.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.checks import as_choice
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.names import as_name
from polarbear_plugins.rankings.stream import RankingStream
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    RankingLogger: Any


Grouping: TypeAlias = Literal["function", "dimension", "none"]

# A problem does not keep its logger alive, crashes the process when it calls one that was freed, and does not say when
# it no longer needs it.  So loggers are kept until they are closed.
_ATTACHED: set[Any] = set()


class RunRecorder:
    """Turns the runs that ioh reports into trajectories, for :class:`RankingLogger`.

    Parameters
    ----------
    algorithm
        Name of the algorithm that runs; change it with the attribute ``algorithm`` between runs.
    timepoints
        The evaluations at which runs are compared.  A run counts as watched until the last of them that it reached, or
        until its last improvement if that came later.
    instance
        Function from the ``meta_data`` of ioh to the name of the instance; by default ``f1_d5_i2`` for function 1,
        dimension 5, instance 2, as in logged data.
    group
        What the groups of instances are: ``"function"``, ``"dimension"`` or ``"none"``.  By default the functions, but
        none for ManyAffine, which is another function in each instance, and none with ``instance=``, which may give
        several functions one name.
    stream
        Where finished runs go; the rankings of instances that they complete are collected in ``rankings``.
    on_trajectory, on_rankings
        Called with each finished run, and with the rankings of each instance that the stream completes.
    keep
        Whether to keep finished runs in ``trajectories``.
    """

    def __init__(
        self,
        algorithm: str,
        timepoints: ArrayLike,
        *,
        instance: Callable[[Any], str] | None = None,
        group: Grouping | None = None,
        stream: RankingStream | None = None,
        on_trajectory: Callable[[Trajectory], object] | None = None,
        on_rankings: Callable[[RankingTable], object] | None = None,
        keep: bool = True,
    ) -> None:
        grid = as_timepoints(timepoints)
        if grid[0] < 1 or not (grid == np.rint(grid)).all():
            raise InvalidInputError("timepoints: a logger counts evaluations; expected whole numbers of at least 1.")
        if on_rankings is not None and stream is None:
            raise InvalidInputError("on_rankings: rankings need a stream; give one as stream=.")
        self.evaluations: tuple[int, ...] = tuple(int(point) for point in grid)
        self.rankings: RankingTable | None = None
        self._algorithm = as_name(algorithm, "algorithm of a logger")
        self._instance = instance or _default_instance
        self._by: Grouping = "function" if instance is None else "none"
        if group is not None:
            self._by = as_choice(group, Grouping, "group")
        self._group: tuple[str | None, bool] = None, False
        self._dimension: int | None = None
        self._stream = stream
        self._on_trajectory = on_trajectory
        self._on_rankings = on_rankings
        self._keep = keep
        self._finished: list[Trajectory] = []
        self._seeds: Counter[tuple[str, str]] = Counter()
        self._name: str | None = None
        self._maximize = False
        self.times: list[int] = []
        self.values: list[float] = []

    @property
    def trajectories(self) -> tuple[Trajectory, ...]:
        """The runs that are finished."""
        return tuple(self._finished)

    @property
    def algorithm(self) -> str:
        """Name of the algorithm that runs now."""
        return self._algorithm

    @algorithm.setter
    def algorithm(self, name: str) -> None:
        self.finish()
        self._algorithm = as_name(name, "algorithm of a logger")

    def begin(self, meta_data: Any) -> None:
        """Finish the run so far and begin one on a problem."""
        self.finish()
        self._name = as_name(self._instance(meta_data), "instance of a logger")
        self._maximize = meta_data.optimization_type.name == "MAX"
        self._group = _group_of(meta_data, self._by)
        self._dimension = int(meta_data.n_variables) or None

    def finish(self) -> Trajectory | None:
        """Finish the run so far; return it, or ``None`` if there was no evaluation since the last."""
        if not self.times or self._name is None:
            return None
        times, values = np.array(self.times, dtype=np.float64), np.array(self.values)
        self.times.clear()
        self.values.clear()
        if not (times[1:] > times[:-1]).all():
            raise InvalidInputError(
                f"RankingLogger: evaluation {times[np.argmax(times[1:] <= times[:-1]) + 1]:g} of {self._name!r} came "
                "twice. A logger follows one problem at a time; give each problem of an interleaved run its own."
            )
        seed = self._seeds[self._algorithm, self._name]
        self._seeds[self._algorithm, self._name] += 1
        trajectory = Trajectory.from_evaluations(
            values,
            times=times,
            algorithm=self._algorithm,
            instance=self._name,
            seed=seed,
            maximize=self._maximize,
            group=self._group[0],
            fixed_group=self._group[1],
            dimension=self._dimension,
        )
        self._deliver(trajectory)
        return trajectory

    def _deliver(self, trajectory: Trajectory) -> None:
        if self._keep:
            self._finished.append(trajectory)
        if self._on_trajectory is not None:
            self._on_trajectory(trajectory)
        block = None if self._stream is None else self._stream.add(trajectory)
        if block is None:
            return
        self.rankings = block if self.rankings is None else self.rankings.append(block)
        if self._on_rankings is not None:
            self._on_rankings(block)


def _default_instance(meta_data: Any) -> str:
    return f"f{meta_data.problem_id}_d{meta_data.n_variables}_i{meta_data.instance}"


def _group_of(meta_data: Any, by: Grouping) -> tuple[str | None, bool]:
    """Group of an instance, and whether the groups are all there are."""
    if by == "dimension":
        return f"d{meta_data.n_variables}", False
    if by == "none" or meta_data.name == "ManyAffine":
        return None, False
    function = meta_data.problem_id, meta_data.name
    # Meta data do not name the suite.  A program that has them from ioh has imported it.
    return f"f{function[0]} {function[1]}", function in _fixed_functions(sys.modules.get("ioh"))


@functools.cache
def _fixed_functions(ioh: Any) -> frozenset[tuple[int, str]]:
    """Numbers and names of the functions of suites that are all there are."""
    kinds = getattr(ioh, "ProblemClass", None)
    suites = [getattr(kinds, name, None) for name in ("BBOB", "SBOX", "PBO")]
    return frozenset(pair for suite in suites for pair in getattr(suite, "problems", {}).items())


@functools.cache
def _ranking_logger() -> type[Any]:
    ioh = require("ioh", extra="ioh", who="RankingLogger")

    class RankingLogger(ioh.logger.AbstractLogger):  # type: ignore[misc, name-defined]
        """Turns the runs on the problems that it is attached to into trajectories.

        A run ends when its problem is reset, when the logger is attached to the next problem, and at :meth:`finish`.
        One problem at a time: ioh does not say which problem an evaluation belongs to.  The parameters are those of
        :class:`RunRecorder`, and so are ``algorithm``, ``trajectories``, ``rankings`` and ``finish``.
        """

        def __init__(self, algorithm: str, timepoints: ArrayLike, **options: Any) -> None:
            self._recorder = recorder = RunRecorder(algorithm, timepoints, **options)
            trigger = ioh.logger.trigger
            # ioh does not keep triggers alive.  The first evaluation triggers even if it finds no finite value.
            self._triggers = [trigger.OnImprovement(), trigger.At({1, *recorder.evaluations})]
            super().__init__(triggers=self._triggers)
            self._add_time, self._add_value = recorder.times.append, recorder.values.append

        def __call__(self, info: Any) -> None:
            self._add_time(info.evaluations)
            self._add_value(info.raw_y)

        def attach_problem(self, meta_data: Any) -> None:
            """Begin a run; called by ioh, also when the problem is reset."""
            _ATTACHED.add(self)
            self._recorder.begin(meta_data)
            super().attach_problem(meta_data)

        def finish(self) -> Trajectory | None:
            """Finish the run so far; return it, or ``None`` if there was no evaluation since the last."""
            return self._recorder.finish()

        def close(self) -> None:
            """Finish the run so far and release the logger; its problem must not be evaluated with it any more."""
            self._recorder.finish()
            _ATTACHED.discard(self)

        @property
        def algorithm(self) -> str:
            """Name of the algorithm that runs now; setting it finishes the run so far."""
            return self._recorder.algorithm

        @algorithm.setter
        def algorithm(self, name: str) -> None:
            self._recorder.algorithm = name

        @property
        def trajectories(self) -> Sequence[Trajectory]:
            """The runs that are finished."""
            return self._recorder.trajectories

        @property
        def rankings(self) -> RankingTable | None:
            """Rankings of the instances that the stream has completed."""
            return self._recorder.rankings

    RankingLogger.__module__, RankingLogger.__qualname__ = __name__, "RankingLogger"
    return RankingLogger


def __getattr__(name: str) -> Any:
    if name == "RankingLogger":
        return _ranking_logger()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
