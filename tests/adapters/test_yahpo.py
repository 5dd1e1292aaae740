from __future__ import annotations

import json
import math
import pickle
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.errors import InvalidInputError, PolarBearError, PolarBearWarning, SourceError
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import ChargedProblem, Identity, ObjectivesProblem, SpaceProblem
from polarbear_plugins.testing import check_suite

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
yahpo = pytest.importorskip("polarbear_plugins.adapters.yahpo")
from polarbear_plugins.adapters.yahpo.files import names_near, read_space, read_statistics  # noqa: E402
from polarbear_plugins.adapters.yahpo.lists import LISTS  # noqa: E402
from polarbear_plugins.adapters.yahpo.problems import budget_of  # noqa: E402

REAL = ("lcbench", "iaml_glmnet", "rbv2_rpart", "rbv2_xgboost")
LINEAR = {"cost": 1.0, "kernel": "linear", "num.impute.selected.cpo": "impute.mean", "tolerance": 0.01}
FULL = {"trainsize": 1.0, "repl": 10}


@pytest.fixture
def tiny(tiny_yahpo: Path) -> Path:
    return tiny_yahpo


@pytest.fixture
def own(tiny: Path, tmp_path: Path) -> Path:
    """A copy of it that may be damaged."""
    return Path(shutil.copytree(tiny, tmp_path / "own"))


@pytest.fixture
def real(shared: Path) -> Path:
    return shared / "yahpo"


def suite(name: str, **options: object) -> Any:
    plugins = Plugins()
    plugins.register(yahpo, "yahpo")
    return plugins.suite(name, **options)


def problem(name: str, **options: object) -> Any:
    drawn = suite(name, **options)
    return drawn.build(next(drawn.identities(0)))


# --- values


@pytest.mark.parametrize("scenario", REAL)
@pytest.mark.parametrize("batched", [True, False], ids=["batched", "single"])
def test_values_are_those_of_yahpo_gym(real: Path, scenario: str, batched: bool) -> None:
    reference = json.loads((real / "yahpo_reference_values.json").read_text())[scenario]
    surrogate = yahpo.load_surrogate(scenario, real)
    expected = np.array([[row[target] for target in surrogate.targets] for row in reference["y"]])
    configurations = reference["configs"]
    assert len(configurations) == 300
    if batched:
        found = surrogate.predict_complete(configurations)
    else:
        found = np.concatenate([surrogate.predict_complete([each]) for each in configurations])
    assert (np.abs(found - expected) <= 1e-5 * np.ptp(expected, axis=0)).all()


@pytest.mark.parametrize("scenario", REAL)
def test_a_problem_has_the_values_of_its_surrogate_with_the_sign_turned(real: Path, scenario: str) -> None:
    surrogate = yahpo.load_surrogate(scenario, real)
    target = surrogate.description.target
    one = problem(f"yahpo:{scenario}:{surrogate.instances[1]}", data=real)
    drawn = [one.space.sample(np.random.default_rng(seed)) for seed in range(20)]
    column = surrogate.description.instance_column
    full = {name: parameter.upper for name, parameter in surrogate.fidelities.items()}
    complete = [{**each, column: surrogate.instances[1], **full} for each in drawn]
    values = surrogate.predict_complete(complete)[:, surrogate.targets.index(target)]
    sign = -1 if target in ("acc", "val_accuracy") else 1
    np.testing.assert_allclose([one.evaluate(each) for each in drawn], sign * values, rtol=1e-4)
    np.testing.assert_array_equal(one.evaluate_many(drawn), sign * values.astype(float))


def test_the_tiny_surrogate_is_the_function_it_says(tiny: Path) -> None:
    model = onnx.load(tiny / "rbv2_svm" / "model.onnx")
    constants = {entry.name: onnx.numpy_helper.to_array(entry) for entry in model.graph.initializer}
    surrogate = yahpo.load_surrogate("rbv2_svm", tiny)
    found = surrogate.predict([LINEAR], "102", FULL)[0]
    # An inactive number is 0, an inactive category has the code of #na#; 102 is the second instance.
    numbers = np.array([1.0, 0.0, 0.01, 0.0, 1.0, 10.0])
    away = (numbers - constants["lower"]) / constants["span"] - constants["optima"][2]
    kernel = {"#na#": 0, "linear": 1, "polynomial": 2, "radial": 3}["linear"]
    imputed = {"#na#": 0, "impute.hist": 1, "impute.mean": 2, "impute.median": 3}["impute.mean"]
    total = away**2 @ constants["weights"] + constants["effects1"][kernel] + constants["effects2"][imputed]
    np.testing.assert_allclose(found, constants["sign"] * total + constants["offset"], rtol=1e-4)


