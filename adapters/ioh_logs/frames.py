"""IOHprofiler data as loaded by iohinspector: its manager, and its data frames of polars or pandas."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from polarbear_plugins.adapters.ioh_logs.objectives import check_one_objective
from polarbear_plugins.adapters.ioh_logs.options import LogOptions
from polarbear_plugins.adapters.ioh_logs.reading import LoggedRuns
from polarbear_plugins.errors import InvalidInputError, SourceError
from polarbear_plugins.trajectories.columns import LongFormOptions
from polarbear_plugins.trajectories.logs.groups import Function, group_instances
from polarbear_plugins.trajectories.logs.options import instance_name
from polarbear_plugins.trajectories.logs.places import Folder
from polarbear_plugins.trajectories.long_form import read_long_form
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd


_FRAME = ("algorithm_name", "function_id", "dimension", "instance", "evaluations", "raw_y")


def is_manager(source: object) -> bool:
    """Whether a source is a ``DataManager``; imports nothing."""
    return type(source).__name__ == "DataManager" and hasattr(source, "data_sets")


def read_manager(source: object, options: LogOptions) -> LoggedRuns:
    """Trajectories of the runs in a manager, read from its files: what the manager loads may lack runs and digits."""
    wanted: dict[str, frozenset[int]] = {}
    indices: dict[Path, None] = {}
    if not source.data_sets:  # type: ignore[attr-defined]
        raise SourceError(
            "The DataManager is empty: it holds no data sets. Add a folder with its add_folder(), check that its "
            "select() leaves something, or give the folder instead of the manager."
        )
    for data in source.data_sets:  # type: ignore[attr-defined]
        if data is None:
            raise SourceError("The DataManager holds a file that it could not read itself. Give the folder instead.")
        if getattr(data, "source", "ioh") != "ioh":
            raise SourceError(f"{data.file} is in the .info format of COCO. Give its folder instead.")
        path = Path(data.file)
        indices[path] = None
        for scenario in data.scenarios:
            rows = os.path.realpath(scenario.data_file)
            wanted[rows] = wanted.get(rows, frozenset()) | {run.id for run in scenario.runs}
    # One place for each folder, with only the JSON files of the manager.
    folders: dict[Path, list[str]] = {}
    for path in indices:
        folders.setdefault(path.parent, []).append(path.name)
    return LoggedRuns([Folder(folder, names) for folder, names in folders.items()], options, wanted)


def is_frame(source: object, options: Mapping[str, object]) -> bool:
    """Whether a source is a data frame with the columns of iohinspector, and the user does not name others."""
    columns = getattr(source, "columns", None)
    if columns is None or not hasattr(source, "shape") or "columns" in options:
        return False
    return set(_FRAME) - {str(options.get("value", "raw_y")), "raw_y"} <= set(map(str, columns))


def read_frame(source: Any, options: LogOptions) -> Iterable[Trajectory]:
    """Trajectories of a data frame of runs, as ``DataManager.load(include_meta_data=True)`` returns it.

    A frame has only the rows: the exact final values in the JSON are lost, and so is the direction.
    """
    import pandas as pd

    if options.algorithm not in ("auto", "name"):
        raise InvalidInputError(
            f"algorithm={options.algorithm}: a data frame does not say which folder a run is from. Give the "
            "folders instead."
        )
    check_one_objective(map(str, source.columns), options.value, "data frame")
    value = options.value or ("raw_y_best" if "raw_y_best" in source.columns else "raw_y")
    needed = [*_FRAME[:4], options.time, value]
    missing = [name for name in needed if name not in source.columns]
    if missing:
        raise SourceError(f"data frame has no column {missing[0]!r}. It has {', '.join(map(str, source.columns))}.")
    known = [name for name in ("suite", "function_name", "data_id", "run_id", "evals") if name in source.columns]
    # Column by column, so that polars needs no pyarrow.
    frame = pd.DataFrame({name: source[name].to_numpy() for name in dict.fromkeys([*needed, *known])})
    frame, fixed_groups = _with_instances(frame, options)
    if frame.empty:
        raise SourceError("data frame: there are no rows, or functions=, dimensions= and instances= leave none.")
    identity = [name for name in ("data_id", "run_id") if name in frame][:1]
    run = frame.groupby(["algorithm_name", "polarbear instance", *identity], sort=False).ngroup()
    first = frame.loc[~run.duplicated()]
    seeds = first.groupby(["algorithm_name", "polarbear instance"], sort=False).cumcount()
    columns = {"algorithm": "algorithm_name", "instance": "polarbear instance", "time": options.time, "value": value}
    frame["polarbear seed"] = seeds.to_numpy()[run]
    if "evals" in frame and options.time == "evaluations":
        # Runs that were logged by hand have 0 evaluations.
        last = frame.groupby(run)["evaluations"].transform("max")
        if ((frame["evals"] > 0) & (frame["evals"] < last)).any() and options.best == "json":
            raise SourceError(
                "data frame: a run has rows after its last evaluation, 'evals'. best=rows ignores 'evals'."
            )
        frame["polarbear horizon"] = np.maximum(frame["evals"], last)
        columns["horizon"] = "polarbear horizon"
    columns["seed"] = "polarbear seed"
    if "polarbear group" in frame:
        columns["group"] = "polarbear group"
    problems = frame[["polarbear instance", "dimension"]].drop_duplicates()
    if (problems["dimension"] >= 1).all() and not problems["polarbear instance"].duplicated().any():
        columns["dimension"] = "dimension"
    long_form = LongFormOptions(
        columns={role: (name,) for role, name in columns.items()},
        maximize=bool(options.maximize),
        fixed_groups=fixed_groups,
    )
    return read_long_form(frame, long_form, "data frame")


def _with_instances(frame: pd.DataFrame, options: LogOptions) -> tuple[pd.DataFrame, bool]:
    """Rows that are wanted, with the names of their instances and groups; and whether these are all there are."""
    keys = [name for name in ("suite", "function_id", "function_name", "dimension", "instance") if name in frame]
    problem = frame.groupby(keys, sort=False, dropna=False).ngroup()
    names: list[str] = []
    kept: list[bool] = []
    functions: list[Function] = []
    for row in frame.loc[~problem.duplicated(), keys].to_dict("records"):
        try:
            function, dimension, instance = (int(row[key]) for key in ("function_id", "dimension", "instance"))
        except (TypeError, ValueError):
            raise SourceError(
                f"data frame: expected numbers of functions, dimensions and instances, got {row}."
            ) from None
        name, suite = str(row.get("function_name", "")), str(row.get("suite", "unknown_suite"))
        functions.append(
            Function(suite, function, name if isinstance(row.get("function_name"), str) else "", dimension)
        )
        kept.append(options.keeps(function, name, dimension) and options.instances.keeps(instance))
        names.append(
            instance_name(
                options.parts,
                suite=suite,
                function=function,
                name=name,
                dimension=dimension,
                instance=instance,
            )
        )
    codes = problem.to_numpy()
    groups = group_instances(itertools.compress(zip(names, functions, strict=True), kept), options.group)
    columns = {"polarbear instance": names}
    if groups.of:
        columns["polarbear group"] = [groups.of.get(name, "") for name in names]
    wanted: pd.DataFrame = frame.assign(**{name: np.array(each, dtype=object)[codes] for name, each in columns.items()})
    return wanted[np.array(kept, dtype=bool)[codes]].reset_index(drop=True), groups.fixed
