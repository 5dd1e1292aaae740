"""The text and the JSON of ``polarbear measures``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.text import Text

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.cli.output import show_result, text_table
from polarbear_plugins.measures.consensus import (
    MOST_FOR_KEMENY,
    Consensus,
    ConsensusMethod,
    consensus_ranking,
    pairwise_wins,
)
from polarbear_plugins.measures.disagreements import Contradiction
from polarbear_plugins.measures.friedman import FriedmanTest, friedman_test
from polarbear_plugins.measures.orders import MeasureOrders
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.rankings.summaries import MeanCurves, mean_ranks, mean_regret
from polarbear_plugins.rankings.table import RankingTable
from polarbear_plugins.trajectories.timepoints import timepoint_index

if TYPE_CHECKING:
    import pandas as pd

_MOST_PAIRS = 10


@dataclass(frozen=True, slots=True)
class RankSummary:
    """Mean ranks and regret over time, with Friedman's test and a consensus at the budgets."""

    ranks: MeanCurves
    regret: MeanCurves
    budgets: FloatArray
    tests: tuple[FriedmanTest, ...]
    consensus: tuple[Consensus, ...]

    @classmethod
    def of(cls, table: RankingTable, budgets: FloatArray) -> RankSummary:
        """Summarise rankings at timepoints among which the budgets are; no tests with a single instance."""
        ranks = mean_ranks(table)
        method: ConsensusMethod = "kemeny" if len(ranks.algorithms) <= MOST_FOR_KEMENY else "borda"
        tested = budgets.tolist() if min(ranks.count.min(), len(ranks.algorithms)) > 1 else []
        return cls(
            ranks,
            mean_regret(table),
            budgets,
            tuple(friedman_test(table, time) for time in tested),
            tuple(consensus_ranking(pairwise_wins(table, time), method) for time in tested),
        )

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON; ``null`` for a standard error of one instance."""
        return {
            "mean_ranks": rows_of(self.ranks.to_frame()),
            "mean_regret": rows_of(self.regret.to_frame()),
            "friedman": [test.to_json() for test in self.tests],
            "consensus": [
                {"timepoint": test.timepoint, **found.to_json()}
                for test, found in zip(self.tests, self.consensus, strict=True)
            ],
        }


def show_measures(out: Console, orders: MeasureOrders, values: pd.DataFrame, times: pd.DataFrame) -> None:
    """Print the areas, the fixed-budget and the fixed-target table."""
    out.print(
        f"{orders.runs} runs of {len(orders.algorithms)} algorithms on {len(orders.instances)} instances · budget "
        f"{orders.budget:g} · {scale_text(orders)}"
    )
    if orders.left_out:
        out.print(
            f"{orders.left_out} runs are left out: they end before the budget, or not all algorithms ran on that "
            "instance."
        )
    ranked = orders.order("AOCC")
    budgets = values.index.unique("budget")
    view = text_table("algorithm", ">AOCC", ">ECDF area", *(f">median at {budget:,.5g}" for budget in budgets))
    for name in ranked:
        place = orders.algorithms.index(name)
        areas = [f"{orders.by_measure[measure][place]:.4f}" for measure in ("AOCC", "ECDF area")]
        view.add_row(Text(name), *areas, *(f"{values.loc[(name, b), 'median']:.4g}" for b in budgets))
    out.print("Areas are best at 1; medians of the best values:")
    out.print(view)
    targets = times.index.unique("target")
    view = text_table("algorithm", *(f">{target:.3g}" for target in targets))
    for name in ranked:
        cells = [(times.loc[(name, target), "ert"], times.loc[(name, target), "success_rate"]) for target in targets]
        view.add_row(Text(name), *("never" if ert == math.inf else f"{ert:,.5g} ({rate:.0%})" for ert, rate in cells))
    out.print("Expected running time until a target, and the share of runs that reached it:")
    out.print(view)


def scale_text(orders: MeasureOrders) -> str:
    """Scale of the areas in words."""
    if orders.scale == "relative":
        return "scale from the worst to the best value found on each instance"
    return f"{orders.scale} scale {orders.lower:g}..{orders.upper:g}"


def show_ranks(out: Console, summary: RankSummary) -> None:
    """Print mean ranks and regret, what the tests tell apart, and a consensus."""
    ranks, regret = summary.ranks, summary.regret
    columns = [f">{what} at {time:,.5g}" for time in summary.budgets for what in ("rank", "regret")]
    view = text_table("algorithm", *columns)
    places = [timepoint_index(ranks.timepoints, time) for time in summary.budgets]
    for place in np.argsort(ranks.mean[-1], kind="stable"):
        cells = [_with_error(curves, time, place) for time in places for curves in (ranks, regret)]
        view.add_row(Text(ranks.algorithms[place]), *cells)
    out.print("Mean ranks, and mean regret from 0 (best value found on the instance) to 1 (worst), ± standard error:")
    out.print(view)
    if not summary.tests:
        out.print("With a single ranking mean ranks cannot be tested.")
    for test, found in zip(summary.tests, summary.consensus, strict=True):
        out.print(f"At {test.timepoint:,.5g}: {_test_text(test)}", soft_wrap=True)
        if test.rejects:
            out.print(f"  {_consensus_text(found)}", soft_wrap=True)


def _with_error(curves: MeanCurves, time: int, place: int) -> str:
    error = curves.standard_error[time, place]
    return f"{curves.mean[time, place]:.2f}" + ("" if math.isnan(error) else f" ± {error:.2f}")


def _test_text(test: FriedmanTest) -> str:
    caveat = f" ({test.caveat})" if test.caveat else ""
    said = f"Friedman's test on {test.count} {test.unit}{caveat}: {test.p_text}"
    if not test.rejects:
        return f"{said}, so no mean ranks are told apart (level {test.level:g})."
    alike = "; ".join(", ".join(group) for group in test.groups() if len(group) > 1)
    return (
        f"{said}. Mean ranks must differ by more than {test.critical_difference:.2f} (Nemenyi, level {test.level:g}); "
        + (f"not told apart: {alike}." if alike else "all are told apart.")
    )


def _consensus_text(found: Consensus) -> str:
    if found.method == "borda":
        return f"Order by wins minus losses (Borda): {found}."
    many = "" if found.optima == 1 else f" (one of {found.optima:,})"
    return f"Consensus, the order with the fewest rank reversals{many}: {found}."


def show_posterior(out: Console, result: RaceResult, pairs: Sequence[Contradiction]) -> None:
    """Print the posterior of the rankings, and where they do not confirm the order of the measures."""
    show_result(out, result)
    if not pairs:
        out.print("Rankings confirm the order of the measures for every pair.")
        return
    out.print("\nWhere rankings do not confirm the order of the measures:")
    for pair in pairs[:_MOST_PAIRS]:
        out.print(f"- {pair}", soft_wrap=True)
    if len(pairs) > _MOST_PAIRS:
        out.print(f"- and {len(pairs) - _MOST_PAIRS} more pairs, all with --json.")


def orders_json(orders: MeasureOrders) -> dict[str, Any]:
    """The measures and their orders as JSON."""
    return {
        "runs": orders.runs,
        "left_out": orders.left_out,
        "algorithms": list(orders.algorithms),
        "instances": list(orders.instances),
        "budget": orders.budget,
        "scale": orders.scale,
        "lower": orders.lower,
        "upper": orders.upper,
        "measures": {
            measure: dict(zip(orders.algorithms, map(_finite, values.tolist()), strict=True))
            for measure, values in orders.by_measure.items()
        },
        "orders": {measure: list(orders.order(measure)) for measure in orders.by_measure},
    }


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table; values that are not finite, such as the time to a target never reached, become null."""
    rows: Sequence[Mapping[Any, Any]] = table.to_dict("records")
    return [{str(key): _finite(value) for key, value in row.items()} for row in rows]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float | np.floating) and not math.isfinite(value) else value
