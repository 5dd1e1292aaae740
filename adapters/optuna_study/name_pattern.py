"""Algorithm, instance, seed and group from the name of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from polarbear_plugins.checks import as_whole_number
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.names import as_name

_ROLES = ("algorithm", "instance", "seed", "group")


@dataclass(frozen=True, slots=True)
class Label:
    """Algorithm, instance and seed of a run, and the group of its instance."""

    algorithm: str
    instance: str
    seed: int = 0
    group: str | None = None

    @classmethod
    def of(cls, parts: Mapping[str, object], who: str) -> Label:
        """Make a label from parts as they were found: the seed may be text, or missing."""
        missing = [role for role in ("algorithm", "instance") if parts.get(role) is None]
        if missing:
            raise SourceError(f"{who}: the {missing[0]} is missing.")
        seed = parts.get("seed")
        if isinstance(seed, str):
            try:
                seed = int(seed)
            except ValueError:
                raise SourceError(f"{who}: the seed must be a whole number, got {seed!r}.") from None
        try:
            return cls(
                as_name(parts["algorithm"], "algorithm"),
                as_name(parts["instance"], "instance"),
                0 if seed is None else as_whole_number(seed, "seed"),
                None if parts.get("group") is None else as_name(parts["group"], "group"),
            )
        except InvalidInputError as problem:
            raise SourceError(f"{who}: {problem}") from None


class NamePattern:
    """A pattern of names such as ``{algorithm}-{instance}-{seed}``.

    The seed is a whole number, ``{group}`` the group of the instance; ``{}`` matches any text and is ignored.  A text
    with ``(?P<algorithm>...)`` is a regular expression, for names that the simple form can read in two ways.

    Examples
    --------
    >>> NamePattern("{algorithm}-{instance}-{seed}").read("tpe-f1-3")
    Label(algorithm='tpe', instance='f1', seed=3, group=None)
    >>> NamePattern("{algorithm}-{instance}-{seed}").read("cma-es-f1-3")
    Traceback (most recent call last):
    polarbear_plugins.errors.SourceError: 'cma-es-f1-3' can be read in two ways as {algorithm}-{instance}-{seed}: \
algorithm 'cma', instance 'es-f1' or algorithm 'cma-es', instance 'f1'. Use a regular expression with \
(?P<algorithm>...) and (?P<instance>...).
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidInputError(
                f"pattern: expected text such as {{algorithm}}-{{instance}}-{{seed}}, got {text!r}."
            )
        self.text = text
        self._simple = "(?P<" not in text
        try:
            self._ways = (
                [re.compile(way) for way in (_lazy(text), _greedy(text))] if self._simple else [re.compile(text)]
            )
        except re.error as problem:
            raise InvalidInputError(f"pattern: {text!r} is not a regular expression ({problem}).") from None
        roles = set(self._ways[0].groupindex)
        if not {"algorithm", "instance"} <= roles or not roles <= set(_ROLES):
            raise InvalidInputError(
                f"pattern: expected {{algorithm}}, {{instance}} and possibly {{seed}} and {{group}}, each once, "
                f"got {text!r}."
            )

    def read(self, name: str) -> Label | None:
        """Label of a name; ``None`` if the name does not follow the pattern.

        :raises SourceError: the name can be read in two ways.
        """
        found = [way.fullmatch(name) for way in self._ways]
        if found[0] is None:
            return None
        labels = [Label.of(match.groupdict(), repr(name)) for match in found if match is not None]
        if labels[0] != labels[-1]:
            ways = " or ".join(
                f"algorithm {label.algorithm!r}, instance {label.instance!r}"
                f"{'' if label.group is None else f', group {label.group!r}'}"
                for label in labels
            )
            raise SourceError(
                f"{name!r} can be read in two ways as {self.text}: {ways}. Use a regular expression with "
                "(?P<algorithm>...) and (?P<instance>...)."
            )
        return labels[0]


def _lazy(text: str) -> str:
    return _expression(text, ".+?")


def _greedy(text: str) -> str:
    return _expression(text, ".+")


def _expression(text: str, anything: str) -> str:
    parts = re.split(r"\{(\w*)\}", text)
    expression = ""
    for place, part in enumerate(parts):
        if place % 2 == 0:
            expression += re.escape(part)
        elif not part:
            expression += f"(?:{anything})"
        else:
            expression += f"(?P<{part}>{r'-?[0-9]+' if part == 'seed' else anything})"
    return expression
