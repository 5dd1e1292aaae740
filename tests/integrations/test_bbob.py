from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import RaceSettings, Trajectory, race
from polarbear_plugins.errors import InvalidInputError, MissingExtraError
from polarbear_plugins.integrations import bbob as module
from polarbear_plugins.integrations.bbob import BbobProblem, BbobSuite
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.testing import check_suite


def _suite(name: str, **options: object) -> BbobSuite:
    plugins = Plugins()
    plugins.register(module, "bbob")
    suite = plugins.suite(name, **options)
    assert isinstance(suite, BbobSuite)
    return suite


def _problem(suite: str, function: int, instance: int, dimension: int) -> BbobProblem:
    pytest.importorskip("ioh")
    return BbobProblem(Identity("p"), suite=suite, function=function, instance=instance, dimension=dimension)


def _reference(suite: str, function: int, instance: int, dimension: int) -> Any:
    ioh = pytest.importorskip("ioh")
    return ioh.get_problem(function, instance, dimension, getattr(ioh.ProblemClass, suite.upper()))


@pytest.mark.parametrize("name", ["bbob", "sbox"])
def test_the_suites_keep_the_contract(name: str) -> None:
    pytest.importorskip("ioh")
    check_suite(module, name, {"functions": "1,21-24", "instances": "1-2", "dimension": "2,3"}, count=6)


@pytest.mark.parametrize("name", ["bbob", "sbox"])
@pytest.mark.parametrize("function", range(1, 25))
def test_values_are_differences_from_the_optimum(name: str, function: int) -> None:
    rng = np.random.default_rng(function)
    for instance, dimension in ((1, 2), (7, 5)):
        problem, reference = (
            _problem(name, function, instance, dimension),
            _reference(name, function, instance, dimension),
        )
        for x in rng.uniform(-5, 5, (10, dimension)):
            value = reference(x) - reference.optimum.y
            assert problem.evaluate(x) == pytest.approx(value, rel=1e-12, abs=1e-9)
        # What rounding leaves at the optimum, on the steepest functions.
        assert abs(problem.evaluate(reference.optimum.x)) < 1e-6


def test_small_differences_are_not_lost_in_the_value_of_the_optimum() -> None:
    problem, reference = _problem("bbob", 1, 3, 5), _reference("bbob", 1, 3, 5)
    x = np.array(reference.optimum.x)
    x[0] += 1e-9
    assert reference(x) - reference.optimum.y == 0
    assert problem.evaluate(x) == pytest.approx(1e-18, rel=1e-5, abs=0)


def test_the_default_is_24_functions_of_5_instances_in_5_dimensions_each_once() -> None:
    pytest.importorskip("ioh")
    for name in ("bbob", "sbox"):
        names = [identity.name for identity in _suite(name).identities(0)]
        assert sorted(names) == sorted(f"f{f}-i{i}-d5" for f in range(1, 25) for i in range(1, 6))


def test_ranges_choose_functions_instances_and_dimensions() -> None:
    pytest.importorskip("ioh")
    suite = _suite("bbob", functions="2,4-5", instances=[8], dimension="10,20")
    names = {identity.name for identity in suite.identities(3)}
    assert names == {f"f{f}-i8-d{d}" for f in (2, 4, 5) for d in (10, 20)}


def test_an_identity_says_what_is_in_its_name() -> None:
    for identity in BbobSuite("sbox", [2, 3], [4, 5], [6, 7]).identities(0):
        values = dict(identity.parameters)
        assert identity.name == f"f{values['function']}-i{values['instance']}-d{values['dimension']}"
        assert values["suite"] == "sbox"


def test_the_seed_decides_the_order() -> None:
    orders = {seed: [identity.name for identity in BbobSuite("bbob").identities(seed)] for seed in (1, 2)}
    assert orders[1] != orders[2]
    assert sorted(orders[1]) == sorted(orders[2])


def test_the_problem_built_is_the_one_named() -> None:
    pytest.importorskip("ioh")
    suite = BbobSuite("sbox", [2, 9], [4, 5], [3])
    for identity in suite.identities(0):
        values = identity.parameters
        reference = _reference("sbox", values["function"], values["instance"], 3)
        built = suite.build(identity)
        assert built.evaluate([1, 2, 3]) == pytest.approx(reference([1, 2, 3]) - reference.optimum.y)  # type: ignore[attr-defined]


def test_outside_the_box_sbox_is_infinite_and_bbob_is_not() -> None:
    for function in (1, 5, 24):
        assert _problem("sbox", function, 1, 2).evaluate([0, 5.001]) == math.inf
        assert math.isfinite(_problem("sbox", function, 1, 2).evaluate([-5, 5]))
        assert math.isfinite(_problem("bbob", function, 1, 2).evaluate([0, 7]))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_point_that_is_not_finite_is_nan_and_not_the_value_before(bad: float) -> None:
    for name in ("bbob", "sbox"):
        problem = _problem(name, 3, 1, 2)
        before = problem.evaluate([1, 2])
        assert math.isnan(problem.evaluate([1, bad]))
        assert problem.evaluate([1, 2]) == before


