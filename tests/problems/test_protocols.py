from __future__ import annotations

import copy
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from polarbear_plugins import Trajectory
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.given import (
    FunctionAlgorithm,
    GivenProblem,
    GivenSuite,
    SampledSuite,
    as_portfolio,
    as_suite,
)
from polarbear_plugins.problems.protocols import Algorithm, BoxProblem, Identity, Problem, SpaceProblem, Suite
from polarbear_plugins.problems.spaces import Configuration, ConfigurationSpace, Float

NAMES = st.text(min_size=1).filter(str.strip)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
IDENTITIES = st.builds(Identity, NAMES, st.dictionaries(st.text(), JSON, max_size=3))


class Bowl:
    def __init__(self, name: str = "bowl") -> None:
        self.identity = Identity(name)
        self.lower, self.upper = np.zeros(2), np.ones(2)

    def evaluate(self, x: np.ndarray) -> float:
        return float(np.sum(np.square(x)))


class Line:
    identity = Identity("line")
    space = ConfigurationSpace({"x": Float(0.0, 1.0)})

    def evaluate(self, configuration: Configuration) -> float:
        return float(configuration["x"])


def stand_still(problem: object, horizon: float, seed: int) -> Trajectory:  # noqa: ARG001 - what a run takes
    return Trajectory(algorithm="?", instance="?", times=[1], best=[2.0], horizon=horizon)


def first_names(suite: Suite, seed: int, count: int = 20) -> list[str]:
    return [identity.name for identity in itertools.islice(suite.identities(seed), count)]


@given(IDENTITIES)
def test_an_identity_survives_json(identity: Identity) -> None:
    again = Identity.from_json(identity.to_json())
    assert again == identity
    assert hash(again) == hash(identity)
    assert again.to_json() == identity.to_json()


@given(IDENTITIES)
def test_an_identity_survives_pickling_and_copying(identity: Identity) -> None:
    assert pickle.loads(pickle.dumps(identity)) == identity  # noqa: S301 - our own
    assert copy.deepcopy(identity) == identity


def test_identities_differ_by_name_and_by_parameters() -> None:
    assert len({Identity("a"), Identity("b"), Identity("a", {"x": 1}), Identity("a")}) == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"bytes", np.int64(3), np.zeros(2), object()])
def test_an_identity_refuses_what_is_not_json(value: object) -> None:
    with pytest.raises(InvalidInputError, match="identity 'f1': parameters must be JSON data"):
        Identity("f1", {"outer": [value]})


@pytest.mark.parametrize("parameters", [None, 3, [1, 2]])
def test_an_identity_refuses_parameters_without_names(parameters: Any) -> None:
    with pytest.raises(InvalidInputError, match="identity 'f1': parameters must be JSON data"):
        Identity("f1", parameters)


@pytest.mark.parametrize("name", ["", "  ", None, 1.5, True])
def test_an_identity_refuses_what_is_no_name(name: Any) -> None:
    with pytest.raises(InvalidInputError, match="identity of a problem"):
        Identity(name)


@pytest.mark.parametrize(
    "text",
    ["", "{", "3", "[1]", '"f1"', '{"name": "f1"}', '{"parameters": {}}', '{"name": "f1", "parameters": {"x": NaN}}'],
)
def test_text_that_is_no_identity_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="Not the identity of a problem"):
        Identity.from_json(text)


def test_an_identity_does_not_change_with_the_mapping_it_was_made_of() -> None:
    given = {"center": [1.0, 2.0]}
    identity = Identity("f1", given)
    given["center"].append(3.0)
    given["more"] = []
    assert identity == Identity("f1", {"center": [1.0, 2.0]})


def test_the_parameters_of_an_identity_cannot_be_set() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        Identity("f1", {"x": 1}).parameters["x"] = 2


def test_a_suite_is_left_as_it_is() -> None:
    suite = GivenSuite([1, 2])
    assert as_suite(suite) is suite


@given(st.lists(st.integers() | NAMES, min_size=1, unique_by=str), st.integers(0, 2**64))
def test_a_list_is_drawn_without_replacement(problems: list[int | str], seed: int) -> None:
    assert sorted(identity.name for identity in as_suite(problems).identities(seed)) == sorted(map(str, problems))


@pytest.mark.parametrize("problems", [list(range(20)), lambda rng: rng.random()])
def test_the_same_seed_draws_the_same_problems_in_the_same_order(problems: Any) -> None:
    assert first_names(as_suite(problems), 7) == first_names(as_suite(problems), 7)
    assert first_names(as_suite(problems), 7) != first_names(as_suite(problems), 8)


def test_the_problems_of_a_list_are_built_as_they_were_given() -> None:
    path, thing, bowl = "easy.txt", {"a": 1}, Bowl()
    suite = as_suite([path, thing, bowl])
    built = {identity.name: suite.build(identity) for identity in suite.identities(0)}
    assert set(built) == {"easy.txt", "1", "bowl"}
    assert built["easy.txt"].value == path
    assert built["1"].value is thing
    assert built["bowl"] is bowl


