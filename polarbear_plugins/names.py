"""Names of algorithms and instances."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np

from polarbear_plugins.errors import InvalidInputError, short

_SURROGATES = re.compile("[\ud800-\udfff]")


def as_name(name: object, what: str) -> str:
    """Name of an algorithm or instance as text; a whole number becomes its decimal text."""
    if isinstance(name, str):
        text = name
    elif isinstance(name, int | np.integer) and not isinstance(name, bool):
        text = str(name)
    else:
        raise InvalidInputError(f"{what}: expected a name (text or a whole number), got {name!r}.")
    if not text.strip():
        raise InvalidInputError(f"{what}: the name is empty.")
    if not text.isascii() and _SURROGATES.search(text):  # cannot be encoded as UTF-8
        raise InvalidInputError(f"{what}: {short(name)} is not valid text: it contains an unpaired surrogate.")
    return text


def distinct_names(names: Iterable[str], what: str) -> tuple[str, ...]:
    """Check that no name occurs twice.

    >>> distinct_names(["csa", "msr", "csa"], "algorithms")
    Traceback (most recent call last):
    polarbear_plugins.errors.InvalidInputError: algorithms: 'csa' is named more than once.
    """
    counts = Counter(names)
    twice = [repr(name) for name, count in counts.items() if count > 1]
    if twice:
        raise InvalidInputError(f"{what}: {', '.join(twice)} {'are' if len(twice) > 1 else 'is'} named more than once.")
    return tuple(counts)


def natural_key(name: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key that compares numbers inside names as numbers.

    >>> sorted(["f10", "f2", "f1"], key=natural_key)
    ['f1', 'f2', 'f10']
    """
    # Digits compare by their count and then as text: int() would refuse very long ones.
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    key = [(0, len(part.lstrip("0")), part.lstrip("0")) if part[0] in "0123456789" else (1, 0, part) for part in parts]
    return (*key, (-1, 0, name))
