"""Options of reading IOHprofiler data: objects from Python, text from the command line."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from polarbear_plugins.adapters.ioh_logs.groups import Grouping
from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.options import Reader, flag, one_of, read_options

Naming: TypeAlias = Literal["auto", "name", "folder", "name+folder"]
Best: TypeAlias = Literal["json", "rows"]

# The parts of an instance, and how each is written in its name.
INSTANCE_PARTS = {
    "suite": "{suite}",
    "function": "f{function}",
    "name": "{name}",
    "dimension": "d{dimension}",
    "instance": "i{instance}",
}
_DEFAULT_PARTS = ("function", "dimension", "instance")
_LONGEST = 39  # characters of a number or range


@dataclass(frozen=True, slots=True)
class Chosen:
    """Numbers, ranges of numbers and names to keep; without any, everything is kept."""

    ranges: tuple[tuple[int, int], ...] = ()
    names: frozenset[str] = frozenset()
    text: str = ""

    def keeps(self, number: int, name: str | None = None) -> bool:
        """Whether a number, or the name of what has that number, was chosen."""
        if not self.text:
            return True
        return name in self.names or any(low <= number <= high for low, high in self.ranges)


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
    functions: Chosen = Chosen()
    dimensions: Chosen = Chosen()
    instances: Chosen = Chosen()
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
        return _DEFAULT_PARTS if self.instance is None else self.instance

    @property
    def uses_best(self) -> bool:
        """Whether the final value in the JSON belongs to the column that is read."""
        return self.best == "json" and self.time == "evaluations" and self.value in (None, "raw_y", "raw_y_best")

    def keeps(self, function: int, name: str | None, dimension: int) -> bool:
        """Whether the runs on a function in a dimension are wanted."""
        return self.functions.keeps(function, name) and self.dimensions.keeps(dimension)


def _read_instance_parts(parts: object, what: str) -> tuple[str, ...]:
    listed = [part.strip() for part in parts.split(",")] if isinstance(parts, str) else parts
    if not isinstance(listed, Iterable):
        raise InvalidInputError(f"{what}: expected some of {', '.join(INSTANCE_PARTS)}, got {short(parts)}.")
    given = tuple(listed)
    wrong = [part for part in given if not isinstance(part, str) or part not in INSTANCE_PARTS]
    if wrong or not given or len(set(given)) < len(given):
        got = short(wrong[0] if wrong else parts)
        raise InvalidInputError(f"{what}: expected some of {', '.join(INSTANCE_PARTS)}, each once, got {got}.")
    return given


def instance_name(parts: Iterable[str], *, suite: str, function: int, name: str, dimension: int, instance: int) -> str:
    """Name of an instance, made of some parts.

    >>> instance_name(("function", "dimension"), suite="BBOB", function=1, name="Sphere", dimension=5, instance=2)
    'f1_d5'
    """
    return "_".join(
        INSTANCE_PARTS[part].format(suite=suite, function=function, name=name, dimension=dimension, instance=instance)
        for part in parts
    )


def _read_chosen(value: object, what: str, *, names: bool = False) -> Chosen:
    if isinstance(value, str):
        texts = [part.strip() for part in value.split(",")] if value.strip() else []
    elif isinstance(value, Iterable):
        texts = [str(part) for part in value]
        if not texts:
            raise InvalidInputError(f"{what}: the list is empty, so nothing would be kept. Leave it out to keep all.")
    else:
        texts = [str(value)]
    ranges, named = [], set()
    for text in texts:
        match = re.fullmatch(r"(\d+)(?:\s*-\s*(\d+))?", text)
        if match and len(text) <= _LONGEST and (match[2] is None or int(match[1]) <= int(match[2])):
            ranges.append((int(match[1]), int(match[2] or match[1])))
        elif names and text and not match:
            named.add(text)
        else:
            raise InvalidInputError(f"{what}: expected numbers and ranges such as 1,3-5, got {short(text)}.")
    return Chosen(tuple(ranges), frozenset(named), ",".join(texts))


def _read_column(value: object, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInputError(f"{what}: expected the name of a column, got {short(value)}.")
    return value


_READERS: dict[str, Reader] = {
    "instance": _read_instance_parts,
    "group": one_of(get_args(Grouping)),
    "functions": functools.partial(_read_chosen, names=True),
    "dimensions": _read_chosen,
    "instances": _read_chosen,
    "algorithm": one_of(get_args(Naming)),
    "time": _read_column,
    "value": _read_column,
    "maximize": flag,
    "best": one_of(get_args(Best)),
    "skip_damaged": flag,
}
