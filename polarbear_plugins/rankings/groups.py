"""Groups of instances, collected from the runs on them."""

from __future__ import annotations

from typing import NamedTuple

from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.trajectories.trajectory import Trajectory


class _Label(NamedTuple):
    """What a run says of its instance; a whole run would keep its arrays alive."""

    algorithm: str
    instance: str
    group: str | None


class GroupsOfRuns:
    """Groups that runs name for their instances; runs that contradict each other are refused."""

    def __init__(self) -> None:
        self._first: _Label | None = None
        self._fixed = True
        self._groups: dict[str, tuple[str, str]] = {}  # instance -> group, and whose run named it first

    @property
    def fixed(self) -> bool:
        """Whether the groups are all there are: some runs that call them a sample make them one."""
        return self._fixed and self._first is not None and self._first.group is not None

    def add(self, run: Trajectory) -> None:
        """Note the group that a run names.

        :raises InvalidInputError: another run names another group for the same instance, or no group for any.
        """
        new = _Label(run.algorithm, run.instance, run.group)
        first = self._first = self._first or new
        if (new.group is None) != (first.group is None):
            inside, outside = (first, new) if new.group is None else (new, first)
            raise InvalidInputError(
                f"The run of {inside.algorithm!r} on instance {inside.instance!r} has the group {inside.group!r}, and "
                f"that of {outside.algorithm!r} on instance {outside.instance!r} has none. Give every instance a "
                "group, or none: run.in_group(...) returns the run with another one, run.in_group(None) without."
            )
        if new.group is None:
            return
        self._fixed = self._fixed and run.fixed_group
        group, algorithm = self._groups.setdefault(new.instance, (new.group, new.algorithm))
        if group != new.group:
            raise InvalidInputError(
                f"The run of {algorithm!r} on instance {new.instance!r} has the group {group!r}, and that of "
                f"{new.algorithm!r} on it has {new.group!r}. An instance has one group."
            )

    def of(self, instance: str) -> str | None:
        """Group of an instance; ``None`` if instances are not grouped."""
        group, _ = self._groups.get(instance, (None, ""))
        return group

    def forget(self, instance: str) -> None:
        """Forget an instance that will not get any more runs."""
        self._groups.pop(instance, None)