def test_an_instance_may_be_given_as_the_number_it_is_called(tiny: Path) -> None:
    surrogate = yahpo.load_surrogate("rbv2_svm", tiny)
    expected = surrogate.predict([LINEAR], "102", FULL)
    for number in (102, np.int64(102)):
        np.testing.assert_array_equal(surrogate.predict([LINEAR], number, FULL), expected)
    with pytest.raises(InvalidInputError, match=r"no instance '104'. Did you mean 103"):
        surrogate.predict([LINEAR], 104, FULL)


def test_numbers_near_a_number_are_the_closest_ones(real: Path) -> None:
    known = yahpo.load_surrogate("rbv2_rpart", real).instances
    near = names_near("13", list(known)).removeprefix("Did you mean ").removesuffix("?").split(" or ")
    furthest = max(abs(int(name) - 13) for name in near)
    assert all(abs(int(name) - 13) >= furthest for name in known if name not in near)


# --- descriptions


def test_the_descriptions_are_those_of_yahpo_gym_but_for_f1(real: Path) -> None:
    meta = json.loads((real / "yahpo_scenario_meta.json").read_text())
    assert set(meta) == set(yahpo.SCENARIOS)
    for scenario, entry in meta.items():
        known = yahpo.SCENARIOS[scenario]
        assert list(known.numbers) == entry["cont_names"]
        assert list(known.categories) == entry["cat_names"]
        assert list(known.targets) == entry["y_names"]
        assert list(known.fidelities) == entry["fidelity_params"]
        assert (known.runtime, known.instance_column) == (entry["runtime_name"], entry["instance_names"])
        wrong = [
            target
            for target, minimize in zip(known.targets, entry["y_minimize"], strict=True)
            if (target not in known.maximized) != minimize
        ]
        assert wrong == (["f1"] if scenario.startswith("rbv2") else [])


# What the paper's Tables 2 to 4 say: dimension, instances, and the budget where a list has one.
DIMENSIONS = {
    "rbv2_aknn": (6, 118, None),
    "rbv2_glmnet": (3, 115, 90),
    "rbv2_ranger": (8, 119, 134),
    "rbv2_xgboost": (14, 119, 170),
    "rbv2_rpart": (5, 117, 110),
    "rbv2_super": (38, 103, 267),
    "nb301": (34, 1, 250),
    "lcbench": (7, 34, 126),
    "iaml_super": (28, 4, 232),
    "iaml_glmnet": (2, 4, 77),
    "iaml_ranger": (8, 4, 134),
    "iaml_xgboost": (13, 4, 165),
}


@pytest.mark.parametrize("scenario", DIMENSIONS)
def test_spaces_and_budgets_are_those_of_the_paper(real: Path, scenario: str) -> None:
    dimension, instances, budget = DIMENSIONS[scenario]
    surrogate = yahpo.load_surrogate(scenario, real)
    assert len(surrogate.space.parameters) == dimension
    assert len(surrogate.instances) == instances
    if budget is not None:
        assert budget_of(surrogate) == budget


def test_every_entry_of_the_lists_has_a_budget_of_the_paper() -> None:
    assert {scenario for entries in LISTS.values() for scenario, _, _ in entries} <= {
        scenario for scenario, (_, _, budget) in DIMENSIONS.items() if budget is not None
    }


