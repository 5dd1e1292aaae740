from __future__ import annotations

import importlib.util
import logging
import math
import subprocess
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from polarbear_plugins import RaceSettings, race
from polarbear_plugins.errors import InvalidInputError, MissingExtraError, PolarBearWarning
from polarbear_plugins.plugins.manager import Plugins
from polarbear_plugins.problems.given import GivenProblem
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.problems.spaces import Categorical, Condition, Configuration, ConfigurationSpace, Float, Integer
from polarbear_plugins.testing import check_portfolio

optuna = pytest.importorskip("optuna")
module = pytest.importorskip("polarbear_plugins.integrations.optuna_portfolio")

NEEDS = {"cma-es": "cmaes", "gp": "torch"}
INSTALLED = [name for name in module.NAMES if name not in NEEDS or importlib.util.find_spec(NEEDS[name])]
SPACE = ConfigurationSpace(
    {
        "gamma": Float(1e-4, 1.0, log=True),
        "kernel": Categorical(("linear", "radial", 1, True)),
        "degree": Integer(1, 9),
        "depth": Integer(1, 100, log=True),
    },
    [Condition("gamma", "kernel", ("radial",)), Condition("depth", "degree", (3, 4, 5, 6, 7, 8, 9))],
)


@dataclass
class Sphere:
    center: float = 0.3
    seen: list[Any] = field(default_factory=list)
    lower = np.array([-1.0, -2.0])
    upper = np.array([1.0, 3.0])

    @property
    def identity(self) -> Identity:
        return Identity(f"sphere-{self.center}")

    def evaluate(self, x: ArrayLike, /) -> float:
        self.seen.append(x)
        return float(np.sum((np.asarray(x) - self.center) ** 2))


@dataclass
class Machine:
    seen: list[Any] = field(default_factory=list)
    identity = Identity("machine")
    space = SPACE

    def evaluate(self, configuration: Configuration, /) -> float:
        SPACE.check(configuration)
        self.seen.append(dict(configuration))
        if configuration["kernel"] == "linear":
            return math.nan
        return float(configuration.get("gamma", 2.0)) + float(configuration["degree"])


@pytest.mark.parametrize("problem", [Sphere(), Machine()], ids=["box", "space"])
def test_the_portfolio_keeps_its_promises(problem: Any) -> None:
    options = {"samplers": INSTALLED}
    portfolio = check_portfolio(module, "optuna-samplers", problem, 15, options)
    assert [algorithm.name for algorithm in portfolio] == INSTALLED


@pytest.mark.parametrize("name", INSTALLED)
def test_a_trial_is_an_evaluation_inside_the_bounds(name: str) -> None:
    problem = Sphere()
    run = module.SamplerAlgorithm(name).run(problem, 20.5, 3)
    assert len(problem.seen) == 20
    assert run.horizon == 20.5
    points = np.array(problem.seen)
    assert ((points >= problem.lower) & (points <= problem.upper)).all()
    assert run.best[-1] == min(np.sum((points - 0.3) ** 2, axis=1))


@pytest.mark.parametrize("name", INSTALLED)
def test_parameters_that_do_not_count_are_not_suggested(name: str) -> None:
    problem = Machine()  # which refuses configurations that set them
    module.SamplerAlgorithm(name).run(problem, 40, 1)
    assert {"gamma" in configuration for configuration in problem.seen} == {True, False}
    assert {"depth" in configuration for configuration in problem.seen} == {True, False}
    kinds = {type(configuration["kernel"]) for configuration in problem.seen}
    assert kinds <= {str, int, bool}


def test_different_seeds_give_different_runs() -> None:
    for name in INSTALLED:
        one, other = (module.SamplerAlgorithm(name).run(Sphere(), 5, seed) for seed in (1, 2))
        assert one != other, name


def test_a_model_beats_random_search_on_a_sphere() -> None:
    best = {
        name: np.mean([module.SamplerAlgorithm(name).run(Sphere(), 40, seed).best[-1] for seed in range(5)])
        for name in ("random", "tpe-multivariate")
    }
    assert best["tpe-multivariate"] < best["random"]


def test_runs_leave_the_logging_of_optuna_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    before = logging.getLogger("optuna").level
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.SamplerAlgorithm("qmc").run(Machine(), 5, 1)
    assert logging.getLogger("optuna").level == before
    assert not caplog.records


def test_samplers_are_chosen_by_name_from_python_and_as_text() -> None:
    plugins = Plugins()
    plugins.register(module, "optuna-portfolio")
    for samplers in ("tpe, random", ["tpe", "random"]):
        portfolio = plugins.portfolio("optuna-samplers", samplers=samplers)
        assert [algorithm.name for algorithm in portfolio] == ["tpe", "random"]


@pytest.mark.parametrize("samplers", ["", "simulated annealing", [], 3])
def test_samplers_without_meaning_are_refused(samplers: object) -> None:
    with pytest.raises(InvalidInputError, match="sampler"):
        module.polarbear_portfolio("optuna-samplers", {"samplers": samplers})


def test_samplers_whose_package_is_missing_are_left_out_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name in NEEDS.values() else real(name))
    with pytest.warns(PolarBearWarning, match=r"leaves out cma-es and gp\. Install .*: pip install cmaes torch"):
        portfolio = module.optuna_samplers()
    assert [algorithm.name for algorithm in portfolio] == ["random", "qmc", "tpe", "tpe-multivariate", "nsga-ii"]
    with pytest.raises(MissingExtraError, match="'gp' needs 'torch', which is not installed"):
        module.optuna_samplers(["tpe", "gp"])


def test_problems_of_another_kind_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"cannot run on '7'.* the problem is neither"):
        module.SamplerAlgorithm("tpe").run(GivenProblem(Identity("7"), 7), 5, 0)


def test_samplers_race() -> None:
    result = race(
        module.optuna_samplers(["random", "tpe"]),
        [Sphere(center) for center in np.linspace(-1, 1, 8)],
        timepoints=[2, 10, 20],
        settings=RaceSettings(seed=1, max_rounds=1, draws=500),
        workers=0,
    )
    assert result.algorithms == ("random", "tpe")
    # Both begin at random: only the seeds differ.
    assert len(result.state.table) == 8


@pytest.mark.slow
def test_the_example_compares_samplers(root: Path) -> None:
    pytest.importorskip("ioh")
    done = subprocess.run(
        [sys.executable, "-W", "error", root / "examples" / "compare_samplers.py", "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "algorithm" in done.stdout
    assert "tpe" in done.stdout
