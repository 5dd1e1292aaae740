"""Whether the data support a choice: how likely it is that nothing else is noticeably better."""

from __future__ import annotations

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray

#: A choice is supported if it is about the best with at least this probability.
SUPPORTED = 0.95
#: Others that are the best with at least this probability are named beside a choice that is not supported.
WORTH_NAMING = 0.05
#: Of two with this ratio, the lower one is the best of the two with probability 0.45: within the usual epsilon.
ABOUT_AS_GOOD = 0.45 / 0.55


def about_best(values: FloatArray, place: int) -> BoolArray:
    """Whether one of the last axis is about as good as the best there.

    >>> about_best(np.array([[0.50, 0.45, 0.05], [0.60, 0.30, 0.10]]), 1)
    array([ True, False])
    """
    best = values.max(axis=-1)
    # Values of a user's own preference may be negative, where a ratio means nothing.
    enough: BoolArray = values[..., place] >= np.where(best > 0, ABOUT_AS_GOOD * best, best)
    return enough
