"""What was observed and what was assumed, in words: early ends, timepoints without observations, pooled dimensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.display.text import spans
from polarbear_plugins.rankings.comparable import instances_seen

if TYPE_CHECKING:
    from polarbear_plugins.racing.result import RaceResult
    from polarbear_plugins.rankings.ends import EarlyEnds

_SLOWER = 0.1  # share of the time alone that is worth a sentence
_FROM_THERE_ON = {
    "hold": "keeps its last value from there on (--ended cut leaves it out)",
    "cut": "is left out from there on",
    "done": "counts as best from there on",
}


def assumptions(result: RaceResult) -> list[str]:
    """Sentences about what was assumed where the data end; told beside the conclusion."""
    if not result.rounds:
        return []
    replications = 1 if result.stopped == "analyzed" else result.settings.replications
    found = [_replications_text(replications)] if replications > 1 else []
    found += [early_end_text(ends) for ends in result.state.table.early_ends]
    found += [_absent_text(result)] if not result.posterior.observed.all() else []
    found += [text] if (text := interference_text(result)) else []
    return found + pooled_text(result)


def interference_text(result: RaceResult) -> str:
    """Sentence about a race against the clock whose runs were slower than alone; empty if they were not."""
    found = result.about.get("interference") or {}
    slower = found.get("slower", 0.0)
    if slower <= _SLOWER:
        return ""
    return (
        f"A reference run took {slower:.0%} longer here than with a core to itself, by the median of "
        f"{found['measured']:,}: the seconds are those of a busy machine."
    )


def unused_text(result: RaceResult) -> str:
    """Last part of a sentence on the cost: what runs cost besides that no round has used, if there are any."""
    if not result.unused_cost:
        return ""
    share = result.unused_cost / result.full_cost if result.full_cost else 0.0
    text = f"{share:.0%}" if share >= 0.01 else "less than 1%"
    # A race that goes on may still use them.
    may_go_on = result.stopped in ("interrupted", "requested", "running", "max_rounds", "max_cost")
    which = "runs that no round has used yet" if may_go_on else "runs ahead of time that were not needed"
    return f"; {which} cost another {text}"


def early_end_text(ends: EarlyEnds) -> str:
    """Sentence about runs that ended early.

    >>> from polarbear_plugins.rankings.ends import EarlyEnds
    >>> early_end_text(EarlyEnds("NM", "cut", 24, 119.0, 1185.0))
    'NM ended before others in 24 runs, at 119 to 1,185, and is left out from there on.'
    """
    when = f"{ends.first:,.5g}" if ends.first == ends.last else f"{ends.first:,.5g} to {ends.last:,.5g}"
    runs = "1 run" if ends.runs == 1 else f"{ends.runs:,} runs"
    what = "reached its target" if ends.rule == "done" else "ended before others"
    return f"{ends.algorithm} {what} in {runs}, at {when}, and {_FROM_THERE_ON[ends.rule]}."


def _replications_text(replications: int) -> str:
    return f"Each algorithm ran {replications:,} times on each instance; together these runs count as one instance."


def _absent_text(result: RaceResult) -> str:
    posterior = result.posterior
    parts = [
        f"{name} at {', '.join(spans(posterior.timepoints, ~posterior.observed[:, place]))}"
        for place, name in enumerate(posterior.algorithms)
        if not posterior.observed[:, place].all()
    ]
    return f"Never observed, so that nothing is decided or advised there: {'; '.join(parts)}."


def dimensions_of(result: RaceResult) -> dict[str, int]:
    """Dimension of each instance, as far as it is known."""
    known = result.about.get("dimensions")
    if isinstance(known, Mapping):
        return {str(name): int(dimension) for name, dimension in known.items()}
    of_identity = {identity.name: identity.parameters.get("dimension") for identity in result.identities}
    return {
        name: found for name, found in of_identity.items() if isinstance(found, int) and not isinstance(found, bool)
    }


def pooled_text(result: RaceResult) -> list[str]:
    """Sentence that says that instances of several dimensions are pooled; none if they are not."""
    counts = Counter(dimensions_of(result).values())
    if len(counts) < 2:
        return []
    parts = ", ".join(f"{counts[dimension]:,} with d = {dimension}" for dimension in sorted(counts))
    means = (
        "budgets are multiples of d"
        if result.about.get("per_dimension") or result.settings.per_dimension
        else "a budget is as many evaluations for all of them; --budget 2000d would count in multiples of d"
    )
    return [f"Instances of {len(counts)} dimensions are pooled ({parts}): {means}. --by dimension tells them apart."]


def seen_text(result: RaceResult) -> dict[str, list[str]]:
    """For each algorithm and timepoint, in brackets, on how many instances it was seen, if not on all."""
    seen, total = instances_seen(result.state.table), len(result.state.table.instances)
    return {
        name: ["" if count == total else f" ({count:,})" for count in seen[:, place]]
        for place, name in enumerate(result.algorithms)
    }


def never_found_anything(result: RaceResult) -> list[str]:
    """Algorithms of which no run has found a value."""
    values = result.state.table.values
    there = np.logical_or.reduce(~np.isnan(values), axis=(0, 1))
    found = np.logical_or.reduce(values < np.inf, axis=(0, 1))
    return [name for place, name in enumerate(result.algorithms) if there[place] and not found[place]]
