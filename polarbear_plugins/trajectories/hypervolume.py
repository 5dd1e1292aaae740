"""Several objectives as one curve: the share of the hypervolume that is not dominated yet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polarbear_plugins.checks import FloatArray, as_array
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require

__all__ = ["undominated_volume"]


def undominated_volume(points: Sequence[Sequence[float]]) -> FloatArray:
    """Share of the unit cube that no point so far dominates, after each point: 1 minus the normalised hypervolume.

    The objectives are minimised and scaled such that 0 and 1 are their bounds; what lies outside counts as the bound.
    The reference point is the worst corner.  A point with ``nan`` failed, and changes nothing.

    Parameters
    ----------
    points[evaluation, objective]
        In the order of evaluation.

    Examples
    --------
    >>> undominated_volume([[0.5, 0.5], [0.9, 0.9], [0.25, 0.75]])  # doctest: +SKIP
    array([0.75  , 0.75  , 0.6875])
    """
    if not len(points):
        return np.empty(0)
    values = as_array(points, "points")
    if values.ndim != 2 or values.shape[1] < 2:
        raise InvalidInputError(f"points: expected two or more objectives a point, got an array of {values.shape}.")
    moocore = require("moocore", extra="yahpo", who="The hypervolume")
    corner = np.ones(values.shape[1])
    values = np.clip(values, 0, 1)
    front = np.empty((0, values.shape[1]))
    volume = 0.0
    volumes = np.empty(len(values))
    for place, point in enumerate(values):
        # Most points are dominated, and then nothing changes.
        if not np.isnan(point).any() and not (front <= point).all(axis=1).any():
            front = np.vstack((front[~(point <= front).all(axis=1)], point))
            volume = max(volume, float(moocore.hypervolume(front, ref=corner)))
        volumes[place] = volume
    # Rounding must not leave the interval.
    return np.clip(1 - volumes, 0, 1)
