"""Which algorithm to choose for which budget, and where the data support no choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.text import timepoint_texts
from polarbear_plugins.posterior.posterior import Posterior
from polarbear_plugins.selection.choice import ratings_among
from polarbear_plugins.selection.preferences import probability_best
from polarbear_plugins.selection.support import SUPPORTED, WORTH_NAMING, about_best

_MOST_STRETCHES = 4  # more are not useful advice
_WORTH_A_CHANGE = 0.01  # mean rating over time


@dataclass(frozen=True, slots=True)
class Stretch:
    """Timepoints from one place up to another, both included, and the algorithm to choose there.

    Attributes
    ----------
    support
        Probability that nothing is noticeably better, at a timepoint of the stretch chosen at random.
    rivals
        Others that may be the best there, the likeliest first.
    """

    first: int
    last: int
    algorithm: str
    support: float = 1.0
    rivals: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Whether the data support the choice."""
        return self.support >= SUPPORTED


@dataclass(frozen=True, slots=True)
class _Region:
    """Neighbouring timepoints with one choice that is supported, or without any."""

    last: int
    names: tuple[str, ...]
    supported: bool


def advice_from(found: Sequence[Stretch], grid: FloatArray, unit: str = "") -> str:
    """One sentence about stretches.

    >>> grid = np.array([10.0, 100.0, 20_000.0, 50_000.0])
    >>> advice_from([Stretch(0, 2, "CSA"), Stretch(3, 3, "XNES")], grid, "evaluations")
    'Choose CSA up to 20,000 evaluations, XNES beyond.'
    >>> advice_from([Stretch(0, 2, "CSA"), Stretch(3, 3, "XNES", 0.6, ("MSR",))], grid, "evaluations")
    'Choose CSA up to 20,000 evaluations; beyond, no choice is supported: XNES or MSR may be best.'
    """
    regions = list(_regions(found))
    if not any(region.supported for region in regions):
        names = tuple(dict.fromkeys(name for region in regions for name in region.names))
        return f"No choice is supported for any budget: {_either(names)} may be best."
    if len(regions) == 1:
        return f"Choose {found[0].algorithm} for any budget: changing to another one would gain little."
    if len(regions) > _MOST_STRETCHES:
        names = tuple(dict.fromkeys(stretch.algorithm for stretch in found))
        return f"The likely best algorithm changes {len(found) - 1} times with the budget, among {', '.join(names)}."
    unit = f" {unit}" if unit else ""
    until = timepoint_texts(grid)
    text = ""
    for place, region in enumerate(regions):
        end = "beyond" if place == len(regions) - 1 else f"up to {until[region.last]}{'' if place else unit}"
        if not region.supported:
            text += f"{'; ' if place else ''}{end}, no choice is supported: {_either(region.names)} may be best"
        elif place and regions[place - 1].supported:
            text += f", {region.names[0]} {end}"
        else:
            text += f"{'; ' if place else ''}choose {region.names[0]} {end}"
    return f"{text[0].upper()}{text[1:]}."


def _regions(found: Sequence[Stretch]) -> Iterator[_Region]:
    """Stretches without support that follow each other are one region."""
    names: tuple[str, ...] = ()
    for place, stretch in enumerate(found):
        if stretch.supported:
            yield _Region(stretch.last, (stretch.algorithm,), True)
            continue
        names = tuple(dict.fromkeys((*names, stretch.algorithm, *stretch.rivals)))
        if place == len(found) - 1 or found[place + 1].supported:
            yield _Region(stretch.last, names, False)
            names = ()


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def stretches(posterior: Posterior, among: Sequence[str]) -> list[Stretch]:
    """Which algorithm to choose when: the highest mean ratings among the candidates, with a change only where it pays.

    Each change of the choice must gain at least 0.01 in rating on average over all timepoints: a tiny lead for a while
    is not a reason to change.
    """
    ratings = ratings_among(posterior, among)
    chosen = _best_path(ratings.mean(axis=0) / posterior.timepoints.size)
    steps = len(chosen)
    starts = [t for t in range(steps) if t == 0 or chosen[t] != chosen[t - 1]]
    ends = [*(start - 1 for start in starts[1:]), steps - 1]
    return [
        _stretch(ratings[:, start : end + 1], start, chosen[start], among)
        for start, end in zip(starts, ends, strict=True)
    ]


def _stretch(ratings: FloatArray, first: int, chosen: int, among: Sequence[str]) -> Stretch:
    support = float(about_best(ratings, chosen).mean())
    p_best = probability_best(ratings.reshape(-1, len(among)))
    rivals = [place for place in np.argsort(-p_best, kind="stable") if place != chosen]
    named = tuple(among[place] for place in rivals if p_best[place] >= WORTH_NAMING)
    return Stretch(first, first + ratings.shape[1] - 1, among[chosen], support, () if support >= SUPPORTED else named)


def _best_path(gain: FloatArray) -> list[int]:
    """Candidate at each timepoint with the highest total of ``gain[timepoint, candidate]``, minus changes."""
    steps, candidates = gain.shape
    # The best total up to each timepoint that ends with each candidate, and the choice before it.
    total, before = gain[0].copy(), np.zeros((steps, candidates), dtype=int)
    for t in range(1, steps):
        best = int(np.argmax(total))
        change = total[best] - _WORTH_A_CHANGE > total
        before[t] = np.where(change, best, np.arange(candidates))
        total = np.where(change, total[best] - _WORTH_A_CHANGE, total) + gain[t]
    chosen = [int(np.argmax(total))]
    for t in range(steps - 1, 0, -1):
        chosen.append(int(before[t, chosen[-1]]))
    chosen.reverse()
    return chosen
