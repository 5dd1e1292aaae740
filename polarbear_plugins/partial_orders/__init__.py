"""Partial orders of optimizers, one for each test function, from several criteria; and their depth.

On a test function, one optimizer is better than another if it is better in at least one criterion and worse in none.
Criteria that contradict each other make the two incomparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from polarbear_plugins.checks import FloatArray, as_array, short
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.partial_orders.bits import Flags
from polarbear_plugins.partial_orders.depth import MOST_SETS, TOLERANCE, measure_depth
from polarbear_plugins.partial_orders.order import PartialOrder, as_optimizers

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Indifference", "IndifferenceError", "Missing", "PartialOrder", "from_criteria", "ufg_depth"]

Indifference: TypeAlias = Literal["refuse", "incomparable"]
Missing: TypeAlias = Literal["refuse", "worst", "incomparable"]


class IndifferenceError(InvalidInputError):
    """Two optimizers are equal in all criteria, which no partial order can say."""


def from_criteria(
    frame: pd.DataFrame,
    maximize: Iterable[str] = (),
    *,
    indifferent: Indifference = "refuse",
    missing: Missing = "refuse",
) -> PartialOrder:
    """Partial order of optimizers from their values in several criteria on one test function.

    Parameters
    ----------
    frame
        A row for each optimizer, named by the index, and a column for each criterion; smaller is better.  ``inf`` is
        the worst value of a criterion, as of a target that was never reached, ``-inf`` the best.
    maximize
        Criteria in which larger is better; there ``-inf`` is the worst.
    indifferent
        What becomes of two optimizers that are equal in all criteria: ``"refuse"`` raises, because this is not
        incomparability; ``"incomparable"`` treats it as such all the same.
    missing
        What a missing value (``nan``) means: ``"refuse"`` raises; ``"worst"``, that it is as bad as ``inf``;
        ``"incomparable"``, that the optimizer cannot be compared with any other.

    Examples
    --------
    >>> import pandas as pd
    >>> values = pd.DataFrame({"loss": [0.2, 0.1, 0.3], "seconds": [5, 9, 7]}, index=["sgd", "adam", "momentum"])
    >>> from_criteria(values)
    PartialOrder(['sgd', 'adam', 'momentum'], sgd > momentum)
    """
    if indifferent not in ("refuse", "incomparable"):
        raise InvalidInputError(f'indifferent: expected "refuse" or "incomparable", got {short(indifferent)}.')
    if missing not in ("refuse", "worst", "incomparable"):
        raise InvalidInputError(f'missing: expected "refuse", "worst" or "incomparable", got {short(missing)}.')
    names, values = _values(frame, maximize)
    absent = np.isnan(values)
    if absent.any() and missing == "refuse":
        row, column = np.argwhere(absent)[0]
        raise InvalidInputError(
            f"The criterion {str(frame.columns[column])!r} is missing for {names[row]!r}. Leave the optimizer or the "
            'criterion out, or say with missing="worst" or missing="incomparable" what it means.'
        )
    values = np.where(absent, np.inf, values)
    no_worse: Flags = np.logical_and.reduce(values[:, None] <= values[None], axis=-1)
    unknown: Flags = np.logical_or.reduce(absent, axis=1) & (missing == "incomparable")
    known = ~(unknown[:, None] | unknown[None])
    equal: Flags = np.triu(no_worse & no_worse.T & known, 1)
    if equal.any() and indifferent == "refuse":
        i, j = np.argwhere(equal)[0]
        raise IndifferenceError(
            f"{names[i]!r} and {names[j]!r} are equal in all criteria, which is indifference and not incomparability. "
            'Add a criterion, leave one of the two out, or accept indifferent="incomparable".'
        )
    return PartialOrder(names, no_worse & ~no_worse.T & known)


def ufg_depth(
    orders: Iterable[PartialOrder] | Mapping[str, PartialOrder],
    *,
    of: Iterable[PartialOrder] | None = None,
    tolerance: float = TOLERANCE,
    samples: int | None = None,
    seed: int | None = None,
    most_sets: int = MOST_SETS,
) -> FloatArray:
    """Union-free generic depth of partial orders: how central each is among those observed.

    See :func:`polarbear_plugins.partial_orders.depth.measure_depth`, which also returns the errors, for the parameters.

    Returns
    -------
    One depth for each order, between 0 and 1; of the orders ``of`` if they are given.

    Examples
    --------
    >>> one = PartialOrder.from_edges("abc", [("a", "b")])
    >>> two = PartialOrder.from_edges("abc", [("a", "c")])
    >>> three = PartialOrder.from_edges("abc", [("b", "a"), ("a", "c")], close=True)
    >>> ufg_depth([one, two, three])
    array([0.66666667, 1.        , 0.66666667])
    """
    return measure_depth(orders, of=of, tolerance=tolerance, samples=samples, seed=seed, most_sets=most_sets).depths


def _values(frame: pd.DataFrame, maximize: Iterable[str]) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the optimizers, and their values, minimised."""
    if not hasattr(frame, "columns"):
        raise InvalidInputError(f"Criteria: expected a data frame with a row for each optimizer, got {short(frame)}.")
    names, columns = as_optimizers(frame.index), [str(column) for column in frame.columns]
    if not columns:
        raise InvalidInputError("Criteria: expected at least one column, got none.")
    twice = next((name for place, name in enumerate(columns) if name in columns[:place]), None)
    if twice is not None:
        raise InvalidInputError(f"The criterion {twice!r} is there twice.")
    larger = [maximize] if isinstance(maximize, str) else list(maximize)
    for name in larger:
        if name not in columns:
            raise InvalidInputError(f"maximize: {name!r} is none of the criteria {', '.join(columns)}.")
    values = np.empty((len(names), len(columns)))
    for place, column in enumerate(columns):
        numbers = frame.iloc[:, place]
        numbers = numbers.astype(object).where(numbers.notna(), np.nan)  # pandas has more than one missing value
        values[:, place] = as_array(numbers.to_list(), f"criterion {column!r}")
        if column in larger:
            values[:, place] *= -1
    return names, values
