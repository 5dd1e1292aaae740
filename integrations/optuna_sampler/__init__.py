"""Racing inside Optuna: a trial is one candidate on one instance, and the race decides which.

Everything is read from the storage at each trial, so that processes that share a storage, and studies that are resumed,
go on with the same race.
"""

from __future__ import annotations

from polarbear_plugins.integrations.optuna_sampler.result import LikelyBest, likely_best, race_result
from polarbear_plugins.integrations.optuna_sampler.sampler import PolarBearSampler

__all__ = ["LikelyBest", "PolarBearSampler", "likely_best", "race_result"]
