"""Inference: from rankings and a prior to a posterior."""

from polarbear_plugins.inference.checking import check_model
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.inference.task import Draws, Engine, Task

__all__ = [
    "Draws",
    "Engine",
    "Task",
    "check_model",
    "fit",
]
