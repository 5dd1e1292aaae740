"""Planning experiments: sample sizes, power, repetitions and paired tests."""

from polarbear_plugins.planning.paired_tests import Comparison, Normality, compare_pairs, judge_differences
from polarbear_plugins.planning.repetitions import Estimate, RepetitionSettings, estimate_difference, next_runs
from polarbear_plugins.planning.sample_size import (
    detectable_effect,
    effect_of_share,
    number_of_instances,
    power_curve,
    power_of,
    standardized_effect,
)

__all__ = [
    "Comparison",
    "Estimate",
    "Normality",
    "RepetitionSettings",
    "compare_pairs",
    "detectable_effect",
    "effect_of_share",
    "estimate_difference",
    "judge_differences",
    "next_runs",
    "number_of_instances",
    "power_curve",
    "power_of",
    "standardized_effect",
]
