"""Tables of results in long form: the score of each algorithm on each instance, as leaderboards publish them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.arrays import BoolArray, FloatArray
from polarbear_plugins.checks import as_choice
from polarbear_plugins.errors import InvalidInputError, SourceError, short
from polarbear_plugins.files import read_text_table, text_table_header

if TYPE_CHECKING:
    import pandas as pd


#: Names under which a column is found without being named.
COLUMNS = {
    "algorithm": ("algorithm", "system", "model", "optimizer", "method", "submission"),
    "instance": ("instance", "task", "problem"),
    "score": ("score", "value"),
    "group": ("group",),
}
_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Scores of algorithms on instances.

    Attributes
    ----------
    scores
        ``scores[instance, algorithm]``: the mean of repeated rows.
    groups
        Group of each instance; ``None`` if the table has none.
    repeated
        Number of pairs of an algorithm and an instance with several rows.
    left_out
        Instances left out because not every algorithm has a score there.
    """

    algorithms: tuple[str, ...]
    instances: tuple[str, ...]
    groups: tuple[str, ...] | None
    scores: FloatArray
    repeated: int
    left_out: tuple[str, ...]


def is_results_table(path: Path) -> bool:
    """Whether the name of a file is that of a text table."""
    return path.name.lower().endswith(tuple(_SEPARATORS))


def read_results(path: str | Path, columns: Mapping[str, str] | None = None, *, common: bool = False) -> Results:
    """Read a CSV or TSV file with a row for each score.

    Parameters
    ----------
    columns
        Names of the columns for ``algorithm``, ``instance``, ``score`` and ``group``, where they have none of the usual
        names.  Without a column for groups there are none.
    common
        Use the instances on which every algorithm has a score; otherwise a missing score is an error.
    """
    path = Path(path)
    separator = next((sep for suffix, sep in _SEPARATORS.items() if path.name.lower().endswith(suffix)), ",")
    found = _find_columns(path.name, text_table_header(path, separator), columns or {})
    texts = {name for role, name in found.items() if role != "score"}
    frame = read_text_table(path, separator, names=texts, numbers={found["score"]})
    return _results(path.name, frame.rename(columns={name: role for role, name in found.items()}), common)


def _find_columns(who: str, header: Sequence[str], given: Mapping[str, str]) -> dict[str, str]:
    for role in given:
        as_choice(role, tuple(COLUMNS), "column")
    found = {}
    for role, usual in COLUMNS.items():
        names = [given[role]] if role in given else [name for name in header if name.strip().lower() in usual]
        if len(names) > 1:
            raise SourceError(
                f"{who}: {' and '.join(map(short, names[:2]))} may both be the column of the {role}. Say which with "
                f"--column {role}=NAME."
            )
        if names and names[0] in header:
            found[role] = names[0]
        elif names or role != "group":
            raise SourceError(
                f"{who} has no column {names[0] if names else role!r}. It has "
                f"{', '.join(name[:60] for name in header[:20])}. Name the columns with --column, such as --column "
                f"{role}=NAME."
            )
    if len(set(found.values())) < len(found):
        raise InvalidInputError(f"{who}: expected a different column for each of {', '.join(found)}.")
    return found


def _results(who: str, frame: pd.DataFrame, common: bool) -> Results:
    _check_names(who, frame)
    frame = frame.assign(score=_numbers(who, frame)).dropna(subset="score")
    if frame.empty:
        raise SourceError(f"{who} has no scores.")
    cells = frame.groupby(["instance", "algorithm"], sort=False)["score"]
    table = frame.pivot_table(index="instance", columns="algorithm", values="score", aggfunc="mean", sort=False)
    complete = table.notna().all(axis=1).to_numpy()
    if not complete.all():
        _refuse_gaps(who, table, int(complete.sum()), common)
    kept = table[complete]
    return Results(
        algorithms=tuple(map(str, kept.columns)),
        instances=tuple(map(str, kept.index)),
        groups=_groups(who, frame, kept.index),
        scores=kept.to_numpy(dtype=np.float64),
        repeated=int((cells.size() > 1).sum()),
        left_out=tuple(map(str, table.index[~complete])),
    )


def _check_names(who: str, frame: pd.DataFrame) -> None:
    for role in frame.columns.intersection(["algorithm", "instance", "group"]):
        empty = frame[role].isna() | (frame[role].astype(str).str.strip() == "")
        _refuse(who, frame, role, empty.to_numpy(), "a name")


def _numbers(who: str, frame: pd.DataFrame) -> pd.Series[float]:
    """Scores as numbers; true and false, as of solved or not, are 1 and 0."""
    import pandas as pd

    given = frame["score"]
    if given.dtype.kind not in "iuf":
        words = given.astype(str).str.strip().str.lower().replace({"true": "1", "false": "0"})
        numbers = pd.to_numeric(words.where(given.notna()), errors="coerce")
        _refuse(who, frame, "score", (numbers.isna() & given.notna()).to_numpy(), "a number")
        given = numbers
    _refuse(who, frame, "score", np.isinf(given.to_numpy(dtype=np.float64)), "a finite number")
    return given.astype(np.float64)


def _refuse(who: str, frame: pd.DataFrame, role: str, bad: BoolArray, expected: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        line, cell = int(frame.index[row]) + 2, frame[role].iloc[row]
        got = short(cell.item() if isinstance(cell, np.generic) else cell)
        raise SourceError(f"{who}, line {line}: expected {expected} for the {role}, got {got}.")


def _refuse_gaps(who: str, table: pd.DataFrame, complete: int, common: bool) -> None:
    if common and complete:
        return
    gaps = np.argwhere(table.isna().to_numpy())
    names = [f"{str(table.columns[j])[:60]} on {str(table.index[i])[:60]}" for i, j in gaps[:3]]
    some = ", ".join(names) + ", ..." * (len(gaps) > 3)
    advice = (
        f"Add them, or compare on the {complete} of {len(table)} instances that all have with --common (in Python, "
        "common=True)."
        if complete
        else "There is no instance on which all have one: leave out the algorithms with few scores."
    )
    raise SourceError(f"{who}: {len(gaps)} scores are missing ({some}). {advice}")


def _groups(who: str, frame: pd.DataFrame, instances: pd.Index[Any]) -> tuple[str, ...] | None:
    if "group" not in frame:
        return None
    pairs = frame[["instance", "group"]].drop_duplicates()
    twice = pairs[pairs["instance"].duplicated()]
    if len(twice):
        name = twice["instance"].iloc[0]
        both = ", ".join(map(short, pairs.loc[pairs["instance"] == name, "group"].iloc[:2]))
        raise SourceError(f"{who}: instance {short(name)} is in more than one group ({both}). Expected one.")
    return tuple(map(str, pairs.set_index("instance")["group"].reindex(instances)))
