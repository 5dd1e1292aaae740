"""The posterior of the ratings, and the relations between algorithms under it."""

from polarbear_plugins.posterior.posterior import Diagnostics, Posterior
from polarbear_plugins.posterior.relations import Relations, compare

__all__ = [
    "Diagnostics",
    "Posterior",
    "Relations",
    "compare",
]
