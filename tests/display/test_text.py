from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarbear_plugins.display.text import spans, spans_text, timepoint_texts


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, ""),
        (1, "0"),
        (3, "0, 2, 4"),
        (4, "0, 2, 4 and 1 more span"),
        (5, "0, 2, 4 and 2 more spans"),
    ],
)
def test_spans_beyond_the_third_are_counted_in_words(count: int, expected: str) -> None:
    inside = np.arange(10) % 2 == 0
    inside[2 * count :] = False
    assert spans_text(np.arange(10.0), inside) == expected


def test_spans_that_differ_are_not_printed_as_one() -> None:
    grid = np.array([100_001.0, 100_002.0, 100_003.0])
    assert spans(grid, np.array([True, False, True])) == ["100,001", "100,003"]
    assert spans(grid, np.array([True, True, False])) == ["100,001 to 100,002"]


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=5, unique=True))
def test_different_timepoints_have_different_texts(times: list[float]) -> None:
    texts = timepoint_texts(np.array(times))
    assert len(set(texts)) == len(times)
