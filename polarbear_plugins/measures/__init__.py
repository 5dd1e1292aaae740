"""The traditional anytime measures, Bayesmark's scores, audits of leaderboards, and gates for new versions."""

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
from polarbear_plugins.measures.further_units import FurtherUnits
from polarbear_plugins.measures.gates import BudgetVerdict, Gate, GateComparison, gate
from polarbear_plugins.measures.orders import MeasureOrders, order_by_measures
from polarbear_plugins.measures.run_pairs import Pairing
from polarbear_plugins.measures.score_parts import Part, PartScore, split_scores
from polarbear_plugins.measures.scores import Scores, Studies, score_studies
from polarbear_plugins.measures.tables import expected_running_time, fixed_budget, fixed_target
from polarbear_plugins.measures.targets import log_targets

__all__ = [
    "Audit",
    "Bootstrap",
    "BudgetVerdict",
    "Consensus",
    "Contradiction",
    "Disagreement",
    "FriedmanTest",
    "FurtherUnits",
    "Gate",
    "GateComparison",
    "MeasureOrders",
    "Neighbours",
    "Pairing",
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
    "gate",
    "log_targets",
    "mean_area_over_curve",
    "order_by_measures",
    "pairwise_wins",
    "permutation_order",
    "rank_reversals",
    "score_studies",
    "split_scores",
]