@pytest.mark.parametrize("scenario", sorted(yahpo.SCENARIOS))
def test_every_scenario_encodes_what_its_space_draws(real: Path, scenario: str) -> None:
    surrogate = yahpo.load_surrogate(scenario, real)
    full = {name: parameter.upper for name, parameter in surrogate.fidelities.items()}
    description = surrogate.description
    rng = np.random.default_rng(3)
    drawn = [surrogate.space.sample(rng) for _ in range(30)]
    codes, numbers = surrogate.encode(drawn, surrogate.instances[0], full)
    for row, configuration in enumerate(drawn):
        for name, code in zip(description.categories, codes[row], strict=True):
            # Only what counts has a code other than that of #na#.
            assert (code != 0) == (name in configuration or name == description.instance_column)
        expected = [{**configuration, **full}.get(name, 0.0) for name in description.numbers]
        np.testing.assert_array_equal(numbers[row], np.array(expected, dtype=np.float32))


def test_the_lists_are_those_of_the_data(real: Path) -> None:
    for name, file in (("yahpo-so", "single.json"), ("yahpo-mo", "multi.json")):
        entries = json.loads((real / "benchmark_suites" / "v1.0" / file).read_text())
        wanted = {(entry["scenario"], entry["instance"], tuple(entry["target"])) for entry in entries}
        assert set(LISTS[name]) == wanted
        assert len(LISTS[name]) == len(entries)


# --- suites


@pytest.mark.parametrize("name", ["yahpo:lcbench", "yahpo:rbv2_svm:101:103"])
def test_the_suite_keeps_its_promises(tiny: Path, name: str) -> None:
    check_suite(yahpo, name, {"data": str(tiny)})


def test_instances_may_be_chosen_and_are_drawn_once(tiny: Path) -> None:
    some = suite("yahpo:lcbench:103:101", data=tiny)
    names = [identity.name for identity in some.identities(4)]
    assert sorted(names) == ["lcbench-101", "lcbench-103"]
    everything = suite("yahpo:lcbench", data=tiny)
    orders = {tuple(identity.name for identity in everything.identities(seed)) for seed in range(20)}
    assert len(orders) > 1
    assert all(sorted(order) == ["lcbench-101", "lcbench-102", "lcbench-103"] for order in orders)


