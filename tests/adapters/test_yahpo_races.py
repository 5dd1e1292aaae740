from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from polarbear_plugins import RaceResult, RaceSettings, race
from polarbear_plugins.cli import main
from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.problems.spaces import Categorical, Condition, ConfigurationSpace, Float
from polarbear_plugins.rankings.summaries import mean_ranks, mean_regret
from polarbear_plugins.report.commands import how_to_repeat
from polarbear_plugins.testing import check_portfolio

pytest.importorskip("onnxruntime")
pytest.importorskip("optuna")
pytest.importorskip("moocore")
yahpo = pytest.importorskip("polarbear_plugins.adapters.yahpo")
portfolio = pytest.importorskip("polarbear_plugins.integrations.optuna_portfolio")
multifidelity = pytest.importorskip("polarbear_plugins.integrations.optuna_portfolio.multifidelity")


def problem(name: str, data: Path, **options: object) -> Any:
    plugins = Plugins()
    plugins.register(yahpo, "yahpo")
    suite = plugins.suite(name, data=str(data), **options)
    return suite.build(next(suite.identities(0)))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)


class Watched:
    """A problem that remembers what was asked of it."""

    def __init__(self, problem: Any) -> None:
        self._problem = problem
        self.identity, self.space, self.least_fidelity = problem.identity, problem.space, problem.least_fidelity
        self.asked: list[tuple[dict[str, Any], float, float, float]] = []

    def measure(self, configuration: Any, fidelity: float = 1.0, /) -> tuple[float, float]:
        value, cost = self._problem.measure(configuration, fidelity)
        self.asked.append((dict(configuration), fidelity, value, cost))
        return value, cost


# --- multi-fidelity algorithms


def test_the_portfolio_keeps_its_promises(tiny_yahpo: Path) -> None:
    made = check_portfolio(portfolio, "optuna-multifidelity", problem("yahpo:rbv2_svm:101", tiny_yahpo), 12)
    names = [algorithm.name for algorithm in made]
    assert names == ["tpe-median", "tpe-halving", "hyperband", "tpe-hyperband", "random", "tpe"]


def test_levels_are_a_factor_apart_and_end_at_full_fidelity() -> None:
    assert multifidelity.levels(1.0, 3) == (1.0,)
    np.testing.assert_allclose(multifidelity.levels(0.03, 3), [1 / 27, 1 / 9, 1 / 3, 1])
    np.testing.assert_allclose(multifidelity.levels(1 / 16, 2), [1 / 16, 1 / 8, 1 / 4, 1 / 2, 1])
    for least in (0.0, 1.5):
        with pytest.raises(InvalidInputError, match="least fidelity"):
            multifidelity.levels(least, 3)


@pytest.mark.parametrize("name", multifidelity.NAMES)
@pytest.mark.parametrize("resume", [False, True], ids=["anew", "resumed"])
def test_every_look_is_charged_and_only_full_ones_count(tiny_yahpo: Path, name: str, resume: bool) -> None:
    watched = Watched(problem("yahpo:lcbench:101", tiny_yahpo))
    run = multifidelity.MultifidelityAlgorithm(name, resume=resume).run(watched, 25, 1)
    spent, best, steps = 0.0, np.inf, []
    before: tuple[dict[str, Any], float] = ({}, 0.0)
    for configuration, fidelity, value, cost in watched.asked:
        spent += cost - before[1] if resume and configuration == before[0] else cost
        before = configuration, cost
        if spent > 25 + 1e-9:
            break
        if fidelity == 1 and value < best:
            best = value
            steps.append((spent, value))
    np.testing.assert_allclose(list(zip(run.times, run.best, strict=True)), steps)
    fidelities = {fidelity for _, fidelity, _, _ in watched.asked}
    np.testing.assert_allclose(sorted(fidelities), [1 / 27, 1 / 9, 1 / 3, 1])
    # What was pruned leaves room: more configurations are seen than evaluations could be paid in full.
    assert len({json.dumps(asked[0]) for asked in watched.asked}) > 26 / (1 if resume else 1.48)


