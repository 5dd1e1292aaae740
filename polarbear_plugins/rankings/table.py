"""Ranking tables: values and ranks of algorithms at every timepoint on every instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarbear_plugins.arrays import FloatArray, RankArray
from polarbear_plugins.checks import as_array, as_choice, as_number
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.names import as_name, natural_key
from polarbear_plugins.rankings.comparable import check_comparable
from polarbear_plugins.rankings.ends import EarlyEnds, join_ends
from polarbear_plugins.rankings.given import as_algorithms, as_groups, as_weights, describe_grid
from polarbear_plugins.rankings.ranks import ranks_of
from polarbear_plugins.rankings.store import Store, read_only
from polarbear_plugins.rankings.views import frame_of, html_of
from polarbear_plugins.trajectories.timepoints import as_timepoints
from polarbear_plugins.trajectories.trajectory import minimised

if TYPE_CHECKING:
    import pandas as pd

Repetitions: TypeAlias = Literal["weight", "independent"]
_Empty: TypeAlias = tuple[tuple[str, ...], FloatArray, Repetitions, float]
Parts: TypeAlias = tuple[*_Empty, FloatArray, list[str], FloatArray, list[str] | None, bool, tuple[EarlyEnds, ...]]


class RankingTable:
    """Rankings of algorithms at common timepoints, a row for each instance and repetition.

    A table is immutable; :meth:`append` returns a longer one.  Both share their storage, so the cost of appending a
    block does not depend on the length of the table.

    Create one with :func:`polarbear_plugins.rank` from trajectories or :meth:`from_values` from arrays.

    Attributes
    ----------
    algorithms
        Names, in the order of the last axis of ``values`` and ``ranks``.
    timepoints
        The grid, in the order of their second axis.
    repetitions
        What several rows of one instance mean: with ``"weight"`` they share the weight of the instance, since they
        are not independent evidence about the distribution of instances; with ``"independent"`` each counts in full.
    tolerance
        Values this close tie.
    early_ends
        Runs that ended before others on the same instance, and what counts from there on.
    """

    __slots__ = (
        "_fixed_groups",
        "_instances",
        "_rows",
        "_store",
        "algorithms",
        "early_ends",
        "repetitions",
        "timepoints",
        "tolerance",
    )

    def __init__(
        self,
        algorithms: Sequence[str],
        timepoints: ArrayLike,
        *,
        repetitions: Repetitions = "weight",
        tolerance: float = 0.0,
    ) -> None:
        """Create a table without rows."""
        self.algorithms = as_algorithms(algorithms)
        self.timepoints = as_timepoints(timepoints)
        self.repetitions = as_choice(repetitions, Repetitions, "repetitions")
        self.tolerance = as_number(tolerance, "tolerance")
        if self.tolerance < 0:
            raise InvalidInputError(f"tolerance: must not be negative, got {self.tolerance:g}.")
        self._store = Store(0, self.timepoints.size, len(self.algorithms))
        self._rows = 0
        self._instances = 0
        self._fixed_groups = False
        self.early_ends: tuple[EarlyEnds, ...] = ()

    @classmethod
    def from_values(
        cls,
        values: ArrayLike,
        *,
        algorithms: Sequence[str],
        timepoints: ArrayLike,
        instances: Sequence[str | int] | None = None,
        maximize: bool = False,
        repetitions: Repetitions = "weight",
        weights: ArrayLike | None = None,
        tolerance: float = 0.0,
        groups: Sequence[str | int | None] | None = None,
        fixed_groups: bool = False,
    ) -> RankingTable:
        """Table from an array of best values so far.

        Parameters
        ----------
        values
            ``values[instance, timepoint, algorithm]``; ``nan`` where the algorithm was not observed, ``inf`` where it
            ran but has no value so far (``-inf`` if ``maximize``), ``UNRANKED`` where it is only known that it is not
            better than any ranked one.  A ranking of which only the first m places are known has the values 1 to m and
            ``UNRANKED`` for the rest; a tie of the rest would be evidence that they are equal.
        instances
            Names; ``0, 1, ...`` by default.  A repeated name is a repetition of that instance.
        maximize
            Larger values are better; the table holds them with the sign flipped.
        weights
            Weight of each row, 1 by default; with ``repetitions="weight"`` divided by the instance's rows.
        groups
            For each row the name of the group to which its instance belongs, such as a function, a search space or a
            dataset; rows of one instance name the same.
        fixed_groups
            The groups are all there are, as the 24 functions of BBOB, rather than a sample of more.  A table to which
            rows of a sample are appended holds a sample.

        Examples
        --------
        >>> table = RankingTable.from_values(
        ...     [[[3.0, 1.0], [0.5, 0.7]]], algorithms=["csa", "msr"], timepoints=[10, 100]
        ... )
        >>> table.ranks
        array([[[2, 1],
                [1, 2]]], dtype=int16)

        The first two of four:

        >>> from polarbear_plugins import UNRANKED
        >>> RankingTable.from_values([[[UNRANKED, 2, UNRANKED, 1]]], algorithms=list("abcd"), timepoints=[10]).ranks
        array([[[32767,     2, 32767,     1]]], dtype=int16)
        """
        table = cls(algorithms, timepoints, repetitions=repetitions, tolerance=tolerance)
        array = as_array(values, "values")
        shape = ("instances", table.timepoints.size, len(table.algorithms))
        if array.ndim != 3 or array.shape[1:] != shape[1:]:
            raise InvalidInputError(
                f"values: expected the shape [instances, {shape[1]} timepoints, {shape[2]} algorithms], "
                f"got {list(array.shape)}."
            )
        if not len(array):
            raise InvalidInputError("values: expected at least one instance, got none.")
        names: Sequence[str | int] = range(len(array)) if instances is None else list(instances)
        if len(names) != len(array):
            raise InvalidInputError(f"instances: {len(names)} names for {len(array)} rows of values.")
        table = table.extended(
            minimised(array, maximize),
            [as_name(name, f"instances[{row}]") for row, name in enumerate(names)],
            None if weights is None else as_weights(weights, len(array)),
            None if groups is None else as_groups(groups),
            fixed_groups,
        )
        check_comparable(table)
        return table

    def extended(
        self,
        values: FloatArray,
        instances: Sequence[str],
        weights: FloatArray | None = None,
        groups: Sequence[str | None] | None = None,
        fixed_groups: bool = False,
    ) -> RankingTable:
        """Append rows of minimised values, with an instance and possibly its group for each; only these are ranked."""
        if values.shape != (len(instances), self.timepoints.size, len(self.algorithms)):
            raise InvalidInputError(
                f"values of shape {list(values.shape)} do not match {len(instances)} rows of this table."
            )
        if groups is not None and len(groups) != len(instances):
            raise InvalidInputError(f"groups: expected one for each of {len(instances)} rows, got {len(groups)}.")
        if fixed_groups and not any(group is not None for group in groups or ()):
            raise InvalidInputError("fixed_groups=True says something about groups, and there are none.")
        return self._append_rows(values, ranks_of(values, self.tolerance), instances, weights, groups, fixed_groups)

    def append(self, block: RankingTable) -> RankingTable:
        """Append the rows of another table of the same algorithms and timepoints.

        >>> table = RankingTable(["csa", "msr"], [10, 100])
        >>> block = RankingTable.from_values([[[3, 1], [0.5, 0.7]]], algorithms=["csa", "msr"], timepoints=[10, 100])
        >>> len(table.append(block)), len(table)
        (1, 0)
        """
        for what in ("algorithms", "repetitions", "tolerance"):
            mine, other = getattr(self, what), getattr(block, what)
            if mine != other:
                raise InvalidInputError(f"append: the tables differ in their {what}: {mine!r} and {other!r}.")
        if not np.array_equal(self.timepoints, block.timepoints):
            raise InvalidInputError(
                f"append: the tables have different timepoints: {describe_grid(self.timepoints)} and "
                f"{describe_grid(block.timepoints)}."
            )
        return self._append_block(block, slice(len(block))).with_early_ends(block.early_ends)

    def _append_block(self, block: RankingTable, rows: slice | NDArray[np.intp]) -> RankingTable:
        """Append some rows of a table as they are."""
        names, groups, index = block.instances, block.groups, block.instance_index[rows]
        return self._append_rows(
            block.values[rows],
            block.ranks[rows],
            [names[place] for place in index],
            block._store.weights[rows],
            [groups[place] for place in index] if groups else None,
            block.fixed_groups,
        )

    def _append_rows(
        self,
        values: FloatArray,
        ranks: RankArray,
        instances: Sequence[str],
        weights: FloatArray | None,
        groups: Sequence[str | None] | None,
        fixed_groups: bool,
    ) -> RankingTable:
        store, rows = self._store, self._rows + len(values)
        if store.rows != self._rows or rows > len(store.values):
            # Full, or another table has appended here: a copy with twice the capacity keeps the cost linear.
            store = store.copy(self._rows, self._instances, capacity=max(16, 2 * rows))
        longer = RankingTable.__new__(RankingTable)
        longer.algorithms, longer.timepoints = self.algorithms, self.timepoints
        longer.repetitions, longer.tolerance = self.repetitions, self.tolerance
        longer._store, longer._rows = store, rows
        store.write(values, ranks, instances, weights, groups)
        longer._instances = len(store.names)
        # All there are and a sample are together a sample.
        before = self._fixed_groups or not self._rows
        longer._fixed_groups = before and fixed_groups if len(values) else self._fixed_groups
        longer.early_ends = self.early_ends
        return longer

    def with_early_ends(self, ends: Sequence[EarlyEnds]) -> RankingTable:
        """The same table with further early ends."""
        table = self._append_block(self, slice(0))
        table.early_ends = join_ends(self.early_ends, ends)
        return table

    @property
    def values(self) -> FloatArray:
        """``values[row, timepoint, algorithm]``: best value so far, minimised; ``nan`` where not observed."""
        return read_only(self._store.values[: self._rows])

    @property
    def ranks(self) -> RankArray:
        """``ranks[row, timepoint, algorithm]``: 1 is best, ties share the better rank, 0 is absent.

        An unranked algorithm has the rank ``UNRANKED_RANK``, which is above all others.
        """
        return read_only(self._store.ranks[: self._rows])

    @property
    def instances(self) -> tuple[str, ...]:
        """Names of the instances, each once, in order of first appearance."""
        return tuple(self._store.names[: self._instances])

    @property
    def groups(self) -> tuple[str, ...]:
        """Group of each of ``instances``; empty if instances are not grouped."""
        return tuple(self._store.groups[: self._instances])

    @property
    def fixed_groups(self) -> bool:
        """Whether the groups are all there are, rather than a sample of more."""
        return self._fixed_groups

    def split_by_group(self) -> dict[str, RankingTable]:
        """A table for each group, in the natural order of their names.

        >>> table = RankingTable.from_values(
        ...     [[[3.0, 1.0]], [[2.0, 4.0]]], algorithms=["csa", "msr"], timepoints=[10], groups=["f10", "f2"]
        ... )
        >>> {group: part.instances for group, part in table.split_by_group().items()}
        {'f2': ('1',), 'f10': ('0',)}
        """
        groups = np.array(self.groups, dtype=object)
        if not groups.size:
            raise InvalidInputError(
                "split_by_group: the instances of this table have no groups. Name them with groups= of "
                "RankingTable.from_values, or group= of the trajectories."
            )
        empty = self._without_rows()
        of_row = groups[self.instance_index]
        return {
            group: empty._append_block(self, np.flatnonzero(of_row == group))
            for group in sorted(set(self.groups), key=natural_key)
        }

    @property
    def instance_index(self) -> NDArray[np.intp]:
        """For each row, which of ``instances`` it belongs to."""
        return read_only(self._store.instance_index[: self._rows])

    @property
    def repetition_index(self) -> NDArray[np.intp]:
        """For each row, how many rows of the same instance precede it."""
        index = self.instance_index
        order = np.argsort(index, kind="stable")
        sizes = np.bincount(index, minlength=self._instances)
        starts = np.cumsum(sizes) - sizes
        repetition = np.empty_like(index)
        repetition[order] = np.arange(index.size) - starts[index[order]]
        return repetition

    @property
    def weights(self) -> FloatArray:
        """Weight of each row; with ``repetitions="weight"`` the rows of an instance together weigh 1."""
        given = self._store.weights[: self._rows]
        if self.repetitions == "independent":
            return read_only(given)
        return given / np.bincount(self.instance_index, minlength=1)[self.instance_index]

    def __len__(self) -> int:
        """Number of rows: instances times repetitions."""
        return self._rows

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RankingTable):
            return NotImplemented
        return (
            (self.algorithms, self.repetitions, self.tolerance, self.instances)
            == (other.algorithms, other.repetitions, other.tolerance, other.instances)
            and (self.groups, self.fixed_groups) == (other.groups, other.fixed_groups)
            and np.array_equal(self.timepoints, other.timepoints)
            and np.array_equal(self.instance_index, other.instance_index)
            and np.array_equal(self.weights, other.weights)
            and np.array_equal(self.values, other.values, equal_nan=True)
        )

    def to_pandas(self) -> pd.DataFrame:
        """The rankings in long form: a row for each observed value.

        Columns: ``instance``, ``repetition`` (how many rows of the instance precede it), ``timepoint``, ``algorithm``,
        ``value`` (minimised), ``rank`` (1 is best, ties share the better rank) and ``weight``; after ``repetition``
        also ``group``, if instances have one.  Where an algorithm is unranked, its value is ``UNRANKED``, which
        :func:`polarbear_plugins.read_trajectories` reads, and its rank is missing.

        >>> table = RankingTable.from_values([[[3.0, 1.0]]], algorithms=["csa", "msr"], timepoints=[10])
        >>> table.to_pandas()
          instance  repetition  timepoint algorithm  value  rank  weight
        0        0           0       10.0       csa    3.0     2     1.0
        1        0           0       10.0       msr    1.0     1     1.0
        """
        return frame_of(self)

    def parts(self) -> Parts:
        """The contents of the table; :meth:`from_parts` restores it."""
        given = np.array(self._store.weights[: self._rows])
        rows = [self._store.names[index] for index in self.instance_index]
        groups = [self._store.groups[index] for index in self.instance_index] if self.groups else None
        empty = (self.algorithms, self.timepoints, self.repetitions, self.tolerance)
        return (*empty, np.array(self.values), rows, given, groups, self.fixed_groups, self.early_ends)

    @classmethod
    def from_parts(
        cls,
        algorithms: Sequence[str],
        timepoints: ArrayLike,
        repetitions: Repetitions,
        tolerance: float,
        values: FloatArray,
        instances: Sequence[str],
        weights: FloatArray,
        groups: Sequence[str] | None = None,
        fixed_groups: bool = False,
        early_ends: Sequence[EarlyEnds] = (),
    ) -> RankingTable:
        """Table from its :meth:`parts`; instances, weights and groups are per row."""
        empty = cls(algorithms, timepoints, repetitions=repetitions, tolerance=tolerance)
        return empty.extended(values, instances, weights, groups, fixed_groups).with_early_ends(early_ends)

    def _without_rows(self) -> RankingTable:
        return RankingTable(self.algorithms, self.timepoints, repetitions=self.repetitions, tolerance=self.tolerance)

    def __reduce__(self) -> tuple[Any, ...]:
        return RankingTable.from_parts, self.parts()

    __hash__ = None  # type: ignore[assignment]  # compared by its contents, which may be large

    def __repr__(self) -> str:
        groups = f", {len(set(self.groups))} groups" if self.groups else ""
        return (
            f"RankingTable({len(self.algorithms)} algorithms, timepoints {describe_grid(self.timepoints)}, "
            f"{self._instances} instances in {self._rows} rows{groups})"
        )

    def _repr_html_(self) -> str:
        return html_of(self)