def test_the_folder_may_come_from_the_environment(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YAHPO_DATA", str(tiny))
    assert suite("yahpo:lcbench").folder == tiny


def test_without_data_the_message_says_what_to_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("YAHPO_DATA", raising=False)
    for options in ({}, {"data": tmp_path / "nowhere"}):
        with pytest.raises(SourceError, match=r"github.com/slds-lmu/yahpo_data.*--data.*YAHPO_DATA"):
            suite("yahpo:lcbench", **options)


def test_absent_entries_of_a_list_are_named(tiny: Path) -> None:
    named = pytest.warns(PolarBearWarning, match=r"17 of them have no surrogate in .*nb301-CIFAR10.*rbv2_xgboost-40499")
    with named, pytest.raises(InvalidInputError, match="no instance"):  # the tiny one has others
        suite("yahpo-so", data=tiny)


def test_a_list_without_any_surrogate_is_refused(own: Path) -> None:
    shutil.rmtree(own / "lcbench")
    with pytest.raises(SourceError, match="no surrogate of the suite 'yahpo-so'"):
        suite("yahpo-so", data=own)


def test_the_lists_run_on_what_is_there(real: Path) -> None:
    with pytest.warns(PolarBearWarning, match="11 of them have no surrogate"):
        single = suite("yahpo-so", data=real)
    assert (len(single.entries), len(single.absent), single.budget) == (9, 11, 100)
    assert {entry[0] for entry in single.absent} == {"nb301", "rbv2_glmnet", "rbv2_ranger", "rbv2_super"}
    with pytest.warns(PolarBearWarning, match="14 of them have no surrogate"):
        several = suite("yahpo-mo", data=real)
    names = [identity.name for identity in several.identities(1)]
    assert len(set(names)) == len(names) == 11
    for identity in several.identities(1):
        assert isinstance(several.build(identity), ObjectivesProblem)


def test_sessions_are_shared_and_surrogates_travel_by_name(tiny: Path) -> None:
    assert yahpo.load_surrogate("lcbench", tiny) is yahpo.load_surrogate("lcbench", str(tiny))
    kept = suite("yahpo:lcbench", data=tiny)
    again = pickle.loads(pickle.dumps(kept))  # noqa: S301 - our own
    identity = next(kept.identities(1))
    drawn = kept.build(identity).space.sample(np.random.default_rng(1))
    assert again.build(identity).evaluate(drawn) == kept.build(identity).evaluate(drawn)


# --- fidelities and costs


def test_costs_are_fractions_of_full_evaluations(tiny: Path) -> None:
    one = problem("yahpo:lcbench:101", data=tiny)
    assert isinstance(one, ChargedProblem)
    assert isinstance(one, SpaceProblem)
    assert one.least_fidelity == 1 / 52
    drawn = one.space.sample(np.random.default_rng(1))
    assert one.measure(drawn) == (one.evaluate(drawn), 1.0)
    surrogate = yahpo.load_surrogate("lcbench", tiny)
    for epochs in (1, 17, 51):
        value, cost = one.measure(drawn, epochs / 52)
        assert cost == epochs / 52
        assert value == -surrogate.predict([drawn], "101", {"epoch": epochs})[0, 1]
    # 52 / 27 rounds to 2 epochs, which is what is paid.
    assert one.measure(drawn, 1 / 27)[1] == 2 / 52


def test_repl_stays_at_its_upper_bound(tiny: Path) -> None:
    one = problem("yahpo:rbv2_svm:101", data=tiny)
    surrogate = yahpo.load_surrogate("rbv2_svm", tiny)
    value, cost = one.measure(LINEAR, 0.25)
    assert cost == 0.25
    assert value == -surrogate.predict([LINEAR], "101", {"trainsize": 0.25, "repl": 10})[0, 0]


def test_time_may_be_percent_or_predicted_seconds(tiny: Path) -> None:
    percent = problem("yahpo:lcbench:101", data=tiny, time="percent")
    drawn = percent.space.sample(np.random.default_rng(1))
    assert percent.measure(drawn)[1] == pytest.approx(100 / 126)
    seconds = problem("yahpo:lcbench:101", data=tiny, time="seconds")
    surrogate = yahpo.load_surrogate("lcbench", tiny)
    for epochs in (5, 52):
        predicted = surrogate.predict([drawn], "101", {"epoch": epochs})[0, 0]
        assert seconds.measure(drawn, epochs / 52)[1] == predicted
    assert [suite("yahpo:lcbench", data=tiny, time=axis).budget for axis in ("evaluations", "percent", "seconds")] == [
        126,
        100,
        None,
    ]


def test_several_targets_are_scaled_between_their_bounds(tiny: Path) -> None:
    both = problem("yahpo:lcbench:101", data=tiny, target="val_accuracy,val_cross_entropy")
    assert isinstance(both, ObjectivesProblem)
    assert not isinstance(both, SpaceProblem)
    assert both.objectives == ("val_accuracy", "val_cross_entropy")
    drawn = both.space.sample(np.random.default_rng(1))
    values = yahpo.load_surrogate("lcbench", tiny).predict([drawn], "101", {"epoch": 52})[0]
    found, cost = both.measure_objectives(drawn)
    assert cost == 1
    np.testing.assert_allclose(found, [(16 - values[1]) / 16, values[2] / 16], rtol=1e-6)


def test_bounds_of_real_targets_hold_what_random_configurations_have(real: Path) -> None:
    both = problem("yahpo:lcbench:189873", data=real, target="val_accuracy,val_cross_entropy")
    rng = np.random.default_rng(1)
    found = np.array([both.measure_objectives(both.space.sample(rng))[0] for _ in range(300)])
    assert found.min() > -0.05
    assert found.max() < 1.05
    # Both are minimised now: who is more accurate has less cross entropy.
    assert np.corrcoef(found.T)[0, 1] > 0.5


def test_without_statistics_there_is_no_hypervolume(own: Path) -> None:
    shutil.rmtree(own / "global_statistics")
    assert math.isfinite(problem("yahpo:lcbench:101", data=own, time="seconds").measure(LC)[1])
    with pytest.raises(SourceError, match="bounds of 'val_accuracy'"):
        suite("yahpo:lcbench:101", data=own, target="val_accuracy,time")


LC = {
    "batch_size": 64,
    "learning_rate": 0.01,
    "max_dropout": 0.5,
    "max_units": 100,
    "momentum": 0.5,
    "num_layers": 3,
    "weight_decay": 0.01,
}


# --- conditions


@given(seed=st.integers(0, 2**31))
def test_only_what_counts_reaches_the_surrogate(seed: int, tiny_yahpo: Path) -> None:
    surrogate = yahpo.load_surrogate("rbv2_svm", tiny_yahpo)
    drawn = surrogate.space.sample(np.random.default_rng(seed))
    spare = {"degree": 3, "gamma": 7.0}
    inactive = {name: value for name, value in spare.items() if name not in drawn}
    assert inactive  # no kernel has both
    clean = surrogate.predict([drawn], "101", FULL)
    np.testing.assert_array_equal(surrogate.predict([{**drawn, **inactive}], "101", FULL, "drop"), clean)
    for name, value in inactive.items():
        with pytest.raises(InvalidInputError, match=rf"rbv2_svm: .*{name}.* is set, but is active only if kernel is"):
            surrogate.predict([{**drawn, name: value}], "101", FULL)


def test_dropping_is_an_option_of_the_suite(tiny: Path) -> None:
    messy = {**LINEAR, "gamma": 1.0}
    cleaned = problem("yahpo:rbv2_svm:101", data=tiny, inactive="drop")
    assert cleaned.evaluate(messy) == cleaned.evaluate(LINEAR)
    with pytest.raises(InvalidInputError, match="gamma"):
        problem("yahpo:rbv2_svm:101", data=tiny).evaluate(messy)
    with pytest.raises(InvalidInputError, match="no parameter 'gama'"):
        cleaned.evaluate({**LINEAR, "gama": 1.0})


def test_conditions_under_conditions_hold_together(real: Path) -> None:
    # In iaml_super dart's parameters need both the learner and the booster: AND.
    space = read_space(real, "iaml_super")
    needs = {condition.parent for condition in space.conditions if condition.child == "xgboost.rate_drop"}
    assert needs == {"learner", "xgboost.booster"}
    surrogate = yahpo.load_surrogate("iaml_super", real)
    rng = np.random.default_rng(1)
    seen = {"xgboost.rate_drop" in surrogate.space.sample(rng) for _ in range(200)}
    assert seen == {True, False}


# --- bad input


def _cut(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def _edit(path: Path, change: Callable[[Any], None]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("yahpo:lcbnech", r"no scenario 'lcbnech'. Did you mean lcbench"),
        ("yahpo:what", r"no scenario 'what'. There are lcbench"),
        ("yahpo:lcbench:10", r"no instance '10'. Did you mean 101 or 102 or 103\?"),
        ("yahpo:lcbench:1022", r"no instance '1022'. Did you mean 103 or 102 or 101\?"),
        ("yahpo:lcbench:xyz", r"no instance 'xyz'. There are 101, 102, 103"),
        ("yahpo:", r"needs a scenario"),
        ("yahpo", r"needs a scenario"),
    ],
)
def test_a_wrong_name_is_refused_with_the_near_ones(tiny: Path, name: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        suite(name, data=tiny)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "val_acuracy"}, "no target 'val_acuracy'. Did you mean val_accuracy"),
        ({"target": "time,time"}, "'time' is named more than once"),
        ({"target": 3}, "names of targets"),
        ({"time": "hours"}, 'expected "evaluations", "percent" or "seconds", got'),
        ({"inactive": "ignore"}, 'expected "refuse" or "drop", got'),
        ({"dimension": 3}, "no option 'dimension'"),
    ],
)
def test_wrong_options_are_refused(tiny: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        suite("yahpo:lcbench", data=tiny, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 8}, r"'batch_size' is 8; expected Integer\(lower=16, upper=512"),
        ({"batch_size": 513}, "'batch_size' is 513"),
        ({"momentum": 1.5}, "'momentum' is 1.5"),
        ({"batch_size": 64.5}, "'batch_size' is 64.5"),
        ({"batch_size": True}, "'batch_size' is True"),
        ({"momentum": math.nan}, "'momentum' is nan"),
        ({"momentum": "0.5"}, "'momentum' is '0.5'"),
        ({"momentum": None}, "'momentum' is None"),
        ({"epoch": 3}, "no parameter 'epoch'"),
    ],
)
def test_a_value_out_of_range_is_refused(tiny: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"lcbench: .*{message}"):
        problem("yahpo:lcbench:101", data=tiny).evaluate({**LC, **change})


