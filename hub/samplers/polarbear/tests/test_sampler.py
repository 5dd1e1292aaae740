from __future__ import annotations

from collections.abc import Callable

from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import BasicSamplerTestCase
from optuna.testing.pytest_samplers import SingleOnlySamplerTestCase
import optunahub
import pytest


PolarBearSampler = optunahub.load_local_module(
    package="samplers/polarbear", registry_root="package/"
).PolarBearSampler


class TestPolarBearSampler(BasicSamplerTestCase, SingleOnlySamplerTestCase):
    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: PolarBearSampler(seed=1)
