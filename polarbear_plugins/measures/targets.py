"""Scales, bounds and targets of classical anytime measures."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number, as_vector, as_whole_number
from polarbear_plugins.errors import InvalidInputError, short

Scale: TypeAlias = Literal["log", "linear"]
LOWER = 1e-8
UPPER = 1e2


def log_targets(lower: float = LOWER, upper: float = UPPER, count: int = 51) -> FloatArray:
    """Targets from ``upper`` down to ``lower`` at equal ratios, both ends included; the easiest first.

    >>> log_targets(1e-2, 1e2, 3)
    array([1.e+02, 1.e+00, 1.e-02])
    """
    return spread_targets("log", lower, upper, count)


def spread_targets(scale: Scale, lower: float, upper: float, count: int = 51) -> FloatArray:
    """Targets from ``upper`` down to ``lower``, evenly spread on a scale, both ends included; the easiest first.

    >>> spread_targets("linear", -1, 1, 3)
    array([ 1.,  0., -1.])
    """
    lower, upper = check_bounds(lower, upper, "targets", scale)
    between = np.geomspace if scale == "log" else np.linspace
    return between(upper, lower, as_whole_number(count, "targets: count", at_least=2))


def as_targets(targets: ArrayLike) -> FloatArray:
    """Check targets: at least one, finite, distinct; returned with the easiest first."""
    goals = as_vector(targets, "targets")
    if not goals.size or not np.isfinite(goals).all() or np.unique(goals).size < goals.size:
        raise InvalidInputError(f"targets: expected distinct finite numbers, at least one, got {short(targets)}.")
    return np.sort(goals)[::-1]


def check_bounds(lower: float, upper: float, who: str, scale: Scale = "log") -> tuple[float, float]:
    """Check the bounds of a scale."""
    as_choice(scale, Scale, f"{who}: scale")
    lower, upper = as_number(lower, f"{who}: lower"), as_number(upper, f"{who}: upper")
    if scale == "log" and not 0 < lower < upper:
        raise InvalidInputError(f"{who}: expected 0 < lower < upper, got {lower:g} and {upper:g}.")
    if not lower < upper:
        raise InvalidInputError(f"{who}: expected lower < upper, got {lower:g} and {upper:g}.")
    return lower, upper
