"""Numbers and timepoints, formatted for people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import visible as visible  # beside the other texts for people

_MOST_SPANS = 3  # that are listed in a sentence


def few_places(count: int) -> list[int]:
    """Indices of up to four timepoints that represent a grid of ``count``: the ends, and two between.

    >>> few_places(50), few_places(1)
    ([0, 16, 33, 49], [0])
    """
    return sorted({0, count // 3, 2 * count // 3, count - 1})


def timepoint_texts(grid: FloatArray) -> list[str]:
    """Timepoints as text: five digits, or as many as it takes to tell them apart.

    >>> timepoint_texts(np.array([1.0, 1500.0])), timepoint_texts(np.array([100_001.0, 100_002.0]))
    (['1', '1,500'], ['100,001', '100,002'])
    """
    texts: list[str] = []
    for digits in range(5, 18):
        texts = [f"{time:,.{digits}g}" for time in grid]
        if len(set(texts)) == len(texts):
            break
    return texts


def spans(grid: FloatArray, inside: NDArray[np.bool_]) -> list[str]:
    """Intervals of timepoints as text.

    >>> spans(np.array([1.0, 5.0, 20.0, 1500.0]), np.array([True, True, False, True]))
    ['1 to 5', '1,500']
    """
    edges = np.flatnonzero(np.diff(np.concatenate(([False], inside, [False])).astype(np.int8)))
    texts = timepoint_texts(grid)
    return [
        texts[start] if start == stop - 1 else f"{texts[start]} to {texts[stop - 1]}"
        for start, stop in zip(edges[::2], edges[1::2], strict=True)
    ]


def spans_text(grid: FloatArray, inside: NDArray[np.bool_]) -> str:
    """The first three intervals of timepoints, and how many more there are; empty if there are none.

    >>> spans_text(np.arange(8.0), np.array([1, 0, 1, 0, 1, 0, 1, 1], dtype=bool))
    '0, 2, 4 and 1 more span'
    """
    found = spans(grid, inside)
    rest = len(found) - _MOST_SPANS
    more = f" and {rest:,} more span{'s' * (rest > 1)}" if rest > 0 else ""
    return ", ".join(found[:_MOST_SPANS]) + more


def amount(value: float) -> str:
    """Text of a cost or another amount.

    >>> amount(6_000_000.0), amount(0.123456)
    ('6,000,000', '0.123')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def probability_text(p: float) -> str:
    """Text of a probability, as precise as draws allow.

    >>> probability_text(0.9981), probability_text(0.99992)
    ('P = 0.998', 'P > 0.9995')
    """
    return "P > 0.9995" if p > 0.9995 else f"P = {p:.3f}"


def share_text(share: float) -> str:
    """Text of a share, a dash if it is unknown.

    >>> share_text(0.256), share_text(float("nan"))
    ('26%', '-')
    """
    return "-" if np.isnan(share) else f"{share:.0%}"


def format_duration(seconds: float) -> str:
    """Text of a duration.

    >>> format_duration(75), format_duration(600), format_duration(9000), format_duration(1e9)
    ('75 s', '10 min', '2.5 h', '32 years')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    years = seconds / (365.25 * 86400)
    return f"{seconds / 3600:,.1f} h" if years < 1 else f"{years:.2g} years"
