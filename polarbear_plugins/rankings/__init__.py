"""Rankings of algorithms at each timepoint on each instance."""

from polarbear_plugins.rankings.ends import EarlyEnds
from polarbear_plugins.rankings.ranks import UNRANKED_RANK
from polarbear_plugins.rankings.stream import RankingStream, default_timepoints, rank, stream_rankings
from polarbear_plugins.rankings.summaries import (
    MeanCurves,
    add_virtual_algorithms,
    mean_ranks,
    mean_regret,
    table_among,
    win_shares,
)
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.rankings.tallies import Tallies, tally
from polarbear_plugins.trajectories.trajectory import UNRANKED

__all__ = [
    "UNRANKED",
    "UNRANKED_RANK",
    "EarlyEnds",
    "MeanCurves",
    "RankingStream",
    "RankingTable",
    "Tallies",
    "add_virtual_algorithms",
    "default_timepoints",
    "mean_ranks",
    "mean_regret",
    "rank",
    "stream_rankings",
    "table_among",
    "tally",
    "win_shares",
]
