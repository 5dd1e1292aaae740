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
