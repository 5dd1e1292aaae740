"""Bayesian racing of anytime optimization algorithms, as plugins for IOHprofiler, Optuna, YAHPO Gym and Bayesmark."""

from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.hookspecs import hookimpl
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.plugins import load_plugins, read_trajectories
from polarbear_plugins.posterior import Posterior
from polarbear_plugins.rankings import RankingTable
from polarbear_plugins.relations import Relations, compare
from polarbear_plugins.streams import RankingStream, rank, stream_rankings
from polarbear_plugins.timepoints import log_timepoints, uniform_timepoints
from polarbear_plugins.trajectories import Trajectory, best_at

__all__ = [
    "PolarBearError",
    "Posterior",
    "RankingStream",
    "RankingTable",
    "Relations",
    "Trajectory",
    "best_at",
    "compare",
    "fit",
    "hookimpl",
    "load_plugins",
    "log_timepoints",
    "rank",
    "read_trajectories",
    "stream_rankings",
    "uniform_timepoints",
]