def test_successive_halving_prefers_what_is_good_at_low_fidelity(tiny_yahpo: Path) -> None:
    watched = Watched(problem("yahpo:lcbench:101", tiny_yahpo))
    multifidelity.MultifidelityAlgorithm("tpe-halving").run(watched, 40, 1)
    first = {json.dumps(asked[0]): asked[2] for asked in watched.asked if asked[1] < 0.04}
    finished = {json.dumps(asked[0]) for asked in watched.asked if asked[1] == 1}
    pruned = [value for key, value in first.items() if key not in finished]
    assert np.mean([first[key] for key in finished]) < np.mean(pruned)


def test_a_problem_without_fidelities_is_refused() -> None:
    class Plain:
        identity = Identity("plain")

    with pytest.raises(InvalidInputError, match="needs a problem with fidelities"):
        multifidelity.MultifidelityAlgorithm("hyperband").run(Plain(), 5, 1)


def test_wrong_wishes_are_refused() -> None:
    plugins = Plugins()
    plugins.register(portfolio, "optuna-portfolio")
    for options, message in (
        ({"algorithms": "bohb"}, "no algorithm 'bohb'. It has tpe-median"),
        ({"samplers": "best"}, "no sampler 'best'"),
        ({"eta": 1}, "eta must be a whole number"),
        ({"resume": "perhaps"}, "true or false"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            plugins.portfolio("optuna-multifidelity", **options)
    made = plugins.portfolio("optuna-multifidelity", algorithms="hyperband", samplers="random", eta="4", resume="yes")
    assert made == (multifidelity.MultifidelityAlgorithm("hyperband", 4, True), portfolio.SamplerAlgorithm("random"))


# --- several objectives, and time


@pytest.mark.parametrize("name", ["random", "qmc", "tpe", "tpe-multivariate", "nsga-ii"])
def test_samplers_cover_the_volume_of_several_objectives(tiny_yahpo: Path, name: str) -> None:
    both = problem("yahpo:lcbench:101", tiny_yahpo, target="val_accuracy,val_cross_entropy")
    run = portfolio.SamplerAlgorithm(name).run(both, 30, 1)
    assert run.horizon == 30
    assert run.times[0] == 1
    assert 0 < run.best[-1] < run.best[0] < 1
    assert portfolio.SamplerAlgorithm(name).run(both, 30, 1) == run


def test_cma_es_says_that_it_takes_one_objective(tiny_yahpo: Path) -> None:
    both = problem("yahpo:lcbench:101", tiny_yahpo, target="val_accuracy,time")
    with pytest.raises(InvalidInputError, match="takes one objective"):
        portfolio.SamplerAlgorithm("cma-es").run(both, 5, 1)


@pytest.mark.parametrize("axis", ["percent", "seconds"])
def test_samplers_pay_on_the_axis_of_the_problem(tiny_yahpo: Path, axis: str) -> None:
    watched = Watched(problem("yahpo:lcbench:101", tiny_yahpo, time=axis))
    run = portfolio.SamplerAlgorithm("random").run(watched, 100, 1)
    times = np.cumsum([cost for _, _, _, cost in watched.asked])
    assert set(run.times) <= {*np.minimum(times, 100)}
    finished = int((times <= 100 * (1 + 1e-9)).sum())
    assert run.best[-1] == min(value for _, _, value, _ in watched.asked[:finished])
    if axis == "percent":
        assert finished == len(watched.asked) == 126


# --- races by command


def test_the_command_of_the_documentation_races_to_the_budget_of_the_paper(tiny_yahpo: Path, tmp_path: Path) -> None:
    journal = tmp_path / "race.db"
    result = run(
        *("race", "optuna-samplers", "yahpo:lcbench", "--data", tiny_yahpo, "--seed", 1, "--workers", 0),
        *("-P", "samplers=random,qmc", "--draws", 500, "--json", "--journal", journal),
    )
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["timepoints"][0] == 1
    assert found["timepoints"][-1] == 126
    assert sorted(found["instances"]) == ["lcbench-101", "lcbench-102", "lcbench-103"]
    again = run("resume", journal, "--workers", 0, "--json")
    assert json.loads(again.stdout)["instances"] == found["instances"]


def test_multifidelity_races_in_processes_as_in_one(tiny_yahpo: Path) -> None:
    command = (
        *("race", "optuna-multifidelity", "yahpo:rbv2_svm", "--data", tiny_yahpo, "--seed", 2, "--draws", 500),
        *("-P", "algorithms=hyperband", "-P", "samplers=random", "--timepoints", "5,10", "--json"),
    )
    one, other = (json.loads(run(*command, "--workers", workers).stdout) for workers in (0, 1))
    assert one["instances"] == other["instances"]
    assert one["cost"] == other["cost"]


def test_several_objectives_race_in_percent(tiny_yahpo: Path) -> None:
    result = run(
        *("race", "optuna-samplers", "yahpo:lcbench", "-S", f"data={tiny_yahpo}", "-S", "target=time,val_accuracy"),
        *("-S", "time=percent", "-P", "samplers=random,nsga-ii", "--seed", 1, "--workers", 0, "--draws", 500, "--json"),
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["timepoints"][-1] == 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("yahpo:lcbnech",), "Did you mean lcbench?"),
        (("yahpo:lcbench:999",), "has no instance '999'"),
        (("yahpo:lcbench", "-S", "time=seconds"), "Give --budget, the last timepoint"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(tiny_yahpo: Path, arguments: tuple[str, ...], message: str) -> None:
    suite, *options = arguments
    result = run("race", "optuna-samplers", suite, "--data", tiny_yahpo, "-P", "samplers=random", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_data_the_command_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YAHPO_DATA", raising=False)
    result = run("race", "optuna-samplers", "yahpo:lcbench")
    assert result.exit_code == 2
    assert "Download https://github.com/slds-lmu/yahpo_data" in result.stderr


def test_the_report_of_the_paper_beside_the_posterior(tiny_yahpo: Path) -> None:
    plugins = Plugins()
    plugins.register(yahpo, "yahpo")
    result = race(
        portfolio.optuna_samplers(["random", "tpe"]),
        plugins.suite("yahpo:lcbench", data=str(tiny_yahpo)),
        timepoints=[5, 40],
        settings=RaceSettings(seed=1, draws=500, batch_min=3, batch_size=3),
        workers=0,
    )
    ranks, regret = mean_ranks(result.state.table), mean_regret(result.state.table)
    assert ranks.count.tolist() == [3, 3]
    np.testing.assert_allclose(ranks.mean.sum(axis=1), 3)
    # TPE knows more than random search after 40 trials of a smooth function.
    assert ranks.mean[1, 1] < ranks.mean[1, 0]
    assert (regret.mean[1] <= regret.mean[0]).all()


# --- a BenchmarkSet of yahpo_gym


class Hyperparameter:
    def __init__(self, name: str, **fields: object) -> None:
        self.name = name
        self.__dict__.update(fields)


class UniformFloatHyperparameter(Hyperparameter): ...


class UniformIntegerHyperparameter(Hyperparameter): ...


class CategoricalHyperparameter(Hyperparameter): ...


class EqualsCondition(Hyperparameter): ...


class InCondition(Hyperparameter): ...


class AndConjunction(Hyperparameter): ...


class OrConjunction(Hyperparameter): ...


class OldSpace:
    """As ConfigSpace below 1 has it."""

    def __init__(self, parameters: list[Any], conditions: list[Any]) -> None:
        self._parameters, self._conditions = parameters, conditions

    def get_hyperparameters(self) -> list[Any]:
        return self._parameters

    def get_conditions(self) -> list[Any]:
        return self._conditions


class Config:
    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)


class BenchmarkSet:
    """What yahpo_gym's class of that name shows, on a tiny surrogate; the real one cannot be installed with numpy 2."""

    def __init__(self, folder: Path, scenario: str, instance: str | None = None) -> None:
        self._surrogate = yahpo.load_surrogate(scenario, folder)
        known = self._surrogate.description
        self.config = Config(
            config_id=scenario,
            y_names=list(known.targets),
            y_minimize=[name not in known.maximized for name in known.targets],
            fidelity_params=list(known.fidelities),
            instance_names=known.instance_column,
            runtime_name=known.runtime,
        )
        self.constants = {} if instance is None else {known.instance_column: instance}
        self.instances = list(self._surrogate.instances)
        data = json.loads((folder / scenario / "config_space.json").read_text())
        kinds = {
            "uniform_float": UniformFloatHyperparameter,
            "uniform_int": UniformIntegerHyperparameter,
            "categorical": CategoricalHyperparameter,
        }
        parameters = {entry["name"]: kinds[entry.pop("type")](**entry) for entry in data["hyperparameters"]}
        conditions: list[Any] = []
        for entry in data["conditions"]:
            ends = {"child": parameters[entry["child"]], "parent": parameters[entry["parent"]]}
            if entry["type"] == "EQ":
                conditions.append(AndConjunction("", components=[EqualsCondition("", value=entry["value"], **ends)]))
            else:
                conditions.append(InCondition("", values=entry["values"], **ends))
        self.config_space = OldSpace(list(parameters.values()), conditions)

    @property
    def target_stats(self) -> Any:
        import pandas as pd

        path = self._surrogate.folder / "global_statistics" / "instance_target_statistics.csv"
        return pd.read_csv(path, dtype={"instance": str})

    def objective_function(self, configuration: Any, **_: object) -> list[dict[str, float]]:
        values = self._surrogate.predict_complete([{**each, **self.constants} for each in configuration])
        return [dict(zip(self.config.y_names, row, strict=True)) for row in values]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["lcbench", "rbv2_svm"])
def test_a_benchmark_set_is_a_suite_with_the_same_problems(tiny_yahpo: Path, name: str) -> None:
    plugins = Plugins()
    plugins.register(yahpo, "yahpo")
    ours = plugins.suite(f"yahpo:{name}", data=str(tiny_yahpo))
    theirs = yahpo.BenchmarkSetSuite(BenchmarkSet(tiny_yahpo, name))
    assert theirs.budget == ours.budget
    assert list(theirs.identities(3)) == list(ours.identities(3))
    for identity in ours.identities(3):
        one, other = ours.build(identity), theirs.build(identity)
        assert one.space == other.space
        assert one.least_fidelity == other.least_fidelity
        drawn = one.space.sample(np.random.default_rng(1))
        assert one.evaluate(drawn) == other.evaluate(drawn)
        assert one.measure(drawn, 0.2) == other.measure(drawn, 0.2)


def test_a_benchmark_set_races_and_may_have_its_instance_set(tiny_yahpo: Path) -> None:
    suite = yahpo.BenchmarkSetSuite(BenchmarkSet(tiny_yahpo, "rbv2_svm", "102"), target=["acc", "memory"])
    assert [identity.name for identity in suite.identities(1)] == ["rbv2_svm-102-acc-memory"]
    result = race(
        portfolio.optuna_samplers(["random", "nsga-ii"]),
        suite,
        timepoints=[2, 10],
        settings=RaceSettings(seed=1, draws=500),
        workers=0,
    )
    assert result.state.table.instances == ("rbv2_svm-102-acc-memory",)
    assert not result.failures


def test_what_is_no_benchmark_set_is_refused(tiny_yahpo: Path) -> None:
    with pytest.raises(InvalidInputError, match="has no 'config'"):
        yahpo.BenchmarkSetSuite("lcbench")
    with pytest.raises(InvalidInputError, match="no target 'speed'"):
        yahpo.BenchmarkSetSuite(BenchmarkSet(tiny_yahpo, "lcbench"), target="speed")
    strange = BenchmarkSet(tiny_yahpo, "rbv2_svm")
    strange.config_space.get_conditions().append(OrConjunction("", components=[]))
    with pytest.raises(InvalidInputError, match="OrConjunction"):
        yahpo.BenchmarkSetSuite(strange)


def test_a_configuration_for_a_benchmark_set_is_checked_and_cleaned(tiny_yahpo: Path) -> None:
    drawn = {"cost": 1.0, "kernel": "linear", "num.impute.selected.cpo": "impute.mean", "tolerance": 0.01}
    messy = {**drawn, "gamma": 1.0}
    suites = [yahpo.BenchmarkSetSuite(BenchmarkSet(tiny_yahpo, "rbv2_svm"), inactive=how) for how in ("refuse", "drop")]
    refusing, dropping = (suite.build(next(suite.identities(1))) for suite in suites)
    with pytest.raises(InvalidInputError, match="gamma"):
        refusing.evaluate(messy)
    assert dropping.evaluate(messy) == refusing.evaluate(drawn)


# --- the example


@pytest.mark.slow
def test_the_example_ends_in_a_pareto_set(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", root / "examples" / "yahpo_study.py", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "anytime Pareto set" in done.stdout
    assert "mean rank" in done.stdout


# --- what cannot run


def test_cma_es_is_left_out_of_a_race_with_two_objectives() -> None:
    with pytest.warns(PolarBearWarning, match="'cma-es': it takes one objective, and the problem has several"):
        result = race(
            "optuna-samplers",
            "yahpo:demo",
            [3, 6],
            RaceSettings(seed=1, draws=200, max_rounds=1, batch_size=2),
            workers=0,
            portfolio_options={"samplers": "random,qmc,cma-es"},
            suite_options={"target": "val_accuracy,time"},
        )
    assert result.algorithms == ("random", "qmc")
    assert not result.failures


def test_multifidelity_algorithms_are_left_out_where_there_are_several_objectives() -> None:
    with pytest.warns(PolarBearWarning, match="'hyperband': it needs a problem with fidelities"):
        result = race(
            "optuna-multifidelity",
            "yahpo:demo",
            [3, 6],
            RaceSettings(seed=1, draws=200, max_rounds=1, batch_size=2),
            workers=0,
            suite_options={"target": "val_accuracy,time"},
        )
    assert result.algorithms == ("random", "tpe")


def test_cma_es_refuses_a_space_without_numbers_that_are_always_active() -> None:
    class Categories:
        identity = Identity("categories")
        space = ConfigurationSpace(
            {"kind": Categorical(("a", "b")), "size": Float(0.0, 1.0)}, [Condition("size", "kind", ("a",))]
        )

        def evaluate(self, configuration: Any, /) -> float:
            return float(configuration["kind"] == "a")

    why = portfolio.SamplerAlgorithm("cma-es").refuses(Categories())
    assert why is not None
    assert "would draw at random" in why
    assert portfolio.SamplerAlgorithm("tpe").refuses(Categories()) is None
    with pytest.raises(InvalidInputError, match="'cma-es' cannot run on 'categories'"):
        portfolio.SamplerAlgorithm("cma-es").run(Categories(), 5, 1)


def test_the_command_that_repeats_a_race_has_its_replications(tmp_path: Path) -> None:
    command = ("race", "optuna-samplers", "yahpo:demo:d01:d02:d03", "-P", "samplers=random,qmc", "--workers", 0)
    command += ("--timepoints", "2,4", "--seed", 1, "--draws", 200, "--output")
    both = (("--replications", 3), ("-S", "replications=3"))
    for number, options in enumerate(both):
        done = run(*command, tmp_path / f"{number}.npz", *options)
        assert done.exit_code == 0, done.output
        assert "Each algorithm ran 3 times on each instance" in " ".join(done.output.split())
    one, other = (RaceResult.load(tmp_path / f"{number}.npz") for number in range(2))
    assert one.state.table == other.state.table
    assert len(one.state.table) == 9
    assert "--replications 3" in how_to_repeat(one)[1]


@pytest.mark.slow
def test_the_example_of_several_objectives_writes_what_analyze_reads(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    done = subprocess.run(
        [sys.executable, "-W", "error", root / "examples" / "yahpo_objectives.py", "--quick", "--output", file],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "mean rank over 2 instances at 5 and at 20" in done.stdout
    command = done.stdout.partition("; polarbear ")[2].splitlines()[0].split()
    analyzed = run(*command, "--timepoints", "5,20", "--seed", 1, "--json")
    assert analyzed.exit_code == 0, analyzed.output
    assert json.loads(analyzed.stdout)["instances"] == ["demo-d01-val_accuracy-time", "demo-d02-val_accuracy-time"]
