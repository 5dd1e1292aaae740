"""Trajectories: the best value so far against time; recording runs and reading them."""

from polarbear_plugins.trajectories.hypervolume import hypervolume_losses, undominated_volume
from polarbear_plugins.trajectories.recording import Charges, HorizonReached, Recorder
from polarbear_plugins.trajectories.runs import end_at_target, hold_last_value, per_dimension, relative_to_range
from polarbear_plugins.trajectories.timepoints import log_timepoints, uniform_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory, best_at, hitting_times

__all__ = [
    "Charges",
    "HorizonReached",
    "Recorder",
    "Trajectory",
    "best_at",
    "end_at_target",
    "hitting_times",
    "hold_last_value",
    "hypervolume_losses",
    "log_timepoints",
    "per_dimension",
    "relative_to_range",
    "undominated_volume",
    "uniform_timepoints",
]