@pytest.mark.parametrize("x", [[1.0], [1.0] * 3, 1.0, [[1.0, 2.0]]])
def test_a_point_of_another_dimension_is_refused(x: object) -> None:
    with pytest.raises(InvalidInputError, match="p: expected 2 numbers"):
        _problem("bbob", 1, 1, 2).evaluate(x)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"function": 1}, r"The suite 'bbob' has no option 'function'\. It takes functions, instances, dimension\."),
        ({"functions": "0-3"}, "functions must lie between 1 and 24"),
        ({"functions": "1-25"}, "functions must lie between 1 and 24"),
        ({"instances": "0"}, "instances must lie between 1 and 200000"),
        ({"dimension": "1"}, "dimension must lie between 2 and 10000"),
        ({"dimension": "large"}, "dimension must be whole numbers"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _suite("bbob", **options)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "was not drawn by 'bbob'"),
        ({"suite": "sbox", "function": 1, "instance": 1, "dimension": 2}, "was not drawn by 'bbob'"),
        ({"suite": "bbob", "function": 25, "instance": 1, "dimension": 2}, "function must be"),
        ({"suite": "bbob", "function": 1, "dimension": 2}, "instance must be"),
    ],
)
def test_an_identity_of_somebody_else_is_refused(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        BbobSuite("bbob").build(Identity("foreign", parameters))


def test_names_of_others_are_left_to_them() -> None:
    assert module.polarbear_suite("ma-bbob", {}) is None


@pytest.mark.parametrize("name", ["bbob", "sbox"])
def test_without_ioh_the_extra_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ioh", None)
    with pytest.raises(MissingExtraError, match=rf"The suite '{name}' needs 'ioh'.*polarbear-plugins\[ioh\]"):
        _suite(name)


def test_instances_of_archives_are_found_by_function_dimension_and_instance() -> None:
    suite = BbobSuite("bbob", functions=[1, 3], instances=[2, 11], dimension=[2, 10])
    drawn = {identity.name: identity for identity in suite.identities(1)}
    assert len(drawn) == 8
    for identity in drawn.values():
        numbers = identity.parameters
        logged = f"f{numbers['function']}_d{numbers['dimension']}_i{numbers['instance']}"
        assert suite.identity_named(logged) == suite.identity_named(identity.name) == identity
    for other in ("f2_d2_i2", "f1_d5_i2", "f1_d2_i1", "f1_i2_d2", "f01_d2_i2", "f1_d2_i2 ", "f1_d2", "sphere"):
        assert suite.identity_named(other) is None


def test_values_are_those_of_logged_runs(tmp_path: Path) -> None:
    """A newcomer that repeats a stored run of random search ties with it at every timepoint."""
    ioh = pytest.importorskip("ioh")

    def points(instance: str) -> np.ndarray:
        return np.random.default_rng(len(instance)).uniform(-5, 5, (60, 5))

    log = ioh.logger.Analyzer(root=str(tmp_path), folder_name="archive", algorithm_name="stored")
    for function, instance in itertools.product((1, 8, 15, 21), (1, 3)):
        problem = ioh.get_problem(function, instance, 5, ioh.ProblemClass.BBOB)
        problem.attach_logger(log)
        for x in points(f"f{function}-i{instance}-d5"):
            problem(x)
        problem.reset()
        problem.detach_logger()
    log.close()

    def again(problem: BbobProblem, horizon: float, _: int) -> Trajectory:
        values = [problem.evaluate(x) for x in points(problem.identity.name)[: int(horizon)]]
        return Trajectory.from_evaluations(values, algorithm="?", instance="?", horizon=horizon)

    options: dict[str, Any] = {"suite_options": {"functions": "1-24"}, "against": tmp_path / "archive"}
    settings = RaceSettings(seed=1, draws=200, epsilon=0.01)
    result = race({"again": again}, "bbob", [1, 10, 60], settings, workers=0, tolerance=1e-9, **options)
    table = result.state.table
    assert result.about["against"]["not_in_suite"] == 0
    assert len(table) == 8
    np.testing.assert_allclose(table.values[:, :, 1], table.values[:, :, 0], atol=1e-9)
    assert (table.ranks == 1).all()


def test_values_and_optima_are_those_of_coco(shared: Path) -> None:
    """The files name f_opt and the best points, so that both can be computed again."""
    pytest.importorskip("ioh")
    compared = 0
    for function, dimension in itertools.product((1, 8, 15, 21), (2, 5)):
        folder = shared / "coco" / "exdata" / "random-search" / f"data_f{function}"
        path = folder / f"bbobexp_f{function}_DIM{dimension}.dat"
        runs = path.read_text().split("% f evaluations")[1:]
        assert len(runs) == 4
        for instance, text in enumerate(runs, start=1):
            header, *rows = text.strip().splitlines()
            reference = _reference("bbob", function, instance, dimension)
            assert float(header.split("Fopt (")[1].split(")")[0]) == pytest.approx(reference.optimum.y, abs=1e-9)
            problem = _problem("bbob", function, instance, dimension)
            for row in rows:
                numbers = [float(number) for number in row.split()]
                # Points have five digits, so values differ by as much as a step of half a digit in each coordinate.
                x, spread = np.array(numbers[5:]), 5e-5 * np.abs(numbers[5:])
                sides = itertools.product((-1, 0, 1), repeat=dimension)
                corners = [problem.evaluate(x + np.array(side) * spread) for side in sides]
                slack = 2 * (max(corners) - min(corners))
                assert problem.evaluate(x) == pytest.approx(numbers[2], abs=slack, rel=1e-6)
                compared += 1
    assert compared > 100
