"""Racing trials over folds, seeds or problem instances: a pruner for Optuna, and what goes with it."""

from __future__ import annotations

from polarbear_plugins.extras import require

# First, so that the modules of this package can import Optuna as usual.
require("optuna", extra="optuna", who="PolarBearPruner")

from polarbear_plugins.integrations.optuna_pruner.explanations import explain  # noqa: E402
from polarbear_plugins.integrations.optuna_pruner.folds import Fold, FoldRace, race_folds  # noqa: E402
from polarbear_plugins.integrations.optuna_pruner.pruner import PolarBearPruner, report  # noqa: E402

__all__ = ["Fold", "FoldRace", "PolarBearPruner", "explain", "race_folds", "report"]
