"""PolarBearSampler of polarbear-plugins, for OptunaHub."""

from polarbear_plugins.integrations.optuna_sampler import likely_best
from polarbear_plugins.integrations.optuna_sampler import PolarBearSampler
from polarbear_plugins.integrations.optuna_sampler import race_result


__all__ = ["PolarBearSampler", "likely_best", "race_result"]
