"""The instances of a race: those drawn so far, and those that follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.problems.protocols import Identity


class DrawnInstances:
    """Instances in the order in which they are drawn.

    Parameters
    ----------
    suite
        Its name, for messages.
    supply
        Its instances.

    Attributes
    ----------
    drawn
        The instances so far.
    """

    def __init__(self, suite: str, supply: Iterator[Identity]) -> None:
        self.drawn: list[Identity] = []
        self._suite, self._supply = suite, supply
        self._grouped = True  # unless a journal was begun before the suite had groups

    def draw(self, count: int) -> list[Identity]:
        """Draw until there are ``count`` or the suite has no more; returns the new ones."""
        names = {identity.name for identity in self.drawn}
        new: list[Identity] = []
        while len(self.drawn) + len(new) < count and (identity := self._next()) is not None:
            if identity.name in names:
                raise InvalidInputError(
                    f"The suite {self._suite!r} has two instances named {identity.name!r}; their names must differ."
                )
            names.add(identity.name)
            new.append(identity)
        self.drawn += new
        return new

    def redraw(self, identities: Sequence[Identity]) -> None:
        """Draw the same instances again, so that the next ones follow them."""
        self._grouped = not identities or any(identity.group is not None for identity in identities)
        for place, identity in enumerate(identities):
            if self._next() != identity:
                raise InvalidInputError(
                    f"The suite {self._suite!r} no longer gives the instance {identity.name!r} at place {place} as it "
                    "did for the journal: it is another suite, or another version of it."
                )
        self.drawn = list(identities)

    def _next(self) -> Identity | None:
        identity = next(self._supply, None)
        return identity if identity is None or self._grouped else replace(identity, group=None, fixed_group=False)
