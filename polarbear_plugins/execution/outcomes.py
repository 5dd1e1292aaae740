"""What came of requests: the outcomes of a call that has ended, or why the race cannot go on."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import dataclass, replace
from typing import Any

from polarbear_plugins.errors import STORED, InvalidInputError, PolarBearError, describe_exception, foreign_text
from polarbear_plugins.execution.batches import Answer
from polarbear_plugins.execution.requests import Request, UnfitWorkerError
from polarbear_plugins.execution.starting import WorkersCannotStartError
from polarbear_plugins.execution.worker import RemoteError, UnloadableError
from polarbear_plugins.trajectories.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of a request; ``failure`` says why if it failed, and the trajectory is empty then."""

    request: Request
    trajectory: Trajectory
    seconds: float
    failure: str | None = None

    @classmethod
    def of(cls, request: Request, performed: tuple[Trajectory, float] | PolarBearError) -> Outcome:
        """Outcome of a run from its trajectory and seconds, or from why it failed."""
        if not isinstance(performed, PolarBearError):
            return cls(request, *performed)
        nothing = Trajectory(
            algorithm=request.algorithm_name,
            instance=request.identity.name,
            seed=request.seed,
            times=[],
            best=[],
            horizon=request.horizon,
        )
        return cls(request, nothing, 0.0, foreign_text(performed, STORED))

    def named(self, name: str) -> Outcome:
        """The same outcome, its run on an instance of another name: one of several runs on it."""
        run = self.trajectory
        return self if run.instance == name else replace(self, trajectory=run.changed(instance=name))


def answers_of(requests: Sequence[Request], call: Future[Any]) -> list[Answer]:
    """What came of the first requests of a call that has ended; nothing if several must be sent one by one.

    :raises PolarBearError: the race cannot go on.
    """
    try:
        result = call.result()
        return result if isinstance(result, list) else [(result, result[1])]  # the latter from a run executor
    except (WorkersCannotStartError, UnfitWorkerError):
        raise
    except (BrokenExecutor, CancelledError) as problem:
        raise executor_error(problem) from problem
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        if len(requests) > 1:  # one of them has ended the process, or cannot be loaded: alone, it fails alone
            return []
        if isinstance(problem, UnloadableError):
            raise InvalidInputError(f"{describe_request(requests[0])}: {problem}.") from None
        return [(problem if isinstance(problem, PolarBearError) else failure(problem), 0.0)]


def failure(problem: BaseException) -> RemoteError:
    """The failure of a run that raised an exception."""
    return RemoteError(describe_exception(problem))


def describe_request(request: Request) -> str:
    """Name a request in an error."""
    return f"{request.algorithm_name!r} on {request.identity.name!r}"


def executor_error(problem: BaseException) -> PolarBearError:
    """The error of an executor that is lost."""
    why = describe_exception(problem, with_place=False).rstrip(".")
    return PolarBearError(
        f"The executor broke ({why}). With a journal no finished "
        "run is lost: resume the race on another executor, or on this one when it is back."
    )
