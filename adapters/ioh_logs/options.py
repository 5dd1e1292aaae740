"""Options of reading IOHprofiler data: objects from Python, text from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.options import Reader, flag, one_of, read_options
from polarbear_plugins.trajectories.logs.groups import Grouping
from polarbear_plugins.trajectories.logs.naming import Naming
from polarbear_plugins.trajectories.logs.options import DEFAULT_PARTS, EVERYTHING, READERS, Chosen

Best: TypeAlias = Literal["json", "rows"]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How to read IOHprofiler data.

    Parameters
    ----------
    instance
        Parts of an instance: some of ``suite``, ``function``, ``name`` (of the function), ``dimension``, ``instance``.
        By default ``function,dimension,instance``, or the names that our writer noted, if all runs have one.
    group
        What the groups of instances are: ``function``, ``dimension`` or ``none``.  By default the functions, if each
        instance has one and is not a random function of its own.
    functions, dimensions, instances
        What to keep: numbers and ranges such as ``1,3-5``; functions also by name.
    algorithm
        How an algorithm is named: by its ``name``, its ``folder`` or both (``name+folder``).  ``auto`` is the name,
        with the folder where runs of the same name on the same problem are in several folders.
    time, value
        Columns; the value is by default ``raw_y_best`` where it was logged, otherwise ``raw_y``.
    maximize
        Overrides what the JSON says.
    best
        ``json``: the final value and the counts of the JSON must agree with the rows, and the value is used, since it
        has all digits.  ``rows``: only the rows are used.
    skip_damaged
        Warn about runs that cannot be read, instead of stopping at the first.
    """

    instance: tuple[str, ...] | None = None
    group: Grouping | None = None
    functions: Chosen = EVERYTHING
    dimensions: Chosen = EVERYTHING
    instances: Chosen = EVERYTHING
    algorithm: Naming = "auto"
    time: str = "evaluations"
    value: str | None = None
    maximize: bool | None = None
    best: Best = "json"
    skip_damaged: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> LogOptions:
        """Check options as they come.

        >>> LogOptions.parse({"instance": "function,instance", "dimensions": "5,10-20"}).dimensions.ranges
        ((5, 5), (10, 20))
        """
        given = {name: value for name, value in options.items() if value is not None or name not in _READERS}
        return cls(**read_options(given, _READERS, "The reader of IOHprofiler data"))

    @property
    def parts(self) -> tuple[str, ...]:
        """Parts of an instance, of which its name is made."""
        return DEFAULT_PARTS if self.instance is None else self.instance

    @property
    def uses_best(self) -> bool:
        """Whether the final value in the JSON belongs to the column that is read."""
        return self.best == "json" and self.time == "evaluations" and self.value in (None, "raw_y", "raw_y_best")

    def keeps(self, function: int, name: str | None, dimension: int) -> bool:
        """Whether the runs on a function in a dimension are wanted."""
        return self.functions.keeps(function, name) and self.dimensions.keeps(dimension)


def _read_column(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"{what}: expected the name of a column, got {short(value)}.")
    return value


_READERS: dict[str, Reader] = {
    **READERS,
    "time": _read_column,
    "value": _read_column,
    "maximize": flag,
    "best": one_of(get_args(Best)),
}
