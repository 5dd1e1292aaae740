"""The result of a race or an analysis in words, the same in the terminal, the notebook and the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.html import Markup, html_table
from polarbear_plugins.display.text import probability_text, spans
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.choice import ratings_among

if TYPE_CHECKING:
    from polarbear_plugins.racing.forecast import Forecast
    from polarbear_plugins.racing.result import RaceResult


_MOST_STRETCHES = 4  # more are not useful advice
_WORTH_A_CHANGE = 0.01  # mean rating over time

_WHY = {
    "resolved": "every pair is settled",
    "analyzed": "every pair is settled",
    "max_rounds": "stopped after as many rounds as allowed",
    "max_cost": "stopped because the next instance would cost more than allowed",
    "instances": "stopped because the suite has no more instances",
    "inference": "stopped because no posterior is good enough to decide on",
    "interrupted": "interrupted",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Timepoints from one place up to another, both included, and the algorithm to choose there."""

    first: int
    last: int
    algorithm: str


def conclusion(result: RaceResult, unit: str = "", forecast: Forecast | None = None) -> str:
    """What was found, which algorithm to choose, how the race ended and what is still open.

    Parameters
    ----------
    unit
        Unit of time, such as ``evaluations``; left out if unknown.
    forecast
        Forecast of the instances that would settle the open pairs; left out if not given.
    """
    if not result.rounds:
        return "Interrupted before the first round was over: nothing is known yet."
    kept, all_of_them = result.pareto_set, len(result.algorithms)
    verb = "is" if len(kept) == 1 else "may be"
    text = f"{len(kept)} of {all_of_them} algorithms {verb} right for some budget: {', '.join(kept)}. "
    if len(kept) > 1:
        text += advice(result, unit) + " "
    if result.resolved:
        text += "Every pair is settled"
    else:
        pairs = result.open_pairs
        some = "; ".join(f"{one} and {other}" for one, other, _ in pairs[:3]) + (" ..." if len(pairs) > 3 else "")
        text += f"{len(pairs)} pair{'s are' if len(pairs) > 1 else ' is'} not settled ({some})"
        if result.stopped not in ("resolved", "analyzed"):
            text += f", {_WHY[result.stopped]}"
        if forecast is not None:
            text += f"; {forecast} would likely settle {'them' if len(pairs) > 1 else 'it'}"
    if result.stopped != "analyzed":
        share = result.cost / result.full_cost if result.full_cost else 1.0
        text += (
            f". {len(result.rounds)} rounds, {len(result.state.table):,} instances, {share:.0%} of the cost of running "
            "everything on as many"
        )
    return f"{text}."


def advice(result: RaceResult, unit: str = "") -> str:
    """One sentence that says which algorithm to choose for which budget."""
    return advice_from(stretches(result.posterior, result.pareto_set), result.timepoints, unit)


def advice_from(found: Sequence[Stretch], grid: FloatArray, unit: str = "") -> str:
    """One sentence about stretches.

    >>> grid = np.array([10.0, 100.0, 20_000.0, 50_000.0])
    >>> advice_from([Stretch(0, 2, "CSA"), Stretch(3, 3, "XNES")], grid, "evaluations")
    'Choose CSA up to 20,000 evaluations, XNES beyond.'
    """
    if len(found) == 1:
        return f"Choose {found[0].algorithm} for any budget: changing to another one would gain little."
    if len(found) > _MOST_STRETCHES:
        names = list(dict.fromkeys(stretch.algorithm for stretch in found))
        return f"The likely best algorithm changes {len(found) - 1} times with the budget, among {', '.join(names)}."
    unit = f" {unit}" if unit else ""
    parts = [f"{stretch.algorithm} up to {grid[stretch.last]:,.5g}{unit}" for stretch in found[:1]]
    parts += [f"{stretch.algorithm} up to {grid[stretch.last]:,.5g}" for stretch in found[1:-1]]
    return f"Choose {', '.join(parts)}, {found[-1].algorithm} beyond."


def stretches(posterior: Posterior, among: Sequence[str]) -> list[Stretch]:
    """Which algorithm to choose when: the highest mean ratings among the candidates, with a change only where it pays.

    Each change of the choice must gain at least 0.01 in rating on average over all timepoints: a tiny lead for a while
    is not a reason to change.
    """
    mean = ratings_among(posterior, among).mean(axis=0) / posterior.timepoints.size
    steps, candidates = mean.shape
    # The best total up to each timepoint that ends with each candidate, and the choice before it.
    total, before = mean[0].copy(), np.zeros((steps, candidates), dtype=int)
    for t in range(1, steps):
        best = int(np.argmax(total))
        change = total[best] - _WORTH_A_CHANGE > total
        before[t] = np.where(change, best, np.arange(candidates))
        total = np.where(change, total[best] - _WORTH_A_CHANGE, total) + mean[t]
    chosen = [int(np.argmax(total))]
    for t in range(steps - 1, 0, -1):
        chosen.append(int(before[t, chosen[-1]]))
    chosen.reverse()
    starts = [t for t in range(steps) if t == 0 or chosen[t] != chosen[t - 1]]
    ends = [*(start - 1 for start in starts[1:]), steps - 1]
    return [Stretch(start, end, among[chosen[start]]) for start, end in zip(starts, ends, strict=True)]


def reasons(result: RaceResult) -> dict[str, str]:
    """Why each algorithm is in or out."""
    leader = np.argmax(mean_ratings(result.posterior), axis=1)
    found = {}
    for place, name in enumerate(result.algorithms):
        where = where_it_leads(result.timepoints, leader == place)
        found[name] = where or "never likely best, but not dominated"
    for out in result.eliminations:
        found[out.algorithm] = f"{out.by} is better at every timepoint, {probability_text(out.probability)}"
    return found


def mean_ratings(posterior: Posterior) -> FloatArray:
    """``mean[timepoint, algorithm]``: posterior mean of the probability of being best of all."""
    return posterior.ratings.mean(axis=0)


def result_table(result: RaceResult) -> Markup:
    """HTML table of the algorithms: in or out, and why."""
    why, out = reasons(result), {elimination.algorithm for elimination in result.eliminations}
    rows = [[name, "out" if name in out else "in", why[name]] for name in result.algorithms]
    return html_table(("algorithm", "status", "because"), rows)


def where_it_leads(grid: FloatArray, ahead: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Text that says where an algorithm where_it_leads; empty if nowhere."""
    found = spans(grid, ahead)
    more = f" and {len(found) - 3} more spans" if len(found) > 3 else ""
    return f"most likely best at {', '.join(found[:3])}{more}" if found else ""
