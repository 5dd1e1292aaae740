"""Partial orders of optimizers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array, as_choice
from polarbear_plugins.display.frames import pair_frame
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.names import as_name, distinct_names
from polarbear_plugins.partial_orders.bits import MOST_ITEMS, Flags

if TYPE_CHECKING:
    import pandas as pd


class PartialOrder:
    """Which optimizers are better than which others on a test function.

    Parameters
    ----------
    optimizers
        Their names, at least two and at most 64.
    better
        ``better[i, j]``: optimizer i is better than optimizer j.  It must be transitive and free of cycles.

    Examples
    --------
    >>> order = PartialOrder(["sgd", "adam", "momentum"], [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    >>> order
    PartialOrder(['sgd', 'adam', 'momentum'], sgd > momentum, adam > momentum)
    """

    __slots__ = ("better", "optimizers")

    optimizers: tuple[str, ...]
    better: NDArray[np.bool_]

    def __init__(self, optimizers: Iterable[str | int], better: ArrayLike) -> None:
        names = as_optimizers(optimizers)
        given = as_array(better, "better")
        if given.shape != (len(names), len(names)) or not np.isin(given, (0, 1)).all():
            raise InvalidInputError(
                f"A partial order of {len(names)} optimizers needs a matrix of {len(names)} x {len(names)} true or "
                f"false values, got {short(better)}."
            )
        relation = given.astype(np.bool_)
        _check_order(relation, names)
        relation.flags.writeable = False
        object.__setattr__(self, "optimizers", names)
        object.__setattr__(self, "better", relation)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A partial order cannot be changed; {name!r} is read-only.")

    def __reduce__(self) -> tuple[Any, ...]:
        return PartialOrder, (self.optimizers, self.better)

    @classmethod
    def from_edges(
        cls, optimizers: Iterable[str | int], edges: Iterable[tuple[str | int, str | int]], *, close: bool = False
    ) -> PartialOrder:
        """Partial order of pairs (better, worse).

        Parameters
        ----------
        close
            Add the pairs that follow from the given ones; without it, all must be given.

        Examples
        --------
        >>> PartialOrder.from_edges("abc", [("a", "b"), ("b", "c")], close=True).edges()
        [('a', 'b'), ('a', 'c'), ('b', 'c')]
        """
        names = as_optimizers(optimizers)
        place = {name: number for number, name in enumerate(names)}
        relation = np.zeros((len(names), len(names)), dtype=np.bool_)
        for edge in edges:
            ends = [as_name(name, "edges") for name in _pair(edge)]
            for name in ends:
                if name not in place:
                    raise InvalidInputError(f"edges: {name!r} is not one of the optimizers {', '.join(names)}.")
            relation[place[ends[0]], place[ends[1]]] = True
        return cls(names, _transitive_closure(relation) if close else relation)

    def edges(self) -> list[tuple[str, str]]:
        """All pairs (better, worse)."""
        return [(self.optimizers[i], self.optimizers[j]) for i, j in zip(*np.nonzero(self.better), strict=True)]

    def covers(self) -> list[tuple[str, str]]:
        """Pairs (better, worse) with no optimizer in between, from which all others follow."""
        return [(self.optimizers[i], self.optimizers[j]) for i, j in zip(*np.nonzero(self._direct()), strict=True)]

    def _direct(self) -> NDArray[np.bool_]:
        steps = self.better.astype(np.intp)
        return self.better & ~(steps @ steps > 0)

    def to_pandas(self) -> pd.DataFrame:
        """The order in long form: a row for each ordered pair of optimizers.

        Columns: ``optimizer``, ``other``, ``better`` (whether the optimizer is) and ``cover`` (whether also none is in
        between).
        """
        columns = {"better": self.better, "cover": self._direct()}
        return pair_frame(self.optimizers, "optimizer", "other", columns)

    def incomparable(self) -> list[tuple[str, str]]:
        """Pairs in which neither is better."""
        neither = np.triu(~(self.better | self.better.T), 1)
        return [(self.optimizers[i], self.optimizers[j]) for i, j in zip(*np.nonzero(neither), strict=True)]

    def reversed(self) -> PartialOrder:
        """The order with better and worse exchanged."""
        return PartialOrder(self.optimizers, self.better.T)

    def among(self, optimizers: Iterable[str | int]) -> PartialOrder:
        """The order of these optimizers only, in this sequence."""
        names = as_optimizers(optimizers)
        unknown = [name for name in names if name not in self.optimizers]
        if unknown:
            raise InvalidInputError(
                f"{unknown[0]!r} is not one of the optimizers of the order, {', '.join(self.optimizers)}."
            )
        places = [self.optimizers.index(name) for name in names]
        return PartialOrder(names, self.better[np.ix_(places, places)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartialOrder):
            return NotImplemented
        if self.optimizers == other.optimizers:
            return np.array_equal(self.better, other.better)
        return set(self.optimizers) == set(other.optimizers) and self == other.among(self.optimizers)

    def __hash__(self) -> int:
        return hash((frozenset(self.optimizers), frozenset(self.edges())))

    def __repr__(self) -> str:
        edges = ", ".join(f"{better} > {worse}" for better, worse in self.covers())
        return f"PartialOrder({list(self.optimizers)}, {edges or 'all incomparable'})"


def _pair(edge: object) -> Sequence[Any]:
    if not isinstance(edge, list | tuple) or len(edge) != 2:
        raise InvalidInputError(f"edges: expected pairs (better, worse), got {short(edge)}.")
    return edge


def as_optimizers(optimizers: Iterable[str | int]) -> tuple[str, ...]:
    """Check the names of the optimizers of an order: distinct, at least two, and not too many."""
    names = tuple(as_name(name, "optimizers") for name in optimizers)
    if not 2 <= len(names) <= MOST_ITEMS:
        raise InvalidInputError(
            f"A partial order needs at least 2 and at most {MOST_ITEMS} optimizers, got {len(names)}."
        )
    return distinct_names(names, "optimizers")


def _transitive_closure(relation: NDArray[np.bool_]) -> NDArray[np.bool_]:
    closed = relation.copy()
    for middle in range(len(closed)):
        closed |= closed[:, middle, None] & closed[None, middle]
    return closed


def _check_order(relation: NDArray[np.bool_], names: Sequence[str]) -> None:
    """Refuse relations with cycles or that are not transitive, naming an example."""
    closed = _transitive_closure(relation)
    for start in np.flatnonzero(np.diagonal(closed))[:1]:
        raise InvalidInputError(f"Not a partial order: it has the cycle {' > '.join(_cycle(relation, start, names))}.")
    wrong = np.argwhere(closed & ~relation)
    if wrong.size:
        for i, k in wrong:
            middle = np.flatnonzero(relation[i] & relation[:, k])
            if middle.size:
                raise InvalidInputError(
                    f"Not a partial order: {names[i]} > {names[middle[0]]} and {names[middle[0]]} > {names[k]}, but "
                    f"not {names[i]} > {names[k]}. PartialOrder.from_edges(..., close=True) adds what follows."
                )


def _cycle(relation: NDArray[np.bool_], start: int, names: Sequence[str]) -> list[str]:
    """Names along a shortest cycle through an optimizer."""
    paths, seen = [[start]], {start}
    for path in paths:
        for after in np.flatnonzero(relation[path[-1]]).tolist():
            if after == start:
                return [names[place] for place in [*path, start]]
            if after not in seen:
                seen.add(after)
                paths.append([*path, after])
    raise AssertionError("there is a cycle through the start")


def names_and_orders(
    orders: Iterable[PartialOrder] | Mapping[str, PartialOrder], what: str, optimizers: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], tuple[PartialOrder, ...]]:
    """Names and orders, all with the optimizers in the same sequence."""
    if isinstance(orders, Mapping):
        names, given = [str(name) for name in orders], list(orders.values())
    elif isinstance(orders, Iterable):
        given = list(orders)
        names = [str(number) for number in range(len(given))]
    else:
        raise InvalidInputError(f"{what}: expected partial orders, got {short(orders)}.")
    if not given:
        raise InvalidInputError(f"{what}: expected partial orders, got none.")
    for name, order in zip(names, given, strict=True):
        if not isinstance(order, PartialOrder):
            raise InvalidInputError(f"{what}, {name!r}: expected a PartialOrder, got {short(order)}.")
        optimizers = order.optimizers if optimizers is None else optimizers
        different = sorted(set(order.optimizers) ^ set(optimizers))
        if different:
            raise InvalidInputError(
                f"{what}, {name!r}: all orders must have the same optimizers, but not all have {different[0]!r}."
            )
    same = tuple(order if order.optimizers == optimizers else order.among(optimizers or ()) for order in given)
    return tuple(names), same


Indifference: TypeAlias = Literal["refuse", "incomparable"]


Missing: TypeAlias = Literal["refuse", "worst", "incomparable"]


class IndifferenceError(InvalidInputError):
    """Two optimizers are equal in all criteria, which a partial order cannot express."""


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
        the worst value of a criterion, such as a target never reached, ``-inf`` the best.
    maximize
        Criteria in which larger is better; there ``-inf`` is the worst.
    indifferent
        How to treat two optimizers that are equal in all criteria: ``"refuse"`` raises, because equality is not
        incomparability; ``"incomparable"`` treats it as such anyway.
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
    as_choice(indifferent, Indifference, "indifferent")
    as_choice(missing, Missing, "missing")
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


def _values(frame: pd.DataFrame, maximize: Iterable[str]) -> tuple[tuple[str, ...], FloatArray]:
    """Names of the optimizers, and their values, minimised."""
    if not hasattr(frame, "columns"):
        raise InvalidInputError(f"Criteria: expected a data frame with a row for each optimizer, got {short(frame)}.")
    names, columns = as_optimizers(frame.index), [str(column) for column in frame.columns]
    if not columns:
        raise InvalidInputError("Criteria: expected at least one column, got none.")
    distinct_names(columns, "criteria")
    larger = [maximize] if isinstance(maximize, str) else list(maximize)
    for name in larger:
        if name not in columns:
            raise InvalidInputError(f"maximize: {name!r} is not one of the criteria {', '.join(columns)}.")
    values = np.empty((len(names), len(columns)))
    for place, column in enumerate(columns):
        numbers = frame.iloc[:, place]
        numbers = numbers.astype(object).where(numbers.notna(), np.nan)  # pandas has more than one missing value
        values[:, place] = as_array(numbers.to_list(), f"criterion {column!r}")
        if column in larger:
            values[:, place] *= -1
    return names, values
