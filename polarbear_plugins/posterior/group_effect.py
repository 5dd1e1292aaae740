"""What groups of instances mean for a posterior: to what it generalises, and how much groups differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.checks import as_array, as_choice, as_number, as_whole_number

Scope = Literal["new", "same"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupEffect:
    """How instances of the same group resemble each other.

    Attributes
    ----------
    scope
        What the posterior is about: instances of a ``new`` group, or further instances of the ``same`` groups.
    groups, instances
        How many there are.
    p
        P-value of the permutation test that groups order the algorithms alike.
    inflation
        At each timepoint: the variance of the mean over groups as a multiple of what it would be if all instances were
        independent.
    spread
        At each timepoint: standard deviation between groups of the log-rating of an algorithm.
    """

    scope: Scope
    groups: int
    instances: int
    p: float
    inflation: FloatArray
    spread: FloatArray

    def to_json(self) -> dict[str, Any]:
        """JSON-ready dict."""
        return {
            "scope": self.scope,
            "groups": self.groups,
            "instances": self.instances,
            "p": self.p,
            "inflation": self.inflation.tolist(),
            "spread": self.spread.tolist(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], timepoints: int) -> GroupEffect:
        """Effect from the data of :meth:`to_json`.

        :raises ValueError: a field has a value that no fit writes.
        """
        arrays = {name: as_array(data[name], name) for name in ("inflation", "spread")}
        if any(array.shape != (timepoints,) for array in arrays.values()):
            raise ValueError(f"groups: expected a number for each of {timepoints} timepoints")
        if not ((arrays["inflation"] >= 1) & (arrays["spread"] >= 0)).all():
            raise ValueError("groups: expected an inflation of at least 1 and a spread that is not negative")
        return cls(
            scope=as_choice(data["scope"], Scope, "scope"),
            groups=as_whole_number(data["groups"], "groups", at_least=2),
            instances=as_whole_number(data["instances"], "instances", at_least=2),
            p=as_number(data["p"], "p", at_least=0, at_most=1),
            inflation=arrays["inflation"],
            spread=arrays["spread"],
        )

    def __str__(self) -> str:
        low, high = float(self.inflation.min()), float(self.inflation.max())
        between = f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"
        found = f"{self.groups} groups (permutation test p = {self.p:.2g}, variance inflation {between})"
        if self.scope == "new":
            return f"Certainty is about an instance of a new group, judged by {found}."
        return f"Certainty is about further instances of the same {found}."
