"""Logs of several objectives, which have no best value so far unless one is chosen or they are made into one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from polarbear_plugins.errors import SourceError

# ioh itself logs one objective, as raw_y.  Those who log more add columns by hand: pymoo's are F2, F3, ...
_OBJECTIVE = re.compile(r"(f|y|obj|objective|raw_y|fitness)[_ ]?\d+", re.IGNORECASE)
# The columns of ioh that look alike: of one objective each.
_OWN = ("raw_y", "raw_y_best", "transformed_y", "transformed_y_best", "current_y", "current_y_best")


def check_one_objective(columns: Iterable[str], value: str | None, who: str) -> None:
    """Refuse columns of several objectives, unless the user says which column the value is.

    >>> check_one_objective(["evaluations", "raw_y", "F2"], None, "a.dat")
    Traceback (most recent call last):
    polarbear_plugins.errors.SourceError: a.dat has several objectives (raw_y, F2), so that no column is the value of \
a run. Give a table of their hypervolume so far, or say with value= which column counts, such as value=raw_y.
    """
    if value is not None:
        return
    names = list(columns)
    others = [name for name in names if _OBJECTIVE.fullmatch(name)]
    first = [name for name in names if name in _OWN][:1]
    if not others or len(first + others) < 2:
        return
    several = [*first, *others]
    shown = ", ".join(several) if len(several) <= 6 else f"{', '.join(several[:6])}, ..."
    raise SourceError(
        f"{who} has several objectives ({shown}), so that no column is the value of a run. Give a table of their "
        f"hypervolume so far, or say with value= which column counts, such as value={several[0]}."
    )
