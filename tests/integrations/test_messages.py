from __future__ import annotations

import functools
import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarbear_plugins import Trajectory
from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.execution.requests import (
    PortfolioSource,
    Request,
    SuiteSource,
    UnfitWorkerError,
    make_request,
    perform,
)
from polarbear_plugins.execution.worker import RemoteError, UnloadableError
from polarbear_plugins.execution.worker_process import ProcessDiedError, RunTimeoutError
from polarbear_plugins.integrations.dask_executor.messages import (
    perform_all_written,
    perform_written,
    python_parts,
    read_answer,
    read_answers,
    read_refusal,
    write_problem,
    write_request,
)
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Algorithm, Identity

TIMEPOINTS = np.array([1.0, 2.5, 4.0])


class Levels:
    """An algorithm that returns the values it was made with."""

    name = "levels"

    def __init__(self, values: list[float]) -> None:
        self.values = values

    def run(self, _problem: Any, horizon: float, _seed: int, /) -> Trajectory:
        best = np.minimum.accumulate(self.values)
        return Trajectory(algorithm="levels", instance="p", times=np.arange(best.size), best=best, horizon=horizon)


class Stuck:
    """An algorithm that raises what it was made with."""

    name = "levels"

    def __init__(self, problem: Exception) -> None:
        self.problem = problem

    def run(self, _problem: Any, _horizon: float, _seed: int, /) -> Trajectory:
        raise self.problem


