"""The posterior of the ratings, and the relations between algorithms under it."""

from polarbear_plugins.posterior.group_effect import GroupEffect
from polarbear_plugins.posterior.model_check import Gap, ModelCheck
from polarbear_plugins.posterior.posterior import Diagnostics, Posterior
from polarbear_plugins.posterior.relations import Relations, compare

__all__ = [
    "Diagnostics",
    "Gap",
    "GroupEffect",
    "ModelCheck",
    "Posterior",
    "Relations",
    "compare",
]
