"""A ranking table as a data frame, as runs, and as a small table of a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.arrays import FloatArray
from polarbear_plugins.display.frames import categories, long_frame
from polarbear_plugins.display.html import html_table, text
from polarbear_plugins.display.text import few_places
from polarbear_plugins.names import natural_key
from polarbear_plugins.rankings.ranks import UNRANKED_RANK
from polarbear_plugins.trajectories.trajectory import Trajectory

if TYPE_CHECKING:
    import pandas as pd

    from polarbear_plugins.rankings.table import RankingTable


def frame_of(table: RankingTable) -> pd.DataFrame:
    """Rankings in long form; see :meth:`RankingTable.to_pandas`."""
    axes = {"row": np.arange(len(table)), "timepoint": table.timepoints, "algorithm": table.algorithms}
    frame = long_frame(axes, {"value": table.values, "rank": table.ranks}, keep=table.ranks > 0)
    row = frame.pop("row").to_numpy()
    frame.insert(0, "instance", categories(table.instance_index[row], table.instances))
    frame.insert(1, "repetition", table.repetition_index[row])
    if table.groups:
        names = sorted(set(table.groups), key=natural_key)
        places = {name: place for place, name in enumerate(names)}
        codes = np.array([places[group] for group in table.groups])
        frame.insert(2, "group", categories(codes[table.instance_index[row]], names))
    frame["weight"] = table.weights[row]
    unranked = frame["rank"] == UNRANKED_RANK
    if unranked.any():
        frame["rank"] = frame["rank"].astype("Int16").mask(unranked)
    return frame


def html_of(table: RankingTable) -> str:
    """Mean ranks at a few timepoints, as HTML."""
    places = few_places(table.timepoints.size)
    ranks = table.ranks[:, places]
    seen = ranks > 0
    count = seen.sum(axis=0)
    mean = np.divide(ranks.sum(axis=0), count, out=np.full(count.shape, np.nan), where=count > 0)
    unranked = (ranks == UNRANKED_RANK).any(axis=0)
    cells = np.where(unranked, "unranked", np.where(count > 0, np.char.mod("%.2f", mean), ""))
    rows = [[name, *cells[:, i].tolist()] for i, name in enumerate(table.algorithms)]
    columns = ("algorithm", *(f">at {table.timepoints[place]:,.5g}" for place in places))
    caption = "Mean rank among those observed, 1 is best"
    if unranked.any():
        caption += "; unknown where an algorithm is unranked on some instance"
    return f"<p>{text(table)}</p>{html_table(columns, rows, caption)}"


def trajectories_of(table: RankingTable) -> Iterator[Trajectory]:
    """Yield the runs of a table as far as they are known: their best values at the timepoints."""
    names, grid = table.instances, table.timepoints
    groups = table.groups or (None,) * len(names)
    values: FloatArray = table.values
    for row, (instance, repetition) in enumerate(zip(table.instance_index, table.repetition_index, strict=True)):
        for column, algorithm in enumerate(table.algorithms):
            best = values[row, :, column]
            watched = int(np.count_nonzero(~np.isnan(best)))
            if watched:
                yield Trajectory(
                    algorithm=algorithm,
                    instance=names[instance],
                    seed=int(repetition),
                    times=grid[:watched],
                    best=best[:watched],
                    horizon=float(grid[watched - 1]),
                    incumbent=True,  # existing data may have been incumbents
                    group=groups[instance],
                    fixed_group=table.fixed_groups,
                    end="stopped",  # a race runs an algorithm only as far as a pair is unsettled
                )
