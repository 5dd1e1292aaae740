"""A ranking table as a data frame, and as a small table of a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from polarbear_plugins.display.frames import categories, long_frame
from polarbear_plugins.display.html import html_table, text
from polarbear_plugins.display.text import few_places
from polarbear_plugins.names import natural_key
from polarbear_plugins.rankings.ranks import UNRANKED_RANK

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
