from __future__ import annotations

import csv
import itertools
import json
import math
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarbear_plugins.errors import InvalidInputError, MissingExtraError, SourceError
from polarbear_plugins.integrations import ma_bbob as module
from polarbear_plugins.integrations.ma_bbob import SCALES, MaBbobProblem, MaBbobSuite, draw_parameters
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import BoxProblem, Identity
from polarbear_plugins.testing import check_suite


def _suite(**options: object) -> MaBbobSuite:
    plugins = Plugins()
    plugins.register(module, "ma-bbob")
    suite = plugins.suite("ma-bbob", **options)
    assert isinstance(suite, MaBbobSuite)
    return suite


def _drawn(count: int, dimension: int, seed: int = 0) -> list[dict[str, Any]]:
    return [draw_parameters(np.random.default_rng([seed, index]), dimension) for index in range(count)]


def _many_affine(parameters: dict[str, Any]) -> Any:
    ioh = pytest.importorskip("ioh")
    xopt = parameters["xopt"]
    return ioh.problem.ManyAffine(xopt, parameters["weights"], parameters["instances"], len(xopt))


def _write(folder: Path, problems: list[dict[str, Any]], columns: int) -> Path:
    """The three files as the authors publish them: what pandas writes for a data frame of each."""
    rng = np.random.default_rng(0)
    for name, key in (("weights.csv", "weights"), ("iids.csv", "instances"), ("opt_locs.csv", "xopt")):
        with (folder / name).open("w", newline="") as file:
            writer = csv.writer(file)
            rows = [list(problem[key]) for problem in problems]
            if key == "xopt":
                rows = [[*row, *rng.uniform(-5, 5, columns - len(row)).tolist()] for row in rows]
            writer.writerow(["", *range(len(rows[0]))])
            writer.writerows([place, *row] for place, row in enumerate(rows))
    return folder


def test_the_suite_keeps_the_contract() -> None:
    pytest.importorskip("ioh")
    suite = check_suite(module, "ma-bbob", {"dimension": "3"})
    problem = suite.build(next(suite.identities(1)))
    assert isinstance(problem, BoxProblem)
    assert (problem.lower.tolist(), problem.upper.tolist()) == ([-5.0] * 3, [5.0] * 3)


@pytest.mark.parametrize("dimension", [2, 3, 5, 10, 30])
def test_values_are_those_of_many_affine_far_from_the_optimum_and_near_it(dimension: int) -> None:
    pytest.importorskip("ioh")
    rng = np.random.default_rng(dimension)
    for parameters in _drawn(25, dimension, seed=dimension):
        problem, reference = MaBbobProblem(Identity("p"), **parameters), _many_affine(parameters)
        steps = rng.normal(size=(9, dimension)) * 10.0 ** np.arange(-15, 3, 2)[:, None]
        for x in [*rng.uniform(-5, 5, (10, dimension)), *(steps + parameters["xopt"]), np.array(parameters["xopt"])]:
            assert problem.evaluate(x) == pytest.approx(reference(x), rel=1e-10, abs=0)


def test_all_24_parts_and_weights_that_do_not_sum_to_one_are_those_of_many_affine() -> None:
    pytest.importorskip("ioh")
    rng = np.random.default_rng(5)
    for scale in (0.1, 1.0, 3.0):
        parameters = {**_drawn(1, 4)[0], "weights": (scale * rng.uniform(size=24)).tolist()}
        problem, reference = MaBbobProblem(Identity("p"), **parameters), _many_affine(parameters)
        for x in rng.uniform(-5, 5, (20, 4)):
            assert problem.evaluate(x) == pytest.approx(reference(x), rel=1e-10, abs=0)


def test_values_far_outside_the_box_are_those_of_many_affine_up_to_its_limit() -> None:
    pytest.importorskip("ioh")
    compared = 0
    for function in range(24):
        parameters = {**_drawn(1, 3)[0], "weights": np.eye(24)[function].tolist()}
        problem, reference = MaBbobProblem(Identity("p"), **parameters), _many_affine(parameters)
        limit = 10 ** (10 * 28 / SCALES[function] - 8)
        for distance in 10.0 ** np.arange(2, 16):
            known = reference(distance * np.array([1.0, -0.5, 0.3]))
            if not math.isnan(known):  # from a function without weight, which ioh evaluates too
                assert problem.evaluate(distance * np.array([1.0, -0.5, 0.3])) == pytest.approx(known, rel=1e-10, abs=0)
                compared += known == pytest.approx(limit)
    assert compared


def test_the_scales_are_those_of_ioh() -> None:
    pytest.importorskip("ioh")
    assert list(SCALES) == _many_affine(_drawn(1, 2)[0]).scale_factors


def test_the_optimum_is_where_the_identity_says_and_close_to_zero() -> None:
    pytest.importorskip("ioh")
    rng = np.random.default_rng(3)
    for parameters in _drawn(30, 5):
        problem = MaBbobProblem(Identity("p"), **parameters)
        least = problem.evaluate(parameters["xopt"])
        assert 0 < least < 1e-8
        assert all(problem.evaluate(x) > least for x in rng.uniform(-5, 5, (20, 5)))


