"""Partial orders of optimizers, one for each test function, from several criteria; and their depth.

On a test function, one optimizer is better than another if it is better in at least one criterion and worse in none.
If criteria contradict each other, the two are incomparable.
"""

from polarbear_plugins.partial_orders.criteria import (
    best_at_timepoints,
    orders_of_functions,
    read_criteria,
    split_criteria,
    time_to_targets,
)
from polarbear_plugins.partial_orders.depth import depth_changes, measure_depth, ufg_depth
from polarbear_plugins.partial_orders.order import IndifferenceError, PartialOrder, from_criteria
from polarbear_plugins.partial_orders.shared import above_counts, shared_order
from polarbear_plugins.partial_orders.suite import CommonStructure, SuiteDepth

__all__ = [
    "CommonStructure",
    "IndifferenceError",
    "PartialOrder",
    "SuiteDepth",
    "above_counts",
    "best_at_timepoints",
    "depth_changes",
    "from_criteria",
    "measure_depth",
    "orders_of_functions",
    "read_criteria",
    "shared_order",
    "split_criteria",
    "time_to_targets",
    "ufg_depth",
]
