"""A race that goes on with other code or other packages says so."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from builders import change_journal

from polarbear_plugins import RaceSettings, Trajectory, race, resume
from polarbear_plugins.environment import installed_versions
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.experiments.fingerprints import fingerprint

SETTINGS = RaceSettings(seed=3, max_rounds=1, draws=100, batch_size=4, batch_min=4)
PROBLEMS = [10, 20, 30, 40, 50, 60]
STEP = 1.0


def walk(step: float) -> Callable[..., Trajectory]:
    def run(target: float, horizon: float, _: int) -> Trajectory:
        values = [abs(target - step * time) for time in range(1, int(horizon) + 1)]
        return Trajectory.from_evaluations(values, algorithm="?", instance="?")

    return run


def walk_back(step: float) -> Callable[..., Trajectory]:
    def run(target: float, horizon: float, _: int) -> Trajectory:
        values = [abs(target + step * time) for time in range(1, int(horizon) + 1)]
        return Trajectory.from_evaluations(values, algorithm="?", instance="?")

    return run


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    path = tmp_path / "race.db"
    race({"slow": walk(1), "fast": walk(2)}, PROBLEMS, [1, 2], SETTINGS, workers=0, journal=path)
    return path


def go_on(path: Path, portfolio: Any = None, problems: Any = None) -> list[str]:
    """Resume; returns the warnings about changes."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        resume(path, portfolio or {"slow": walk(1), "fast": walk(2)}, problems or PROBLEMS, workers=0)
    found = [str(warning.message) for warning in told if issubclass(warning.category, PolarBearWarning)]
    return [text for text in found if "not everything is as it was" in text]


def test_the_same_functions_and_problems_are_no_change(journal: Path) -> None:
    assert go_on(journal) == []


@pytest.mark.parametrize(
    ("portfolio", "changed"),
    [
        ({"slow": walk(1.5), "fast": walk(2)}, ["slow"]),
        ({"slow": walk_back(1), "fast": walk(2)}, ["slow"]),
        ({"slow": walk(2), "fast": walk(1)}, ["slow", "fast"]),
    ],
)
def test_other_functions_under_the_same_names_are_told(journal: Path, portfolio: Any, changed: list[str]) -> None:
    [told] = go_on(journal, portfolio)
    for name in ("slow", "fast"):
        assert (f"the code or the attributes of '{name}' are others" in told) == (name in changed)
    assert "the suite" not in told


def test_other_problems_under_the_same_names_are_told(tmp_path: Path) -> None:
    def problems(shift: float) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=f"p{target}", target=target + shift) for target in PROBLEMS]

    def run(problem: SimpleNamespace, horizon: float, seed: int) -> Trajectory:
        return walk(2)(problem.target, horizon, seed)

    path, portfolio = tmp_path / "race.db", {"a": run, "b": walk(1)}
    portfolio["b"] = lambda problem, horizon, seed: walk(1)(problem.target, horizon, seed)
    race(portfolio, problems(0), [1, 2], SETTINGS, workers=0, journal=path)
    assert go_on(path, portfolio, problems(0)) == []
    [told] = go_on(path, portfolio, problems(1))
    assert "the problems of the suite, or the code that makes them, are others" in told


def test_other_versions_are_told_with_both_numbers(journal: Path) -> None:
    then = {**installed_versions(), "numpy": "1.0.7", "gone": "2.0"}
    change_journal(journal, ("UPDATE about SET json = ? WHERE key = 'versions'", (json.dumps(then),)))
    [told] = go_on(journal)
    assert f"numpy 1.0.7 then, {np.__version__} now; gone 2.0 then, not installed now." in told
    assert "race.db" in told


def test_bytecode_of_another_python_is_not_compared(journal: Path) -> None:
    then = {**installed_versions(), "python": "3.9.1"}
    change_journal(journal, ("UPDATE about SET json = ? WHERE key = 'versions'", (json.dumps(then),)))
    [told] = go_on(journal, {"slow": walk(1.5), "fast": walk(2)})
    assert "python 3.9.1 then" in told
    assert "the code" not in told


def test_a_newcomer_has_a_fingerprint_from_its_entry_on(tmp_path: Path) -> None:
    path, portfolio = tmp_path / "race.db", {"slow": walk(1), "fast": walk(2)}
    result = race(portfolio, PROBLEMS, [1, 2], SETTINGS, workers=0, journal=path)
    result.enter({"late": walk(3)}, max_rounds=2, workers=0)
    assert go_on(path, {**portfolio, "late": walk(3)}) == []
    [told] = go_on(path, {**portfolio, "late": walk(4)})
    assert "the code or the attributes of 'late' are others" in told


@pytest.mark.parametrize(("what", "other"), [("suite", "bbob"), ("portfolio", "random-search")])
def test_another_registered_name_is_refused(tmp_path: Path, what: str, other: str) -> None:
    path = tmp_path / "race.db"
    race("synthetic", "synthetic", [1, 2], SETTINGS, workers=0, journal=path)
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=rf"the {what} of this race is 'synthetic', and '{other}' was given"):
        resume(path, **{what: other}, workers=0)
    assert path.read_bytes() == before
    assert resume(path, "synthetic", "synthetic", workers=0)


# --- fingerprints


def helper(x: float) -> float:
    return x + 1


def changed_helper(x: float) -> float:
    return x + 2


def uses_helper(x: float) -> float:
    return helper(x)


def uses_constant(x: float) -> float:
    return x * STEP


class Climber:
    def __init__(self, step: float) -> None:
        self.step = step
        self.myself = self  # in a circle

    def run(self) -> float:
        return self.step


def test_a_function_is_known_by_what_it_uses_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(uses_helper), fingerprint(uses_constant)
    monkeypatch.setitem(globals(), "helper", changed_helper)
    monkeypatch.setitem(globals(), "STEP", 2.0)
    assert fingerprint(uses_helper) != before[0]
    assert fingerprint(uses_constant) != before[1]


def test_an_object_is_known_by_its_attributes_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(Climber(1.0))
    assert fingerprint(Climber(1.0)) == before != fingerprint(Climber(2.0))
    monkeypatch.setattr(Climber, "run", lambda self: self.step + 1)
    assert fingerprint(Climber(1.0)) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, True),
        ("1", b"1"),
        ([1, 2], (1, 2)),
        ([1, [2]], [[1], 2]),
        ({"a": 1}, {"a": 2}),
        (np.arange(3), np.arange(3.0)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        ({1, 2}, {1, 3}),
    ],
)
def test_different_data_have_different_fingerprints(one: object, other: object) -> None:
    assert fingerprint(one) == fingerprint(one)
    assert fingerprint(one) != fingerprint(other)


def test_equal_parts_may_be_the_same_object_or_not() -> None:
    part = [1, 2]
    assert fingerprint([part, part]) == fingerprint([[1, 2], [1, 2]])
    assert fingerprint({1, 2, 3}) == fingerprint({3, 2, 1})


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_what_cannot_be_looked_into_has_a_fingerprint_all_the_same() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert fingerprint(nested)
    assert fingerprint(Hostile())
    assert fingerprint(np.random.default_rng(1)) == fingerprint(np.random.default_rng(1))
