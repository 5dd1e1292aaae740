"""Rankings of algorithms at each timepoint on each instance."""

from polarbear_plugins.rankings.stream import RankingStream, default_timepoints, rank, stream_rankings
from polarbear_plugins.rankings.summaries import MeanCurves, add_virtual_algorithms, mean_ranks, mean_regret, win_shares
from polarbear_plugins.rankings.table import RankingTable

__all__ = [
    "MeanCurves",
    "RankingStream",
    "RankingTable",
    "add_virtual_algorithms",
    "default_timepoints",
    "mean_ranks",
    "mean_regret",
    "rank",
    "stream_rankings",
    "win_shares",
]
