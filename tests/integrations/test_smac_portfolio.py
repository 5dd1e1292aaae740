from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from polarbear_plugins import load_plugins
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.integrations.smac_portfolio import SmacAlgorithm, _Trials, decode, encode_space, smac_portfolio
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.problems.spaces import Categorical, Condition, ConfigurationSpace, Float, Integer
from polarbear_plugins.trajectories import Charges

SPACE = ConfigurationSpace(
    {
        "kernel": Categorical(("linear", "radial", 1, True)),
        "gamma": Float(1e-4, 1.0, log=True),
        "degree": Integer(1, 9, log=True),
        "fixed": Float(2.0, 2.0),
    },
    [
        Condition("gamma", parent="kernel", values=("radial", "linear")),
        Condition("degree", parent="kernel", values=("radial",)),
        Condition("degree", parent="gamma", values=(0.5,)),
    ],
)


class Trained:
    """A problem with fidelities that remembers what was asked of it; ``nan`` for the kernel 1."""

    def __init__(self) -> None:
        self.identity = Identity("trained")
        self.space = ConfigurationSpace(
            {"kernel": Categorical(("linear", 1)), "rate": Float(1e-3, 1.0, log=True), "layers": Integer(1, 5)}
        )
        self.least_fidelity = 1 / 9
        self.asked: list[tuple[dict[str, Any], float]] = []

    def measure(self, configuration: Mapping[str, Any], fidelity: float = 1.0, /) -> tuple[float, float]:
        self.space.check(configuration)
        self.asked.append((dict(configuration), fidelity))
        value = abs(math.log10(configuration["rate"]) + 2) + abs(configuration["layers"] - 3)
        return (math.nan if configuration["kernel"] == 1 else value - 10 * (fidelity < 1)), fidelity


class Sphere:
    identity = Identity("sphere")
    lower, upper = np.array([-5.0, 0.0]), np.array([5.0, 1.0])

    def evaluate(self, x: Any, /) -> float:
        assert (self.lower <= x).all()
        assert (x <= self.upper).all()
        return float(np.sum((np.asarray(x) - [1.0, 0.5]) ** 2))


@pytest.fixture(autouse=True)
def _smac() -> None:
    pytest.importorskip("smac")


def test_every_configuration_of_the_encoded_space_is_one_of_the_space() -> None:
    encoded = encode_space(SPACE)
    encoded.seed(1)
    kinds = set()
    for point in encoded.sample_configuration(200):
        configuration = decode(point, SPACE)
        SPACE.check(configuration)
        kinds.add((type(configuration["kernel"]), configuration["kernel"]))
    assert kinds == {(str, "linear"), (str, "radial"), (int, 1), (bool, True)}


def test_smac_evaluates_fully_and_repeats_itself() -> None:
    problem = Trained()
    run = SmacAlgorithm("smac").run(problem, 16.0, 3)
    assert {fidelity for _, fidelity in problem.asked} == {1.0}
    assert len(problem.asked) == 16
    assert (run.algorithm, run.instance, run.seed, run.horizon) == ("smac", "trained", 3, 16)
    failed = sum(configuration["kernel"] == 1 for configuration, _ in problem.asked)
    assert 0 < failed < 16  # failed evaluations are told, and do not end the run
    again = SmacAlgorithm("smac").run(Trained(), 16.0, 3)
    assert np.array_equal(run.best, again.best)
    assert np.array_equal(run.times, again.times)


@pytest.mark.slow
@pytest.mark.long
def test_smac_repeats_itself_in_another_process() -> None:
    code = (
        "from polarbear_plugins.integrations.smac_portfolio import SmacAlgorithm\n"
        "from polarbear_plugins.problems.protocols import Identity\n"
        "class Sphere:\n"
        "    identity, lower, upper = Identity('sphere'), (-5.0, -5.0), (5.0, 5.0)\n"
        "    evaluate = staticmethod(lambda point: sum((x - 1) ** 2 for x in point))\n"
        "print(SmacAlgorithm('smac').run(Sphere(), 10, 2).best.tolist())\n"
    )
    # Texts hash differently in every process, and SMAC has sets of configurations.
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    ]
    assert runs[0] == runs[1] != ""


def test_failed_trials_are_told_as_the_worst_value_so_far() -> None:
    told: list[tuple[str, float, str]] = []

    class Optimizer:
        asked = 0

        def ask(self) -> Any:
            self.asked += 1
            return SimpleNamespace(budget=None, config=f"trial {self.asked}")

        def tell(self, trial: Any, value: Any, *, save: bool) -> None:
            assert not save
            told.append((trial.config, value.cost, value.status.name))

    values = iter([math.nan, 3.0, 1.0, math.nan, 7.0])
    trials = _Trials(Optimizer(), lambda _, __: (next(values), 1.0), Charges(5))
    assert all(trials.run_next() for _ in range(5))
    assert told == [
        ("trial 2", 3.0, "SUCCESS"),
        ("trial 1", 3.0, "CRASHED"),  # which waited for a value
        ("trial 3", 1.0, "SUCCESS"),
        ("trial 4", 3.0, "CRASHED"),
        ("trial 5", 7.0, "SUCCESS"),
    ]


def test_only_full_evaluations_of_hyperband_count() -> None:
    problem = Trained()
    run = SmacAlgorithm("smac-hb").run(problem, 6.0, 1)
    fidelities = [fidelity for _, fidelity in problem.asked]
    assert min(fidelities) == pytest.approx(1 / 9)
    assert 1.0 in fidelities
    assert run.best.min() >= 0  # those at a low fidelity are 10 better
    paid = np.cumsum(fidelities)
    assert paid[-2] <= 6 + 1e-9
    assert set(np.round(run.times, 9)) <= set(np.round(paid[np.array(fidelities) == 1.0], 9))


def test_boxes_are_searched_within_their_bounds() -> None:
    run = SmacAlgorithm("smac").run(Sphere(), 16, 2)
    assert run.best[-1] < run.best[0]
    assert run.horizon == 16


def test_what_smac_cannot_run_on_is_said() -> None:
    with pytest.raises(InvalidInputError, match="'smac-hb' cannot run on 'sphere': it needs a problem with fidelities"):
        SmacAlgorithm("smac-hb").run(Sphere(), 10, 1)
    assert SmacAlgorithm("smac").refuses(Sphere()) is None
    assert SmacAlgorithm("smac").refuses(Trained()) is None


def test_the_portfolio_is_found_by_its_name() -> None:
    assert [each.name for each in load_plugins().portfolio("smac")] == ["smac", "smac-hb"]
    assert [each.name for each in load_plugins().portfolio("smac", algorithms="smac")] == ["smac"]
    with pytest.raises(InvalidInputError, match=r"has no algorithm 'tpe'\. It has smac, smac-hb"):
        smac_portfolio(["tpe"])
