"""Groups of the instances in logs: by function or by dimension."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from polarbear_plugins.errors import InvalidInputError

Grouping: TypeAlias = Literal["function", "dimension", "none"]

# Suites whose functions are all there are.
_FIXED = frozenset({"bbob", "bbobnoisy", "bboblargescale", "bbobmixint", "bbobboxed", "sboxcost", "sbox", "pbo"})
# What ioh calls the suite of a problem that was made without one, or by its suites of all problems of a kind.  Then the
# number and the name of the function tell whether it is one of these.
_UNKNOWN = frozenset({"unknownsuite", "real", "integer"})
_BBOB = """
    Sphere Ellipsoid Rastrigin BuecheRastrigin LinearSlope AttractiveSector StepEllipsoid Rosenbrock RosenbrockRotated
    EllipsoidRotated Discus BentCigar SharpRidge DifferentPowers RastriginRotated Weierstrass Schaffers10 Schaffers1000
    GriewankRosenbrock Schwefel Gallagher101 Gallagher21 Katsuura LunacekBiRastrigin
"""
_PBO = """
    OneMax LeadingOnes Linear OneMaxDummy1 OneMaxDummy2 OneMaxNeutrality OneMaxEpistasis OneMaxRuggedness1
    OneMaxRuggedness2 OneMaxRuggedness3 LeadingOnesDummy1 LeadingOnesDummy2 LeadingOnesNeutrality LeadingOnesEpistasis
    LeadingOnesRuggedness1 LeadingOnesRuggedness2 LeadingOnesRuggedness3 LABS IsingRing IsingTorus IsingTriangular MIS
    NQueens ConcatenatedTrap NKLandscapes
"""
_FUNCTIONS = frozenset(pair for names in (_BBOB, _PBO) for pair in enumerate(names.split(), start=1))
# Functions by suite, for files that give only their numbers: data in older and newer formats are in the same groups.
_NAMES = {**dict.fromkeys(("bbob", "bbobboxed", "sboxcost"), _BBOB.split()), "pbo": _PBO.split()}
# Suites in which each instance is a function of its own, drawn at random, under one number and one name.
_DRAWN = frozenset({"manyaffine", "mabbob", "gpbbob"})


@dataclass(frozen=True, slots=True)
class Function:
    """A function as the data describe it, in some dimension."""

    suite: str
    number: int
    name: str
    dimension: int

    @property
    def is_fixed(self) -> bool:
        """Whether it belongs to a suite whose functions are all there are."""
        suite = _squeeze(self.suite)
        return suite in _FIXED or (suite in _UNKNOWN and (self.number, self.name) in _FUNCTIONS)

    def group(self, by: Grouping) -> str | None:
        """Name of its group.

        >>> Function("BBOB", 1, "Sphere", 5).group("function")
        'f1 Sphere'
        """
        if by == "dimension":
            return f"d{self.dimension}"
        suite, name = _squeeze(self.suite), _squeeze(self.name)
        # Function 0 with the name of its suite is how instances without a function are written.
        if by == "none" or not _DRAWN.isdisjoint((suite, name)) or (self.number == 0 and name == suite):
            return None
        number = f"f{self.number}"
        return f"{number} {self.name}" if self.name.isprintable() and name not in ("", number) else number


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of instances by name, and whether they are all there are; without any, instances are not grouped."""

    of: dict[str, str] = field(default_factory=dict)
    fixed: bool = False


def group_instances(instances: Iterable[tuple[str, Function]], by: Grouping | None) -> Groups:
    """Groups of instances, if all of them have one; by default their functions, if instances tell these apart.

    :raises InvalidInputError: an instance belongs to several of the groups that the user wants.
    """
    of: dict[str, str] = {}
    fixed = by in (None, "function")
    functions: dict[Function, tuple[str | None, bool]] = {}  # few, while there are many instances
    for instance, function in instances:
        if function not in functions:
            functions[function] = function.group(by or "function"), function.is_fixed
        group, is_fixed = functions[function]
        fixed = fixed and is_fixed
        if group is None:
            return Groups()
        known = of.setdefault(instance, group)
        if known != group:
            if by is None:
                return Groups()
            raise InvalidInputError(
                f"group={by}: instance {instance!r} belongs to {known!r} and to {group!r}. Distinguish instances with "
                f"instance=, such as instance=function,dimension,instance, or say group=none."
            )
    return Groups(of, fixed)


def function_name(suite: str, number: int) -> str:
    """Name that ioh gives to a function of a suite; empty if it has none.

    >>> function_name("bbob", 8), function_name("PBO", 2), function_name("bbob-largescale", 8)
    ('Rosenbrock', 'LeadingOnes', '')
    """
    names = _NAMES.get(_squeeze(suite), [])
    return names[number - 1] if 1 <= number <= len(names) else ""


def _squeeze(name: str) -> str:
    """Letters and digits alone, in lower case: MA-BBOB and ma_bbob are the same."""
    return re.sub(r"[\W_]", "", name).casefold()
