"""Numbers, timepoints and foreign text, as people read them."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray

# What steers a terminal, turns the direction of writing, or cannot be written as UTF-8.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Text from data as people may see it: what would steer a terminal or a page is written as JSON escapes it.

    >>> print(visible(chr(27) + "[31mcsa"))
    \u001b[31mcsa
    """
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def few_places(count: int) -> list[int]:
    """Places of up to four timepoints that stand for a grid of so many: the ends, and two between.

    >>> few_places(50), few_places(1)
    ([0, 16, 33, 49], [0])
    """
    return sorted({0, count // 3, 2 * count // 3, count - 1})


def spans(grid: FloatArray, inside: NDArray[np.bool_]) -> list[str]:
    """Stretches of timepoints, as text.

    >>> spans(np.array([1.0, 5.0, 20.0, 1500.0]), np.array([True, True, False, True]))
    ['1 to 5', '1,500']
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False])).astype(np.int8)))
    return [
        f"{grid[start]:,.5g}" if start == stop - 1 else f"{grid[start]:,.5g} to {grid[stop - 1]:,.5g}"
        for start, stop in zip(edges[::2], edges[1::2], strict=True)
    ]


def amount(value: float) -> str:
    """Write a cost, or another amount.

    >>> amount(6_000_000.0), amount(0.123456)
    ('6,000,000', '0.123')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def probability_text(p: float) -> str:
    """Write a probability as far as draws can tell it.

    >>> probability_text(0.9981), probability_text(0.99992)
    ('P = 0.998', 'P > 0.9995')
    """
    return "P > 0.9995" if p > 0.9995 else f"P = {p:.3f}"