def test_an_object_with_a_name_lends_it_to_its_problem() -> None:
    line = FunctionAlgorithm("rastrigin", stand_still)  # any object with a name
    assert first_names(as_suite([line]), 0) == ["rastrigin"]


def test_problems_of_the_same_name_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="Two problems in the list are called '1'; names must differ"):
        as_suite([1, "1"])


def test_an_empty_list_of_problems_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="list of problems is empty"):
        as_suite([])


def test_a_list_does_not_build_a_problem_it_does_not_have() -> None:
    with pytest.raises(InvalidInputError, match="no problem called 'f9'"):
        as_suite(["f1"]).build(Identity("f9"))


@pytest.mark.parametrize("nonsense", [42, None, "ma-bbob", b"ma-bbob", {"f1": 1}, np.zeros(3)])
def test_what_is_no_suite_is_refused_with_what_one_is(nonsense: Any) -> None:
    with pytest.raises(InvalidInputError, match="a registered name, a list of problems or a function rng -> problem"):
        as_suite(nonsense)


@given(st.integers(0, 2**64))
def test_a_sampled_suite_builds_equal_problems_again_from_their_identities(seed: int) -> None:
    def centre(rng: np.random.Generator) -> list[float]:
        return rng.uniform(size=3).tolist()

    drawn = list(itertools.islice(as_suite(centre).identities(seed), 4))
    built = [as_suite(centre).build(identity).value for identity in drawn]
    again = [as_suite(centre).build(Identity.from_json(identity.to_json())).value for identity in reversed(drawn)]
    assert again[::-1] == built
    assert len({tuple(value) for value in built}) == len(built)


def test_a_sampled_suite_draws_other_problems_from_another_seed() -> None:
    suite = as_suite(lambda rng: rng.random())
    values = [suite.build(next(suite.identities(seed))).value for seed in range(10)]
    assert len(set(values)) == 10


def test_a_sampled_suite_is_called_like_its_function() -> None:
    def rotated_ellipsoids(rng: np.random.Generator) -> float:
        return rng.random()

    assert as_suite(rotated_ellipsoids).name == "rotated_ellipsoids"
    assert SampledSuite(rotated_ellipsoids, name="mine").name == "mine"


def test_a_sampled_suite_refuses_an_identity_of_another_suite() -> None:
    with pytest.raises(InvalidInputError, match="identity 'f1' has no 'seed'; it was not drawn from this suite"):
        as_suite(lambda rng: rng.random()).build(Identity("f1", {"index": 3}))


def test_a_sampled_suite_refuses_an_identity_whose_seed_is_no_number() -> None:
    with pytest.raises(InvalidInputError, match="identity 'f1': seed must be a whole number of at least 0, got 'x'"):
        as_suite(lambda rng: rng.random()).build(Identity("f1", {"seed": "x", "index": 3}))


@pytest.mark.parametrize("problems", [[1, 2], lambda rng: rng.random()])
def test_a_negative_seed_is_refused(problems: Any) -> None:
    suite = as_suite(problems)
    with pytest.raises(InvalidInputError, match="seed"):
        suite.build(next(suite.identities(-1)))


def test_a_portfolio_of_functions_by_name_keeps_their_order() -> None:
    portfolio = as_portfolio({"b": stand_still, "a": stand_still, 1: stand_still})
    assert [algorithm.name for algorithm in portfolio] == ["b", "a", "1"]


def test_a_portfolio_of_algorithms_holds_them_as_they_are() -> None:
    algorithm = FunctionAlgorithm("a", stand_still)
    assert as_portfolio([algorithm]) == (algorithm,)
    assert as_portfolio(iter([algorithm]))[0] is algorithm