def test_only_parts_with_weight_are_built() -> None:
    pytest.importorskip("ioh")
    for parameters in _drawn(10, 2):
        problem = MaBbobProblem(Identity("p"), **parameters)
        assert len(problem._parts) == np.count_nonzero(parameters["weights"])


def test_lists_and_arrays_give_the_same_and_the_point_is_left_alone() -> None:
    pytest.importorskip("ioh")
    problem = MaBbobProblem(Identity("p"), **_drawn(1, 3)[0])
    x = np.array([1.0, -2.0, 3.0])
    assert problem.evaluate(x) == problem.evaluate(x.tolist()) == problem.evaluate((1, -2, 3))
    assert x.tolist() == [1.0, -2.0, 3.0]


def test_a_point_that_is_not_finite_is_nan_and_changes_nothing() -> None:
    pytest.importorskip("ioh")
    problem = MaBbobProblem(Identity("p"), **_drawn(1, 3)[0])
    before = problem.evaluate([1, 2, 3])
    for bad in (math.nan, math.inf, -math.inf):
        assert math.isnan(problem.evaluate([1, bad, 3]))
    assert problem.evaluate([1, 2, 3]) == before


@pytest.mark.parametrize("x", [[1.0], [1.0] * 4, 1.0, [[1.0, 2.0, 3.0]]])
def test_a_point_of_another_dimension_is_refused(x: object) -> None:
    pytest.importorskip("ioh")
    problem = MaBbobProblem(Identity("p"), **_drawn(1, 3)[0])
    with pytest.raises(InvalidInputError, match="p: expected 3 numbers"):
        problem.evaluate(x)  # type: ignore[arg-type]


def test_weights_beyond_all_numbers_give_infinity() -> None:
    pytest.importorskip("ioh")
    problem = MaBbobProblem(Identity("p"), **{**_drawn(1, 3)[0], "weights": [100.0] * 24})
    assert problem.evaluate([1, 2, 3]) == math.inf


def test_the_sampler_is_the_published_one() -> None:
    for seed in range(200):
        drawn, rng = draw_parameters(np.random.default_rng(seed), 5), np.random.default_rng(seed)
        uniform = rng.uniform(size=24)
        threshold = min(0.85, np.sort(uniform)[-3])
        weights = np.where(uniform >= threshold, uniform - threshold, 0)
        assert drawn["weights"] == (weights / weights.sum()).tolist()
        assert drawn["instances"] == rng.integers(1, 100, 24).tolist()
        assert drawn["xopt"] == rng.uniform(-5, 5, 5).tolist()


def test_moments_of_the_sampler() -> None:
    drawn = _drawn(4000, 2)
    weights, instances = np.array([d["weights"] for d in drawn]), np.array([d["instances"] for d in drawn])
    xopt = np.array([d["xopt"] for d in drawn])
    assert np.allclose(weights.sum(axis=1), 1)
    parts = np.count_nonzero(weights, axis=1)
    assert parts.min() == 2
    # A binomial number of 24 with probability 0.15, and 2 where that is less.
    assert parts.mean() == pytest.approx(3.723, abs=0.08)
    assert (instances.min(), instances.max()) == (1, 99)
    assert instances.mean() == pytest.approx(50, abs=0.5)
    assert np.abs(xopt).max() < 5
    assert xopt.std() == pytest.approx(10 / math.sqrt(12), abs=0.06)


def test_a_problem_can_be_built_by_anyone_from_the_json_of_its_identity() -> None:
    pytest.importorskip("ioh")
    suite = _suite(dimension=4)
    identity = next(suite.identities(8))
    parameters = json.loads(identity.to_json())["parameters"]
    x = [0.5, -1, 2, 3]
    assert suite.build(identity).evaluate(x) == pytest.approx(_many_affine(parameters)(x), rel=1e-10)  # type: ignore[attr-defined]


def test_a_suite_can_be_sent_to_a_worker() -> None:
    pytest.importorskip("ioh")
    suite = _suite(dimension=4)
    identity = next(suite.identities(8))
    sent = pickle.loads(pickle.dumps(suite))  # noqa: S301 - our own bytes
    assert sent.build(identity).evaluate([1, 2, 3, 4]) == suite.build(identity).evaluate([1, 2, 3, 4])  # type: ignore[attr-defined]


def test_instances_differ_within_a_seed_and_between_seeds() -> None:
    pytest.importorskip("ioh")
    suite = _suite()
    some = list(itertools.islice(suite.identities(1), 20)) + list(itertools.islice(suite.identities(2), 20))
    assert len({identity.name for identity in some}) == 40
    assert len({identity.to_json().partition("parameters")[2] for identity in some}) == 40
    assert all(len(identity.parameters["xopt"]) == 5 for identity in some)


