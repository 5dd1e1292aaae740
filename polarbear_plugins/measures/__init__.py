"""The traditional anytime measures, Bayesmark's scores, and audits of leaderboards."""

from polarbear_plugins.measures.attainment import attained, attainment_differences, attainment_surfaces
from polarbear_plugins.measures.audit import Audit, Neighbours, audit_scores
from polarbear_plugins.measures.bootstrap import Bootstrap, RankingFrequency, bootstrap_scores
from polarbear_plugins.measures.consensus import (
    Consensus,
    consensus_ranking,
    pairwise_wins,
    permutation_order,
    rank_reversals,
)
from polarbear_plugins.measures.disagreements import (
    Contradiction,
    Disagreement,
    find_contradictions,
    find_disagreements,
)
from polarbear_plugins.measures.ecdf_and_aocc import area_over_curve, ecdf, ecdf_area, mean_area_over_curve
from polarbear_plugins.measures.friedman import FriedmanTest, friedman_test
from polarbear_plugins.measures.orders import MeasureOrders, order_by_measures
from polarbear_plugins.measures.score_parts import Part, PartScore, split_scores
from polarbear_plugins.measures.scores import Scores, Studies, score_studies
from polarbear_plugins.measures.tables import expected_running_time, fixed_budget, fixed_target
from polarbear_plugins.measures.targets import log_targets

__all__ = [
    "Audit",
    "Bootstrap",
    "Consensus",
    "Contradiction",
    "Disagreement",
    "FriedmanTest",
    "MeasureOrders",
    "Neighbours",
    "Part",
    "PartScore",
    "RankingFrequency",
    "Scores",
    "Studies",
    "area_over_curve",
    "attained",
    "attainment_differences",
    "attainment_surfaces",
    "audit_scores",
    "bootstrap_scores",
    "consensus_ranking",
    "ecdf",
    "ecdf_area",
    "expected_running_time",
    "find_contradictions",
    "find_disagreements",
    "fixed_budget",
    "fixed_target",
    "friedman_test",
    "log_targets",
    "mean_area_over_curve",
    "order_by_measures",
    "pairwise_wins",
    "permutation_order",
    "rank_reversals",
    "score_studies",
    "split_scores",
]