class Trap:
    """Something that can be sent and not be loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


def request(algorithm: Algorithm, seed: int = 7) -> Request:
    problem = GivenProblem(Identity("p"), "p")
    return Request(algorithm, "levels", problem, None, problem.identity, 4.0, seed, TIMEPOINTS)


@functools.cache
def sources() -> tuple[PortfolioSource, SuiteSource]:
    return PortfolioSource.of("synthetic", {"algorithms": 3}, None), SuiteSource.of("synthetic", None, None)


def named(seed: int = 7, horizon: float = 4.0) -> Request:
    portfolio, suite = sources()
    identity = next(iter(suite.suite.identities(1)))
    return make_request(portfolio, suite, "B", identity, horizon, seed, TIMEPOINTS)


@settings(max_examples=30)
@given(st.integers(0, 2**63 - 1), st.sampled_from([2.5, 4.0]))
def test_a_run_by_name_comes_back_exactly_from_nothing_but_json(seed: int, horizon: float) -> None:
    run = named(seed, horizon)
    assert python_parts(run) is None
    text = json.dumps(write_request(run), allow_nan=False)
    trajectory, seconds = read_answer(perform_written(text), run)
    assert trajectory == perform(run)[0]
    assert seconds > 0


def test_the_message_of_a_run_by_name_tells_names_options_and_numbers() -> None:
    run = named()
    assert write_request(run) == {
        "algorithm": "B",
        "portfolio": {"name": "synthetic", "options": '{"algorithms": 3}'},
        "suite": {"name": "synthetic", "options": "{}"},
        "instance": run.identity.name,
        "parameters": dict(run.identity.parameters),
        "horizon": 4.0,
        "unit": 1.0,
        "seed": 7,
        "timepoints": [1.0, 2.5, 4.0],
    }


values = st.lists(st.floats(allow_nan=False), min_size=1, max_size=5)


@settings(max_examples=30)
@given(values)
def test_any_values_of_what_was_given_as_python_come_back_exactly(values: list[float]) -> None:
    run = request(Levels(values))
    text = json.dumps(write_request(run))
    trajectory, _ = read_answer(perform_written(text, pickle.dumps(python_parts(run))), run)
    assert trajectory == perform(run)[0]


@pytest.mark.parametrize(
    ("raised", "expected", "reason"),
    [
        (ValueError("no"), RemoteError, "ValueError: no, test_messages.py line"),
        (InvalidInputError("no"), RemoteError, "InvalidInputError: no"),
        (MissingExtraError("needs 'ioh'"), UnfitWorkerError, "needs 'ioh'"),
    ],
)
def test_what_a_run_raises_is_told_as_in_a_local_process(
    raised: Exception, expected: type[Exception], reason: str
) -> None:
    run = request(Stuck(raised))
    answer = perform_written(json.dumps(write_request(run)), pickle.dumps(python_parts(run)))
    with pytest.raises(expected, match=reason):
        read_answer(answer, run)


def test_several_requests_have_an_answer_each_and_what_concerns_all_is_raised() -> None:
    runs = [request(Levels([2.0])), request(Stuck(ValueError("no"))), named()]
    written = [
        (json.dumps(write_request(run)), None if run is runs[2] else pickle.dumps(python_parts(run))) for run in runs
    ]
    text = json.dumps(perform_all_written(written))
    good, failed, last = read_answers(text, runs)
    assert good[0] == (perform(runs[0])[0], good[1])
    assert isinstance(failed[0], RemoteError)
    assert isinstance(last[0], tuple)
    assert last[0][0] == perform(runs[2])[0]
    assert len(read_answers(json.dumps(json.loads(text)[:2]), runs)) == 2  # the others were handed back
    for kind in (ProcessDiedError, UnloadableError):
        problem = write_problem(kind("why"))
        with pytest.raises(kind, match="why"):
            read_answers(problem, runs)
    with pytest.raises(UnloadableError):
        read_answers(json.dumps([json.loads(text)[0], write_problem(UnloadableError("why"))]), runs)


def test_an_answer_to_several_requests_that_is_none_is_a_failure_of_theirs() -> None:
    runs = [named(), named(), named()]
    assert [type(performed) for performed, _ in read_answers('[1, null, "{}"]', runs)] == [RemoteError] * 3
    for answer in ("", "3", "null", "[" * 100_000, perform_written(json.dumps(write_request(named())))):
        with pytest.raises(RemoteError, match="its worker answered with something that is no"):
            read_answers(answer, runs)


def test_a_portfolio_that_the_worker_lacks_is_the_fault_of_the_worker() -> None:
    text = json.dumps(write_request(named()) | {"portfolio": {"name": "only-there", "options": "{}"}})
    with pytest.raises(UnfitWorkerError, match="No plugin knows the portfolio 'only-there'"):
        read_answer(perform_written(text), named())


def test_what_cannot_be_loaded_is_no_failure_of_the_algorithm() -> None:
    run = request(Levels([1.0]))
    with pytest.raises(UnloadableError, match=r"ValueError: .*importable on every worker"):
        read_answer(perform_written(json.dumps(write_request(run)), pickle.dumps(Trap())), run)


@pytest.mark.parametrize("kind", [ProcessDiedError, RemoteError, RunTimeoutError, UnloadableError, UnfitWorkerError])
def test_a_problem_comes_back_as_what_it_was(kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^why$"):
        read_answer(write_problem(kind("why")), named())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "answer",
    [
        *("", "[", "[" * 100_000, "null", "3", "[1]", '"problem"', "9" * 5000, "\ud800", '{"problem": []}'),
        *('{"times": [1], "best": [2]}', '{"best": [2], "seconds": 1}', '{"times": [1], "seconds": 1}'),
        *('{"times": [2, 1], "best": [2, 1], "seconds": 1}', '{"times": [1, 2], "best": [1, 2], "seconds": 1}'),
        *('{"times": [NaN], "best": [2], "seconds": 1}', '{"times": [5], "best": [2], "seconds": 1}'),
        *(f'{{"times": [1], "best": [2], "seconds": {seconds}}}' for seconds in ("NaN", "-1", '"x"', "null", "true")),
    ],
)
def test_an_answer_that_is_none_is_a_failure_of_the_run(answer: str) -> None:
    """It was a KeyError or the like, which is none of the errors that an executor may raise for a run."""
    assert read_refusal(answer) is None
    with pytest.raises(RemoteError, match="its worker answered with something that is no run") as caught:
        read_answer(answer, named())
    assert len(str(caught.value)) < 500
