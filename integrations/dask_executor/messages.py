"""Runs as plain data, for machines that share nothing but the installed packages.

A request is a JSON object with names, options and numbers, and so is its answer.  What the user gave as Python is not
in it: it is sent beside it, as bytes that only workers of the race load.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from polarbear_plugins.checks import as_number
from polarbear_plugins.errors import (
    STORED,
    InvalidInputError,
    MissingExtraError,
    PolarBearError,
    UnknownNameError,
    describe_exception,
    foreign_text,
    reason,
    short,
)
from polarbear_plugins.execution.batches import Answer, in_turn
from polarbear_plugins.execution.requests import Registered, Request, UnfitWorkerError, perform, single_threaded
from polarbear_plugins.execution.worker import RemoteError, UnloadableError, unpickle
from polarbear_plugins.execution.worker_process import ProcessDiedError, RunMemoryError, RunTimeoutError
from polarbear_plugins.problems.protocols import Algorithm, Identity, Problem, Suite
from polarbear_plugins.trajectories.trajectory import Trajectory

#: The parts of a request that were given as Python: the algorithm, the problem, the suite.
Given: TypeAlias = tuple[Algorithm | None, Problem | None, Suite | None]

_PROBLEMS: dict[str, type[PolarBearError]] = {
    kind.__name__: kind
    for kind in (ProcessDiedError, RemoteError, RunMemoryError, RunTimeoutError, UnfitWorkerError, UnloadableError)
}


def write_request(request: Request) -> dict[str, Any]:
    """Request as JSON data; ``None`` stands for what was given as Python."""
    return {
        "algorithm": request.algorithm_name,
        "portfolio": _name_of(request.algorithm),
        "suite": _name_of(request.suite),
        "instance": request.identity.name,
        "parameters": dict(request.identity.parameters),
        "horizon": request.horizon,
        "unit": request.unit,
        "seed": request.seed,
        "timepoints": request.timepoints.tolist(),
    }


def python_parts(request: Request) -> Given | None:
    """The parts of a request that were given as Python; ``None`` if everything has a registered name."""
    algorithm = None if isinstance(request.algorithm, Registered) else request.algorithm
    suite = None if isinstance(request.suite, Registered) else request.suite
    given = (algorithm, request.problem, suite)
    return None if given == (None, None, None) else given


def perform_written(text: str, given: bytes | None = None) -> str:
    """Carry out a request in JSON text; returns the answer as JSON text.

    Parameters
    ----------
    given
        The result of :func:`python_parts` for the request, pickled.
    """
    try:
        python: Given = (None, None, None) if given is None else unpickle(given)
    except Exception as problem:  # from the user's objects while they are unpickled
        reason = (
            f"it cannot be loaded on a worker ({describe_exception(problem, with_place=False)}). What a race is given "
            "as Python must be importable on every worker"
        )
        return write_problem(UnloadableError(reason))
    try:
        with single_threaded():
            trajectory, seconds = perform(_read_request(json.loads(text), python))
    except (UnknownNameError, MissingExtraError) as problem:  # the worker does not have what the race needs
        return write_problem(UnfitWorkerError(foreign_text(problem, STORED)))
    except (Exception, SystemExit) as problem:  # any exception is a failure of the algorithm
        return write_problem(RemoteError(describe_exception(problem)))
    return json.dumps({"times": trajectory.times.tolist(), "best": trajectory.best.tolist(), "seconds": seconds})


def perform_all_written(runs: Sequence[tuple[str, bytes | None]]) -> list[str]:
    """Carry out requests one after the other; returns their answers, and not always all of them (:func:`in_turn`)."""
    return [answer for answer, _ in in_turn(lambda run: perform_written(*run), runs)]


def write_problem(problem: PolarBearError) -> str:
    """Answer without a trajectory: the problem, as JSON text."""
    return json.dumps({"problem": type(problem).__name__, "reason": foreign_text(problem, STORED)})


def read_answer(text: str, request: Request) -> tuple[Trajectory, float]:
    """Trajectory and seconds of a run from the answer to its request.

    :raises PolarBearError: the problem in the answer, or it is no answer.
    """
    try:
        data = json.loads(text)
        if "problem" in data:
            raise _PROBLEMS.get(data["problem"], PolarBearError)(data["reason"])
        trajectory = Trajectory(
            algorithm=request.algorithm_name,
            instance=request.identity.name,
            seed=request.seed,
            times=data["times"],
            best=data["best"],
            horizon=request.horizon,
        )
        return trajectory, as_number(data["seconds"], "seconds", at_least=0)
    except InvalidInputError as problem:
        raise RemoteError(f"its worker answered with something that is no run: {problem}") from None
    except (KeyError, TypeError, ValueError, RecursionError) as problem:
        raise RemoteError(
            f"its worker answered with something that is no run: {short(text)} ({reason(problem)})"
        ) from None


def read_answers(text: str, requests: Sequence[Request]) -> list[Answer]:
    """What came of several requests: a JSON list of the answers to the first ones.

    :raises PolarBearError: there is one problem with all of them, or one of them cannot be loaded.
    """
    found = _json_of(text)
    if not isinstance(found, list):
        read_answer(text, requests[0])  # raises the problem
        raise RemoteError(f"its worker answered with something that is no list of answers: {short(text)}")
    answers: list[Answer] = []
    for answer, request in zip(found, requests, strict=False):
        try:
            trajectory, seconds = read_answer(answer, request)
            answers.append(((trajectory, seconds), seconds))
        except RemoteError as problem:
            answers.append((problem, 0.0))
    return answers


def _json_of(text: str) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def read_refusal(text: str) -> tuple[str, str] | None:
    """The address of a worker that cannot perform the run, and why; ``None`` if the answer is another one."""
    try:
        data = json.loads(text)
        return data["refused"], data["reason"]
    except (KeyError, TypeError, ValueError, RecursionError):  # what it is instead, read_answer finds out
        return None


def _read_request(data: dict[str, Any], given: Given) -> Request:
    algorithm, problem, suite = given
    return Request(
        algorithm=Registered(**data["portfolio"]) if algorithm is None else algorithm,
        algorithm_name=data["algorithm"],
        problem=problem,
        suite=suite if data["suite"] is None else Registered(**data["suite"]),
        identity=Identity(data["instance"], data["parameters"]),
        horizon=data["horizon"],
        unit=data["unit"],
        seed=data["seed"],
        timepoints=np.array(data["timepoints"]),
    )


def _name_of(source: object) -> dict[str, str] | None:
    return {"name": source.name, "options": source.options} if isinstance(source, Registered) else None