@pytest.mark.parametrize(
    ("nonsense", "message"),
    [
        ([stand_still], "is not an algorithm: it needs a name and run"),
        (["modcma-ssa"], "'modcma-ssa' is not an algorithm"),
        ({"mine": 3}, "The algorithm 'mine' must be a function"),
        ({"": stand_still}, "name of an algorithm: the name is empty"),
        ({None: stand_still}, "name of an algorithm: expected a name"),
    ],
)
def test_what_is_no_portfolio_is_refused(nonsense: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        as_portfolio(nonsense)


@pytest.mark.parametrize("nonsense", [42, None, stand_still])
def test_what_is_no_collection_of_algorithms_is_refused(nonsense: Any) -> None:
    with pytest.raises(InvalidInputError, match="algorithm"):
        as_portfolio(nonsense)


@pytest.mark.parametrize(
    "algorithms",
    [{1: stand_still, "1": stand_still}, [FunctionAlgorithm("1", stand_still), FunctionAlgorithm("1", print)]],
)
def test_two_algorithms_of_the_same_name_are_refused(algorithms: Any) -> None:
    with pytest.raises(InvalidInputError, match="algorithms of the portfolio: '1' is named more than once"):
        as_portfolio(algorithms)


def test_a_function_as_an_algorithm_labels_its_trajectory() -> None:
    run = FunctionAlgorithm("lazy", stand_still).run(GivenProblem(Identity("f1"), None), 50, 3)
    assert run == Trajectory(algorithm="lazy", instance="f1", seed=3, times=[1], best=[2.0], horizon=50)


def recorder(calls: list[tuple[object, float, int]]) -> Callable[[object, float, int], Trajectory]:
    def run(problem: object, horizon: float, seed: int) -> Trajectory:
        calls.append((problem, horizon, seed))
        return stand_still(problem, horizon, seed)

    return run


def test_a_function_receives_the_plain_object_of_the_user_unwrapped() -> None:
    calls: list[tuple[object, float, int]] = []
    thing = object()
    [identity] = as_suite([thing]).identities(0)
    FunctionAlgorithm("lazy", recorder(calls)).run(as_suite([thing]).build(identity), 50.0, 3)
    assert calls == [(thing, 50.0, 3)]


def test_a_function_receives_a_problem_of_a_suite_as_it_is() -> None:
    calls: list[tuple[object, float, int]] = []
    bowl = Bowl()
    run = FunctionAlgorithm("lazy", recorder(calls)).run(bowl, 50.0, 3)
    assert calls == [(bowl, 50.0, 3)]
    assert run.instance == "bowl"


def test_a_function_that_returns_no_trajectory_is_named() -> None:
    with pytest.raises(InvalidInputError, match="'mine' must return a Trajectory, got list"):
        FunctionAlgorithm("mine", lambda *_: [1.0]).run(Bowl(), 50, 3)


@pytest.mark.parametrize(
    ("thing", "protocol"),
    [
        (GivenProblem(Identity("f1"), 1), Problem),
        (Bowl(), Problem),
        (Bowl(), BoxProblem),
        (Line(), Problem),
        (Line(), SpaceProblem),
        (GivenSuite([1]), Suite),
        (SampledSuite(np.random.Generator.random), Suite),
        (FunctionAlgorithm("a", stand_still), Algorithm),
    ],
)
def test_protocols_are_satisfied(thing: object, protocol: type) -> None:
    assert isinstance(thing, protocol)


@pytest.mark.parametrize(
    ("thing", "protocol"),
    [
        (GivenProblem(Identity("f1"), 1), BoxProblem),
        (Bowl(), SpaceProblem),
        (Line(), BoxProblem),
        (object(), Problem),
        ([1, 2], Suite),
        (stand_still, Algorithm),
        (GivenSuite([1]), Algorithm),
    ],
)
def test_protocols_are_not_satisfied_by_something_else(thing: object, protocol: type) -> None:
    assert not isinstance(thing, protocol)


# Groups


@given(IDENTITIES, NAMES, st.booleans())
def test_an_identity_keeps_its_group_in_json_pickles_and_copies(identity: Identity, group: str, fixed: bool) -> None:
    grouped = Identity(identity.name, identity.parameters, group, fixed)
    for again in (Identity.from_json(grouped.to_json()), copy.deepcopy(grouped)):
        assert again == grouped != identity
        assert (again.group, again.fixed_group) == (group, fixed)


def test_the_json_of_an_identity_without_a_group_does_not_mention_one() -> None:
    assert Identity("f1", {"x": 1}).to_json() == '{"name": "f1", "parameters": {"x": 1}}'


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('"fixed_group": true', "identity 'f1': fixed_group=True says something about its group"),
        ('"group": [1]', "identity 'f1': group: expected a name"),
        ('"group": "g", "fixed_group": "yes"', "identity 'f1': fixed_group: expected true or false, got 'yes'"),
    ],
)
def test_a_group_without_meaning_is_refused(more: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Identity.from_json('{"name": "f1", "parameters": {}, ' + more + "}")


@pytest.mark.parametrize(
    ("parameters", "dimension"),
    [
        ({"dimension": 5}, 5),
        ({"dimension": 5, "xopt": [1.0, 2.0]}, 5),
        ({"xopt": [1.0, 2.0]}, 2),
        ({"dimension": True}, None),
        ({"dimension": 0}, None),
        ({"dimension": "5"}, None),
        ({"dimension": 2.0}, None),
        ({"xopt": "12"}, None),
        ({"xopt": []}, None),
        ({}, None),
    ],
)
def test_an_identity_tells_its_dimension_if_it_knows_it(parameters: dict[str, object], dimension: int | None) -> None:
    identity = Identity("a", parameters, group="g", fixed_group=True)
    assert identity.dimension == dimension
    run = Trajectory(algorithm="x", instance="a", times=[1], best=[2.0], end="done")
    labelled = identity.label(run)
    assert (labelled.dimension, labelled.group, labelled.fixed_group, labelled.end) == (dimension, "g", True, "done")
    assert labelled.best is run.best
