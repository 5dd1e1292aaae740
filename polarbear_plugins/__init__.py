"""Bayesian racing of anytime optimization algorithms, as plugins for IOHprofiler, Optuna, YAHPO Gym and Bayesmark."""

from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.hookspecs import hookimpl
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.plugins import load_plugins, read_trajectories
from polarbear_plugins.portfolios import select_portfolio
from polarbear_plugins.posterior import Posterior
from polarbear_plugins.rankings import RankingTable
from polarbear_plugins.relations import Relations, compare
from polarbear_plugins.results import RaceResult, analyze
from polarbear_plugins.runner import race, resume
from polarbear_plugins.selection import select
from polarbear_plugins.settings import RaceSettings
from polarbear_plugins.streams import RankingStream, rank, stream_rankings
from polarbear_plugins.timepoints import log_timepoints, uniform_timepoints
from polarbear_plugins.trajectories import Trajectory, best_at

__all__ = [
    "PolarBearError",
    "Posterior",
    "RaceResult",
    "RaceSettings",
    "RankingStream",
    "RankingTable",
    "Relations",
    "Trajectory",
    "analyze",
    "best_at",
    "compare",
    "fit",
    "hookimpl",
    "load_plugins",
    "log_timepoints",
    "race",
    "rank",
    "read_trajectories",
    "resume",
    "select",
    "select_portfolio",
    "stream_rankings",
    "uniform_timepoints",
]
