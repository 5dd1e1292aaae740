from __future__ import annotations

import importlib
import itertools
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from polarbear_plugins import Trajectory, hookimpl
from polarbear_plugins.adapters import table
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.given import FunctionAlgorithm, GivenSuite
from polarbear_plugins.problems.protocols import Identity, Suite
from polarbear_plugins.problems.spaces import Categorical, Condition, Configuration, ConfigurationSpace, Float
from polarbear_plugins.testing import check_adapter, check_executor, check_portfolio, check_suite

Options = Mapping[str, object]

FRAME = pd.DataFrame({"algorithm": ["a", "a", "b"], "instance": 1, "time": [1, 5, 5], "value": [3.0, 2.0, 2.5]})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported, for the length of a test."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for path in tmp_path.iterdir():
        sys.modules.pop(path.stem, None)


@pytest.fixture
def spheres(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The example plugin."""
    monkeypatch.syspath_prepend(root / "examples" / "plugin")
    yield importlib.import_module("polarbear_spheres")
    del sys.modules["polarbear_spheres"]


def refuse(options: Options) -> None:
    if options:
        raise InvalidInputError(f"takes no options, got {', '.join(options)}")


# Adapters


class Adapter:
    """Reads a list of numbers, each as the run of an algorithm; or what the given function makes of the list."""

    def __init__(self, read: Callable[[Any], Any] | None = None, *, kind: type = list) -> None:
        self.read, self.kind = read or (lambda numbers: [run_of(number) for number in numbers]), kind

    @hookimpl
    def polarbear_read_trajectories(self, source: object, options: Options) -> object:
        """Lists of numbers."""
        if not isinstance(source, self.kind):
            return None
        refuse(options)
        if isinstance(source, list) and "damaged" in source:
            raise InvalidInputError("not a list of numbers")
        return self.read(source)


class TakesAnyOption(Adapter):
    @hookimpl
    def polarbear_read_trajectories(self, source: object) -> object:
        """Lists of numbers."""
        return self.read(source) if isinstance(source, list) else None


class SaysNothing:
    @hookimpl
    def polarbear_read_trajectories(self, source: object) -> None: ...


class FailsOnAnUnknownOption(Adapter):
    @hookimpl
    def polarbear_read_trajectories(self, source: object, options: Options) -> object:
        """Lists of numbers."""
        return (lambda: self.read(source))(**options) if isinstance(source, list) else None


def run_of(number: float) -> Trajectory:
    return Trajectory(algorithm=f"a{number}", instance="f1", times=[1], best=[number], horizon=2)


def test_the_table_adapter_keeps_its_promises_on_csv(tmp_path: Path) -> None:
    good, cut, garbage = tmp_path / "good.csv", tmp_path / "cut.csv", tmp_path / "garbage.csv.gz"
    FRAME.to_csv(good, index=False)
    cut.write_text("algorithm,instance\na,1\n")
    garbage.write_bytes(b"\x00\x01\x02")
    trajectories = check_adapter(table, good, damaged=[cut, garbage, tmp_path / "absent.csv"])
    assert [(run.algorithm, run.instance) for run in trajectories] == [("a", "1"), ("b", "1")]


def test_the_table_adapter_keeps_its_promises_on_data_frames() -> None:
    damaged = [FRAME.iloc[:0], FRAME.drop(columns="time"), FRAME.assign(value="x"), FRAME.assign(time=1)]
    assert len(check_adapter(table, FRAME.copy(), damaged=damaged)) == 2


def test_the_table_adapter_keeps_its_promises_with_options() -> None:
    renamed = FRAME.rename(columns={"time": "evaluations"})
    options = {"columns": {"time": "evaluations"}, "horizon": 10, "maximize": True}
    assert {run.horizon for run in check_adapter(table, renamed, options)} == {10.0}


def test_an_adapter_that_keeps_its_promises_passes() -> None:
    assert check_adapter(Adapter(), [1, 2], damaged=[["damaged"]]) == [run_of(1), run_of(2)]


def counting() -> Callable[[object], list[Trajectory]]:
    calls = itertools.count()
    return lambda _: [run_of(next(calls))]


def changing(numbers: list[float]) -> list[Trajectory]:
    numbers.append(numbers[-1] + 1)
    return [run_of(1)]


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (Adapter(lambda _: []), r"read no trajectory from \[1, 2\]"),
        (Adapter(lambda numbers: numbers), "must return Trajectory objects, got 1"),
        (Adapter(lambda _: [run_of(1), run_of(2), run_of(1)]), r"once, repeated \[\('a1', 'f1', 0\)\]"),
        (Adapter(changing), "must not change its source"),
        (Adapter(counting()), "the same trajectories when read again"),
        (TakesAnyOption(), "must refuse an unknown option with a PolarBearError"),
        (SaysNothing(), "polarbear_read_trajectories needs a docstring"),
    ],
)
def test_an_adapter_that_breaks_a_promise_is_told_which(plugin: object, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_adapter(plugin, [1, 2])


@pytest.mark.parametrize(("kind", "foreign"), [(object, "<object object at"), (int, "42"), (str, "'nobody-has-")])
def test_an_adapter_that_claims_a_foreign_source_is_told_which(kind: type, foreign: str) -> None:
    with pytest.raises(AssertionError, match=f"must return None for a foreign source, {foreign}"):
        check_adapter(Adapter(lambda _: [run_of(1)], kind=kind), [1, 2])


def test_an_adapter_that_takes_a_damaged_source_is_told_which() -> None:
    with pytest.raises(AssertionError, match=r"must refuse \[3\] with a PolarBearError"):
        check_adapter(Adapter(), [1, 2], damaged=[["damaged"], [3]])


@pytest.mark.parametrize("inside", [False, True])
def test_an_adapter_that_changes_its_files_is_told_so(tmp_path: Path, inside: bool) -> None:
    file = tmp_path / "results.mine"
    file.write_text("1")

    def read(_: object) -> list[Trajectory]:
        file.write_text("2")
        return [run_of(1)]

    with pytest.raises(AssertionError, match="must not change its source"):
        check_adapter(Adapter(read, kind=Path), tmp_path if inside else file)


def test_an_adapter_that_changes_a_data_frame_is_told_so() -> None:
    def read(frame: pd.DataFrame) -> list[Trajectory]:
        frame["more"] = 1
        return [run_of(1)]

    with pytest.raises(AssertionError, match="must not change its source"):
        check_adapter(Adapter(read, kind=pd.DataFrame), FRAME.copy())


def test_an_adapter_that_changes_the_middle_of_a_long_data_frame_is_told_so() -> None:
    def read(frame: pd.DataFrame) -> list[Trajectory]:
        frame.loc[100, "x"] = -1
        return [run_of(1)]

    with pytest.raises(AssertionError, match="must not change its source"):
        check_adapter(Adapter(read, kind=pd.DataFrame), pd.DataFrame({"x": range(200)}))


def test_an_adapter_that_changes_an_array_is_told_so() -> None:
    def read(values: np.ndarray) -> list[Trajectory]:
        values[100] = -1
        return [run_of(1)]

    with pytest.raises(AssertionError, match="must not change its source"):
        check_adapter(Adapter(read, kind=np.ndarray), np.arange(200.0))


def test_an_adapter_that_removes_its_file_is_told_so(tmp_path: Path) -> None:
    file = tmp_path / "results.mine"
    file.touch()

    def read(_: object) -> list[Trajectory]:
        file.unlink(missing_ok=True)
        return [run_of(1)]

    with pytest.raises(AssertionError, match="must not change its source"):
        check_adapter(Adapter(read, kind=Path), file)


class Incomparable:
    def __eq__(self, other: object) -> bool:
        raise TypeError("not to be compared")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    "source",
    [
        threading.Lock(),
        iter(range(3)),
        Incomparable(),
        [np.arange(3), np.arange(3)],
        np.array([1.0, np.nan]),
        pd.DataFrame({"x": [[1, 2], [np.nan], None]}),
        "mine:" + "x" * 5000,
    ],
    ids=["no copy", "iterator", "no comparison", "list of arrays", "array with nan", "cells of lists", "long text"],
)
def test_an_adapter_of_sources_that_are_hard_to_compare_passes(source: object) -> None:
    class Special(Adapter):
        @hookimpl
        def polarbear_read_trajectories(self, source: object, options: Options) -> object:
            """Special things."""
            if type(source) in (object, int) or str(source).startswith("nobody"):
                return None
            refuse(options)
            return [run_of(1)]

    check_adapter(Special(), source)


def test_an_adapter_of_objects_without_a_repr_of_their_own_passes() -> None:
    class Study:
        pass

    kept: list[Study] = []

    def read(_: Study) -> list[Trajectory]:
        kept.extend(Study() for _ in range(1000))  # so that a second copy does not get the place of the first
        return [run_of(1)]

    check_adapter(Adapter(read, kind=Study), Study())


def test_an_adapter_that_fails_on_an_unknown_option_is_told_how_to_refuse_it() -> None:
    with pytest.raises(AssertionError, match="must refuse an unknown option with a PolarBearError"):
        check_adapter(FailsOnAnUnknownOption(), [1, 2])


@pytest.mark.parametrize("check", [check_adapter, check_suite, check_executor])
def test_a_plugin_without_the_hook_is_told_which_it_lacks(check: Callable[[object, str], object]) -> None:
    class Priors:
        @hookimpl
        def polarbear_priors(self) -> dict[str, Callable[..., object]]:
            """Priors."""
            return {}

    with pytest.raises(AssertionError, match="the plugin does not implement polarbear_"):
        check(Priors(), "mine")


# Suites


class Bowl:
    def __init__(self, identity: Identity, height: float = 0.0) -> None:
        self.identity, self.height = identity, height
        self.lower, self.upper = np.full(2, -5.0), np.full(2, 5.0)

    def evaluate(self, x: np.ndarray) -> Any:
        return float(np.sum(np.square(x - self.identity.parameters.get("centre", 0.0)))) + self.height


class Bowls:
    """A suite that keeps every promise, to be spoilt."""

    name = "bowls"

    def identities(self, seed: int) -> Iterator[Identity]:
        rng = np.random.default_rng(seed)
        for index in itertools.count():
            yield Identity(f"bowl-{index}", {"centre": rng.uniform(-4, 4)})

    def build(self, identity: Identity) -> object:
        return Bowl(identity)


class Unstable(Bowls):
    def identities(self, seed: int, calls: Iterator[int] = itertools.count()) -> Iterator[Identity]:  # noqa: B008
        return super().identities(seed + next(calls))


class SameNames(Bowls):
    def identities(self, seed: int) -> Iterator[Identity]:
        return (Identity("bowl", identity.parameters) for identity in super().identities(seed))


class Empty(Bowls):
    def identities(self, seed: int) -> Iterator[Identity]:  # noqa: ARG002
        return iter(())


class LosesIdentities(Bowls):
    def build(self, identity: Identity) -> Bowl:
        return Bowl(Identity(identity.name))


class Remembers(Bowls):
    """Knows the problems that it drew itself better than their identities tell."""

    def __init__(self) -> None:
        self.heights: dict[int, float] = {}

    def identities(self, seed: int) -> Iterator[Identity]:
        for identity in super().identities(seed):
            self.heights[id(identity)] = 1.0
            yield identity

    def build(self, identity: Identity) -> Bowl:
        return Bowl(identity, self.heights.get(id(identity), 0.0))


class Drifts(Bowls):
    def build(self, identity: Identity, calls: Iterator[int] = itertools.count()) -> Bowl:  # noqa: B008
        return Bowl(identity, next(calls))


class FindsNothing(Bowls):
    def identity_named(self, _: str, /) -> Identity | None:
        return None


class FindsEverything(Bowls):
    def identity_named(self, name: str, /) -> Identity | None:
        known = {identity.name: identity for identity in itertools.islice(self.identities(0), 10)}
        return known.get(name, Identity(name))


class BuildsText(Bowls):
    def build(self, identity: Identity) -> str:
        return identity.name


class Spoilt(Bowls):
    """Builds bowls with other attributes."""

    def __init__(self, **attributes: object) -> None:
        self.attributes = attributes

    def build(self, identity: Identity) -> Bowl:
        bowl = Bowl(identity)
        for name, value in self.attributes.items():
            setattr(bowl, name, value)
        return bowl


class Machines(Bowls):
    """Problems on a configuration space with a condition."""

    def build(self, identity: Identity) -> object:
        class Machine:
            space = ConfigurationSpace(
                {"kernel": Categorical(("linear", "radial")), "gamma": Float(0.1, 1.0)},
                [Condition("gamma", "kernel", ("radial",))],
            )

            def evaluate(self, configuration: Configuration) -> float:
                self.space.check(configuration)
                return float(len(configuration))

        machine = Machine()
        machine.identity = identity  # type: ignore[attr-defined]
        return machine


class SuitePlugin:
    def __init__(self, suite: Callable[[], object], *, greedy: bool = False, lenient: bool = False) -> None:
        self.suite, self.greedy, self.lenient = suite, greedy, lenient

    @hookimpl
    def polarbear_suite(self, name: str, options: Options) -> object:
        """bowls: around random centres."""
        if name != "bowls" and not self.greedy:
            return None
        if not self.lenient:
            refuse(options)
        return self.suite()


@pytest.mark.parametrize("suite", [Bowls, Machines, lambda: GivenSuite(["one", "two"])])
def test_a_suite_that_keeps_its_promises_passes(suite: Callable[[], Suite]) -> None:
    assert isinstance(check_suite(SuitePlugin(suite), "bowls"), Suite)


def test_a_suite_whose_evaluations_fail_passes() -> None:
    check_suite(SuitePlugin(lambda: Spoilt(evaluate=lambda _: float("nan"))), "bowls")


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (SuitePlugin(Bowls, greedy=True), "must return None for a foreign suite, got <.*Bowls"),
        (SuitePlugin(Bowls, lenient=True), "must refuse an unknown option with a PolarBearError"),
        (SuitePlugin(object), "must return a Suite with name, identities and build"),
        (SuitePlugin(Empty), "must draw at least one problem"),
        (SuitePlugin(Unstable), "the same seed must draw the same problems"),
        (SuitePlugin(SameNames), "problems must have different names"),
        (SuitePlugin(FindsNothing), "identity_named must find the instances that the suite draws"),
        (SuitePlugin(FindsEverything), "identity_named must return None for a name that is not its own"),
        (SuitePlugin(BuildsText), "must build a Problem with an identity, got 'bowl-0'"),
        (SuitePlugin(LosesIdentities), "the identity of a problem must be the one it was built from"),
        (SuitePlugin(Remembers), "a rebuilt problem must have equal values"),
        (SuitePlugin(Drifts), "a rebuilt problem must have equal values"),
        (SuitePlugin(lambda: Spoilt(lower=np.zeros(3))), "lower and upper must be vectors of equal length"),
        (SuitePlugin(lambda: Spoilt(lower=0.0, upper=1.0)), "lower and upper must be vectors of equal length"),
        (SuitePlugin(lambda: Spoilt(upper=np.array([1.0, np.inf]))), "bounds must be finite"),
        (SuitePlugin(lambda: Spoilt(upper=np.array([1.0, -5.0]))), "lower bounds must lie below upper bounds"),
        (SuitePlugin(lambda: Spoilt(evaluate=lambda _: "small")), "evaluate must return a number, got 'small'"),
    ],
)
def test_a_suite_that_breaks_a_promise_is_told_which(plugin: object, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_suite(plugin, "bowls")


def test_a_suite_that_depends_on_its_process_is_told_so(folder: Path) -> None:
    (folder / "plugin_of_moods.py").write_text(
        """
import os
import numpy as np
from polarbear_plugins import hookimpl
from polarbear_plugins.problems.protocols import Identity

class Mood:
    lower, upper = np.zeros(1), np.ones(1)
    def __init__(self, identity):
        self.identity = identity
    def evaluate(self, x):
        return os.getpid()

class Moods:
    name = "moods"
    def identities(self, seed):
        yield Identity("only")
    def build(self, identity):
        return Mood(identity)

@hookimpl
def polarbear_suite(name):
    "moods: as it comes."
    return Moods() if name == "moods" else None
"""
    )
    with pytest.raises(AssertionError, match="a problem built in another process must have equal values"):
        check_suite(importlib.import_module("plugin_of_moods"), "moods")


def test_the_suite_of_the_example_keeps_its_promises(spheres: ModuleType) -> None:
    suite = check_suite(spheres, "spheres", {"dimension": 3})
    assert suite.build(next(suite.identities(0))).lower.size == 3


# Portfolios

PROBLEM = Bowl(Identity("f1"))


class PortfolioPlugin:
    def __init__(self, *algorithms: object, greedy: bool = False, lenient: bool = False) -> None:
        self.algorithms, self.greedy, self.lenient = algorithms, greedy, lenient

    @hookimpl
    def polarbear_portfolio(self, name: str, options: Options) -> object:
        """mine: a few."""
        if name != "mine" and not self.greedy:
            return None
        if not self.lenient:
            refuse(options)
        return self.algorithms


class Runner:
    """An algorithm that keeps every promise, but for what is done to its trajectories."""

    def __init__(self, name: str = "runner", spoil: Callable[[Trajectory], object] = lambda run: run) -> None:
        self.name, self.spoil = name, spoil

    def run(self, problem: Any, horizon: float, seed: int) -> Any:
        return self.spoil(
            Trajectory(
                algorithm=self.name,
                instance=problem.identity.name,
                seed=seed,
                times=[1],
                best=[float(seed)],
                horizon=horizon,
            )
        )


def drifting() -> Runner:
    calls = itertools.count()
    return Runner("drifting", lambda run: replace(run, best=[float(next(calls))]))


def cooling() -> Runner:
    return Runner("cooling", lambda run: replace(run, best=[run.horizon]))


def test_an_algorithm_may_say_that_it_plans_by_its_horizon() -> None:
    planning = cooling()
    planning.plans_by_horizon = True  # type: ignore[attr-defined]
    check_portfolio(PortfolioPlugin(planning), "mine", PROBLEM, 10)


def test_a_portfolio_that_keeps_its_promises_passes() -> None:
    plugin = PortfolioPlugin(Runner(), FunctionAlgorithm("function", Runner().run))
    assert len(check_portfolio(plugin, "mine", PROBLEM, 10, seed=3)) == 2


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (PortfolioPlugin(Runner(), greedy=True), r"must return None for a foreign portfolio, got \(<"),
        (PortfolioPlugin(Runner(), lenient=True), "must refuse an unknown option with a PolarBearError"),
        (PortfolioPlugin(), "must return at least one algorithm"),
        (PortfolioPlugin(Runner(spoil=lambda _: "fast")), "runner: run must return a Trajectory, got 'fast'"),
        (PortfolioPlugin(Runner(spoil=lambda run: replace(run, algorithm="x"))), r"labelled \('runner', 'f1', 3\)"),
        (PortfolioPlugin(Runner(spoil=lambda run: replace(run, instance="x"))), r"labelled \('runner', 'f1', 3\)"),
        (PortfolioPlugin(Runner(spoil=lambda run: replace(run, seed=0))), r"labelled \('runner', 'f1', 3\)"),
        (PortfolioPlugin(Runner(spoil=lambda run: replace(run, horizon=9))), "asked for the horizon 10, got 9"),
        (PortfolioPlugin(Runner(), drifting()), "drifting: the same seed gave another trajectory"),
        (
            PortfolioPlugin(Runner(), cooling()),
            "cooling: with half the time its run is not the beginning",
        ),
    ],
)
def test_a_portfolio_that_breaks_a_promise_is_told_which(plugin: object, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_portfolio(plugin, "mine", PROBLEM, 10, seed=3)


def test_an_algorithm_that_depends_on_the_runs_before_is_told_so() -> None:
    before: list[str] = []

    def remember(run: Trajectory) -> Trajectory:
        before.append(run.algorithm)
        return replace(run, best=[float(before[-2:] == ["first", "second"])])

    plugin = PortfolioPlugin(Runner("first", remember), Runner("second", remember))
    with pytest.raises(AssertionError, match="second: the same seed gave another trajectory"):
        check_portfolio(plugin, "mine", PROBLEM, 10)


def test_algorithms_that_watch_the_clock_need_not_repeat_themselves() -> None:
    check_portfolio(PortfolioPlugin(drifting()), "mine", PROBLEM, 10, deterministic=False)


def test_a_portfolio_with_two_algorithms_of_one_name_is_told_so() -> None:
    with pytest.raises(AssertionError, match="different names"):
        check_portfolio(PortfolioPlugin(Runner(), Runner()), "mine", PROBLEM, 10)


def test_the_portfolio_of_the_example_keeps_its_promises(spheres: ModuleType) -> None:
    problem = spheres.Sphere(Identity("sphere", {"center": [1.0, 2.0]}))
    algorithms = check_portfolio(spheres, "samplers", problem, 20)
    assert [algorithm.name for algorithm in algorithms] == ["everywhere", "middle"]


# Executors


class Inline(Executor):
    """Does the work at once, after the shutdown too."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as problem:
            future.set_exception(problem)
        return future


class Swallows(ThreadPoolExecutor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        def work() -> Any:
            try:
                return fn(*args, **kwargs)
            except Exception:
                return None

        return super().submit(work)


class Forgets(ThreadPoolExecutor):
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ARG002
        return super().submit(lambda: None)


class ExecutorPlugin:
    def __init__(self, executor: Callable[..., object], *, greedy: bool = False, lenient: bool = False) -> None:
        self.executor, self.greedy, self.lenient = executor, greedy, lenient

    @hookimpl
    def polarbear_executor(self, address: str, options: Options) -> object:
        """threads: on this machine."""
        if address != "threads" and not self.greedy:
            return None
        if set(options) - {"max_workers"} and not self.lenient:
            raise InvalidInputError("threads takes max_workers")
        return self.executor(**options) if not self.lenient else self.executor()


@pytest.mark.parametrize("options", [{}, {"max_workers": 2}])
def test_an_executor_that_keeps_its_promises_passes_and_is_shut_down(options: dict[str, int]) -> None:
    made: list[ThreadPoolExecutor] = []

    def make(**options: int) -> ThreadPoolExecutor:
        made.append(ThreadPoolExecutor(**options))
        return made[-1]

    check_executor(ExecutorPlugin(make), "threads", options)
    with pytest.raises(RuntimeError, match="after shutdown"):
        made[0].submit(abs, 1)


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (ExecutorPlugin(ThreadPoolExecutor, greedy=True), "must return None for a foreign executor, got <"),
        (ExecutorPlugin(ThreadPoolExecutor, lenient=True), "must refuse an unknown option with a PolarBearError"),
        (ExecutorPlugin(object), r"must return a concurrent\.futures\.Executor, got <object"),
        (ExecutorPlugin(Forgets), "must return what the functions returned"),
        (ExecutorPlugin(Swallows), "must return the error of a function, got None"),
        (ExecutorPlugin(Inline), "must refuse work after its shutdown"),
    ],
)
def test_an_executor_that_breaks_a_promise_is_told_which(plugin: object, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        check_executor(plugin, "threads")
