"""What Optuna asks of every sampler, in its own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")
contracts = pytest.importorskip("optuna.testing.pytest_samplers", reason="Optuna has tests for samplers since 4.8")
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler  # noqa: E402

# Before version 5 a multivariate TPE was experimental.
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


class TestContract(contracts.BasicSamplerTestCase, contracts.SingleOnlySamplerTestCase):  # type: ignore[misc]
    @pytest.fixture
    def sampler(self) -> Callable[[], Any]:
        return lambda: PolarBearSampler(seed=1)


class TestRelativeContract(contracts.RelativeSamplerTestCase):  # type: ignore[misc]
    @pytest.fixture
    def sampler(self) -> Callable[[], Any]:
        # The default base sampler draws its first trials independently.
        base = optuna.samplers.TPESampler
        return lambda: PolarBearSampler(base=base(n_startup_trials=0, multivariate=True, seed=1), seed=1)


class InARace:
    """Has each trial ask for an instance first.

    The cases that call methods of the sampler with a trial that nobody asked for cannot have one; they pass as above.
    """

    @pytest.fixture(autouse=True)
    def ask_for_an_instance(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ask = optuna.Study.ask

        def ask_first(study: Any, *arguments: Any, **options: Any) -> Any:
            trial = ask(study, *arguments, **options)
            if not isinstance(study.sampler, optuna.samplers.TPESampler):  # which proposes in a study of its own
                trial.suggest_int("instance", 0, 9)
            return trial

        monkeypatch.setattr(optuna.Study, "ask", ask_first)


class TestContractInARace(InARace, TestContract):
    # A candidate keeps its parameters for the whole race, also if the objective no longer allows them: see below.
    test_dynamic_range_objective = None


class TestRelativeContractInARace(InARace, TestRelativeContract):
    # It wants the relative parameters to be drawn by the parameters that it asks for, and not by the instance before.
    test_trial_relative_params = None


class TestContractWithAParameterAsInstance:
    """Cases whose objective has a parameter that can be the instance."""

    @pytest.fixture
    def sampler(self) -> Callable[[], Any]:
        return lambda: PolarBearSampler(instance="y", n_candidates=2, seed=1)

    test_partial_fixed_sampling = contracts.BasicSamplerTestCase.test_partial_fixed_sampling