def test_a_missing_parameter_and_a_wrong_choice_are_refused(tiny: Path) -> None:
    one = problem("yahpo:rbv2_svm:101", data=tiny)
    with pytest.raises(InvalidInputError, match="'kernel' is missing"):
        one.evaluate({name: value for name, value in LINEAR.items() if name != "kernel"})
    with pytest.raises(InvalidInputError, match="'kernel' is 'sigmoid'"):
        one.evaluate({**LINEAR, "kernel": "sigmoid"})


def test_fidelities_are_neither_missing_nor_out_of_range(tiny: Path) -> None:
    surrogate = yahpo.load_surrogate("lcbench", tiny)
    complete = {**LC, "OpenML_task_id": "101"}
    for change, message in (
        ({}, "fidelity 'epoch' is missing"),
        ({"epoch": 53}, "fidelity 'epoch' is 53"),
        ({"epoch": 2.5}, "fidelity 'epoch' is 2.5"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            surrogate.predict_complete([{**complete, **change}])
    with pytest.raises(InvalidInputError, match="instance 'OpenML_task_id' is missing"):
        surrogate.predict_complete([{**LC, "epoch": 3}])
    surrogate.predict([LC], "101", {"epoch": 1})
    for wrong in (True, [3], "3", None):
        with pytest.raises(InvalidInputError, match="fidelity 'epoch' is"):
            surrogate.predict([LC], "101", {"epoch": wrong})
    with pytest.raises(InvalidInputError, match="no fidelity 'trainsize'"):
        surrogate.predict([LC], "101", {"epoch": 3, "trainsize": 1.0})
    with pytest.raises(InvalidInputError, match="no instance '999'"):
        surrogate.predict([LC], "999", {"epoch": 3})
    one = problem("yahpo:lcbench:101", data=tiny)
    for fidelity in (0.0, 0.01, 1.1, math.nan):
        with pytest.raises(InvalidInputError, match="fidelity"):
            one.measure(LC, fidelity)


@pytest.mark.parametrize("file", ["config_space.json", "encoding.json", "model.onnx"])
@pytest.mark.parametrize("damage", [_cut, Path.unlink], ids=["cut", "missing"])
def test_a_damaged_or_missing_file_is_named(own: Path, file: str, damage: Callable[[Path], None]) -> None:
    path = own / "lcbench" / file
    damage(path)
    with pytest.raises(SourceError, match=rf"{file} is (missing|damaged).*[Dd]ownload"):
        suite("yahpo:lcbench", data=own)


def test_a_file_that_came_back_is_read_again(own: Path) -> None:
    path = own / "lcbench" / "model.onnx"
    whole = path.read_bytes()
    _cut(path)
    with pytest.raises(SourceError):
        suite("yahpo:lcbench", data=own)
    path.write_bytes(whole)
    assert math.isfinite(problem("yahpo:lcbench:101", data=own).evaluate(LC))


def test_files_of_different_scenarios_do_not_go_together(own: Path) -> None:
    shutil.copy(own / "rbv2_svm" / "model.onnx", own / "lcbench")
    with pytest.raises(SourceError, match=r"model.onnx: expected 1 categorical columns, got 3"):
        suite("yahpo:lcbench", data=own)
    shutil.copy(own / "rbv2_svm" / "config_space.json", own / "lcbench")
    with pytest.raises(SourceError, match="'epoch' of this scenario is missing"):
        suite("yahpo:lcbench", data=own)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("config_space.json", lambda data: data.pop("hyperparameters"), "not a configuration space"),
        ("config_space.json", lambda data: data["hyperparameters"][0].pop("type"), "not a configuration space"),
        ("config_space.json", lambda data: data["hyperparameters"][0].update(type="normal"), "unknown type 'normal'"),
        ("config_space.json", lambda data: data["hyperparameters"][0].update(lower=9e9), "lower <= upper"),
        ("config_space.json", lambda data: data["conditions"][0].update(type="OR"), "unknown type 'OR'"),
        ("config_space.json", lambda data: data["conditions"][0].update(parent="nobody"), "'nobody'"),
        ("config_space.json", lambda data: data.update(forbiddens=[{}]), "forbids"),
        ("encoding.json", lambda data: data["kernel"].pop("radial"), "no code for kernel = 'radial'"),
        ("encoding.json", lambda data: data["kernel"].update(radial="2"), "whole numbers"),
        ("encoding.json", lambda data: data.pop("task_id"), "no code for task_id"),
    ],
)
def test_files_that_say_nonsense_are_refused(own: Path, file: str, change: Callable[[Any], None], message: str) -> None:
    _edit(own / "rbv2_svm" / file, change)
    with pytest.raises(SourceError, match=message):
        suite("yahpo:rbv2_svm", data=own)


