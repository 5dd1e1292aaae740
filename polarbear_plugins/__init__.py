"""Bayesian racing of anytime optimization algorithms, as plugins for IOHprofiler, Optuna, YAHPO Gym and Bayesmark."""

from polarbear_plugins.errors import PolarBearError
from polarbear_plugins.experiments import race, resume
from polarbear_plugins.inference import check_model, fit
from polarbear_plugins.journal import load_result
from polarbear_plugins.plugins import hookimpl, load_plugins, read_trajectories
from polarbear_plugins.posterior import Posterior, Relations, compare
from polarbear_plugins.racing import RaceResult, RaceSettings, analyze
from polarbear_plugins.rankings import UNRANKED, RankingStream, RankingTable, rank, stream_rankings
from polarbear_plugins.selection import select, select_portfolio
from polarbear_plugins.trajectories import Trajectory, best_at, log_timepoints, uniform_timepoints

__all__ = [
    "UNRANKED",
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
    "check_model",
    "compare",
    "fit",
    "hookimpl",
    "load_plugins",
    "load_result",
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
