"""Racing inside Optuna: a trial is one candidate on one instance, and the race decides which.

The storage is looked at in each trial, and nothing else counts, so that processes that share a storage, and studies
that are resumed, continue the same race.
"""

from __future__ import annotations

from polarbear_plugins.extras import require

# First, so that the modules of this package can import Optuna as usual.
require("optuna", extra="optuna", who="PolarBearSampler")

from polarbear_plugins.integrations.optuna_sampler.candidate_study import candidate_study  # noqa: E402
from polarbear_plugins.integrations.optuna_sampler.likely_best import LikelyBest, likely_best  # noqa: E402
from polarbear_plugins.integrations.optuna_sampler.result import race_result  # noqa: E402
from polarbear_plugins.integrations.optuna_sampler.sampler import PolarBearSampler  # noqa: E402

__all__ = ["LikelyBest", "PolarBearSampler", "candidate_study", "likely_best", "race_result"]
