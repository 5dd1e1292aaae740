"""Options of reading COCO data: objects from Python, text from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from polarbear_plugins.options import Reader, flag, one_of, read_options
from polarbear_plugins.trajectories.logs.groups import Grouping
from polarbear_plugins.trajectories.logs.naming import Naming
from polarbear_plugins.trajectories.logs.options import DEFAULT_PARTS, EVERYTHING, READERS, Chosen

Best: TypeAlias = Literal["info", "rows"]


@dataclass(frozen=True, slots=True)
class CocoOptions:
    """How to read COCO data.

    Parameters
    ----------
    instance
        Parts of an instance: some of ``suite``, ``function``, ``name`` (of the function), ``dimension``, ``instance``.
    group
        What the groups of instances are: ``function``, ``dimension`` or ``none``.  By default the functions.
    functions, dimensions, instances
        What to keep: numbers and ranges such as ``1,3-5``; functions of bbob also by name.
    algorithm
        How an algorithm is named: by its ``name`` (algId), its ``folder`` or both (``name+folder``).  ``auto`` is the
        name, with the folder where runs of the same name on the same problem are in several folders.
    best
        ``info``: a run is as long as the .info file says, and its final value is the one there if that is better than
        the rows.  ``rows``: only the rows are used.
    maximize
        For data of older versions of IOHprofiler that do not say it; values of COCO are always minimised.
    skip_damaged
        Warn about runs that cannot be read, instead of stopping at the first.
    """

    instance: tuple[str, ...] = DEFAULT_PARTS
    group: Grouping | None = None
    functions: Chosen = EVERYTHING
    dimensions: Chosen = EVERYTHING
    instances: Chosen = EVERYTHING
    algorithm: Naming = "auto"
    best: Best = "info"
    maximize: bool | None = None
    skip_damaged: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, object]) -> CocoOptions:
        """Check options as they come.

        >>> CocoOptions.parse({"functions": "1-5", "best": "rows"}).best
        'rows'
        """
        given = {name: value for name, value in options.items() if value is not None or name not in _READERS}
        return cls(**read_options(given, _READERS, "The reader of COCO data"))


_READERS: dict[str, Reader] = {**READERS, "best": one_of(get_args(Best)), "maximize": flag}
