"""PolarBearPruner of polarbear-plugins, for OptunaHub."""

from polarbear_plugins.integrations.optuna_pruner import PolarBearPruner


__all__ = ["PolarBearPruner"]