@pytest.mark.parametrize("text", ["[1, 2]", "null", "{", "\x00"])
def test_json_that_is_no_object_is_damaged(own: Path, text: str) -> None:
    (own / "lcbench" / "config_space.json").write_text(text)
    with pytest.raises(SourceError, match="damaged"):
        suite("yahpo:lcbench", data=own)


def test_damaged_statistics_are_named_by_line(own: Path) -> None:
    path = own / "global_statistics" / "instance_target_statistics.csv"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], "time,min,what,lcbench,101", *lines[6:]]))
    with pytest.raises(SourceError, match="line 6"):
        read_statistics(own)


def test_an_identity_of_somebody_else_is_refused(tiny: Path) -> None:
    kept = suite("yahpo:lcbench", data=tiny)
    for parameters in (
        {},
        {"scenario": "lcbench"},
        {"scenario": "lcbench", "instance": "101", "targets": ["nothing"]},
        {"scenario": "lcbench", "instance": "9", "targets": ["time"]},
        {"scenario": 3},
    ):
        with pytest.raises(PolarBearError):
            kept.build(Identity("strange", parameters))


# --- scenarios of one's own


def _describe(folder: Path, **changes: object) -> None:
    """Call the tiny lcbench by another name, and say in the file what its columns are."""
    (folder / "lcbench").rename(folder / "mine")
    known = yahpo.SCENARIOS["lcbench"]
    meta = {
        "cont_names": known.numbers,
        "cat_names": known.categories,
        "y_names": known.targets,
        "y_minimize": [name not in known.maximized for name in known.targets],
        "fidelity_params": known.fidelities,
        "instance_names": known.instance_column,
        "runtime_name": known.runtime,
        **changes,
    }
    (folder / "yahpo_scenario_meta.json").write_text(json.dumps({"mine": meta}))


