"""Options of reading logs: which functions, dimensions and instances, and how instances are named."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from polarbear_plugins.errors import InvalidInputError, short
from polarbear_plugins.options import Reader, flag, one_of
from polarbear_plugins.trajectories.logs.groups import Grouping
from polarbear_plugins.trajectories.logs.naming import Naming

# The parts of an instance, and how each is written in its name.
INSTANCE_PARTS = {
    "suite": "{suite}",
    "function": "f{function}",
    "name": "{name}",
    "dimension": "d{dimension}",
    "instance": "i{instance}",
}
DEFAULT_PARTS = ("function", "dimension", "instance")
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


#: Keeps everything.
EVERYTHING = Chosen()


def instance_name(parts: Iterable[str], *, suite: str, function: int, name: str, dimension: int, instance: int) -> str:
    """Name of an instance, made of some parts.

    >>> instance_name(("function", "dimension"), suite="BBOB", function=1, name="Sphere", dimension=5, instance=2)
    'f1_d5'
    """
    return "_".join(
        INSTANCE_PARTS[part].format(suite=suite, function=function, name=name, dimension=dimension, instance=instance)
        for part in parts
    )


def read_instance_parts(parts: object, what: str) -> tuple[str, ...]:
    """Reader of the parts of an instance's name."""
    listed = [part.strip() for part in parts.split(",")] if isinstance(parts, str) else parts
    if not isinstance(listed, Iterable):
        raise InvalidInputError(f"{what}: expected some of {', '.join(INSTANCE_PARTS)}, got {short(parts)}.")
    given = tuple(listed)
    wrong = [part for part in given if not isinstance(part, str) or part not in INSTANCE_PARTS]
    if wrong or not given or len(set(given)) < len(given):
        got = short(wrong[0] if wrong else parts)
        raise InvalidInputError(f"{what}: expected some of {', '.join(INSTANCE_PARTS)}, each once, got {got}.")
    return given


def read_chosen(value: object, what: str, *, names: bool = False) -> Chosen:
    """Reader of numbers and ranges such as ``1,3-5``; also of names, if things have any."""
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


#: Readers of the options that all logs have.
READERS: dict[str, Reader] = {
    "instance": read_instance_parts,
    "group": one_of(get_args(Grouping)),
    "functions": functools.partial(read_chosen, names=True),
    "dimensions": read_chosen,
    "instances": read_chosen,
    "algorithm": one_of(get_args(Naming)),
    "skip_damaged": flag,
}
