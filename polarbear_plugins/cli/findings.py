"""What a race or an analysis found, as a table and in words."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.text import Text

from polarbear_plugins.cli.output import text_table
from polarbear_plugins.results import RaceResult
from polarbear_plugins.timepoints import spans
from polarbear_plugins.validation import FloatArray

__all__ = ["conclusion", "show_result", "spans"]

_WHY = {
    "resolved": "every pair is settled",
    "analyzed": "every pair is settled",
    "max_rounds": "stopped after as many rounds as allowed",
    "max_cost": "stopped because the next instance would cost more than allowed",
    "instances": "stopped because the suite has no more instances",
    "inference": "stopped because no posterior is good enough to decide on",
    "interrupted": "interrupted",
}


def show_result(out: Console, result: RaceResult) -> None:
    """Print who is in, who is out and why, and what follows from it."""
    if not result.rounds:
        out.print("Interrupted before the first round was over: nothing is known yet.")
        return
    ratings, grid = result.posterior.ratings, result.timepoints
    columns = sorted({0, grid.size // 3, 2 * grid.size // 3, grid.size - 1})
    mean = ratings.mean(axis=0)
    leader = np.argmax(mean, axis=1)
    summary = result.summary()
    failed = bool(summary["failed"].any())
    view = text_table(
        "algorithm",
        "status",
        "because",
        *(f">at {grid[t]:,.5g}" for t in columns),
        ">instances",
        ">cost",
        *([">failed"] if failed else []),
    )
    for place, (name, row) in enumerate(summary.iterrows()):
        out_of_it = row["status"] == "out"
        if out_of_it:
            status = f"out (round {row['round']})" if len(result.rounds) > 1 else "out"
            because = f"{row['by']} is better at every timepoint, {_probability(row['probability'])}"
        else:
            status, because = "in", _leads(grid, leader == place) or "never likely best, but nobody dominates it"
        cells = [f"{mean[t, place]:.0%}" for t in columns]
        cells += [f"{row['instances']:,}", f"{row['cost']:,.6g}", *([str(row["failed"])] if failed else [])]
        view.add_row(Text(str(name)), status, Text(because), *cells, style="dim" if out_of_it else None)
    out.print("Probability of being best of all, by the mean of the posterior:")
    out.print(view)
    out.print(conclusion(result), soft_wrap=True)


def conclusion(result: RaceResult) -> str:
    """Say what was found, how it ended and what is still open."""
    kept, all_of_them = result.pareto_set, len(result.algorithms)
    verb = "is" if len(kept) == 1 else "may be"
    text = f"{len(kept)} of {all_of_them} algorithms {verb} right for some budget: {', '.join(kept)}. "
    if result.resolved:
        text += "Every pair is settled"
    else:
        pairs = result.open_pairs
        some = "; ".join(f"{one} and {other}" for one, other, _ in pairs[:3]) + (" ..." if len(pairs) > 3 else "")
        text += f"{len(pairs)} pair{'s are' if len(pairs) > 1 else ' is'} not settled ({some})"
        if result.stopped not in ("resolved", "analyzed"):
            text += f", {_WHY[result.stopped]}"
        text += f"; {result.outlook()} would likely settle {'them' if len(pairs) > 1 else 'it'}"
    if result.stopped != "analyzed":
        share = result.cost / result.full_cost if result.full_cost else 1.0
        text += (
            f". {len(result.rounds)} rounds, {len(result.state.table):,} instances, {share:.0%} of the cost of running "
            "everything on as many"
        )
    return f"{text}."


def _leads(grid: FloatArray, ahead: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Say in words where an algorithm leads."""
    found = spans(grid, ahead)
    more = f" and {len(found) - 3} more spans" if len(found) > 3 else ""
    return f"most likely best at {', '.join(found[:3])}{more}" if found else ""


def _probability(p: float) -> str:
    return "P > 0.9995" if p > 0.9995 else f"P = {p:.3f}"
