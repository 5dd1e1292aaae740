"""Which algorithm to choose for which budget, and where the data support no choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.text import timepoint_texts
from polarbear_plugins.selection.stretches import Stretch

_MOST_STRETCHES = 4  # more are not useful advice


@dataclass(frozen=True, slots=True)
class _Region:
    """Neighbouring timepoints with one choice that is supported, or without any."""

    last: int
    names: tuple[str, ...]
    supported: bool


def advice_from(found: Sequence[Stretch], grid: FloatArray, unit: str = "") -> str:
    """One sentence about stretches.

    >>> import numpy as np
    >>> grid = np.array([10.0, 100.0, 20_000.0, 50_000.0])
    >>> advice_from([Stretch(0, 2, "CSA"), Stretch(3, 3, "XNES")], grid, "evaluations")
    'Choose CSA up to 20,000 evaluations, XNES beyond.'
    >>> advice_from([Stretch(0, 2, "CSA"), Stretch(3, 3, "XNES", 0.6, ("MSR",))], grid, "evaluations")
    'Choose CSA up to 20,000 evaluations; beyond, no choice is supported: XNES or MSR may be best.'
    """
    regions = list(_regions(found))
    if not any(region.supported for region in regions):
        names = tuple(dict.fromkeys(name for region in regions for name in region.names))
        return f"No choice is supported for any budget: {either(names)} may be best."
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
            text += f"{'; ' if place else ''}{end}, no choice is supported: {either(region.names)} may be best"
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


def either(names: Sequence[str]) -> str:
    """Names with "or" before the last one."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
