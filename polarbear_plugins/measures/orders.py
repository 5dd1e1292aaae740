"""Orders of algorithms by classical measures, beside their ratings over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_choice, as_number
from polarbear_plugins.display.frames import long_frame
from polarbear_plugins.display.html import summary_table, text
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.measures.ecdf_and_aocc import ecdf_area, mean_area_over_curve
from polarbear_plugins.measures.tables import fixed_budget
from polarbear_plugins.measures.targets import LOWER, UPPER, Scale, check_bounds, spread_targets
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.rankings.ranks import ranks_of
from polarbear_plugins.trajectories.runs import group_runs, relative_to_range, watched_until
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


MeasureName: TypeAlias = Literal["AOCC", "ECDF area", "final median"]
AreaScale: TypeAlias = Literal["log", "linear", "relative"]


@dataclass(frozen=True, slots=True, eq=False)
class MeasureOrders:
    """Classical measures of runs on the same instances.  Returned by :func:`order_by_measures`.

    Attributes
    ----------
    algorithms
        Sorted by name.
    instances
        Those on which all algorithms have runs until ``budget``; only they count.
    scale, lower, upper
        Scale of the areas and its bounds.
    runs, left_out
        Numbers of runs that count, and that do not.
    by_measure
        ``by_measure[measure][algorithm]``: ``AOCC`` and ``ECDF area`` are best at 1; the smaller the ``final median``,
        the better.
    """

    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    runs: int
    left_out: int
    budget: float
    scale: AreaScale
    lower: float
    upper: float
    by_measure: Mapping[MeasureName, FloatArray]

    def losses(self, measure: MeasureName) -> FloatArray:
        """Values of a measure, negated where larger is better."""
        values = self.by_measure[measure]
        return values if measure == "final median" else -values

    def order(self, measure: MeasureName) -> tuple[str, ...]:
        """Algorithms by a measure, the best first; ties by name."""
        return tuple(self.algorithms[k] for k in np.argsort(self.losses(measure), kind="stable"))

    def columns_in(self, posterior: Posterior) -> list[int]:
        """Columns of the algorithms in a posterior."""
        if set(self.algorithms) != set(posterior.algorithms):
            raise InvalidInputError("Measures and posterior are of different algorithms.")
        return [posterior.algorithms.index(name) for name in self.algorithms]

    def table(self, posterior: Posterior | None = None, timepoints: int = 4) -> pd.DataFrame:
        """Table of the measures, with the mean ratings of a posterior at a few timepoints."""
        import pandas as pd

        columns: dict[str, FloatArray] = {str(measure): values for measure, values in self.by_measure.items()}
        if posterior is not None:
            places = self.columns_in(posterior)
            grid, ratings = posterior.timepoints, posterior.mean_ratings
            shown = np.unique(np.linspace(0, grid.size - 1, min(timepoints, grid.size)).round().astype(int))
            columns |= {f"rating at {grid[t]:,.5g}": ratings[t, places] for t in shown}
        frame = pd.DataFrame(columns, index=pd.Index(self.algorithms, name="algorithm"))
        return frame.loc[list(self.order("AOCC"))]

    def to_pandas(self) -> pd.DataFrame:
        """The measures in long form: ``measure``, ``algorithm``, ``value`` and ``rank``, where 1 is best."""
        losses = np.stack([self.losses(measure) for measure in self.by_measure])
        axes = {"measure": tuple(self.by_measure), "algorithm": self.algorithms}
        return long_frame(axes, {"value": np.stack(list(self.by_measure.values())), "rank": ranks_of(losses)})

    def _repr_html_(self) -> str:
        what = f"{self.runs:,} runs on {len(self.instances):,} instances until {self.budget:,.5g}"
        return f"<p>{text(what)}</p>{summary_table(self.table(), 'AOCC and ECDF area are best at 1')}"


def order_by_measures(
    trajectories: Iterable[Trajectory],
    budget: float,
    *,
    first: float | None = None,
    targets: ArrayLike | None = None,
    scale: AreaScale = "log",
    lower: float | None = None,
    upper: float | None = None,
) -> MeasureOrders:
    """Order algorithms by AOCC, by the area under the ECDF, and by the median of the best values at the end.

    Means over different instances are not comparable, so only instances count on which every algorithm has a run
    watched until ``budget``.  All runs weigh the same, repeated or not.

    Parameters
    ----------
    budget
        End of the runs.
    first
        Start of the area under the ECDF over the logarithm of time; by default the area is over time from 0.
    targets
        Targets of the ECDF, in the unit of the values; by default 51, evenly spread on the scale.
    scale
        Of the areas.  ``"log"`` needs values with a known optimum of 0; ``"linear"`` takes any values between bounds
        that are given; ``"relative"`` takes any values, linear between the best and the worst that these runs found on
        each instance (:func:`polarbear_plugins.trajectories.relative_to_range`).
    lower, upper
        Bounds of the scale; by default 1e-8 and 1e2 for ``"log"``, always 0 and 1 for ``"relative"``.
    """
    kind, lower, upper = as_scale(scale, lower, upper)
    budget = as_number(budget, "order_by_measures: budget")
    groups = group_runs(trajectories, "order_by_measures")
    watched = watched_until(groups, budget, "order_by_measures")
    common = set.intersection(*({run.instance for run in runs} for runs in watched.values()))
    if not common:
        raise InvalidInputError(
            f"order_by_measures: there is no instance on which all of {', '.join(groups)} have a run watched until "
            f"{budget:g}. Choose an earlier budget, or leave some out."
        )
    kept = [run for runs in watched.values() for run in runs if run.instance in common]
    scaled = relative_to_range(kept, budget) if scale == "relative" else kept
    areas = mean_area_over_curve(scaled, budget, lower, upper, scale=kind)
    if targets is None:
        shares = ecdf_area(scaled, budget, spread_targets(kind, lower, upper), first)
    else:
        shares = ecdf_area(kept, budget, targets, first)
    medians = fixed_budget(kept, [budget])["median"].droplevel("budget")
    return MeasureOrders(
        tuple(groups),
        tuple(dict.fromkeys(run.instance for run in kept)),
        len(kept),
        sum(map(len, groups.values())) - len(kept),
        budget,
        scale,
        lower,
        upper,
        {
            "AOCC": np.array([areas[name][0] for name in groups]),
            "ECDF area": np.array([shares[name] for name in groups]),
            "final median": np.array([medians[name] for name in groups]),
        },
    )


def as_scale(scale: AreaScale, lower: float | None, upper: float | None) -> tuple[Scale, float, float]:
    """Scale on which areas are computed, with its bounds."""
    as_choice(scale, AreaScale, "order_by_measures: scale")
    if scale == "relative":
        if lower is not None or upper is not None:
            raise InvalidInputError("A relative scale has the bounds 0 and 1: leave out lower and upper.")
        return "linear", 0.0, 1.0
    if scale == "linear" and (lower is None or upper is None):
        raise InvalidInputError("A linear scale needs both bounds, lower and upper, in the unit of the values.")
    low, high = (LOWER if lower is None else lower), (UPPER if upper is None else upper)
    return scale, *check_bounds(low, high, "order_by_measures", scale)
