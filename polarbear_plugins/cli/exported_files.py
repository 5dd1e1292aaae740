"""The files that ``polarbear export`` writes: tables, Parquet files, IOHprofiler data and tables for COCO.

It imports the writer of IOHprofiler data by name: hooks read and provide, none of them writes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from polarbear_plugins.adapters.ioh_logs.index import is_index, is_rows
from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.errors import InvalidInputError
from polarbear_plugins.extras import require
from polarbear_plugins.integrations.ioh_writer import Scenario, scenario_in_name, scenario_of, write_ioh
from polarbear_plugins.problems.protocols import Identity
from polarbear_plugins.regular_files import check_output, check_output_folder, free_name, naming_output, write_whole
from polarbear_plugins.trajectories.runs import check_values_known
from polarbear_plugins.trajectories.trajectory import UNRANKED, Trajectory, minimised

if TYPE_CHECKING:
    import pandas as pd

Format: TypeAlias = Literal["table", "parquet", "ioh", "coco"]
FORMATS: tuple[Format, ...] = get_args(Format)

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_PARQUET = (".parquet", ".pq")
_LISTED = "instances.csv"  # beside IOHprofiler data


def format_of(path: Path) -> Format:
    """Format that the ending of a path stands for; a path without an ending is a folder."""
    name = path.name.lower()
    if name.endswith(tuple(_SEPARATORS)):
        return "table"
    if name.endswith(_PARQUET):
        return "parquet"
    if path.is_dir() or not path.suffix:
        return "ioh"
    raise InvalidInputError(
        f"{path}: the ending {path.suffix!r} stands for no format. It is .csv or .tsv (also with .gz) for a table, "
        f".parquet, and none for a folder of IOHprofiler data; or say --format {'|'.join(FORMATS)}."
    )


def check_destination(path: Path, kind: Format, *, force: bool) -> None:
    """Refuse to overwrite anything without ``force``, and with it anything but files like those to be written."""
    if kind == "ioh" and (path.is_dir() or not path.exists()):
        check_output_folder(path)
    elif not path.is_dir():
        check_output(path)
    if not path.exists() or (kind == "ioh" and path.is_dir() and not any(path.iterdir())):
        return
    if path.is_dir() != (kind == "ioh"):
        raise InvalidInputError(
            f"{path} is a {'folder' if path.is_dir() else 'file'}, which {kind} is not. Choose another name."
        )
    if not force:
        raise InvalidInputError(f"{path} exists. Choose another name, or replace it with --force.")
    if kind == "ioh":
        files = (file for file in sorted(path.rglob("*")) if not file.is_dir() or file.is_symlink())
        other = next(
            (file for file in files if not (is_index(file.name) or is_rows(file.name) or file.name == _LISTED)), None
        )
        if other is not None:
            raise InvalidInputError(
                f"{path} holds other files than IOHprofiler data, such as {other.relative_to(path)}, which --force "
                "would delete. Choose another folder."
            )


def write_ioh_runs(
    runs: Iterable[Trajectory],
    folder: Path,
    *,
    identities: Sequence[Identity] = (),
    suite: str,
    maximize: bool = False,
    force: bool = False,
) -> None:
    """Write runs as IOHprofiler data into a folder, completely or not at all.

    The identities of instances tell their functions, and whether larger values are better (the parameter ``maximize``).

    Parameters
    ----------
    force
        Replace a folder that is not empty.
    """
    if identities and all(identity.parameters.get("maximize") is True for identity in identities):
        maximize = True  # also for instances without a function
    with naming_output(folder):
        target = Path(os.path.realpath(folder))
        unfinished = free_name(target, ".unfinished")
        unfinished.mkdir(parents=True)  # also without any run
        try:
            write_ioh(runs, unfinished, scenarios=_scenarios(identities), suite=suite, maximize=maximize)
            if not target.exists():
                unfinished.replace(target)
            elif target.is_dir() and not any(target.iterdir()):  # perhaps the current folder, so it stays
                for part in unfinished.iterdir():
                    part.replace(target / part.name)
            elif not force:
                raise InvalidInputError(f"{folder} is not an empty folder. Give a new folder for IOHprofiler data.")
            else:
                old = free_name(target, ".replaced")
                target.replace(old)
                unfinished.replace(target)
                shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)


def write_table(runs: Sequence[Trajectory], path: Path, *, maximize: bool = False) -> list[str]:
    """Write a text table with a row for each improvement; returns the columns that not all runs have."""
    frame, incomplete = table_of_runs(runs, maximize=maximize)
    unranked = frame["value"] == UNRANKED
    if unranked.any():
        frame["value"] = frame["value"].astype(object).mask(unranked, "unranked")
    _write_text(frame, path)
    return incomplete


def write_parquet(runs: Sequence[Trajectory], path: Path, *, maximize: bool = False) -> list[str]:
    """Write a Parquet file with the rows of :func:`write_table`; returns the columns that not all runs have."""
    require("pyarrow", extra="parquet", who=f"Writing {path.name}")
    frame, incomplete = table_of_runs(runs, maximize=maximize)
    write_whole(path, lambda file: frame.to_parquet(file, engine="pyarrow", index=False))
    return incomplete


def write_coco(runs: Sequence[Trajectory], path: Path, *, identities: Iterable[Identity], suite: str) -> None:
    """Write a text table in the terms of COCO: function, dimension, instance, evaluations, precision."""
    scenarios = _scenarios(identities)
    placed = [(run, _coco_place(run, scenarios)) for run in runs]
    curves = [_coco_rows(run) for run, _ in placed]
    counts = [times.size for times, _ in curves]

    def column(cells: Iterable[Any]) -> Any:
        return np.repeat(np.array(list(cells), dtype=object), counts)

    import pandas as pd

    frame = pd.DataFrame(
        {
            "suite": suite,
            "function": column(place.function for _, place in placed),
            "dimension": column(place.dimension for _, place in placed),
            "instance": column(place.instance for _, place in placed),
            "algorithm": column(run.algorithm for run, _ in placed),
            "run": column(run.seed for run, _ in placed),
            "evaluations": _joined(times for times, _ in curves).astype(np.int64),
            "precision": _joined(best for _, best in curves),
            "end": column(run.end for run, _ in placed),
        }
    )
    _write_text(frame, path)


def table_of_runs(runs: Sequence[Trajectory], *, maximize: bool = False) -> tuple[pd.DataFrame, list[str]]:
    """Runs as :meth:`Trajectory.to_pandas` shows each, one below the other; and the columns that not all runs have.

    A run without a value has one row, at its end, with the value ``inf``.  The columns that not all runs have, or of
    which an instance has several, are left out: a table says the group of every instance, or of none.

    Parameters
    ----------
    maximize
        Larger values are better, so they get their own sign again.
    """
    import pandas as pd

    curves = [_steps(run) for run in runs]
    counts = [times.size for times, _ in curves]
    optional: dict[str, list[Any]] = {
        "group": [run.group for run in runs],
        "dimension": [run.dimension for run in runs],
    }
    incomplete = [
        name
        for name, cells in optional.items()
        if set(cells) != {None} and (None in cells or _differs_in_instance(runs, cells))
    ]
    same: dict[str, list[Any]] = {
        "algorithm": [run.algorithm for run in runs],
        "instance": [run.instance for run in runs],
        **{name: cells for name, cells in optional.items() if None not in cells and name not in incomplete},
        "seed": [run.seed for run in runs],
    }
    text = ("algorithm", "instance", "group")
    columns = {
        name: np.repeat(np.array(cells, dtype=object if name in text else np.int64), counts)
        for name, cells in same.items()
    }
    values = _joined(best for _, best in curves)
    columns |= {
        "time": _joined(times for times, _ in curves),
        "value": minimised(values, maximize),
        "horizon": np.repeat(np.array([run.horizon for run in runs], dtype=np.float64), counts),
    }
    if any(run.end != "unknown" for run in runs):
        columns["end"] = np.repeat(np.array([run.end for run in runs], dtype=object), counts)
    return pd.DataFrame(columns), incomplete


def _differs_in_instance(runs: Sequence[Trajectory], cells: Sequence[object]) -> bool:
    """Whether runs on one instance have different cells, as where dimensions are pooled."""
    first: dict[str, object] = {}
    return any(first.setdefault(run.instance, cell) != cell for run, cell in zip(runs, cells, strict=True))


def _scenarios(identities: Iterable[Identity]) -> dict[str, Scenario]:
    known = {identity.name: scenario_of(identity) for identity in identities}
    return {name: scenario for name, scenario in known.items() if scenario is not None}


def _steps(run: Trajectory) -> tuple[FloatArray, FloatArray]:
    """When the value of a run changed, and to what; its end and ``inf`` for a run without a value."""
    changed = run.best != np.concatenate(([np.inf], run.best[:-1]))
    if not changed.any():
        return np.array([run.horizon]), np.array([np.inf])
    return run.times[changed], run.best[changed]


def _joined(arrays: Iterable[FloatArray]) -> FloatArray:
    return np.concatenate([np.empty(0), *arrays])


def _coco_place(run: Trajectory, scenarios: Mapping[str, Scenario]) -> Scenario:
    """Function, dimension and instance of a run."""
    found = scenarios.get(run.instance) or scenario_in_name(run)
    if found is None or not found.dimension:
        raise InvalidInputError(
            f"{run.instance!r} has no number of a function, so that a table for COCO cannot name it. Write it with "
            "--format table."
        )
    return found


def _coco_rows(run: Trajectory) -> tuple[FloatArray, FloatArray]:
    """Evaluations and precisions of a run; the last row is its end."""
    who = f"{run.algorithm!r} on {run.instance!r}"
    check_values_known(run, "A table for COCO")
    times, best = _steps(run)
    if (times % 1 != 0).any() and np.isfinite(best).any():
        raise InvalidInputError(f"{who}: COCO counts evaluations, got the time {times[times % 1 != 0][0]:.17g}.")
    if (best < 0).any():
        raise InvalidInputError(
            f"{who}: a precision is a difference from the optimum, got {best[best < 0][0]:.10g}. Values that are no "
            "such differences are written with --format table."
        )
    end = np.floor(run.horizon)
    return (np.append(times, end), np.append(best, best[-1])) if end > times[-1] else (np.floor(times), best)


def _write_text(frame: pd.DataFrame, path: Path) -> None:
    separator = next((found for ending, found in _SEPARATORS.items() if path.name.lower().endswith(ending)), ",")
    # Without the time at which it was written, so that equal runs make equal files.
    packed: Any = {"method": "gzip", "mtime": 0} if path.name.lower().endswith(".gz") else None

    def write(file: IO[bytes]) -> None:
        frame.to_csv(file, sep=separator, index=False, lineterminator="\n", encoding="utf-8", compression=packed)

    write_whole(path, write)
