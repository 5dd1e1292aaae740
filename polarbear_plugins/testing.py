"""Contract checks for plugin authors: call them from your own tests.

Each check takes the plugin as users install it, a module or object with hook implementations, and raises an
``AssertionError`` that names the broken promise.  With pytest::

    from polarbear_plugins import testing
    import my_plugin

    def test_my_adapter_keeps_its_promises(tmp_path):
        write_some_results(tmp_path / "results.mine")
        testing.check_adapter(my_plugin, tmp_path / "results.mine")
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import itertools
import math
import multiprocessing
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from types import ModuleType

import numpy as np

from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import (
    Algorithm,
    BoxProblem,
    Identity,
    Problem,
    SpaceProblem,
    Suite,
    plans_by_horizon,
)
from polarbear_plugins.trajectories.runs import cut_at
from polarbear_plugins.trajectories.trajectory import Trajectory

_FOREIGN_NAME = "nobody-has-registered-this"
_NO_OPTIONS: Mapping[str, object] = {}


def check_adapter(
    plugin: object,
    source: object,
    options: Mapping[str, object] = _NO_OPTIONS,
    *,
    damaged: Sequence[object] = (),
) -> list[Trajectory]:
    """Check ``polarbear_read_trajectories`` and return what it read.

    Promises: ``None`` for foreign sources; each (algorithm, instance, seed) once; the same trajectories when read
    again; the source is unchanged; an unknown option is refused.

    Parameters
    ----------
    source
        Something the adapter reads.
    damaged
        Sources that the adapter recognises and must refuse with a :class:`PolarBearError`.
    """
    plugins = _register_alone(plugin, "polarbear_read_trajectories")
    hook = plugins.manager.hook.polarbear_read_trajectories
    for foreign in (object(), 42, f"{_FOREIGN_NAME}.xyz"):
        assert hook(source=foreign, options=_NO_OPTIONS) is None, f"must return None for a foreign source, {foreign!r}"

    unchanged = _remember(source)
    trajectories = list(plugins.read_trajectories(source, **options))
    assert trajectories, f"read no trajectory from {source!r}"
    for trajectory in trajectories:
        assert isinstance(trajectory, Trajectory), f"must return Trajectory objects, got {trajectory!r}"
    keys = [(run.algorithm, run.instance, run.seed) for run in trajectories]
    twice = {key for key in keys if keys.count(key) > 1} if len(set(keys)) < len(keys) else set()
    assert not twice, f"must return each (algorithm, instance, seed) once, repeated {sorted(twice)}"
    again = list(plugins.read_trajectories(source, **options))
    assert _by_key(again) == _by_key(trajectories), "must read the same trajectories when read again"
    assert unchanged(), "must not change its source"

    def read(source: object, **more: object) -> list[Trajectory]:
        return list(plugins.read_trajectories(source, **options, **more))

    _assert_refuses("an unknown option", read, source, no_such_option=1)
    for broken in damaged:
        _assert_refuses(repr(broken), read, broken)
    return trajectories


def check_suite(
    plugin: object, name: str, options: Mapping[str, object] = _NO_OPTIONS, *, seed: int = 0, count: int = 3
) -> Suite:
    """Check ``polarbear_suite`` and return the suite.

    Promises: ``None`` for foreign names; a seed draws the same identities every time, with different names; a problem
    rebuilt from the JSON of its identity, in another process too, has equal values; bounds are finite and ordered;
    ``identity_named``, if it has that, finds what it draws and nothing else; an unknown option is refused.

    Parameters
    ----------
    count
        How many problems to draw and build.
    """
    plugins = _register_alone(plugin, "polarbear_suite")
    _assert_foreign(plugins.manager.hook.polarbear_suite(name=_FOREIGN_NAME, options=_NO_OPTIONS), "suite")
    suite = plugins.suite(name, **options)
    assert isinstance(suite, Suite), f"must return a Suite with name, identities and build, got {suite!r}"

    drawn = list(itertools.islice(suite.identities(seed), count))
    assert drawn, "must draw at least one problem"
    assert list(itertools.islice(suite.identities(seed), count)) == drawn, "the same seed must draw the same problems"
    assert len({identity.name for identity in drawn}) == len(drawn), "problems must have different names"
    look_up = getattr(suite, "identity_named", None)
    if look_up is not None:
        found = [look_up(identity.name) for identity in drawn]
        assert found == drawn, "identity_named must find the instances that the suite draws, by their names"
        assert look_up(_FOREIGN_NAME) is None, "identity_named must return None for a name that is not its own"
    values = []
    for identity in drawn:
        problem = suite.build(identity)
        assert isinstance(problem, Problem), f"must build a Problem with an identity, got {problem!r}"
        assert problem.identity == identity, "the identity of a problem must be the one it was built from"
        values.append(_value_at_random_point(problem))
    texts = [identity.to_json() for identity in drawn]
    assert _values_of(plugins.suite(name, **options), texts) == values, "a rebuilt problem must have equal values"
    if isinstance(plugin, ModuleType) and importlib.util.find_spec(plugin.__name__):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            elsewhere = pool.submit(_values_in_child, plugin.__name__, name, dict(options), texts).result()
        assert elsewhere == values, "a problem built in another process must have equal values"

    _assert_refuses("an unknown option", plugins.suite, name, **options, no_such_option=1)
    return suite


def check_portfolio(
    plugin: object,
    name: str,
    problem: Problem,
    horizon: float,
    options: Mapping[str, object] = _NO_OPTIONS,
    *,
    seed: int = 0,
    deterministic: bool = True,
) -> tuple[Algorithm, ...]:
    """Check ``polarbear_portfolio`` and return the algorithms.

    Promises: ``None`` for foreign names; algorithms have different names; a run returns a trajectory with the requested
    algorithm, instance and seed, watched until the horizon; the same seed gives the same trajectory, also after other
    runs, and with half the time the beginning of it, unless the algorithm has ``plans_by_horizon``; an unknown option
    is refused.

    Parameters
    ----------
    problem, horizon
        What every algorithm runs on, and for how long.  Choose a small horizon: each runs three times.
    deterministic
        Whether to compare these runs; ``False`` for wall-clock time.
    """
    plugins = _register_alone(plugin, "polarbear_portfolio")
    _assert_foreign(plugins.manager.hook.polarbear_portfolio(name=_FOREIGN_NAME, options=_NO_OPTIONS), "portfolio")
    given = plugins.manager.hook.polarbear_portfolio(name=name, options=options)
    assert given, "must return at least one algorithm"
    names = [algorithm.name for algorithm in given]
    assert len(set(names)) == len(names), f"algorithms must have different names, got {', '.join(names)}"
    portfolio = plugins.portfolio(name, **options)
    first = [algorithm.run(problem, horizon, seed) for algorithm in portfolio]
    for algorithm, run in zip(portfolio, first, strict=True):
        assert isinstance(run, Trajectory), f"{algorithm.name}: run must return a Trajectory, got {run!r}"
        expected = (algorithm.name, problem.identity.name, seed)
        assert (run.algorithm, run.instance, run.seed) == expected, f"{run!r} must be labelled {expected}"
        assert run.horizon == horizon, f"{algorithm.name}: was asked for the horizon {horizon:g}, got {run.horizon:g}"
    if deterministic:
        for algorithm, run in zip(reversed(portfolio), reversed(first), strict=True):
            assert algorithm.run(problem, horizon, seed) == run, (
                f"{algorithm.name}: the same seed gave another trajectory"
            )
            half = float(max(1, horizon // 2))
            if not plans_by_horizon(algorithm):
                assert algorithm.run(problem, half, seed) == cut_at(run, half), (
                    f"{algorithm.name}: with half the time its run is not the beginning of the longer one. If it plans "
                    "by its horizon, let it say so with plans_by_horizon = True."
                )
    _assert_refuses("an unknown option", plugins.portfolio, name, **options, no_such_option=1)
    return portfolio


def check_executor(plugin: object, address: str, options: Mapping[str, object] = _NO_OPTIONS) -> None:
    """Check ``polarbear_executor``, and shut the executor down.

    Promises: ``None`` for foreign addresses; functions run, and their errors come back; no work is accepted after the
    shutdown; an unknown option is refused.
    """
    plugins = _register_alone(plugin, "polarbear_executor")
    _assert_foreign(plugins.manager.hook.polarbear_executor(address=_FOREIGN_NAME, options=_NO_OPTIONS), "executor")
    executor = plugins.executor(address, **options)
    assert isinstance(executor, Executor), f"must return a concurrent.futures.Executor, got {executor!r}"
    with executor:
        futures = [executor.submit(math.factorial, n) for n in range(20)]
        results = [future.result(timeout=60) for future in futures]
        assert results == [math.factorial(n) for n in range(20)], "must return what the functions returned"
        error = executor.submit(math.factorial, -1).exception(timeout=60)
        assert isinstance(error, ValueError), f"must return the error of a function, got {error!r}"
    try:
        executor.submit(math.factorial, 3)
    except RuntimeError:
        pass
    else:
        raise AssertionError("must refuse work after its shutdown")
    _assert_refuses("an unknown option", plugins.executor, address, **options, no_such_option=1)


def _register_alone(plugin: object, hook: str) -> Plugins:
    plugins = Plugins()
    plugins.register(plugin, "plugin under test")
    [installed] = plugins.installed
    assert hook in installed.hooks, f"the plugin does not implement {hook}"
    assert installed.hooks[hook] != "says nothing about itself", f"{hook} needs a docstring that says what it accepts"
    return plugins


def _assert_foreign(result: object, what: str) -> None:
    assert result is None, f"must return None for a foreign {what}, got {result!r}"


def _assert_refuses(what: str, action: Callable[..., object], *arguments: object, **options: object) -> None:
    try:
        action(*arguments, **options)
    except PolarBearError:
        return
    except Exception as problem:
        raise AssertionError(f"must refuse {what} with a PolarBearError, raised {problem!r}") from problem
    raise AssertionError(f"must refuse {what} with a PolarBearError")


def _by_key(trajectories: Iterable[Trajectory]) -> dict[tuple[str, str, int], Trajectory]:
    return {(run.algorithm, run.instance, run.seed): run for run in trajectories}


def _remember(source: object) -> Callable[[], bool]:
    """Remember a source; the returned function says whether it is unchanged, as far as that can be checked."""
    if isinstance(source, str | Path):
        before = _digests(Path(source))
        return lambda: _digests(Path(source)) == before
    try:
        kept = copy.deepcopy(source)
    except Exception:  # such as an open connection
        return lambda: True
    if not _same(source, kept):  # compared by identity, not by contents
        return lambda: True
    return lambda: _same(source, kept)


def _digests(path: Path) -> list[tuple[str, str]]:
    try:
        files = [path] if path.is_file() else sorted(path.rglob("*"))
    except (OSError, ValueError):  # not a valid file name
        return []
    return [(str(file), hashlib.sha256(file.read_bytes()).hexdigest()) for file in files if file.is_file()]


def _same(source: object, kept: object) -> bool:
    try:
        # For DataFrame.equals, nan equals nan.
        return bool(source.equals(kept) if hasattr(source, "equals") else np.all(source == kept))
    except Exception:
        return False


def _value_at_random_point(problem: Problem) -> float | None:
    """Value at a fixed random point; ``None`` if the problem is neither a box nor a configuration space."""
    rng = np.random.default_rng(1)
    if isinstance(problem, BoxProblem):
        lower, upper = np.asarray(problem.lower), np.asarray(problem.upper)
        assert lower.shape == upper.shape == (lower.size,), "lower and upper must be vectors of equal length"
        assert np.isfinite([lower, upper]).all(), "bounds must be finite"
        assert (lower < upper).all(), "lower bounds must lie below upper bounds"
        return _as_float(problem.evaluate(rng.uniform(lower, upper)))
    if isinstance(problem, SpaceProblem):
        return _as_float(problem.evaluate(problem.space.sample(rng)))
    return None


def _as_float(value: object) -> float | None:
    assert isinstance(value, int | float | np.number), f"evaluate must return a number, got {value!r}"
    number = float(value)
    return None if math.isnan(number) else number  # nan would differ from itself


def _values_of(suite: Suite, identities: Sequence[str]) -> list[float | None]:
    return [_value_at_random_point(suite.build(Identity.from_json(text))) for text in identities]


def _values_in_child(
    module: str, name: str, options: Mapping[str, object], identities: Sequence[str]
) -> list[float | None]:
    plugins = Plugins()
    plugins.register(importlib.import_module(module), "plugin under test")
    return _values_of(plugins.suite(name, **options), identities)
