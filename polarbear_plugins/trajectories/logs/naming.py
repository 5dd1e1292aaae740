"""Names of the algorithms in logs: by the name that the files give, by folder, or both."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from polarbear_plugins.errors import InvalidInputError, PolarBearWarning
from polarbear_plugins.names import natural_key
from polarbear_plugins.trajectories.logs.places import Place

#: How an algorithm is named.
Naming: TypeAlias = Literal["auto", "name", "folder", "name+folder"]


@dataclass(frozen=True, slots=True)
class Described:
    """Runs of an algorithm that a file describes, and the problems they are on."""

    algorithm: str
    place: Place
    index: str
    problems: Iterable[Hashable]

    @property
    def folder(self) -> str:
        """Identity of the folder of the file."""
        return folder_of(self.place, self.index)


def folder_of(place: Place, index: str) -> str:
    """Identity of the folder of a file."""
    return place.identity(PurePosixPath(index).parent.as_posix())


def name_algorithms(
    described: Sequence[Described], naming: Naming, *, several: bool, stacklevel: int
) -> dict[tuple[str, str], str]:
    """Names of the algorithms, by the name that the files give and the identity of the folder.

    Parameters
    ----------
    several
        The user gave several places, so the name of a place belongs to that of a folder in it.
    """
    folders = _name_folders(described, several)
    held: dict[str, set[str]] = defaultdict(set)
    where: dict[str, dict[Hashable, str]] = defaultdict(dict)
    overlaps: dict[str, tuple[str, str]] = {}
    for each in described:
        name, folder = each.algorithm, folders[each.folder]
        held[each.folder].add(name)
        for problem in each.problems:
            other = where[name].setdefault(problem, folder)
            if other != folder:
                overlaps.setdefault(name, (other, folder))
    if naming == "auto" and overlaps:
        name, (one, other) = min(overlaps.items())
        warnings.warn(
            f"{name!r} has runs on the same problems in the folders {one!r} and {other!r}. They are treated as "
            "different algorithms and named after their folders. If they are repeated runs of one algorithm, say "
            "algorithm=name; if not, algorithm=name+folder.",
            PolarBearWarning,
            stacklevel=stacklevel + 1,
        )
    labels = {}
    for folder, names in held.items():
        if naming == "folder" and len(names) > 1:
            raise InvalidInputError(
                f"algorithm=folder: {folders[folder]!r} holds runs of {', '.join(sorted(names))}. "
                "Say algorithm=name+folder."
            )
        for name in names:
            both = naming == "name+folder" or (naming == "auto" and name in overlaps)
            alone = folders[folder] if naming == "folder" else name
            labels[name, folder] = f"{name} ({folders[folder]})" if both else alone
    return labels


def _name_folders(described: Sequence[Described], several: bool) -> dict[str, str]:
    """Short name of each folder: its path below what the user gave, or the full path if that is ambiguous."""
    names: dict[str, str] = {}
    for each in described:
        inside = PurePosixPath(each.index).parent.as_posix()
        below = each.place.title if inside == "." else inside
        names[each.folder] = f"{each.place.title}/{inside}" if several and inside != "." else below
    short = list(names.values())
    return {folder: name if short.count(name) == 1 else folder for folder, name in names.items()}


def title(place: Place, name: str) -> str:
    """Name of a file, for messages."""
    return f"{place.title}/{name}"


def path_key(path: str) -> list[tuple[tuple[int, int, str], ...]]:
    """Sort key of a path, numbers as numbers."""
    return [natural_key(part) for part in path.split("/") if part]


def beside(name: str, path: str) -> str:
    """Path relative to the folder of a file."""
    return (PurePosixPath(name).parent / path).as_posix()
