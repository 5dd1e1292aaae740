"""Several objectives as one value: hypervolume between known bounds, or between what all runs have found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array, as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require


def undominated_volume(points: Sequence[Sequence[float]]) -> FloatArray:
    """Share of the unit cube that no point so far dominates, after each point: 1 minus the normalised hypervolume.

    Objectives are minimised and scaled to bounds 0 and 1; values outside are clipped.  The reference point is the worst
    corner.  A point with ``nan`` failed and changes nothing.

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
    values = np.clip(_as_points(points), 0, 1)
    # Rounding must not leave the interval.
    return np.clip(1 - _volumes_so_far(values, np.ones(values.shape[1])), 0, 1)


def hypervolume_losses(runs: Sequence[ArrayLike], beyond: float = 1.0) -> list[FloatArray]:
    """Hypervolume that each run on an instance lacks, after each evaluation, to the front of all runs together.

    As in the analysis of YAHPO Gym (Pfisterer et al. 2022, Supplement E.3): the least and the greatest value that any
    run had of an objective become 0 and 1, the nadir is the greatest of all, and the reference front are the
    points of all runs that no other dominates.  So the losses of a run depend on which other runs there are, and can be
    computed only when all have ended.

    Parameters
    ----------
    runs
        ``runs[run][evaluation, objective]``: minimised, in the order of evaluation; ``nan`` for one that failed.
    beyond
        How far the reference point lies beyond the nadir, in units of the range of an objective; 1 as in their
        analysis, so that the ends of a front count, too.

    Returns
    -------
    list of losses[evaluation]
        ``nan`` until the first evaluation that did not fail; 0 if all points of the reference front are found.

    Examples
    --------
    >>> hypervolume_losses([[[0.0, 4.0], [1.0, 0.0]], [[1.0, 4.0]]])  # doctest: +SKIP
    [array([1., 0.]), array([2.])]
    """
    beyond = as_number(beyond, "beyond", at_least=0)
    points = [_as_points(run) for run in runs]
    if len({run.shape[1] for run in points}) > 1:
        raise InvalidInputError("runs: expected the same number of objectives in all runs on an instance.")
    everything = np.concatenate(points)
    everything = everything[~np.isnan(everything).any(axis=1)]
    if not len(everything):
        return [np.full(len(run), np.nan) for run in points]
    least, span = everything.min(axis=0), np.ptp(everything, axis=0)
    span[span == 0] = 1  # the same for all runs: it does not tell them apart
    corner = np.full(everything.shape[1], 1.0 + beyond)
    moocore = require("moocore", extra="yahpo", who="The hypervolume")
    best = float(moocore.hypervolume((everything - least) / span, ref=corner))
    losses = []
    for run in points:
        # Of rounding, nothing but 0 remains where the whole front is found.
        loss = np.maximum(best - _volumes_so_far((run - least) / span, corner), 0.0)
        loss[loss < 1e-12 * best] = 0.0
        loss[~np.logical_or.accumulate(~np.isnan(run).any(axis=1))] = np.nan
        losses.append(loss)
    return losses


def _as_points(points: ArrayLike) -> FloatArray:
    values = as_array(points, "points")
    if values.ndim != 2 or values.shape[1] < 2:
        raise InvalidInputError(
            f"points: expected two or more objectives per point, got an array of shape {values.shape}."
        )
    return values


def _volumes_so_far(points: FloatArray, corner: FloatArray) -> FloatArray:
    """Hypervolume up to the corner of the points so far, after each point."""
    moocore = require("moocore", extra="yahpo", who="The hypervolume")
    front = np.empty((0, points.shape[1]))
    volume = 0.0
    volumes = np.empty(len(points))
    for place, point in enumerate(points):
        # Most points are dominated and change nothing.
        if not np.isnan(point).any() and not (front <= point).all(axis=1).any():
            front = np.vstack((front[~(point <= front).all(axis=1)], point))
            volume = max(volume, float(moocore.hypervolume(front, ref=corner)))
        volumes[place] = volume
    return volumes
