"""Arrays as data frames in long form: a row for each cell, a column for each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd


def long_frame(
    axes: Mapping[str, Any],
    columns: Mapping[str, ArrayLike],
    keep: NDArray[np.bool_] | None = None,
) -> pd.DataFrame:
    """Data frame of arrays in long form.

    Parameters
    ----------
    axes
        Name of each axis, in order, and its labels.  Text labels become categories in their own order, which keeps
        the table small and the order of groups and legends.
    columns
        Arrays over the axes, or broadcastable to them.
    keep
        Which cells get a row; all by default.

    Examples
    --------
    >>> long_frame({"timepoint": [1.0, 5.0], "algorithm": ["csa", "msr"]}, {"rank": [[1, 2], [2, 1]]})
       timepoint algorithm  rank
    0        1.0       csa     1
    1        1.0       msr     2
    2        5.0       csa     2
    3        5.0       msr     1
    """
    import pandas as pd

    shape = tuple(len(labels) for labels in axes.values())
    rows = np.ones(shape, dtype=np.bool_) if keep is None else np.broadcast_to(keep, shape)
    places = np.nonzero(rows)
    made: dict[str, Any] = {}
    for (name, labels), place in zip(axes.items(), places, strict=True):
        is_text = isinstance(labels, tuple | list) and bool(labels) and isinstance(labels[0], str)
        made[name] = categories(place, labels) if is_text else np.asarray(labels)[place]
    for name, values in columns.items():
        made[name] = np.broadcast_to(np.asarray(values), shape)[rows]
    return pd.DataFrame(made)


def pair_frame(
    names: Sequence[str], one: str, other: str, columns: Mapping[str, ArrayLike], **before: Any
) -> pd.DataFrame:
    """Data frame of arrays over ordered pairs of different names; ``before`` are axes in front of the pairs."""
    apart = ~np.eye(len(names), dtype=np.bool_)
    return long_frame({**before, one: tuple(names), other: tuple(names)}, columns, keep=apart)


def categories(codes: NDArray[Any], names: Sequence[str]) -> Any:
    """Pandas ``Categorical`` from positions in a sequence of names."""
    import pandas as pd

    return pd.Categorical.from_codes(codes, categories=pd.Index(list(names)))
