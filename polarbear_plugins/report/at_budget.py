"""Whom to choose for a budget of exactly each timepoint, how surely, and what a wrong choice costs, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.text import timepoint_texts
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.racing.result import RaceResult
from polarbear_plugins.report.advice import either
from polarbear_plugins.selection.choice import Choice, select_at_timepoints
from polarbear_plugins.selection.preferences import probability_best
from polarbear_plugins.selection.stretches import Stretch, stretches
from polarbear_plugins.selection.support import SUPPORTED

LITTLE = 0.001  # a smaller regret has no figure: draws can hardly tell it from 0


def choices_at_timepoints(result: RaceResult, robust: Posterior, unit: str = "") -> list[dict[str, Any]]:
    """For each timepoint the choice, a sentence about it, and the probability of being best of each that is left.

    Keys: ``algorithm`` (the highest, ``None`` if fewer than two were observed there), ``supported``, ``support``,
    ``regret``, ``says``, and ``p_best`` by name, ``None`` where a candidate was not observed.  ``robust`` is the
    posterior to choose from.
    """
    times = [f"{time} {unit}".rstrip() for time in timepoint_texts(result.timepoints)]
    around = [
        stretch for stretch in stretches(robust, result.pareto_set) for _ in range(stretch.first, stretch.last + 1)
    ]
    found = []
    for place, choice in enumerate(select_at_timepoints(robust, result.pareto_set)):
        seen = [name for name in choice.candidates if robust.observed[place, robust.algorithms.index(name)]]
        p_best = dict(zip(choice.candidates, probability_best(choice.values).tolist(), strict=True))
        known: dict[str, Any] = {"p_best": {name: p if name in seen else None for name, p in p_best.items()}}
        if len(seen) > 1:
            says = choice_text(choice, times[place], p_best[choice.algorithm], robust.draws)
            says += _advice_around(choice, around[place], result.timepoints)
            known |= {"algorithm": choice.algorithm, "supported": choice.supported, "support": choice.support}
            known |= {"regret": choice.expected_regret, "says": says}
        else:
            known["p_best"] = dict.fromkeys(p_best) if len(p_best) > 1 else dict.fromkeys(seen, 1.0)
            known |= {"algorithm": None, "supported": False, "support": None, "regret": None}
            known["says"] = _without_rivals(seen, choice.candidates, times[place])
        found.append(known)
    return found


def choice_text(choice: Choice, time: str, p_best: float, draws: int) -> str:
    """Sentences about the choice for one budget."""
    sure = f"P(best) {bounded(p_best, draws)}, support {bounded(choice.support, draws)}"
    regret, more = f"{choice.expected_regret:.2g}", f"{100 * choice.expected_regret:.2g} more"
    if choice.expected_regret < LITTLE:
        regret, more = f"below {LITTLE:g}", f"less than {100 * LITTLE:g} more"
    cost = (
        f"Expected regret {regret}: on average over what is uncertain, the best choice would be first among those that "
        f"are left on {more} of 100 new instances than {choice.algorithm}."
    )
    if choice.supported:
        return f"With a budget of {time}, choose {choice.algorithm} ({sure}). {cost}"
    others = f"; {either(choice.rivals)} may be best" if choice.rivals else ""
    return (
        f"With a budget of {time}, no choice is supported: {choice.algorithm} is highest ({sure}, less than "
        f"{SUPPORTED:g}){others}. {cost}"
    )


def _advice_around(choice: Choice, stretch: Stretch, grid: FloatArray) -> str:
    """Sentence about the advice for the stretch of budgets around it, where that is another one; else empty."""
    if stretch.first == stretch.last:
        return ""
    texts = timepoint_texts(grid)
    span = f"{texts[stretch.first]} to {texts[stretch.last]}"
    if not stretch.supported:
        alone = " Over the budgets {} together, no choice is supported: the advice above is about all of them."
        return alone.format(span) if choice.supported else ""
    if stretch.algorithm != choice.algorithm:
        return (
            f" Over the budgets {span} the advice above is {stretch.algorithm}: a change must gain at least 0.01 in "
            "rating on average over time."
        )
    if not choice.supported:
        sure = "more than 99 %" if stretch.support > 0.995 else f"{100 * stretch.support:.0f} %"
        return (
            f" Over the budgets {span} together, {stretch.algorithm} is supported ({sure} on average), which is the "
            "advice above; for this one alone the data are not as sure."
        )
    return ""


def _without_rivals(seen: Sequence[str], candidates: Sequence[str], time: str) -> str:
    if len(candidates) == 1 and seen:
        return f"With a budget of {time}, {candidates[0]} is the only one that is left."
    if not seen:
        return f"None of those that are left was compared at {time}: nothing is advised there."
    return f"Of those that are left, only {seen[0]} was compared at {time}: nothing is advised there."


def bounded(p: float, draws: int) -> str:
    """Text of a probability that was counted in draws: never surer than these can show.

    >>> bounded(0.9731, 4000), bounded(1.0, 4000), bounded(0.0, 200)
    ('0.973', '> 0.999', '< 0.02')
    """
    # What no draw shows may still have a probability of up to three times that of a draw (at a level of 95 %).
    least = max(3 / draws, 0.001)
    digit = 10.0 ** math.floor(math.log10(least))
    least = math.ceil(least / digit - 1e-9) * digit  # rounded up
    if p < least:
        return f"< {least:.1g}"
    if p > 1 - least:
        return f"> {1 - least:.3g}"
    return f"{np.round(p, 3):g}"
