"""Bayesian racing of anytime optimization algorithms, as plugins for IOHprofiler, Optuna, YAHPO Gym and Bayesmark."""

from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.experiments.races import race, resume
from polarbear_plugins.inference.fitting import fit
from polarbear_plugins.plugins.hookspecs import hookimpl
from polarbear_plugins.plugins.manager import load_plugins, read_trajectories
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.posterior.relations import Relations, compare
from polarbear_plugins.racing.result import RaceResult, analyze
from polarbear_plugins.racing.settings import RaceSettings
from polarbear_plugins.rankings.stream import RankingStream, rank, stream_rankings
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.selection.choice import select
from polarbear_plugins.selection.portfolio import select_portfolio
from polarbear_plugins.trajectories.timepoints import log_timepoints, uniform_timepoints
from polarbear_plugins.trajectories.trajectory import Trajectory, best_at

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