def test_a_scenario_of_ones_own_is_described_in_a_file(own: Path, tiny: Path) -> None:
    _describe(own)
    mine = problem("yahpo:mine:101", data=own, target="val_accuracy")
    assert mine.evaluate(LC) == problem("yahpo:lcbench:101", data=tiny).evaluate(LC)
    with pytest.raises(InvalidInputError, match="Did you mean mine"):
        suite("yahpo:mnie", data=own)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cont_names": None}, "names under 'cont_names'"),
        ({"y_minimize": [True]}, "for each of the 6 targets"),
        ({"fidelity_params": []}, "at least one fidelity"),
        ({"instance_names": None}, "'instances'"),
    ],
)
def test_a_description_that_lacks_something_is_refused(own: Path, changes: dict[str, Any], message: str) -> None:
    _describe(own, **changes)
    with pytest.raises(SourceError, match=message):
        suite("yahpo:mine", data=own)


@given(st.text(), st.lists(st.text(), max_size=5))
def test_any_wrong_name_gets_an_answer(name: str, known: list[str]) -> None:
    assert names_near(name, known).startswith(("Did you mean", "There are"))


def test_first_problems_do_not_depend_on_how_many_are_drawn(tiny: Path) -> None:
    kept = suite("yahpo:lcbench", data=tiny)
    assert list(islice(kept.identities(7), 2)) == list(kept.identities(7))[:2]