def test_published_files_give_each_of_their_problems_once(tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    problems = _drawn(6, 3)
    suite = _suite(dimension="3", csv=str(_write(tmp_path, problems, 20)))
    identities = list(suite.identities(1))
    assert sorted(identity.name for identity in identities) == [f"d3-row{place}" for place in range(6)]
    for identity in identities:
        parameters = problems[int(identity.name.removeprefix("d3-row"))]
        assert dict(identity.parameters) == parameters
        value = suite.build(identity).evaluate([1, 2, 3])  # type: ignore[attr-defined]
        assert value == pytest.approx(_many_affine(parameters)([1, 2, 3]), rel=1e-10)
    assert [i.name for i in suite.identities(1)] == [i.name for i in identities]
    assert [i.name for i in suite.identities(2)] != [i.name for i in identities]


def test_the_contract_holds_for_published_files(tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    check_suite(module, "ma-bbob", {"dimension": 3, "csv": str(_write(tmp_path, _drawn(4, 3), 3))})


def test_a_worker_without_the_files_can_build(tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    identity = next(_suite(dimension=3, csv=str(_write(tmp_path, _drawn(2, 3), 3))).identities(0))
    assert _suite(dimension=3, csv="/nowhere").build(identity).identity == identity


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("weights.csv", lambda text: text[:0], r"weights\.csv: expected rows below the header, got none"),
        ("weights.csv", lambda text: text.replace("\n1,", "\n0,"), r"weights\.csv, line 3: there are two rows '0'"),
        ("weights.csv", lambda text: text.replace("\n1,", "\n1,-"), "weights must be 24 numbers of at least 0"),
        (
            "iids.csv",
            lambda text: text.replace("\n1,", "\n1,7,"),
            r"iids\.csv, line 3: expected a label and 24 numbers, got 25",
        ),
        ("iids.csv", lambda text: text.replace("\n1,", "\n1,0.5"), r"line 3 of the files: .*24 whole numbers"),
        ("iids.csv", lambda text: text.replace("\n1,", "\n1,-"), r"line 3 of the files: .*between 1 and 200000"),
        ("iids.csv", lambda text: text.replace("\n1,", "\n5,"), r"iids\.csv: its rows are not those of weights\.csv"),
        ("opt_locs.csv", lambda text: text.replace("\n1,", "\n1,x"), r"opt_locs\.csv, line 3: expected numbers"),
        ("opt_locs.csv", lambda text: re.sub("\n1,[^,]*", "\n1,nan", text), "xopt must be at least 2 finite numbers"),
        ("opt_locs.csv", lambda text: text.replace("\n1,", "\n1,7,"), "expected 4 columns as in the header, got 5"),
        (
            "opt_locs.csv",
            lambda text: text[:0] + ",0\n0,1.5\n1,1.5\n2,1.5\n",
            "expected an optimum in 3 dimensions, got 1",
        ),
    ],
)
def test_damaged_files_are_named_with_the_line(tmp_path: Path, file: str, change: Any, message: str) -> None:
    pytest.importorskip("ioh")
    _write(tmp_path, _drawn(3, 3), 3)
    text = (tmp_path / file).read_bytes().decode().replace("\r\n", "\n")
    assert change(text) != text
    (tmp_path / file).write_text(change(text))
    with pytest.raises(SourceError, match=message):
        list(_suite(dimension=3, csv=str(tmp_path)).identities(0))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("ioh")
    _write(tmp_path, _drawn(3, 3), 3)
    (tmp_path / "iids.csv").unlink()
    with pytest.raises(
        SourceError, match=r"iids\.csv cannot be read .* The option csv is the folder with weights\.csv"
    ):
        list(_suite(dimension=3, csv=str(tmp_path)).identities(0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dim": 5}, r"The suite 'ma-bbob' has no option 'dim'\. It takes dimension, csv\."),
        ({"dimension": 1}, "dimension must be a whole number of at least 2"),
        ({"dimension": "five"}, "dimension must be a whole number of at least 2"),
        ({"csv": 3}, "csv must be the folder with"),
        ({"csv": ""}, "csv must be the folder with"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        _suite(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": None}, "has no 'weights'; it was not drawn by 'ma-bbob'"),
        ({"weights": [0.0] * 24}, "not all 0"),
        ({"weights": [1.0]}, "24 numbers"),
        ({"instances": [1] * 23}, "24 whole numbers"),
        ({"instances": [0] * 24}, "between 1 and 200000"),
        ({"xopt": [1.0]}, "at least 2 finite numbers"),
        ({"xopt": "here"}, "expected numbers"),
    ],
)
def test_an_identity_of_somebody_else_is_refused(change: dict[str, object], message: str) -> None:
    parameters = {key: value for key, value in {**_drawn(1, 3)[0], **change}.items() if value is not None}
    with pytest.raises(InvalidInputError, match=message):
        MaBbobSuite(3).build(Identity("foreign", parameters))


def test_names_of_others_are_left_to_them() -> None:
    assert module.polarbear_suite("bbob", {}) is None


def test_without_ioh_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ioh", None)
    with pytest.raises(MissingExtraError, match=r"The suite 'ma-bbob' needs 'ioh'.*polarbear-plugins\[ioh\]"):
        _suite()
    with pytest.raises(MissingExtraError):
        MaBbobSuite(3).build(Identity("p", _drawn(1, 3)[0]))
